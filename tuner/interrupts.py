"""Signals that end a run: politely, and not in the middle of what must come to its end."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGINT, too: a shell without job control starts what it puts in the background with SIGINT ignored."""

Handler = Callable[[int, object], None]


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let every polite signal end a run the way Ctrl-C does: everything is put back on the way out."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with _handled_by(interrupt):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let what is done here come to its end; a signal that came meanwhile interrupts afterwards.

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
