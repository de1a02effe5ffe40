"""The posterior of a campaign: what all its starts say together about any configuration.

One Gaussian process of log goodput for configuration, start and time:

    y_s = f(x_s) + β(t_s) + b_s + ē_s

f falls off with what two configurations differ in (`tuner.optimize.gp`), β is a random walk in time, the
noise b + ē is that of `tuner.statistics.noise`, its scale fitted together with f. Controls, search, repeats,
race and simplification all stand in it; the confirmation never does, because it is to be judged by its own
pairs. Gains are contrasts f(x) − f(default) of the joint posterior: what two configurations share, and the
level of the host, cancels out (Ax relativises against a status quo per trial for the same end).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.acquisition import gradient_of_knowledge
from tuner.optimize.encoding import Encoding, Points
from tuner.optimize.gp import GaussianProcess
from tuner.optimize.leaning import HINT_PRICES, Leaning
from tuner.ports import Config
from tuner.records import Start
from tuner.space import Space
from tuner.statistics.control_level import Speedup, middle_s
from tuner.statistics.noise import Noise, start_variance
from tuner.statistics.observations import Observations, Walk, encode, is_certain

HINT_GAIN = HINT_PRICES * 0.01
"""Log points that a right hint is expected to bring, before anything was measured."""

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Gains of configurations over the default, and the default's level over time."""

    space: Space
    noise: Noise
    process: GaussianProcess
    walk: Walk
    times: Array
    """When each start of the process was measured, shape (n,), in seconds since the epoch."""
    encoding: Encoding = field(repr=False)
    leaning: Leaning | None = None
    """What hints say, of which the process is what comes on top; None where nobody is asked."""

    @classmethod
    def fit(
        cls, space: Space, starts: Sequence[Start], *, seed: int = 0, asks_experts: bool = False
    ) -> "Posterior | None":
        """Fit to every start that counts; None before the default was measured.

        Args:
            space: of the study.
            starts: of any role; those of the confirmation and at a fixed rate are left out.
            seed: of the choice among very many starts.
            asks_experts: whether hints count beforehand, as when something is to be chosen.
        """
        seen = Observations.of(space, starts)
        if seen is None:
            return None
        leaning = _lean(space, seen.encoding) if asks_experts else None
        expected = _expect(leaning, seen.points, encode(space, seen.encoding, [space.default()]))
        on_top = replace(seen, values=seen.values - expected)
        return cls._around(space, seen, on_top.fit(seed), leaning)

    @classmethod
    def sample(cls, space: Space, seen: Observations, *, count: int, seed: int = 0) -> "list[Posterior]":
        """Return posteriors whose kernels are drawn, not only the most probable one."""
        return [cls._around(space, seen, process) for process in seen.sample(count, seed)]

    @classmethod
    def _around(
        cls, space: Space, seen: Observations, process: GaussianProcess, leaning: Leaning | None = None
    ) -> "Posterior":
        return cls(
            space=space,
            noise=seen.noise,
            process=process,
            walk=seen.walk,
            times=seen.times,
            encoding=seen.encoding,
            leaning=leaning,
        )

    def gains(self, configs: Sequence[Config], *, is_rough: bool = True) -> tuple[Array, Array]:
        """Return means (m,) and covariances (m, m) of the log gains over the default.

        Args:
            configs: m of them.
            is_rough: with what each configuration has for itself, apart from what its settings explain.
        """
        points = np.concatenate([self._default, self._points(configs)])
        means, covariances = self.process.joint(points, is_rough=is_rough)
        contrast = _against_first(len(points))
        apart = contrast @ covariances @ contrast.T
        # The default's own gain is 0 without any doubt, but for rounding.
        apart[np.diag_indices(len(apart))] = np.maximum(apart.diagonal(), 0.0)
        return contrast @ means + _expect(self.leaning, points[1:], self._default), apart

    def gains_apart(self, configs: Sequence[Config]) -> list[Speedup]:
        """Return the log gain of each configuration over the default."""
        means, covariances = self.gains(configs)
        return [
            Speedup(log_ratio=float(mean), variance=max(float(variance), 0.0))
            for mean, variance in zip(means, covariances.diagonal(), strict=True)
        ]

    def gain(self, config: Config) -> Speedup:
        """Return the log gain of one configuration over the default."""
        return self.gains_apart([config])[0]

    def level(self, time_s: float) -> tuple[float, float]:
        """Return mean and variance of the default's log goodput at a time, as a long start would show it."""
        means, variances = self._levels(np.array([time_s]))
        return float(means[0]), float(variances[0])

    def _levels(self, times: Array) -> tuple[Array, Array]:
        means, covariances = self.process.joint(
            np.repeat(self._default, len(times), axis=0),
            is_rough=True,
            across=self.walk.covariances(times, self.times),
            between=self.walk.covariances(times, times),
        )
        return means, np.maximum(covariances.diagonal(), 0.0)

    def speedups(self, starts: Sequence[Start]) -> list[Speedup]:
        """Return what each start alone shows: its log goodput over the level at its time."""
        levels, variances = self._levels(np.array([middle_s(start) for start in starts]))
        return [
            Speedup(
                log_ratio=(start.log_value or 0.0) - float(level),
                variance=start_variance(self.noise, len(start.valid_windows), is_certain(start))
                + float(variance),
            )
            for start, level, variance in zip(starts, levels, variances, strict=True)
        ]

    def worth_of_a_start(
        self, configs: Sequence[Config], *, at_s: float, windows: int, bonus: Array | None = None
    ) -> Array:
        """Return by how much another start of each raises the mean of the one chosen then; shape (m,).

        The knowledge gradient over these configurations (Frazier, Powell & Dayanik 2009,
        doi 10.1287/ijoc.1080.0314), in log points.

        Args:
            configs: what is chosen among.
            at_s: when the start would be made, in seconds since the epoch.
            windows: of that start.
            bonus: shape (m,), worth of each besides its gain; None for none.
        """
        count = len(configs)
        points = self._points(configs)
        # The functions of default and configurations, and then what a start of each would show now.
        asked = np.concatenate([self._default, points, points])
        is_start = np.arange(len(asked)) > count
        now = np.full(len(asked), at_s)
        across = self.walk.covariances(now, self.times) * is_start[:, None]
        between = self.walk.covariances(now, now) * np.outer(is_start, is_start)
        means, covariances = self.process.joint(asked, is_rough=True, across=across, between=between)
        contrast = _against_first(count + 1)
        gains = contrast @ means[: count + 1] + _expect(self.leaning, points, self._default)
        gains += 0.0 if bonus is None else bonus
        shown = covariances.diagonal()[count + 1 :] + start_variance(self.noise, windows)
        moved = contrast @ covariances[: count + 1, count + 1 :] / np.sqrt(shown)
        return gradient_of_knowledge(gains, moved)

    @cached_property
    def _default(self) -> Points:
        return self._points([self.space.default()])

    def _points(self, configs: Sequence[Config]) -> Points:
        return encode(self.space, self.encoding, configs)


def _lean(space: Space, encoding: Encoding) -> Leaning | None:
    """Return what the hints of a space say; None where it has none."""
    hints = {each.name: each.hint for each in space.dimensions if each.hint is not None}
    return Leaning.of(hints, encoding) if hints else None


def _expect(leaning: Leaning | None, points: Points, default: Points) -> Array:
    """Return what hints promise of points (m, d) over the default (1, d), in log points; shape (m,)."""
    return np.zeros(len(points)) if leaning is None else HINT_GAIN * leaning.expect(points, default[0])


def _against_first(count: int) -> Array:
    """Return the matrix that takes the first of `count` values from each other one."""
    return np.hstack([-np.ones((count - 1, 1)), np.eye(count - 1)])
