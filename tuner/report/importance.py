"""Optuna's PED-ANOVA with bootstrap intervals, beside what it says of shuffled speedups.

PED-ANOVA (Watanabe, Bansal & Hutter 2023, arXiv 2304.10255; conditional parameters: arXiv 2601.20800)
compares the density of a parameter's values among the best starts with that among all. It is never negative,
and with few starts it ranks by chance: a parameter with many values looks more important than a switch even
when neither matters. So every draw is evaluated twice, with its speedups and with the same ones shuffled.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState

from tuner.optimize.replay import distributions
from tuner.ports import Config, Scalar

if TYPE_CHECKING:
    from collections.abc import Container

    from tuner.space import Space

DRAWS, LEAST_DRAWS, PLAIN_STARTS = 50, 25, 60
"""Draws of two evaluations each, fewer beyond so many starts: 50 draws of 60 starts over 46 dimensions
take 5 s, and the time grows with the starts."""
TARGET_QUANTILE = 0.25
"""Optuna's 0.1 leaves 3 to 6 of our starts at the top; it asks for 5 at least, and in simulated studies of
60 starts the best quarter found twice as many true effects."""
DRAWN = "drawn"
MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """One parameter's share of the importance, 0 to 1; all shares of a study add up to about 1."""

    share: float
    low: float
    high: float
    chance: float
    """Its share when speedups are shuffled."""
    is_above_chance: bool
    """Whether the 95 % interval of share − chance lies above zero."""


def measure_importance(
    space: "Space",
    configs: Sequence[Config],
    logs: NDArray[np.float64],
    generator: np.random.Generator,
) -> dict[str, Importance]:
    """Measure the importance of every parameter of a space for reaching the best quarter of these starts."""
    known = distributions(space.dimensions)
    points = [active_point(space, config) for config in configs]
    spaces = [{name: known[name] for name in point} for point in points]
    owner = {dimension.name: dimension.parameter for dimension in space.dimensions}
    names = list(dict.fromkeys(owner.values()))
    storage = DrawnTrials()
    study = optuna.Study(DRAWN, storage)

    def evaluate(rows: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        storage.drawn = make_trials([points[row] for row in rows], [spaces[row] for row in rows], values)
        sums = dict.fromkeys(names, 0.0)
        for name, importance in evaluate_draw(study).items():
            sums[owner[name]] += importance
        shares = np.array([sums[name] for name in names])
        return np.asarray(shares / (shares.sum() or 1.0))

    true_shares, chance_shares = [], []
    for _ in range(max(LEAST_DRAWS, DRAWS * PLAIN_STARTS // max(PLAIN_STARTS, len(configs)))):
        rows = generator.integers(len(configs), size=len(configs))
        true_shares.append(evaluate(rows, logs[rows]))
        chance_shares.append(evaluate(rows, generator.permutation(logs[rows])))
    shares, chances = np.stack(true_shares), np.stack(chance_shares)
    low, middle, high = np.quantile(shares, [0.025, 0.5, 0.975], axis=0)
    excess = np.quantile(shares - chances, 0.025, axis=0)
    return {
        name: Importance(
            share=float(middle[index]), low=float(low[index]), high=float(high[index]),
            chance=float(chances[:, index].mean()), is_above_chance=bool(excess[index] > 0),
        )
        for index, name in enumerate(names)
    }  # fmt: skip


def active_point(space: "Space", config: Config) -> dict[str, Scalar]:
    """Encode a configuration, leaving out dimensions that had no say in it.

    PED-ANOVA treats a missing dimension as a regime of its own, which is what an inactive one is.
    """
    point = space.encode(config)
    kept: dict[str, Scalar] = {}
    for dimension in space.dimensions:
        special = point.get(f"{dimension.parameter}:special", "number")
        is_number = dimension.name == dimension.parameter
        if dimension.parameter in config and not (is_number and special != "number"):
            kept[dimension.name] = point[dimension.name]
    return kept


def make_trials(
    points: Sequence[Mapping[str, Scalar]],
    spaces: Sequence[Mapping[str, BaseDistribution]],
    values: NDArray[np.float64],
) -> list[FrozenTrial]:
    """Make one trial per start."""
    return [
        FrozenTrial(
            number=number, trial_id=number, state=TrialState.COMPLETE, value=float(value), params=dict(point),
            distributions=dict(space), datetime_start=MOMENT, datetime_complete=MOMENT,
            user_attrs={}, system_attrs={}, intermediate_values={},
        )
        for number, (point, space, value) in enumerate(zip(points, spaces, values, strict=True))
    ]  # fmt: skip


def evaluate_draw(study: optuna.Study) -> dict[str, float]:
    """Evaluate PED-ANOVA once, by dimension."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small regimes: the intervals say how small
        return PedAnovaImportanceEvaluator(target_quantile=TARGET_QUANTILE).evaluate(study)


class DrawnTrials(optuna.storages.InMemoryStorage):
    """The trials of one draw as a storage: adding them to a study would copy each, at twice the time."""

    drawn: list[FrozenTrial]

    def get_study_id_from_name(self, study_name: str) -> int:  # noqa: ARG002 - there is one study
        return 0

    def get_study_directions(self, study_id: int) -> list[optuna.study.StudyDirection]:  # noqa: ARG002
        return [optuna.study.StudyDirection.MAXIMIZE]

    def get_all_trials(
        self,
        study_id: int,  # noqa: ARG002
        deepcopy: bool = True,  # noqa: ARG002, FBT001, FBT002 - Optuna's signature
        states: "Container[TrialState] | None" = None,  # noqa: ARG002 - all are complete
    ) -> list[FrozenTrial]:
        return self.drawn
