"""A signal that hits a program of tuner at a chosen one of its requests to a host."""

import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.hosts.ssh.machine import RemoteMachine

VARIABLE = "FAULTS_STRIKE"
"""Number of the request, number of the signal, and milliseconds after which it comes."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


def write(request: int, number: signal.Signals, after_ms: int) -> Mapping[str, str]:
    """Return the environment of a program that shall be hit."""
    return {VARIABLE: f"{request} {int(number)} {after_ms}"}


def prepare() -> None:
    """Let the signal that the environment names come to this process at its moment."""
    at, number, after_ms = map(int, os.environ[VARIABLE].split())
    sent = 0

    def strike() -> None:
        if number == signal.SIGINT:
            os.killpg(0, number)  # as Ctrl-C does
        else:
            os.kill(os.getpid(), number)

    def counted(method: Any) -> Any:  # noqa: ANN401 - whatever it takes and returns
        def wrapped(*args: Any, **how: Any) -> Any:  # noqa: ANN401
            nonlocal sent
            sent += 1
            if sent == at and after_ms == 0:
                strike()
            elif sent == at:
                timer = threading.Timer(after_ms / 1000, strike)
                timer.daemon = True
                timer.start()
            return method(*args, **how)

        return wrapped

    methods = {
        RemoteMachine: ("_run_once", "_look_once", "_start"),
        LocalHost: ("_run_one", "read", "_start"),
    }
    for of, names in methods.items():
        for name in names:
            setattr(of, name, counted(getattr(of, name)))
