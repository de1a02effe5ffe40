"""The posterior of a campaign: what all its trials say together about any configuration.

One Gaussian process of log goodput for configuration, trial and time:

    y_s = f(x_s) + β(t_s) + b_s + ē_s

f falls off with what two configurations differ in (`tuner.optimize.gp`), β is a random walk in time, the
noise b + ē is that of `tuner.statistics.noise`, its scale fitted together with f. Baselines, search, repeats,
race and ablation all stand in it; the confirmation never does, because it is to be judged by its own
pairs. On several hosts each configuration has something of its own on each (`tuner.statistics.interaction`);
where a winner is to hold on all of them, its gain is that on the worst, or the mean. Gains are contrasts
f(x) − f(default) of the joint posterior: what two configurations share, and the level of the host, cancels
out (Ax relativises against a status quo per trial for the same end).
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.acquisition import gradient_of_knowledge
from tuner.optimize.encoding import Encoding, Points
from tuner.optimize.gp import GaussianProcess
from tuner.optimize.leaning import HINT_PRICES, Leaning
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.records.blend import AcrossHosts, Hosts
from tuner.space import Space
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.noise import trial_variance
from tuner.statistics.observations import LEARNS_FROM, Moments, Observations, encode, is_certain

HINT_GAIN = HINT_PRICES * 0.01
"""Log points that a right hint is expected to bring, before anything was measured."""

KERNELS = 16
"""Drawn where it counts how sure a gain is."""

AT_ONCE = 16
"""Configurations whose gains on all hosts are computed together."""

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Gains of configurations over the default, and the default's level over time."""

    space: Space
    seen: Observations = field(repr=False)
    """What the process was fitted to, as it was measured."""
    process: GaussianProcess
    leaning: Leaning | None = None
    """What hints say, of which the process is what comes on top; None where nobody is asked."""
    compared: Hosts | None = None
    """The hosts for which gains are to hold; None for what configurations give on all hosts together."""

    @classmethod
    def fit(
        cls,
        space: Space,
        trials: Sequence[Trial],
        *,
        seed: int = 0,
        asks_experts: bool = False,
        hosts: Hosts | None = None,
    ) -> "Posterior | None":
        """Fit to every trial that counts; None before the default was measured.

        Args:
            space: of the study.
            trials: of any role; those of the confirmation and at a fixed rate are left out.
            seed: of the choice among very many trials.
            asks_experts: whether hints count beforehand, as when something is to be chosen.
            hosts: for which gains are to hold; None for one, or for all together.
        """
        seen = Observations.of(space, trials)
        if seen is None:
            return None
        leaning = _lean(space, seen.encoding) if asks_experts else None
        expected = _expect(leaning, seen.points, encode(space, seen.encoding, [space.default()]))
        on_top = replace(seen, values=seen.values - expected)
        compared = None if seen.interaction is None else hosts
        return cls(space=space, seen=seen, process=on_top.fit(seed), leaning=leaning, compared=compared)

    @classmethod
    def sample(
        cls,
        space: Space,
        seen: Observations,
        *,
        count: int = KERNELS,
        seed: int = 0,
        hosts: Hosts | None = None,
    ) -> "list[Posterior]":
        """Return posteriors whose kernels are drawn, not only the most probable one."""
        compared = None if seen.interaction is None else hosts
        processes = seen.sample(count, seed)
        return [cls(space=space, seen=seen, process=process, compared=compared) for process in processes]

    def gains(self, configs: Sequence[Config], *, is_rough: bool = True) -> tuple[Array, Array]:
        """Return means (m,) and covariances (m, m) of the log gains over the default.

        Args:
            configs: m of them.
            is_rough: with what each configuration has for itself, apart from what its settings explain.
        """
        means, covariances = self._gains_on(configs, self._targets, is_rough=is_rough)
        if self.compared is None:
            return means, covariances
        chosen = self._choose_hosts(means.reshape(len(self._targets), len(configs)))
        return chosen @ means, chosen @ covariances @ chosen.T

    def gains_on(self, configs: Sequence[Config], hosts: Sequence[str]) -> list[list[Speedup]]:
        """Return the log gains of configurations on some hosts: for each host, of each configuration."""
        means, covariances = self._gains_on(configs, hosts)
        found = [
            Speedup(log_ratio=float(mean), variance=float(variance))
            for mean, variance in zip(means, covariances.diagonal(), strict=True)
        ]
        return [found[trial : trial + len(configs)] for trial in range(0, len(found), len(configs))]

    def shifts(self, trials: Sequence[Trial]) -> Array:
        """Return what lies between the gain on each trial's host and the one that counts; shape (n,).

        Nothing where what configurations give on all hosts together counts.
        """
        if self.compared is None:
            return np.zeros(len(trials))
        names = self.compared.names
        configs = {_key(trial.config): trial.config for trial in trials}
        between: dict[tuple[Hashable, str], float] = {}
        for keys in _in_parts([*configs], AT_ONCE):
            means, _ = self._gains_on([configs[key] for key in keys], names)
            on = means.reshape(len(names), len(keys))
            counting = self._choose_hosts(on) @ means
            between |= {
                (key, name): counting[column] - on[row, column]
                for row, name in enumerate(names)
                for column, key in enumerate(keys)
            }
        return np.array([between.get((_key(trial.config), trial.host), 0.0) for trial in trials])

    def _gains_on(
        self, configs: Sequence[Config], hosts: Sequence[str | None], *, is_rough: bool = True
    ) -> tuple[Array, Array]:
        """Return means (h·m,) and covariances of log gains: host by host, of each of m configurations."""
        points = self._points(configs)
        asked = np.concatenate([self._default, *[points] * len(hosts)])
        of_asked = [None, *(host for host in hosts for _ in configs)]
        means, covariances = self.process.joint(asked, is_rough=is_rough, **self._interact(asked, of_asked))
        contrast = _against_first(len(asked))
        apart = contrast @ covariances @ contrast.T
        # The default's own gain is 0 without any doubt, but for rounding.
        apart[np.diag_indices(len(apart))] = np.maximum(apart.diagonal(), 0.0)
        return contrast @ means + _expect(self.leaning, asked[1:], self._default), apart

    @property
    def _targets(self) -> tuple[str | None, ...]:
        """Return the hosts on which a gain is looked at; None for all together."""
        return (None,) if self.compared is None else self.compared.names

    def _choose_hosts(self, means: Array) -> Array:
        """Return what makes of gains (h·m,) on hosts, with means (h, m), those that count; shape (m, h·m).

        The worst host is that of the mean: so all stays normal.
        """
        hosts, count = means.shape
        if self.compared is not None and self.compared.across is AcrossHosts.WORST:
            shares = np.eye(hosts)[means.argmin(axis=0)].T
        else:
            shares = np.full((hosts, count), 1 / hosts)
        return np.hstack([np.diag(share) for share in shares])

    def _interact(self, points: Points, hosts: Sequence[str | None]) -> dict[str, Array]:
        """Return what points share with observations and each other on their hosts; nothing for one."""
        own = self.seen.interaction
        if own is None:
            return {}
        return {
            "across": own.covariances(points, hosts, self.process.points, self.seen.moments.hosts),
            "between": own.covariances(points, hosts, points, hosts),
        }

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

    def level(self, time_s: float, host: str = "") -> tuple[float, float]:
        """Return mean and variance of the default's log goodput at a time, as a long trial would show it."""
        means, variances = self._levels(Moments(times=np.array([time_s]), hosts=(host,)))
        return float(means[0]), float(variances[0])

    def _levels(self, moments: Moments) -> tuple[Array, Array]:
        means, covariances = self.process.joint(
            np.repeat(self._default, len(moments), axis=0),
            is_rough=True,
            across=self.seen.walks.covariances(moments, self.seen.moments),
            between=self.seen.walks.covariances(moments, moments),
        )
        return means + self.seen.walks.offset(moments), np.maximum(covariances.diagonal(), 0.0)

    def speedups(self, trials: Sequence[Trial]) -> list[Speedup]:
        """Return what each trial alone shows: its log goodput over the level at its time."""
        levels, variances = self._levels(Moments.of(trials))
        return [
            Speedup(
                log_ratio=(trial.log_value or 0.0) - float(level),
                variance=trial_variance(self.seen.noise, len(trial.valid_windows), is_certain(trial))
                + float(variance),
            )
            for trial, level, variance in zip(trials, levels, variances, strict=True)
        ]

    def worth_of_a_trial(
        self,
        configs: Sequence[Config],
        *,
        at_s: float,
        windows: int,
        bonus: Array | None = None,
        host: str = "",
        pending: Sequence[Trial] = (),
    ) -> Array:
        """Return by how much another trial of each raises the mean of the one chosen then; shape (m,).

        The knowledge gradient over these configurations (Frazier, Powell & Dayanik 2009,
        doi 10.1287/ijoc.1080.0314), in log points.

        Args:
            configs: what is chosen among.
            at_s: when the trial would be made, in seconds since the epoch.
            windows: of that trial.
            bonus: shape (m,), worth of each besides its gain; None for none.
            host: on which it would be made.
            pending: trials that others are at. What they will show is as expected; it leaves less to learn.
        """
        points = self._points(configs)
        targets = np.concatenate([points] * len(self._targets))
        # The functions of default and configurations, then what a trial of each would show now, and what
        # those show that others are at.
        asked = np.concatenate([self._default, targets, points, self._points([s.config for s in pending])])
        first, last = 1 + len(targets), 1 + len(targets) + len(configs)
        is_trial = np.arange(len(asked)) >= first
        where = (host,) * len(configs) + tuple(trial.host for trial in pending)
        moments = Moments(times=np.full(len(asked), at_s), hosts=(host,) * first + where)
        across = self.seen.walks.covariances(moments, self.seen.moments) * is_trial[:, None]
        between = self.seen.walks.covariances(moments, moments) * np.outer(is_trial, is_trial)
        own = self._interact(asked, [None, *(name for name in self._targets for _ in configs), *where])
        if own:
            across, between = across + own["across"], between + own["between"]
        means, covariances = self.process.joint(asked, is_rough=True, across=across, between=between)
        covariances = _learn_last(covariances, len(pending), trial_variance(self.seen.noise, windows))
        contrast = _against_first(first)
        gains = contrast @ means[:first] + _expect(self.leaning, targets, self._default)
        chosen = self._choose_hosts(gains.reshape(len(self._targets), len(configs)))
        gains = chosen @ gains + (0.0 if bonus is None else bonus)
        shown = covariances.diagonal()[first:last] + trial_variance(self.seen.noise, windows)
        moved = chosen @ contrast @ covariances[:first, first:last] / np.sqrt(shown)
        return gradient_of_knowledge(gains, moved)

    @cached_property
    def _default(self) -> Points:
        return self._points([self.space.default()])

    def _points(self, configs: Sequence[Config]) -> Points:
        return encode(self.space, self.seen.encoding, configs)


