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
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.acquisition import gradient_of_knowledge
from tuner.optimize.encoding import Columns, Encoding, Points
from tuner.optimize.gp import GaussianProcess, ObservationNoise
from tuner.optimize.history import compress
from tuner.optimize.replay import shared
from tuner.ports import Config
from tuner.records import Role, Start
from tuner.space import Space
from tuner.statistics.control_level import ControlLevel, Speedup, is_lower_bound, middle_s
from tuner.statistics.noise import Noise, estimate_noise, start_variance

LEARNS_FROM = frozenset({Role.CONTROL, Role.SEARCH, Role.REPEAT, Role.RACE, Role.ABLATION})
KNOWN_NOISE_DEGREES = 15.0
"""Degrees of freedom from which on the scatter between starts is taken for noise alone."""
JUMP_SD = 0.5
"""Standard deviation of the level beforehand on either side of a confirmed jump."""
FAR_BELOW = 0.7
"""Log points below the median up to which no start is pulled up: half of its goodput."""
OUTLIER_SD = 4.0
OUTLIER_STARTS = 3
"""From so many starts of a configuration on, one that the others contradict is known for a stall."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The level of the host over time: a random walk that begins anew at each confirmed jump."""

    first_s: float
    drift_per_s: float
    """Variance that the level gains per second."""
    jumps: tuple[tuple[float, float], ...]
    """Time of the last good control before each jump and of the first one after it."""

    def covariances(self, one: Array, other: Array) -> Array:
        """Return those of the level at times (n,) and (m,), in seconds; shape (n, m)."""
        earlier = np.minimum(one[:, None], other[None, :]) - self.first_s
        walked: Array = self.drift_per_s * np.maximum(earlier, 0.0)
        if not self.jumps:
            return walked
        is_same = self._stretch(one)[:, None] == self._stretch(other)[None, :]
        return np.asarray(walked + JUMP_SD**2 * is_same)

    def _stretch(self, times: Array) -> NDArray[np.int64]:
        """Return between which jumps times lie; within a jump counts as a stretch of its own."""
        ends = [end for jump in self.jumps for end in jump]
        return np.searchsorted(np.asarray(ends), times, side="right")


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

    @classmethod
    def fit(cls, space: Space, starts: Sequence[Start], *, seed: int = 0) -> "Posterior | None":
        """Fit to every start that counts; None before the default was measured.

        Args:
            space: of the study.
            starts: of any role; those of the confirmation and at a fixed rate are left out.
            seed: of the choice among very many starts.
        """
        told = [start for start in starts if start.role in LEARNS_FROM and start.log_value is not None]
        told = [start for start in told if start.counts]
        controls = [start for start in told if start.role is Role.CONTROL]
        if not controls:
            return None
        noise = estimate_noise(told)
        times = np.array([middle_s(start) for start in told])
        walk = Walk(
            first_s=float(times.min()),
            drift_per_s=noise.drift_per_s,
            jumps=ControlLevel.fit(controls, noise).jumps,
        )
        encoding = Encoding(shared(space.dimensions))
        points = _encode(space, encoding, [start.config for start in told])
        values = np.array([start.log_value or 0.0 for start in told])
        process = GaussianProcess.fit(
            _columns(space, encoding),
            points,
            compress(values, FAR_BELOW),
            ObservationNoise(
                own=_variances(told, noise, points, values, drifted=noise.drift_per_s * np.ptp(times)),
                shared=walk.covariances(times, times),
                degrees=noise.degrees_start,
            ),
            seed=seed,
            is_noise_known=noise.degrees_start >= KNOWN_NOISE_DEGREES,
        )
        return cls(space=space, noise=noise, process=process, walk=walk, times=times, encoding=encoding)

    def gains(self, configs: Sequence[Config]) -> tuple[Array, Array]:
        """Return means (m,) and covariances (m, m) of the log gains over the default."""
        points = np.concatenate([self._default, self._points(configs)])
        means, covariances = self.process.joint(points, is_rough=True)
        contrast = _against_first(len(points))
        apart = contrast @ covariances @ contrast.T
        # The default's own gain is 0 without any doubt, but for rounding.
        apart[np.diag_indices(len(apart))] = np.maximum(apart.diagonal(), 0.0)
        return contrast @ means, apart

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
                variance=start_variance(self.noise, len(start.valid_windows), _is_certain(start))
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
        gains = contrast @ means[: count + 1] + (0.0 if bonus is None else bonus)
        shown = covariances.diagonal()[count + 1 :] + start_variance(self.noise, windows)
        moved = contrast @ covariances[: count + 1, count + 1 :] / np.sqrt(shown)
        return gradient_of_knowledge(gains, moved)

    @cached_property
    def _default(self) -> Points:
        return self._points([self.space.default()])

    def _points(self, configs: Sequence[Config]) -> Points:
        return _encode(self.space, self.encoding, configs)


def _encode(space: Space, encoding: Encoding, configs: Sequence[Config]) -> Points:
    """Return points (n, d) of configurations; NaN where a parameter is inactive."""
    conditional = _conditional(space)
    return encoding.encode(
        [
            {
                name: value
                for name, value in space.encode(config).items()
                if name not in conditional or conditional[name] in config
            }
            for config in configs
        ]
    )


def _conditional(space: Space) -> dict[str, str]:
    """Return the dimensions that may be switched off, with their parameters."""
    names = {parameter.name for parameter in space.parameters if parameter.when is not None}
    return {each.name: each.parameter for each in space.dimensions if each.parameter in names}


def _columns(space: Space, encoding: Encoding) -> Columns:
    conditional = _conditional(space)
    is_conditional = np.array([name in conditional for name in encoding.names], dtype=bool)
    return Columns(encoding.is_choice, is_conditional, encoding.levels)


def _variances(starts: Sequence[Start], noise: Noise, points: Points, values: Array, drifted: float) -> Array:
    """Return each start's own variance, shape (n,); one that its repeats contradict tells little.

    A stall hits one start of many, and no normal noise has it; its distance from the median of the others
    becomes its standard deviation. `drifted` is the variance that the level has gained over all starts.
    """
    variances = np.array(
        [start_variance(noise, len(start.valid_windows), _is_certain(start)) for start in starts]
    )
    keys = [row.tobytes() for row in points]
    for key in set(keys):
        rows = np.array([each == key for each in keys])
        if rows.sum() >= OUTLIER_STARTS:
            away = (values[rows] - np.median(values[rows])) ** 2
            is_out = away > OUTLIER_SD**2 * (variances[rows] + drifted)
            variances[rows] = np.where(is_out, away, variances[rows])
    return variances


def _is_certain(start: Start) -> bool:
    return start.steady and not is_lower_bound(start)


def _against_first(count: int) -> Array:
    """Return the matrix that takes the first of `count` values from each other one."""
    return np.hstack([-np.ones((count - 1, 1)), np.eye(count - 1)])
