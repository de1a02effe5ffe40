"""What a study asks of its workers, and the worker that is alone.

One worker at a time decides: it has the turn. It passes the turn on while it measures, so that others decide
meanwhile, and takes it again to write down what came of that. So every decision is made by the code of a
study with one worker, on everything that is known by then, and whoever has the turn leads.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol, TypeVar

from tuner.records import Start

T = TypeVar("T")


class Crew(Protocol):
    """All workers of a study, as one of them sees it."""

    @property
    def host(self) -> str:
        """Return where this worker measures; empty for one that is alone."""

    @property
    def worker(self) -> str:
        """Return the name of this worker; empty for one that is alone."""

    @property
    def is_shared(self) -> bool:
        """Return whether there may be others."""

    def at_work(self) -> AbstractContextManager[None]:
        """Take part, and have the turn. Raises TargetError where another one is at work on the host."""

    def others_turn(self) -> AbstractContextManager[None]:
        """Let others decide meanwhile; afterwards this one has the turn again."""

    def alive(self, trial: int) -> AbstractContextManager[None]:
        """Show that this worker is alive while it is at a trial, by its identity in the storage."""

    def require_turn(self) -> None:
        """Raise StorageLost when the turn was lost, and others may have decided."""

    def insist(self, write: Callable[[], T]) -> T:
        """Write, and try again where the storage is away, as long as the target may stay as it is."""

    def silences(self) -> Mapping[int, float | None]:
        """Return start number → seconds since its worker was heard of, of those that run; None for never."""

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        """Return the starts that their workers will never end; this one is at none now."""

    def is_at_work(self, host: str) -> bool:
        """Return whether a worker takes part on a host now."""

    def is_any_at_work(self) -> bool:
        """Return whether any worker takes part now."""


class Alone:
    """A worker without others: a lock on the study's folder keeps them away."""

    host: ClassVar[str] = ""
    worker: ClassVar[str] = ""
    is_shared: ClassVar[bool] = False

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def others_turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def alive(self, trial: int) -> AbstractContextManager[None]:  # noqa: ARG002 - nobody asks
        return nullcontext()

    def require_turn(self) -> None:
        """Return: nobody could have taken it."""

    def insist(self, write: Callable[[], T]) -> T:
        return write()

    def silences(self) -> Mapping[int, float | None]:
        return {}

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        """Return all of them: whoever was at them held the lock."""
        return [*running]

    def is_at_work(self, host: str) -> bool:  # noqa: ARG002 - nobody but this one
        return False

    def is_any_at_work(self) -> bool:
        return False


ALONE = Alone()