def estimate_gain(
    space: Space,
    trials: Sequence[Trial],
    config: Config,
    *,
    seed: int = 0,
    hosts: Hosts | None = None,
    roles: Collection[Role] = LEARNS_FROM,
) -> Speedup | None:
    """Return what is expected of one configuration over the default; None before the default was measured.

    The most probable kernel, with what experts say, serves to choose by. To say what the best of many is
    worth, it promises too much, too surely. On 60 drawn servers its best was too high by 0.039 ± 0.006 log
    points, and its 95 % interval held the truth in 85 %; on 40 where no setting acts by 0.060, and in 75 %.
    With drawn kernels, and without what a configuration has for itself, it is 0.008 ± 0.006 and 100 %, and
    0.047 and 95 %.

    Args:
        space: of the study.
        trials: of any role.
        config: whose gain it is.
        seed: of the drawn kernels.
        hosts: for which the gain is to hold; None for one, or for all together.
        roles: of the trials that tell of it.
    """
    seen = Observations.of(space, trials, roles)
    return None if seen is None else mix_gains(Posterior.sample(space, seen, seed=seed, hosts=hosts), config)


def mix_gains(posteriors: Sequence[Posterior], config: Config) -> Speedup:
    """Return the gain of a configuration under kernels that are equally likely."""
    gains = [each.gains([config], is_rough=False) for each in posteriors]
    logs = np.array([means[0] for means, _ in gains])
    variances = np.array([covariances[0, 0] for _, covariances in gains])
    return Speedup(log_ratio=float(logs.mean()), variance=max(0.0, float(variances.mean() + logs.var())))


