"""What a campaign has observed, as a Gaussian process takes it: points, values, and noise of two kinds."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.encoding import Columns, Encoding, Points
from tuner.optimize.gp import GaussianProcess, ObservationNoise
from tuner.optimize.history import compress
from tuner.optimize.replay import shared
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.space import Space
from tuner.statistics.baseline_level import (
    HostLevels,
    Speedup,
    combine,
    is_lower_bound,
    middle_s,
    reference_logs,
    speedups,
)
from tuner.statistics.interaction import Effect, Interaction, estimate_sd
from tuner.statistics.noise import Noise, estimate_noise, trial_variance

LEARNS_FROM = frozenset({Role.BASELINE, Role.SEARCH, Role.REPEAT, Role.RACE, Role.ABLATION})
KNOWN_NOISE_DEGREES = 11.0
"""Degrees of freedom from which on the scatter between trials is taken for noise alone."""
HOST_SD = 0.5
"""Standard deviation beforehand of what one of several hosts gives, around its own baselines' median."""
JUMP_SD = 0.5
"""Standard deviation of the level beforehand on either side of a confirmed jump."""
FAR_BELOW = 0.7
"""Log points below the default and the median up to which no trial is pulled up: half of its goodput."""
OUTLIER_SD = 4.0
OUTLIER_TRIALS = 3
"""From so many trials of a configuration on, one that the others contradict is known for a stall."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """When and where something was measured."""

    times: Array
    """Shape (n,), in seconds since the epoch."""
    hosts: tuple[str, ...]
    """Names, n of them."""

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> "Moments":
        """Return those of the trials' windows."""
        times = np.array([middle_s(trial) for trial in trials])
        return cls(times=times, hosts=tuple(trial.host for trial in trials))

    def __len__(self) -> int:
        return len(self.times)

    def on(self, host: str) -> NDArray[np.int64]:
        """Return the indices of those on one host."""
        return np.flatnonzero(np.array(self.hosts) == host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The level of one host over time: a random walk that begins anew at each confirmed jump."""

    first_s: float
    drift_per_s: float
    """Variance that the level gains per second."""
    jumps: tuple[tuple[float, float], ...]
    """Time of the last good baseline trial before each jump and of the first one after it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Walks:
    """The level of every host of a study: a block of its own each, as hosts share no noise."""

    by_host: Mapping[str, Walk]
    offsets: Mapping[str, float]
    """What the default gives on each host, roughly, over what it gives on the first: log points."""

    @classmethod
    def fit(cls, trials: Sequence[Trial], baselines: Sequence[tuple[Trial, float]], noise: Noise) -> "Walks":
        """Fit to trials, of which the baselines tell the level with the log that each stands for."""
        levels = HostLevels.fit([trial for trial, _ in baselines], noise)
        hosts = dict.fromkeys(trial.host for trial in trials)
        medians = {
            host: float(np.median(logs))
            for host in hosts
            if (logs := [log for trial, log in baselines if trial.host == host])
        }
        middle = next(iter(medians.values()))
        return cls(
            by_host={
                host: Walk(
                    first_s=min(middle_s(trial) for trial in trials if trial.host == host),
                    drift_per_s=noise.drift_per_s,
                    jumps=levels.by_host[host].jumps if host in medians else (),
                )
                for host in hosts
            },
            offsets={host: medians.get(host, middle) - middle for host in hosts},
        )

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Return the jumps of all hosts."""
        return tuple(jump for walk in self.by_host.values() for jump in walk.jumps)

    def offset(self, moments: Moments) -> Array:
        """Return the offset of each moment's host, shape (n,); 0 where nothing is known of it."""
        return np.array([self.offsets.get(host, 0.0) for host in moments.hosts])

    def covariances(self, one: Moments, other: Moments) -> Array:
        """Return those of the levels at moments; shape (n, m)."""
        found = np.zeros((len(one), len(other)))
        for host in {*one.hosts} & {*other.hosts} & {*self.by_host}:
            block, walk = np.ix_(one.on(host), other.on(host)), self.by_host[host]
            apart = HOST_SD**2 if len(self.by_host) > 1 else 0.0
            found[block] = walk.covariances(one.times[block[0][:, 0]], other.times[block[1][0]]) + apart
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All trials that count, ready for a model."""

    noise: Noise
    walks: Walks
    moments: Moments
    """Of each trial."""
    encoding: Encoding
    columns: Columns
    points: Points
    """Shape (n, d)."""
    values: Array
    """Log goodput of each trial, shape (n,), or the log of another metric."""
    apart: ObservationNoise
    interaction: Interaction | None = None
    """What configurations give differently on several hosts; None for one."""

    @classmethod
    def of(
        cls, space: Space, trials: Sequence[Trial], roles: Collection[Role] = LEARNS_FROM
    ) -> "Observations | None":
        """Return those of the trials in some roles; None before the default was measured."""
        told = [trial for trial in trials if trial.role in roles and trial.log_value is not None]
        told = [trial for trial in told if trial.counts]
        baselines = reference_logs([trial for trial in told if trial.role is Role.BASELINE])
        if not baselines:
            return None
        logs = {id(trial): log for trial, log in baselines}
        told = [trial for trial in told if trial.role is not Role.BASELINE or id(trial) in logs]
        noise = estimate_noise(told)
        moments = Moments.of(told)
        walks = Walks.fit(told, baselines, noise)
        encoding = Encoding(shared(space.dimensions))
        points = encode(space, encoding, [trial.config for trial in told])
        values = np.array([logs.get(id(trial), trial.log_value or 0.0) for trial in told])
        values -= walks.offset(moments)
        of_default = np.array([trial.role is Role.BASELINE for trial in told])
        common = walks.covariances(moments, moments)
        columns = make_columns(space, encoding)
        interaction = _find_interaction(space, told, noise, encoding)
        if interaction is not None:
            common += interaction.covariances(points, moments.hosts, points, moments.hosts)
        return cls(
            noise=noise,
            walks=walks,
            moments=moments,
            encoding=encoding,
            columns=columns,
            points=points,
            values=_damp_disasters(values, of_default),
            apart=ObservationNoise(
                own=_variances(
                    told, noise, points, values, drifted=noise.drift_per_s * np.ptp(moments.times)
                ),
                shared=common,
                degrees=noise.degrees_trial,
            ),
            interaction=interaction,
        )

    @property
    def is_noise_known(self) -> bool:
        """Whether what length scales do not explain is no noise."""
        return self.apart.degrees >= KNOWN_NOISE_DEGREES

    def fit(self, seed: int) -> GaussianProcess:
        """Return the process with the most probable kernel; the seed chooses among very many trials."""
        return GaussianProcess.fit(
            self.columns, self.points, self.values, self.apart,
            seed=seed, is_noise_known=self.is_noise_known,
        )  # fmt: skip

    def sample(self, count: int, seed: int) -> list[GaussianProcess]:
        """Return processes with kernels that are drawn from their own posterior."""
        return GaussianProcess.sample(
            self.columns, self.points, self.values, self.apart,
            count=count, seed=seed, is_noise_known=self.is_noise_known,
        )  # fmt: skip


def _damp_disasters(values: Array, of_default: NDArray[np.bool_]) -> Array:
    """Pull up what is far below the default and the median: how bad the bad ones are is of no interest.

    The default itself stays where it is, or large gains would shrink.
    """
    above = float(np.median(values)) - float(np.median(values[of_default]))
    return compress(values, FAR_BELOW + max(0.0, above))


def _find_interaction(
    space: Space, trials: Sequence[Trial], noise: Noise, encoding: Encoding
) -> Interaction | None:
    """Return what configurations give differently on the hosts of these trials; None where there is one."""
    if len({trial.host for trial in trials}) < 2:  # noqa: PLR2004 - several
        return None
    default, shown = space.default(), speedups(trials, noise)
    groups: dict[Hashable, dict[str, list[Speedup]]] = {}
    for trial in trials:
        if trial.number in shown and dict(trial.config) != dict(default):
            key = frozenset(trial.config.items())
            groups.setdefault(key, {}).setdefault(trial.host, []).append(shown[trial.number])
    effects = (
        {host: _as_effect(combine(repeats, noise)) for host, repeats in by_host.items()}
        for by_host in groups.values()
    )
    return Interaction(
        sd=estimate_sd(effects), default=encode(space, encoding, [default]), is_choice=encoding.is_choice
    )


def _as_effect(seen: Speedup) -> Effect:
    return Effect(log_ratio=seen.log_ratio, variance=seen.variance)


def encode(space: Space, encoding: Encoding, configs: Sequence[Config]) -> Points:
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


def make_columns(space: Space, encoding: Encoding) -> Columns:
    """Return what kind each column of the points is."""
    conditional = _conditional(space)
    is_conditional = np.array([name in conditional for name in encoding.names], dtype=bool)
    return Columns(encoding.is_choice, is_conditional, encoding.levels)


def _variances(trials: Sequence[Trial], noise: Noise, points: Points, values: Array, drifted: float) -> Array:
    """Return each trial's own variance, shape (n,); one that its repeats contradict tells little.

    A stall hits one trial of many, and no normal noise has it; its distance from the median of the others
    becomes its standard deviation. `drifted` is the variance that the level has gained over all trials.
    """
    variances = np.array(
        [trial_variance(noise, len(trial.valid_windows), is_certain(trial)) for trial in trials]
    )
    # What hosts see differently is no stall.
    groups: dict[tuple[bytes, str], list[int]] = {}
    for index, (row, trial) in enumerate(zip(points, trials, strict=True)):
        groups.setdefault((row.tobytes(), trial.host), []).append(index)
    for rows in groups.values():
        if len(rows) >= OUTLIER_TRIALS:
            away = (values[rows] - np.median(values[rows])) ** 2
            is_out = away > OUTLIER_SD**2 * (variances[rows] + drifted)
            variances[rows] = np.where(is_out, away, variances[rows])
    return variances


def is_certain(trial: Trial) -> bool:
    """Return whether a trial became steady, and the server was its limit."""
    return trial.steady and not is_lower_bound(trial)
