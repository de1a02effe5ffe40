"""How long the rest of a campaign takes: what it has planned, at what its trials have cost so far.

Its deadline is the latest moment and no forecast: stages end when they have nothing left to tell. Of 47 quick
studies of drawn servers half ended more than 30 s before it, of 12 standard ones half more than 20 minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.study.presets import Plan

STAGES = ("calibrate", "search", "race", "ablation", "robustness", "confirm", "latency", "effects")
"""In the order in which a campaign goes through them."""
RACE_TRIALS, ABLATION_TRIALS = 9, 2
"""After which race and, beside factorial trials, ablation mostly have nothing left to tell: medians."""
TRIALS_PER_SETTING = 4
"""Of factorial trials, at the most."""
BASELINES = 0.2
"""Trials of the default in a search, for each configuration that is tried."""


def count_factorial(plan: Plan, settings: int) -> int:
    """Return how many factorial trials tell so many settings apart; a single one needs none."""
    return min(plan.factorial, TRIALS_PER_SETTING * settings) if settings > 1 else 0


def usual_trials(plan: Plan, trial_s: float) -> Mapping[str, float]:
    """Return how many trials, of so many seconds each, race and ablation mostly make."""
    is_short = plan.factorial * trial_s > plan.ablation_s
    factorial = plan.ablation_s / trial_s if is_short else plan.factorial
    return {"race": RACE_TRIALS, "ablation": factorial + ABLATION_TRIALS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What lies ahead of a campaign; all times in seconds."""

    plan: Plan
    trial_s: float
    """Of a trial."""
    pair_trial_s: float
    """Of a trial of the confirmation."""
    pairs: int
    """Of the confirmation."""
    extension: float
    """Pairs that are expected to follow those, because they do not decide."""
    search_s: float
    """Until the search has to leave the time that is left to later stages."""
    trials: int
    """Configurations that the search may still try."""
    has_rate: bool
    """Whether response times are compared at a fixed rate in the end."""

    def left_s(self, stage: str, missing: float) -> float:
        """Return the seconds until the end of the campaign.

        Args:
            stage: in which it is; an empty one has not begun.
            missing: trials that the stage still has to make; the search knows its own.
        """
        later = STAGES[STAGES.index(stage) + 1 :] if stage else STAGES
        now_s = (missing + self._extended(stage)) * self._each_s(stage)
        if stage == "search":
            now_s = self._search_s(self.search_s)
        elif "search" in later:  # what the calibration takes, the search lacks
            now_s += self._search_s(self.search_s - now_s)
        return now_s + sum(self._whole_s(each) for each in later)

    def _search_s(self, most_s: float) -> float:
        return max(0.0, min(most_s, self.trials * (1 + BASELINES) * self.trial_s))

    def _each_s(self, stage: str) -> float:
        """Return what a trial of a stage takes."""
        plan = self.plan
        if stage == "confirm":
            return self.pair_trial_s
        if stage == "latency":
            return self.trial_s + plan.rate_window_s
        return self.trial_s

    def _whole_s(self, stage: str) -> float:
        """Return what a stage after the search takes; nothing for those before."""
        plan = self.plan
        most_s = {"race": plan.race_s, "ablation": 2 * plan.ablation_s}
        if stage in most_s:
            return min(most_s[stage], usual_trials(plan, self.trial_s)[stage] * self.trial_s)
        if stage == "robustness":
            return plan.robustness_s
        trials = {"confirm": 2 * self.pairs, "latency": 2 * plan.rate_pairs * self.has_rate}
        return (trials.get(stage, 0) + self._extended(stage)) * self._each_s(stage)

    def _extended(self, stage: str) -> float:
        """Return the trials that are expected beyond those that a stage has planned."""
        return 2 * self.extension if stage == "confirm" else 0.0
