"""How often a window is measured again, and when the host is too noisy to go on."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.measure.validity.facts import DEFAULTS, Thresholds, percent
from tuner.records import Blame, Verdict

NOISY = "host: too noisy"
LEAVE = "Stop the other programs here, or use another machine. Then run the same command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """The host spoils too many windows."""

    share: float
    windows: int
    pause_s: float | None
    """Wait at most so long for it to pass; None when all the waiting there may be was done: give up."""
    found: str
    """What was seen, with the figures."""

    @property
    def advice(self) -> str:
        """Return what happens next, or what to do."""
        return (
            LEAVE
            if self.pause_s is None
            else (f"tuner waits up to {self.pause_s:.0f} s for the noise to pass.")
        )


class RetryBudget:
    """Counts the windows that the environment spoiled.

    Call `begin_trial` and `begin_window` where one begins, `allows_another` after each try of a window, and
    `complain` when it is time to ask whether measuring makes sense at all.
    """

    def __init__(self, limits: Thresholds = DEFAULTS) -> None:
        self._limits = limits
        self._in_window = 0
        self._in_trial = 0
        self._patience_s = limits.noisy_pause_s
        self._tries: deque[tuple[float, frozenset[str]]] = deque()
        """When each window was over, and the checks by which the environment spoiled it."""

    def begin_trial(self) -> None:
        """Return the next trial its retries."""
        self._in_trial = 0

    def begin_window(self) -> None:
        """Return the next window its retries."""
        self._in_window = 0

    def allows_another(self, verdicts: Iterable[Verdict], *, at_s: float) -> bool:
        """Note how a try of a window ended, and tell whether it is to be tried again.

        Args:
            verdicts: of the try.
            at_s: monotonic time.
        """
        spoiled = frozenset(each.check for each in verdicts if each.blame is Blame.ENVIRONMENT)
        self._tries.append((at_s, spoiled))
        while self._tries and self._tries[0][0] < at_s - self._limits.noisy_span_s:
            self._tries.popleft()
        if not spoiled:
            return False
        self._in_window += 1
        self._in_trial += 1
        return (
            self._in_window <= self._limits.retries_per_window
            and self._in_trial <= self._limits.retries_per_trial
        )

    def rested(self, seconds: float) -> None:
        """Note how long was waited: noise that comes again and again has one pause altogether."""
        self._patience_s -= seconds

    def complain(self, *, provable_gain: float | None = None, pause_s: float = math.inf) -> Noisy | None:
        """Return a complaint when too many of the last windows were spoiled; it says how long to wait.

        Args:
            pause_s: time that there is to wait for the noise to pass.
            provable_gain: smallest gain that the calibration found provable here, as a ratio minus one.
        """
        tries, limits = len(self._tries), self._limits
        spoiled = [checks for _, checks in self._tries if checks]
        if tries < limits.noisy_least_windows or len(spoiled) <= limits.noisy_share * tries:
            return None
        names = [name for checks in spoiled for name in checks]
        most = sorted(set(names), key=lambda name: (-names.count(name), name))
        share = len(spoiled) / tries
        provable = ""
        if provable_gain is not None:
            provable = f" This machine cannot prove gains below {percent(provable_gain, 1)}."
        found = (
            f"{NOISY}, {len(spoiled)} of the last {tries} windows ({percent(share)}) were spoiled by "
            f"{', '.join(most)}."
        )
        rest_s = None if self._patience_s < limits.noisy_least_pause_s else min(self._patience_s, pause_s)
        # What comes after a pause is judged by itself.
        self._tries.clear()
        return Noisy(share=share, windows=tries, pause_s=rest_s, found=f"{found}{provable}")
