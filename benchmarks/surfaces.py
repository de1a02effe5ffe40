"""Surfaces to optimize offline: recorded ones, replayed by a forest, and made ones whose optimum is known.

A surface answers what a trial of a configuration would have given: a log of requests per second with its
noise, its variance and what it cost, or nothing when the trial failed. The truth behind it is known to the
benchmark alone. The folder `surfaces/` holds the recordings; each line is one configuration that was deployed
for real.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

Params = Mapping[str, Any]

FOLDER = Path(__file__).with_name("surfaces")
FEW = 4
"""A number with so few values, or fewer, is a choice."""
LOG_RANGE = 50
"""Ratio of the ends from which on a number is taken logarithmically."""
BETWEEN_TRIALS = 0.02
"""Standard deviation between trials, which the windows of one trial cannot show."""
TREES = 400
WINDOWS = 3
WINDOW_S = 1.0
WARMUP_S = 1.0
PRUNED_BELOW = 0.15
"""With pruning, a trial that is so far below the best so far (log points) ends after its first window."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial gave; value None when it failed."""

    value: float | None
    variance: float
    load_s: float


class Surface(Protocol):
    """What an optimizer is let loose on."""

    name: str

    @property
    def space(self) -> Mapping[str, BaseDistribution]:
        """Every parameter, conditional ones too."""

    @property
    def best(self) -> float:
        """The highest truth that is known."""

    def is_active(self, name: str, params: Params) -> bool:
        """Say whether a parameter exists beside the values of those before it."""

    def truth(self, params: Params) -> float:
        """Give the log of requests per second without noise."""

    def start(self, params: Params, rng: np.random.Generator, best_so_far: float) -> Outcome:
        """Play one trial, as short as pruning makes it."""


def play(truth: float, sigma_window: float, rng: np.random.Generator, best_so_far: float) -> Outcome:
    """Draw the windows of one trial; what is clearly below the best so far gets only one."""
    trial = truth + BETWEEN_TRIALS * rng.standard_normal()
    first = trial + sigma_window * rng.standard_normal()
    count = 1 if first < best_so_far - PRUNED_BELOW else WINDOWS
    others = trial + sigma_window * rng.standard_normal(count - 1)
    return Outcome(
        value=float((first + others.sum()) / count),
        variance=sigma_window**2 / count + BETWEEN_TRIALS**2,
        load_s=WARMUP_S + count * WINDOW_S,
    )


@dataclass
class Recorded:
    """A forest fitted on recorded trials, with their noise."""

    path: Path
    first: int = 0
    every: int = 1
    """Which lines to take."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Read the recording."""
        self.name = self.path.stem
        rows = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
        self._columns = {key: Column.of([row["config"][key] for row in rows]) for key in rows[0]["config"]}
        self._good = [
            row for row in rows[self.first :: self.every] if row["up"] and min(_rates(row), default=0.0) > 0
        ]

    @property
    def space(self) -> Mapping[str, BaseDistribution]:
        """Give the ranges that were recorded."""
        return {key: column.distribution for key, column in self._columns.items()}

    def is_active(self, name: str, params: Params) -> bool:
        """Say yes: recorded are flat spaces only."""
        return name in self._columns and params is not None

    def truth(self, params: Params) -> float:
        """Predict the log of requests per second."""
        return float(self._forest(self._encode([params]))[0])

    def start(self, params: Params, rng: np.random.Generator, best_so_far: float) -> Outcome:
        """Play one trial of up to three windows."""
        return play(self.truth(params), self.sigma_window, rng, best_so_far)

    @cached_property
    def sigma_window(self) -> float:
        """Deviation of windows within a trial, from the median of all trials' (χ² with 2 degrees)."""
        found = [np.var(np.log(_rates(row)), ddof=1) for row in self._good]
        return math.sqrt(float(np.median(found)) / math.log(2))

    @cached_property
    def best(self) -> float:
        """Search the forest itself: many draws, then changes of the best."""
        rng = np.random.default_rng(0)
        points = [self._draw(rng) for _ in range(20_000)] + [row["config"] for row in self._good]
        values = self._forest(self._encode(points))
        for _ in range(6):
            top = [points[number] for number in np.argsort(-values)[:20]]
            points = [*top, *(self._change(each, rng) for each in top for _ in range(150))]
            values = self._forest(self._encode(points))
        return float(values.max())

    @cached_property
    def _forest(self) -> "Forest":
        values = [math.log(float(np.mean(_rates(row)))) for row in self._good]
        return Forest(self._encode([row["config"] for row in self._good]), np.array(values))

    def _encode(self, points: Sequence[Params]) -> NDArray[np.float64]:
        return np.column_stack(
            [column.encode([point[key] for point in points]) for key, column in self._columns.items()]
        )

    def _draw(self, rng: np.random.Generator) -> dict[str, Any]:
        return {key: column.draw(rng) for key, column in self._columns.items()}

    def _change(self, point: Params, rng: np.random.Generator) -> dict[str, Any]:
        names = rng.choice(list(self._columns), rng.integers(1, 4), replace=False)
        return {**point, **{name: self._columns[name].draw(rng) for name in names}}


