"""The ranking: what all trials so far say about every configuration that was tried."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.records.blend import Hosts
from tuner.space import Space
from tuner.statistics.baseline_level import Speedup, is_unstable, speedups
from tuner.statistics.feasibility import Feasibility, judge_feasibility
from tuner.statistics.jumps import carriers
from tuner.statistics.noise import Noise, estimate_noise
from tuner.statistics.posterior import Posterior
from tuner.study.objective import Constraint

DEFAULT_ARM = "default"
WINNER_ARM = "winner"
LIKELY = 0.5
"""Probability of feasibility from which on a configuration may lead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One configuration and what is known of it."""

    key: str
    config: Config
    posterior: Speedup
    """Its gain over the default by all trials of the study, of whatever configuration."""
    trials: int
    p_feasible: float
    """Probability that it keeps all constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Noise, speedups by trial, and the configurations by posterior mean."""

    noise: Noise
    speedups: Mapping[int, Speedup]
    entries: tuple[Entry, ...]
    """Configurations other than the default that may be feasible: the likely ones first, best first."""
    posterior: Posterior | None
    """What the entries come from; None before the default was measured."""

    feasibility: Feasibility

    @property
    def incumbent(self) -> Entry | None:
        """The best configuration that is rather feasible than not."""
        return next((entry for entry in self.entries if entry.p_feasible >= LIKELY), None)


def config_key(config: Config) -> str:
    """Return a key of a configuration: equal configurations have equal keys."""
    return json.dumps(dict(config), sort_keys=True)


def as_baselines(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the trials with the default's own, in races and confirmations, as baseline trials.

    Trials under another load than the study's are left out: their goodput says nothing of it.
    """
    return tuple(
        replace(trial, role=Role.BASELINE)
        if trial.arm == DEFAULT_ARM and trial.role is not Role.BASELINE
        else trial
        for trial in trials
        if trial.role.is_under_study_load
    )


def follow_incumbent(trials: Sequence[Trial], ranking: Ranking) -> tuple[tuple[int, float], ...]:
    """Return the best speedup that was found by each trial of a feasible configuration, by trial number.

    By all that is known in the end: a number that was only lucky when it was seen is none that was found.
    """
    found = {entry.key: entry.posterior.ratio for entry in ranking.entries if entry.p_feasible >= LIKELY}
    path: list[tuple[int, float]] = []
    for trial in as_baselines(trials):
        ratio = found.get(config_key(trial.config))
        if trial.role is Role.BASELINE or ratio is None or trial.number not in ranking.speedups:
            continue
        path.append((trial.number, max(ratio, path[-1][1] if path else ratio)))
    return tuple(path)


def rank(
    space: Space,
    trials: Sequence[Trial],
    constraints: Sequence[Constraint],
    hosts: Hosts | None = None,
) -> Ranking:
    """Rank all configurations anew: every trial revises what is known of each.

    Args:
        space: of the study.
        trials: all of them.
        constraints: of the study.
        hosts: for all of which the winner is to hold; None for one, or where any of several will do.
    """
    # As they were made: the default's side of a confirmation is no baseline here.
    posterior = Posterior.fit(space, trials, asks_experts=True, hosts=hosts)
    trials = as_baselines(trials)
    noise = estimate_noise(trials) if posterior is None else posterior.seen.noise
    by_trial = speedups(trials, noise)
    feasibility = judge_feasibility(trials, constraints, space.default(), hosts)
    groups = _group(trials, config_key(space.default()))
    harmful = {config_key(config) for config in carriers(trials, noise)}
    measured = {key: [trial for trial in group if trial.number in by_trial] for key, group in groups.items()}
    left = {
        key: repeats[0].config
        for key, repeats in measured.items()
        if repeats and key not in harmful and not _scatters(repeats, by_trial, hosts)
    }
    left = {key: config for key, config in left.items() if not feasibility.is_ruled_out(config)}
    found = posterior.gains_apart([*left.values()]) if posterior is not None else []
    entries = [
        Entry(
            key=key, config=config, posterior=gain, trials=len(measured[key]),
            p_feasible=feasibility.probability(config),
        )
        for (key, config), gain in zip(left.items(), found, strict=posterior is not None)
    ]  # fmt: skip
    entries.sort(key=lambda entry: (entry.p_feasible < LIKELY, -entry.posterior.log_ratio))
    return Ranking(
        noise=noise, speedups=by_trial, entries=tuple(entries), posterior=posterior, feasibility=feasibility
    )


def _scatters(repeats: Sequence[Trial], by_trial: Mapping[int, Speedup], hosts: Hosts | None) -> bool:
    """Return whether trials of one configuration scatter too much.

    Where the winner is to hold on several hosts, on one of them: that those differ is seen by other means.
    """
    groups: dict[str, list[Speedup]] = {}
    for trial in repeats:
        groups.setdefault("" if hosts is None else trial.host, []).append(by_trial[trial.number])
    return any(map(is_unstable, groups.values()))


def _group(trials: Sequence[Trial], default: str) -> dict[str, list[Trial]]:
    """Return the trials of every configuration but the default, by its key."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.role is not Role.BASELINE and trial.state is not State.INVALID:
            groups.setdefault(config_key(trial.config), []).append(trial)
    groups.pop(default, None)
    return groups
