"""Presets: how long to measure, how often, and what each stage may cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of one campaign."""

    minutes: float
    """Wall time of the whole campaign; the search gives up what the later stages need."""
    trials: int
    """Search trials at the most, repeats included, baselines not."""
    window_s: float
    warmup_s: float
    warmup_max_s: float
    windows: tuple[int, int]
    """Windows of a search trial before it may be pruned, and at the most."""
    calibration_trials: int
    race_s: float
    """Seconds that the race of the best configurations may take; it ends when it has nothing left to tell."""
    ablation_s: float
    """The same of the ablation."""
    pairs: int
    """Fresh default/winner pairs of the confirmation, at the least."""
    extend_to: int
    """Pairs after the one planned extension, when the first do not decide; `pairs` for none."""
    confirm_s: float = 0.0
    """Seconds that the confirmation may take: pairs and windows are planned to prove the gain that was seen
    in as few of them as will do. 0 keeps to `pairs` and the windows of every trial."""
    rate_pairs: int = 0
    """Pairs at a fixed rate, for response times; 0 leaves them out."""
    rate_window_s: float = 20.0
    factorial: int = 0
    """Factorial trials, which tell the effects of a finalist's settings apart; 0 for none."""
    robustness_s: float = 0.0
    """Seconds in which a candidate and the default meet loads that nothing was tuned on; 0 leaves it out."""
    slice_s: float = 1.0
    """Of the warm-up, which is looked at slice by slice."""
    growth_s: float = 0.0
    """Seconds that a server which makes more processes under load may be waited for; 0 waits for none."""
    keeps_window: bool = False
    """Whether the study file sets the windows, so that nothing else does."""
    keeps_warmup: bool = False
    """Whether it sets the warm-up."""

    @property
    def least_minutes(self) -> float:
        """Time under load of the fewest trials: of the default, one that is tried, and the least pairs."""
        trials = LEAST_CALIBRATION + 1 + 2 * LEAST_PAIRS
        return trials * (self.warmup_s + self.windows[0] * self.window_s) / 60

    def under(self, connections: int) -> "Plan":
        """Return the plan for a load of so many connections.

        Every window opens them anew, and one for which the listen queue has no place is tried again after a
        second (tcp(7), tcp_syn_retries). A window that is over by then shows nothing else. To open 10,000
        takes a generator with one CPU a good part of a second besides.
        """
        least_s = next((seconds for many, seconds in LEAST_WINDOWS_S if connections >= many), 0.0)
        return self.paced(least_s) if least_s else self

    def for_tail(self, rate_rps: float) -> "Plan":
        """Return the plan whose windows have enough requests for a p99, or are as long as the time allows."""
        needed_s = math.ceil(LEAST_FOR_TAIL / rate_rps)
        return self.at_pace(min(needed_s, math.floor(60 * self.minutes / MOST_WINDOWS)))

    def at_pace(self, window_s: float) -> "Plan":
        """Return the plan of a slow application; a race that has no time for two trials decides nothing."""
        race_s = self.race_s if self.race_s >= 4 * window_s else 0.0
        return replace(self.paced(window_s), race_s=race_s)

    def paced(self, window_s: float) -> "Plan":
        """Return the plan with windows, and warm-ups, of so many seconds at the least; set ones stay."""
        plan = self if self.keeps_window else replace(self, window_s=max(self.window_s, window_s))
        if self.keeps_warmup:
            return plan
        return replace(
            plan,
            slice_s=max(self.slice_s, window_s),
            warmup_s=max(self.warmup_s, window_s),
            warmup_max_s=max(self.warmup_max_s, window_s),
        )

    def as_set(self, *, window_s: float | None, warmup_s: float | None) -> "Plan":
        """Return the plan with the windows and the warm-up that a study file sets; None leaves them."""
        plan = self if window_s is None else replace(self, window_s=window_s, keeps_window=True)
        if warmup_s is None:
            return plan
        return replace(
            plan,
            warmup_s=warmup_s,
            warmup_max_s=warmup_s,
            slice_s=min(self.slice_s, warmup_s),
            keeps_warmup=True,
        )

    def on(self, hosts: int) -> "Plan":
        """Return the plan where the winner is to hold on so many hosts, each of which makes its trials."""
        return replace(self, trials=hosts * self.trials)

    def fit(self, *, minutes: float | None, trials: int | None) -> "Plan":
        """Return the plan within another budget; with less time, every stage gets less of it.

        Other loads and response times at a fixed rate are dropped when too little is left of them to tell
        anything. The confirmation stays.
        """
        fitted = self if trials is None else replace(self, trials=trials)
        if minutes is None or minutes >= self.minutes:
            return fitted if minutes is None else replace(fitted, minutes=minutes)
        share = minutes / self.minutes
        rate_pairs = math.floor(self.rate_pairs * share)
        robustness_s = self.robustness_s * share
        pairs = max(LEAST_PAIRS, round(self.pairs * share))
        least_confirm_s = 2 * pairs * (self.warmup_s + self.window_s)
        return replace(
            fitted,
            minutes=minutes,
            windows=self.windows if share >= LEAST_SHARE else (self.windows[0], self.windows[0]),
            calibration_trials=max(LEAST_CALIBRATION, round(self.calibration_trials * share)),
            race_s=self.race_s * share,
            ablation_s=self.ablation_s * share,
            pairs=pairs,
            extend_to=max(LEAST_PAIRS, round(self.extend_to * share)),
            factorial=round(self.factorial * share),
            confirm_s=max(self.confirm_s * share, least_confirm_s) if self.confirm_s else 0.0,
            rate_pairs=rate_pairs if rate_pairs >= LEAST_RATE_PAIRS else 0,
            robustness_s=robustness_s if robustness_s >= LEAST_ROBUSTNESS_S else 0.0,
        )


