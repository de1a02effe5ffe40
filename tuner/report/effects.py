"""Differences between groups of a parameter's values: bootstrap intervals and a permutation test."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuner.ports import Scalar
from tuner.report.value_groups import ValueGroups

DRAWS = 1000
ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The difference between two groups, in logarithms."""

    difference: float
    low: float
    high: float
    group: str
    reference: str


def draw_weights(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw bootstrap samples of so many starts: how often each start is in each sample."""
    return generator.multinomial(count, [1 / count] * count, size=DRAWS)


def find_effects(
    divided: Mapping[str, ValueGroups], logs: NDArray[np.float64], generator: np.random.Generator
) -> set[str]:
    """Return the parameters whose groups differ by more than chance, over all parameters together.

    F statistics between groups against the largest F of each shuffle: the single-step max-T procedure of
    Westfall and Young (1993), which keeps the chance of a single false finding below ALPHA.
    """
    shuffled = np.stack([logs, *(generator.permutation(logs) for _ in range(DRAWS))])
    statistics = {
        name: compute_f(groups.membership, shuffled) for name, groups in divided.items() if groups.is_varied
    }
    if not statistics:
        return set()
    largest = np.max(np.stack([statistic[1:] for statistic in statistics.values()]), axis=0)
    limit = float(np.quantile(largest, 1 - ALPHA))
    return {name for name, statistic in statistics.items() if statistic[0] > limit}


def compute_f(membership: NDArray[np.float64], logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the F statistic between the groups for every row of logs.

    Shapes: membership starts × groups, logs rows × starts. A start without the parameter is in no group.
    """
    inside = membership.any(axis=1)
    member, values = membership[inside], logs[:, inside]
    sizes = member.sum(axis=0)
    member, sizes = member[:, sizes > 0], sizes[sizes > 0]
    means = values @ member / sizes
    grand = values.mean(axis=1, keepdims=True)
    explained = ((means - grand) ** 2 @ sizes) / max(1, len(sizes) - 1)
    rest = ((values - means @ member.T) ** 2).sum(axis=1) / max(1, len(member) - len(sizes))
    return np.asarray(explained / np.maximum(rest, 1e-12))


def estimate_effect(
    groups: ValueGroups,
    logs: NDArray[np.float64],
    weights: NDArray[np.int64] | None,
    wanted: Scalar | None,
) -> Effect | None:
    """Compare the winner's group of values, else the best other one, with the default's."""
    reference = groups.default
    counts = groups.membership.sum(axis=0)
    if weights is None or reference is None or counts[reference] < 2:  # noqa: PLR2004 - no spread below two
        return None
    means = np.full(len(counts), -np.inf)
    usable = [index for index in range(len(counts)) if index != reference and counts[index] >= 2]  # noqa: PLR2004
    if not usable:
        return None
    for index in usable:
        means[index] = logs[groups.membership[:, index] > 0].mean()
    chosen = groups.scale.group(wanted)
    index = chosen if chosen in usable else int(np.argmax(means))
    pair = groups.membership[:, [index, reference]]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (weights * logs) @ pair / (weights @ pair)
    differences = drawn[:, 0] - drawn[:, 1]
    low, high = np.nanquantile(differences, [ALPHA / 2, 1 - ALPHA / 2])
    return Effect(
        difference=float(means[index] - logs[pair[:, 1] > 0].mean()),
        low=float(low), high=float(high), group=groups.labels[index], reference=groups.labels[reference],
    )  # fmt: skip


def describe_direction(
    groups: ValueGroups,
    logs: NDArray[np.float64],
    weights: NDArray[np.int64] | None,
    effect: Effect | None,
) -> str:
    """Return which way is better: by rank correlation for numbers, by the better choice for others."""
    if weights is not None:
        correlation = correlate_ranks(groups.positions, logs, weights)
        if correlation is not None and (correlation[1] > 0 or correlation[2] < 0):
            way = "more is better" if correlation[0] > 0 else "less is better"
            middle, low, high = (f"{value:.2f}" for value in correlation)
            return f"{way} (rank correlation {middle} [{low}, {high}])"
    if effect is None:
        return "not enough values tried"
    if effect.low > 0 or effect.high < 0:
        if effect.low > 0:
            return f"{effect.group} is better than {effect.reference}"
        return f"{effect.reference} is better than {effect.group}"
    return "no clear direction"


def correlate_ranks(
    positions: NDArray[np.float64], logs: NDArray[np.float64], weights: NDArray[np.int64]
) -> tuple[float, float, float] | None:
    """Compute Spearman's rank correlation and its bootstrap interval; a NaN position has no part in it."""
    inside = ~np.isnan(positions)
    if inside.sum() < 5 or len(set(positions[inside].tolist())) < 3:  # noqa: PLR2004 - fewer say nothing
        return None
    first, second = rank_values(positions[inside]), rank_values(logs[inside])
    draws = np.concatenate([np.ones((1, int(inside.sum()))), weights[:, inside]])
    total = np.maximum(draws.sum(axis=1, keepdims=True), 1)
    first_off = first - (draws @ first[:, None]) / total
    second_off = second - (draws @ second[:, None]) / total
    shared = (draws * first_off * second_off).sum(axis=1)
    spread = np.sqrt((draws * first_off**2).sum(axis=1) * (draws * second_off**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = shared / spread
    low, high = np.nanquantile(values[1:], [ALPHA / 2, 1 - ALPHA / 2])
    return float(values[0]), float(low), float(high)


def rank_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank values from 1; equal ones share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse])