def _key(config: Config) -> Hashable:
    """Return what equal configurations have in common."""
    return frozenset(config.items())


def _in_parts(keys: Sequence[Hashable], size: int) -> Iterator[Sequence[Hashable]]:
    for trial in range(0, len(keys), size):
        yield keys[trial : trial + size]


def _lean(space: Space, encoding: Encoding) -> Leaning | None:
    """Return what the hints of a space say; None where it has none."""
    hints = {each.name: each.hint for each in space.dimensions if each.hint is not None}
    return Leaning.of(hints, encoding) if hints else None


def _expect(leaning: Leaning | None, points: Points, default: Points) -> Array:
    """Return what hints promise of points (m, d) over the default (1, d), in log points; shape (m,)."""
    return np.zeros(len(points)) if leaning is None else HINT_GAIN * leaning.expect(points, default[0])


def _learn_last(covariances: Array, count: int, variance: float) -> Array:
    """Return covariances once the last `count` values are known, each with noise of a variance."""
    if not count:
        return covariances
    known = covariances[-count:, -count:] + variance * np.eye(count)
    return np.asarray(covariances - covariances[:, -count:] @ np.linalg.solve(known, covariances[-count:]))


def _against_first(count: int) -> Array:
    """Return the matrix that takes the first of `count` values from each other one."""
    return np.hstack([-np.ones((count - 1, 1)), np.eye(count - 1)])
