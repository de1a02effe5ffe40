"""Signals that end a run, but not in the middle of what must come to its end."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGINT, too: a shell without job control starts what it puts in the background with SIGINT ignored."""

AGAIN_S = 0.05
"""Seconds after which a dropped signal is sent again."""

Handler = Callable[[int, object], None]


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, too: everything is put back on the way out."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with _handled_by(interrupt), _sent_again():
        yield


@contextmanager
def _sent_again() -> Iterator[None]:
    """Send a signal again that came in a finalizer or a weak reference: Python drops what they raise."""
    earlier = sys.unraisablehook

    def look(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            earlier(unraisable)
            return
        number = getattr(signal, str(unraisable.exc_value), signal.SIGINT)
        # Not here, where it would be dropped, too.
        timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = look
    try:
        yield
    finally:
        sys.unraisablehook = earlier


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals until the block has ended; one that came meanwhile interrupts afterwards.

    An impatient second Ctrl-C must not leave a host half put back.
    """
    came: list[int] = []

    def remember(number: int, _frame: object) -> None:
        came.append(number)

    with _handled_by(remember):
        yield
    if came:
        raise KeyboardInterrupt(signal.Signals(came[0]).name)


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    try:
        before = {number: signal.signal(number, handler) for number in STOPPING}
    except ValueError:  # not the main thread, where signals cannot be caught: a notebook's worker
        yield
        return
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