MOST_MINUTES = 7 * 24 * 60
MOST_TRIALS = 100_000
"""What a budget may be at the most."""
MOST_SET_S = 300.0
"""Seconds of a window or a warm-up that a study file may set at the most."""
LEAST_WINDOWS_S = ((5000, 3.0), (1000, 2.0))
"""From so many connections on: windows of so many seconds at the least."""
LEAST_CALIBRATION = 3
LEAST_FOR_TAIL = 1000
"""Requests in a window whose p99 is compared: it rests on the 10 slowest."""
MOST_WINDOWS = 75
"""Of a study; it needs some sixty."""
LEAST_SHARE = 0.75
"""Of a preset's time, with which its trials keep all their windows."""
LEAST_RATE_PAIRS = 3
LEAST_ROBUSTNESS_S = 10.0
"""A pair of trials under all check loads takes as long."""
LEAST_PAIRS = 4
"""With three pairs the t interval is so wide that hardly anything is proved by it (t = 4.3)."""

PRESETS: Mapping[str, Plan] = MappingProxyType(
    {
        # wrk and ab take whole seconds only, so one second is the shortest window there is.
        "quick": Plan(
            minutes=5, trials=100, window_s=1, warmup_s=1, warmup_max_s=2, windows=(1, 2),
            calibration_trials=4, race_s=25, ablation_s=35, pairs=5, extend_to=5, confirm_s=90,
            robustness_s=20, factorial=16,
        ),
        "standard": Plan(
            minutes=75, trials=120, window_s=5, warmup_s=5, warmup_max_s=15, windows=(2, 3),
            calibration_trials=8, race_s=480, ablation_s=600, pairs=10, extend_to=20,
            rate_pairs=5, robustness_s=120, factorial=16,
        ),
        "thorough": Plan(
            minutes=180, trials=240, window_s=5, warmup_s=5, warmup_max_s=15, windows=(2, 3),
            calibration_trials=8, race_s=960, ablation_s=1200, pairs=16, extend_to=32,
            rate_pairs=8, robustness_s=240, factorial=16,
        ),
    }
)  # fmt: skip
