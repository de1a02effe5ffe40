"""What a load curve has shown: goodput, failures and p99 of configurations under more and more connections.

A cell is one configuration under one number of connections. Goodput is compared as the values of a sweep are:
every block has a level of its own, so that drift of the host cancels out (`tuner.statistics.response_curve`).
Failures are counted over all trials of a cell, with an interval that allows for trials that differ
(`tuner.statistics.failure_rate`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from tuner.records import State, Trial
from tuner.records.latency import merge
from tuner.statistics.arms.faults import find_failure
from tuner.statistics.failure_rate import Counts, CredibleInterval, FailureRate, FailureRates
from tuner.statistics.ranking import LIKELY
from tuner.statistics.response_curve import Cell, Estimate, ResponseCurve
from tuner.study.facts import CurvePlan

P99 = 0.99
WHOLE_BLOCKS = 3
"""Blocks that hold every cell; later ones hold what is not settled."""
MOST_BLOCKS = 10
CERTAIN = 0.975
"""Probability from which on it is settled that a cell bears its load, or that it does not."""
NARROW = 0.10
"""Half-width of the intervals with which goodput is known well enough."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One cell: a configuration under one number of connections."""

    config: int
    """Index of the plan's configurations."""
    connections: int
    trials: int
    failed_trials: int
    """Besides, those that served nothing at all, or did not start."""
    goodput: Estimate | None
    """Correct responses per second; its interval is that within the blocks. None without a measurement."""
    ratio: Estimate | None
    """To the first configuration under as many connections; None for that itself, and without one of them."""
    failures: CredibleInterval | None
    """Share of the requests that failed."""
    failed: int
    requests: int
    p99_ms: float | None
    """Median of the trials; of the requests that were answered."""
    chance: float
    """Probability that it bears the load: hardly a request fails, and trials work."""
    fault: str = ""
    """Why it gave no measurement any more; empty when it did."""

    @property
    def bears(self) -> bool:
        """Whether it rather bears the load than not."""
        return self.trials > 0 and not self.fault and self.chance >= LIKELY

    @property
    def is_settled(self) -> bool:
        """Whether more trials would tell next to nothing."""
        if self.fault:
            return True
        is_narrow = self.goodput is not None and self.goodput.half_width <= NARROW
        return is_narrow and not 1 - CERTAIN < self.chance < CERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """From where on a configuration fails."""

    last: Spot | None
    """Under the most connections that it bears, like all fewer ones; None where it fails under the fewest."""
    first: Spot | None
    """The first under which it fails; None where it bears all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """All trials of a load curve judged together."""

    plan: CurvePlan
    spots: tuple[Spot, ...]
    """In the order of the plan's cells."""
    blocks: int

    @property
    def by_connections(self) -> tuple[Spot, ...]:
        """Return the spots by rising connections, and within them by configuration."""
        return tuple(sorted(self.spots, key=lambda spot: (spot.connections, spot.config)))

    def of(self, config: int) -> tuple[Spot, ...]:
        """Return the spots of one configuration, by rising connections."""
        return tuple(spot for spot in self.spots if spot.config == config)

    def wanted(self) -> tuple[str, ...]:
        """Return the arms that the next block should hold; none when nothing is left to tell."""
        arms = zip(self.plan.arms, self.spots, strict=True)
        if self.blocks < WHOLE_BLOCKS:
            return tuple(arm for arm, spot in arms if not spot.fault)
        if self.blocks >= MOST_BLOCKS:
            return ()
        return tuple(arm for arm, spot in arms if not spot.is_settled)

    def find_collapse(self, config: int) -> Collapse:
        """Return up to where a configuration bears its load, and from where on not."""
        measured = [spot for spot in self.of(config) if spot.trials or spot.fault]
        borne = list(takewhile(lambda spot: spot.bears, measured))
        beyond = measured[len(borne) :]
        return Collapse(last=borne[-1] if borne else None, first=beyond[0] if beyond else None)


def judge_curve(plan: CurvePlan, trials: Sequence[Trial], *, seed: int = 0) -> LoadCurve:
    """Judge all trials of a load curve, finished or not; `seed` is of the draws from the posterior."""
    groups = [[trial for trial in trials if trial.arm == arm] for arm in plan.arms]
    counts = [
        [Counts.of(trial.valid_windows if trial.counts else ()) for trial in _judged(group)]
        for group in groups
    ]
    rates = FailureRates(dict(enumerate(counts)))
    served = _Served.fit(groups, seed)
    spots = [_judge(plan, number, group, rates.of(number), served) for number, group in enumerate(groups)]
    return LoadCurve(plan=plan, spots=tuple(spots), blocks=served.blocks)


def _judge(
    plan: CurvePlan, number: int, group: Sequence[Trial], rate: FailureRate, served: "_Served"
) -> Spot:
    config, connections = plan.cells[number]
    return Spot(
        config=config, connections=connections,
        trials=sum(trial.counts for trial in group),
        failed_trials=sum(trial.state is State.FAILED for trial in group),
        goodput=served.goodput(number),
        # The cells of the first configuration come first.
        ratio=served.against(number, plan.connections.index(connections)) if config else None,
        failures=rate.interval() if rate.requests else None,
        failed=rate.failed, requests=rate.requests, p99_ms=_find_p99(group),
        chance=rate.at_most(plan.failure_limit), fault=find_failure(plan.arms[number], group) or "",
    )  # fmt: skip


def _judged(group: Sequence[Trial]) -> list[Trial]:
    """Return the trials that say something of their configuration."""
    return [trial for trial in group if trial.counts or trial.state is State.FAILED]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """The goodput of all cells of which at least one trial served something."""

    draws: Array
    """Of the posterior of log goodput, shape (draws, cells); relative to each other."""
    level: float
    """Mean log goodput of the measured cells."""
    measured: frozenset[int]
    blocks: int

    @classmethod
    def fit(cls, groups: Sequence[Sequence[Trial]], seed: int) -> "_Served":
        """Fit each cell for itself: connections make steps that no neighbour foretells."""
        cells = [
            Cell(block=(trial.session, trial.block), arm=number, log=trial.log_goodput)
            for number, group in enumerate(groups)
            for trial in group
            if trial.counts and trial.log_goodput is not None
        ]
        measured = frozenset(cell.arm for cell in cells)
        if not cells:
            return cls(draws=np.zeros((1, len(groups))), level=0.0, measured=measured, blocks=0)
        means = [fmean(cell.log for cell in cells if cell.arm == arm) for arm in measured]
        fitted = ResponseCurve.fit(cells, [None] * len(groups), seed=seed)
        blocks = len({cell.block for cell in cells})
        return cls(draws=fitted.draws, level=fmean(means), measured=measured, blocks=blocks)

    def goodput(self, cell: int) -> Estimate | None:
        """Return correct responses per second."""
        if cell not in self.measured:
            return None
        return Estimate.of(
            self.level + self.draws[:, cell] - self.draws[:, sorted(self.measured)].mean(axis=1)
        )

    def against(self, cell: int, other: int) -> Estimate | None:
        """Return the ratio of two cells."""
        if not {cell, other} <= self.measured:
            return None
        return Estimate.of(self.draws[:, cell] - self.draws[:, other])


def _find_p99(group: Sequence[Trial]) -> float | None:
    """Return the median over the trials of the 99th percentile of their windows."""
    found = []
    for trial in group:
        seen = [window.latency for window in trial.valid_windows if window.latency is not None]
        p99 = merge(seen).quantiles_ms.get(P99) if trial.counts and seen else None
        if p99 is not None and math.isfinite(p99):
            found.append(p99)
    return median(found) if found else None
