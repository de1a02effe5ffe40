"""Presets: how long to measure, how often, and what each stage may cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of one campaign."""

    minutes: float
    """Wall time of the whole campaign; the search gives up what the later stages need."""
    trials: int
    """Search starts at the most, repeats included, controls not."""
    window_s: float
    warmup_s: float
    warmup_max_s: float
    windows: tuple[int, int]
    """Windows of a search start before it may be pruned, and at the most."""
    calibration_starts: int
    race_arms: int
    """Best configurations that enter the final race, besides the default."""
    race_blocks: int
    race_first_test: int
    simplify_steps: int
    """Halvings of the winner's changes at the most."""
    simplify_pairs: int
    pairs: int
    """Fresh default/winner pairs of the confirmation."""
    extend_to: int
    """Pairs after the one planned extension, when the first do not decide."""


PRESETS: Mapping[str, Plan] = MappingProxyType(
    {
        # wrk and ab take whole seconds only, so one second is the shortest window there is.
        "quick": Plan(
            minutes=5, trials=20, window_s=1, warmup_s=1, warmup_max_s=2, windows=(1, 2),
            calibration_starts=4, race_arms=2, race_blocks=4, race_first_test=3,
            simplify_steps=2, simplify_pairs=3, pairs=6, extend_to=12,
        ),
        "standard": Plan(
            minutes=75, trials=60, window_s=5, warmup_s=5, warmup_max_s=15, windows=(2, 3),
            calibration_starts=8, race_arms=4, race_blocks=8, race_first_test=4,
            simplify_steps=4, simplify_pairs=5, pairs=10, extend_to=20,
        ),
        "thorough": Plan(
            minutes=180, trials=120, window_s=5, warmup_s=5, warmup_max_s=15, windows=(2, 3),
            calibration_starts=8, race_arms=4, race_blocks=12, race_first_test=4,
            simplify_steps=5, simplify_pairs=6, pairs=16, extend_to=32,
        ),
    }
)  # fmt: skip
