"""Optuna's PED-ANOVA with what chance alone would give taken off, and an interval.

PED-ANOVA (Watanabe, Bansal, Hutter 2023, arXiv 2304.10255; conditional parameters: arXiv 2601.20800) compares the
density of a parameter's values among the best starts with that among all. It is never negative, so with few
starts it ranks by chance: every draw therefore subtracts the importance that the same starts give with
shuffled speedups. An interval above zero is more than chance.
"""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState

from tuner.optimize.tpe import distributions
from tuner.ports import Config, Scalar

if TYPE_CHECKING:
    from collections.abc import Container

    from tuner.space import Space

DRAWS = 50
"""Two evaluations each; 100 evaluations of 60 starts × 25 parameters must stay below 5 s."""
TARGET_QUANTILE = 0.25
"""Optuna's 0.1 leaves 3 to 6 of our starts at the top; it asks for 5 at least, and in simulated studies of
60 starts the best quarter found twice as many true effects."""
MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


def measure_importance(
    space: "Space",
    configs: Sequence[Config],
    logs: NDArray[np.float64],
    generator: np.random.Generator,
) -> dict[str, tuple[float, float, float]]:
    """Return each parameter's share of the importance above chance with its 95 % bootstrap interval."""
    known = distributions(space.dimensions)
    points = [active_point(space, config) for config in configs]
    spaces = [{name: known[name] for name in point} for point in points]
    owner = {dimension.name: dimension.parameter for dimension in space.dimensions}
    names = list(dict.fromkeys(owner.values()))

    def evaluate(rows: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        found = evaluate_draw([points[row] for row in rows], [spaces[row] for row in rows], values)
        sums = dict.fromkeys(names, 0.0)
        for name, importance in found.items():
            sums[owner[name]] += importance
        return np.array([sums[name] for name in names])

    excess = []
    for _ in range(DRAWS):
        rows = generator.integers(len(configs), size=len(configs))
        drawn = logs[rows]
        excess.append(evaluate(rows, drawn) - evaluate(rows, generator.permutation(drawn)))
    means = np.maximum(np.mean(excess, axis=0), 0.0)
    total = float(means.sum()) or 1.0
    low, high = np.quantile(np.stack(excess), [0.025, 0.975], axis=0) / total
    return {
        name: (float(means[index] / total), float(low[index]), float(max(high[index], means[index] / total)))
        for index, name in enumerate(names)
    }


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


def evaluate_draw(
    points: Sequence[Mapping[str, Scalar]],
    spaces: Sequence[Mapping[str, BaseDistribution]],
    values: NDArray[np.float64],
) -> dict[str, float]:
    """Evaluate PED-ANOVA once, by dimension."""
    trials = [
        FrozenTrial(
            number=number, trial_id=number, state=TrialState.COMPLETE, value=float(value), params=dict(point),
            distributions=dict(space), datetime_start=MOMENT, datetime_complete=MOMENT,
            user_attrs={}, system_attrs={}, intermediate_values={},
        )
        for number, (point, space, value) in enumerate(zip(points, spaces, values, strict=True))
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small regimes: the intervals say how small
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage = DrawnTrials(trials)
        study = optuna.Study(storage.get_study_name_from_id(storage.study_id), storage)
        return PedAnovaImportanceEvaluator(target_quantile=TARGET_QUANTILE).evaluate(study)


class DrawnTrials(optuna.storages.InMemoryStorage):
    """Holds one draw as it is: adding trials to a study copies each deeply, as dear as the evaluation."""

    def __init__(self, trials: list[FrozenTrial]) -> None:
        super().__init__()
        self.study_id = self.create_new_study([optuna.study.StudyDirection.MAXIMIZE])
        self._drawn = trials

    def get_all_trials(
        self,
        study_id: int,  # noqa: ARG002 - there is one study
        deepcopy: bool = True,  # noqa: ARG002, FBT001, FBT002 - Optuna's signature
        states: "Container[TrialState] | None" = None,  # noqa: ARG002 - all are complete
    ) -> list[FrozenTrial]:
        return self._drawn
