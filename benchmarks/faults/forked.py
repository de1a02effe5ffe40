"""Programs of tuner in processes of their own, forked from one that has imported all of tuner already.

To import it takes longer than most faults need to do their work.

    python -m benchmarks.faults.forked     # what `start` talks to: requests and answers are lines of JSON
"""

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.faults.sequences import inside, strike

RUN, TUNER = "benchmarks.faults.run", "tuner"
PRELOADED = (
    "benchmarks.faults.run",
    "benchmarks.faults.sequences.trial",
    "tuner.commands.apply",
    "tuner.cli",
    "tuner.cli.host_commands",
    "tuner.space.schema",
    "fabric",
)
POLL_S = 0.02
CALL = "import sys; from benchmarks.faults.forked import call; call(sys.argv[1:])"


class Forked:
    """A process that was forked; it is used as one of `subprocess` is."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        self._parent = _parent()
        self._output = output
        output.unlink(missing_ok=True)
        request = {"argv": [*argv], "environment": {**environment}, "output": str(output)}
        self.pid: int = self._parent.ask(request)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code as `subprocess` counts, or None while the process runs."""
        if self.returncode is None:
            self.returncode = self._parent.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end; raise `subprocess.TimeoutExpired` when it does not come."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(POLL_S)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it politely."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def read_output(self) -> str:
        """Return what it has printed so far."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""


class _Parent:
    """This process's end of the one that forks; that one ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # With compiled files it starts in half the time.
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )

    def ask(self, request: Mapping[str, object]) -> Any:  # noqa: ANN401 - JSON
        """Send a request and return the answer."""
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """Tell it that there is nothing more to come, and wait for its end."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


_start_lock = threading.Lock()


def _parent() -> _Parent:
    with _start_lock:
        return _only_parent()


@cache
def _only_parent() -> _Parent:
    parent = _Parent()
    atexit.register(parent.close)
    return parent


# ---------------------------------------------------------------------------------- in the process that forks
def serve() -> list[str] | None:
    """Fork for every request; return the command line in the forked process, None at the end of all."""
    running = set[int]()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "argv" in request:
            answer = os.fork()
            if answer == 0:
                return _become(**request)
            running.add(answer)
        else:
            ended, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
            running -= {ended}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    return None


def _become(argv: list[str], environment: dict[str, str], output: str) -> list[str]:
    """Take on a session, an output and an environment; begin anew where a library has to come first."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    for descriptor, replaced in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(descriptor, replaced)
    if "LD_PRELOAD" in environment:
        command = [sys.executable, "-c", CALL, *argv]
        os.execve(sys.executable, command, environment)  # noqa: S606 - argv, no shell
    os.environ.clear()
    os.environ.update(environment)
    if inside.VARIABLE in environment:
        inside.enter(int(environment[inside.VARIABLE]))
    return argv


def main() -> None:
    """Import what everybody needs, and fork."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for module in PRELOADED:
        importlib.import_module(module)
    # These import most of what they need when they are used.
    importlib.import_module("tuner.plugins").list_adapters()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        importlib.import_module("tuner.study.open_storage").open_storage(url, "warm-up")
    if (argv := serve()) is None:
        return
    call(argv)


def call(argv: list[str]) -> None:
    """Run a program's main function, as its own command does."""
    sys.argv = argv
    if strike.VARIABLE in os.environ:
        strike.prepare()
    importlib.import_module("tuner.cli" if argv[0] == TUNER else argv[0]).main()


if __name__ == "__main__":
    main()
