"""Who decides on a study: of the threads that each drive one target, one at a time.

A thread has the turn while it decides, by everything that all of them know, and lets others decide while its
target measures.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock


class Turn:
    """The lock on what is known of a study."""

    def __init__(self) -> None:
        """Begin with nobody deciding."""
        self._changed = Condition(Lock())
        self._has_news = False
        """Whether a trial has ended since the others were woken."""
        self._stopped: BaseException | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Decide. Raises what the study was stopped with."""
        with self._changed:
            self._go_on()
            try:
                yield
            finally:
                self._changed.notify_all()

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Let others decide meanwhile. Raises afterwards what the study was stopped with."""
        self._changed.notify_all()
        self._changed.release()
        try:
            yield
        finally:
            self._changed.acquire()
            self._has_news = True
        self._go_on()

    def wait(self, seconds: float) -> None:
        """Let others decide until one of them has, or so many seconds. Raises as `others_turn` does."""
        if self._has_news:
            self._has_news = False
            self._changed.notify_all()
        self._changed.wait(seconds)
        self._go_on()

    def stop(self, error: BaseException) -> None:
        """Let everybody who decides next raise this instead; the first one counts."""
        with self._changed:
            self._stopped = self._stopped or error
            self._changed.notify_all()

    @property
    def is_stopped(self) -> bool:
        """Return whether the study was stopped."""
        return self._stopped is not None

    def _go_on(self) -> None:
        if self._stopped is not None:
            raise self._stopped