def _rates(row: Mapping[str, Any]) -> list[float]:
    return [window["rps"] for window in row["windows"]]


class Forest:
    """Extremely randomized trees, walked all at once: scikit-learn takes 40 times as long for one point."""

    def __init__(self, points: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Fit, and put the nodes of all trees into one array."""
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(TREES, random_state=0).fit(points, values)
        trees = [each.tree_ for each in forest.estimators_]
        counts = [tree.node_count for tree in trees]
        self._roots = np.concatenate([[0], np.cumsum(counts)[:-1]])
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        is_leaf, offsets = left < 0, np.repeat(self._roots, counts)
        # A leaf leads to itself.
        self._left = np.where(is_leaf, np.arange(len(left)), left + offsets)
        self._right = np.where(is_leaf, np.arange(len(left)), right + offsets)
        self._column = np.where(is_leaf, 0, np.concatenate([tree.feature for tree in trees]))
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        self._value = np.concatenate([tree.value[:, 0, 0] for tree in trees])

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict at points (n, columns); shape (n,)."""
        return np.concatenate([self._walk(some) for some in np.array_split(points, 1 + len(points) // 1000)])

    def _walk(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        # The trees were grown on numbers of single precision.
        single = points.astype(np.float32)
        rows = np.arange(len(points))[:, None]
        at = np.broadcast_to(self._roots, (len(points), len(self._roots)))
        while True:
            goes_left = single[rows, self._column[at]] <= self._threshold[at]
            then = np.where(goes_left, self._left[at], self._right[at])
            if np.array_equal(then, at):
                return np.asarray(self._value[at].mean(axis=1))
            at = then


@dataclass(frozen=True, slots=True)
class Column:
    """One recorded setting."""

    distribution: BaseDistribution

    @classmethod
    def of(cls, values: Sequence[Any]) -> "Column":
        """Tell by the values what kind it is."""
        if any(isinstance(each, str | bool) for each in values) or len(set(values)) <= FEW + 1:
            return cls(CategoricalDistribution(sorted(set(values), key=str)))
        low, high = min(values), max(values)
        log = low > 0 and high > LOG_RANGE * low
        if all(isinstance(each, int) for each in values):
            return cls(IntDistribution(low, high, log=log))
        return cls(FloatDistribution(low, high, log=log))

    def encode(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Give the columns of the forest's input, shape (n, choices) or (n, 1)."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return np.array([[each == choice for choice in distribution.choices] for each in values], float)
        numbers = np.array(values, dtype=float)[:, None]
        return np.log(numbers) if getattr(distribution, "log", False) else numbers

    def draw(self, rng: np.random.Generator) -> Any:  # noqa: ANN401 - a value of any kind
        """Draw a value uniformly, on the distribution's scale."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return distribution.choices[rng.integers(len(distribution.choices))]
        numbers = cast("IntDistribution | FloatDistribution", distribution)
        low, high = numbers.low, numbers.high
        value = (
            math.exp(rng.uniform(math.log(low), math.log(high))) if numbers.log else rng.uniform(low, high)
        )
        return round(value) if isinstance(numbers, IntDistribution) else value


@dataclass
class Made:
    """A formula with a known optimum, conditional parameters, and perhaps failures."""

    name: str
    space: Mapping[str, BaseDistribution]
    formula: Callable[[Params], float]
    best: float
    parents: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    """By child: its parent and the value at which it exists."""
    fails: Callable[[Params, np.random.Generator], bool] | None = None
    sigma_window: float = 0.03

    def is_active(self, name: str, params: Params) -> bool:
        """Say whether the parent has the value at which a parameter exists."""
        if name not in self.parents:
            return True
        parent, value = self.parents[name]
        return bool(params.get(parent) == value)

    def truth(self, params: Params) -> float:
        """Evaluate the formula."""
        return self.formula(params)

    def start(self, params: Params, rng: np.random.Generator, best_so_far: float) -> Outcome:
        """Play one trial."""
        if self.fails is not None and self.fails(params, rng):
            return Outcome(value=None, variance=math.nan, load_s=WARMUP_S)
        return play(self.truth(params), self.sigma_window, rng, best_so_far)


def recorded_surfaces() -> list[Surface]:
    """Give every recording of the folder."""
    return [Recorded(path) for path in sorted(FOLDER.glob("*.jsonl"))]


def _peak(value: float, best: float, halves: float) -> float:
    """Fall off by the distance in octaves; 0 at the best."""
    return -abs(math.log2(value / best)) / halves


def _server(params: Params) -> float:
    """A server with a cache and a thread pool, each with settings of its own, a cliff and idle settings."""
    total = 0.04 * _peak(params["workers"], 2, 1) + 0.05 * _peak(params["backlog"], 4096, 4)
    total += {"off": 0.0, "buffer": 0.25, "on": -0.1}[params["log"]]
    if params["cache"] == "on":
        total += 0.3 + 0.08 * max(-3.0, _peak(params["cache_size"], 1000, 1.5))
        total -= 0.1 * abs(params["cache_valid"] - 0.7)
    if params["pool"] == "threads":
        total += 0.05 + 0.1 * max(-4.0, _peak(params["pool_threads"], 32, 1))
    if not params["sendfile"] and params["nopush"]:
        total -= 4.0
    return total + 0.1 * params["reuse"]


_ON_OFF = CategoricalDistribution((False, True))
_SERVER = {
    "workers": IntDistribution(1, 16, log=True),
    "backlog": IntDistribution(64, 65536, log=True),
    "log": CategoricalDistribution(("on", "off", "buffer")),
    "cache": CategoricalDistribution(("off", "on")),
    "cache_size": IntDistribution(10, 100_000, log=True),
    "cache_valid": FloatDistribution(0.0, 1.0),
    "pool": CategoricalDistribution(("none", "threads")),
    "pool_threads": IntDistribution(1, 1024, log=True),
    "sendfile": _ON_OFF,
    "nopush": _ON_OFF,
    "reuse": _ON_OFF,
    **{f"idle_{number}": FloatDistribution(0.0, 1.0) for number in range(5)},
    **{f"switch_{number}": _ON_OFF for number in range(4)},
}
_PARENTS = {
    "cache_size": ("cache", "on"), "cache_valid": ("cache", "on"), "pool_threads": ("pool", "threads"),
}  # fmt: skip
_SERVER_BEST = 0.25 + 0.3 + 0.05 + 0.1


def _at_random(params: Params, rng: np.random.Generator) -> bool:
    return bool(params) and bool(rng.random() < 0.3)


def crashes(params: Params, _rng: np.random.Generator | None = None) -> bool:
    """A third of the space that never starts, the best of it left out."""
    return bool(params["log"] == "off")


def made_surfaces() -> list[Surface]:
    """Give the conditional surface, with no failures, random ones, and a third of the space crashing."""
    kinds: list[tuple[str, Callable[[Params, np.random.Generator], bool] | None]] = [
        ("conditional", None), ("conditional-flaky", _at_random), ("conditional-crashing", crashes),
    ]  # fmt: skip
    return [
        Made(name=name, space=_SERVER, formula=_server, best=_SERVER_BEST, parents=_PARENTS, fails=fails)
        for name, fails in kinds
    ]
