"""Tells what happens on one host of several."""

from collections.abc import Sequence
from threading import Lock

from tuner.campaign.progress import Leader, Progress
from tuner.records import Role, Trial
from tuner.report.wording import say_duration
from tuner.statistics.baseline_level import Speedup


class Telling:
    """Progress of one host, told with the host's name, one at a time."""

    def __init__(self, host: str, progress: Progress, lock: Lock) -> None:
        """Tell it to what shows all hosts."""
        self._host = host
        self._progress = progress
        self._lock = lock
        self._begins: tuple[Role, str] | None = None

    def stage(self, name: str, done: int, total: int) -> None:
        """Tell how far a stage is."""
        with self._lock:
            self._progress.stage(name, done, total)

    def trial_begins(self, role: Role, label: str) -> None:
        """Tell what is being measured on the host."""
        self._begins = role, f"{self._host}: {label or role.label}"
        with self._lock:
            self._progress.trial_begins(*self._begins)

    def trial_ends(self, trial: Trial, speedup: Speedup | None) -> None:
        """Tell how a trial ended, and once more which: others may have begun theirs meanwhile."""
        with self._lock:
            self._progress.trial_begins(*(self._begins or (trial.role, self._host)))
            self._progress.trial_ends(trial, speedup)

    def leaders(self, leaders: Sequence[Leader]) -> None:
        """Tell which configurations lead."""
        with self._lock:
            self._progress.leaders(leaders)

    def note(self, text: str) -> None:
        """Tell something of the host."""
        with self._lock:
            self._progress.note(f"{self._host}: {text.removeprefix(f'{self._host}: ')}")

    def waits(self, seconds: float) -> None:
        """Tell that nothing is measured on the host until it is quiet."""
        self.note(f"waiting for a quiet host, up to {say_duration(seconds)}")

    def time_left(self, seconds: float) -> None:
        """Tell how long the rest takes."""
        with self._lock:
            self._progress.time_left(seconds)
