"""The ranking: what all starts so far say about every configuration that was tried."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.records.blend import Hosts
from tuner.space import Space
from tuner.statistics.control_level import Speedup, is_unstable, speedups
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
    """Its gain over the default by all starts of the study, of whatever configuration."""
    starts: int
    p_feasible: float
    """Probability that it keeps all constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Noise, speedups by start, and the configurations by posterior mean."""

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


def as_controls(starts: Sequence[Start]) -> tuple[Start, ...]:
    """Return the starts with the default's own, in races and confirmations, as control starts.

    Starts under another load than the study's are left out: their goodput says nothing of it.
    """
    return tuple(
        replace(start, role=Role.CONTROL)
        if start.arm == DEFAULT_ARM and start.role is not Role.CONTROL
        else start
        for start in starts
        if start.role.is_under_study_load
    )


def follow_incumbent(starts: Sequence[Start], ranking: Ranking) -> tuple[tuple[int, float], ...]:
    """Return the best speedup that was found by each start of a feasible configuration, by start number.

    By all that is known in the end: a number that was only lucky when it was seen is none that was found.
    """
    found = {entry.key: entry.posterior.ratio for entry in ranking.entries if entry.p_feasible >= LIKELY}
    path: list[tuple[int, float]] = []
    for start in as_controls(starts):
        ratio = found.get(config_key(start.config))
        if start.role is Role.CONTROL or ratio is None or start.number not in ranking.speedups:
            continue
        path.append((start.number, max(ratio, path[-1][1] if path else ratio)))
    return tuple(path)


def rank(
    space: Space,
    starts: Sequence[Start],
    constraints: Sequence[Constraint],
    hosts: Hosts | None = None,
) -> Ranking:
    """Rank all configurations anew: every start revises what is known of each.

    Args:
        space: of the study.
        starts: all of them.
        constraints: of the study.
        hosts: for all of which the winner is to hold; None for one, or where any of several will do.
    """
    # As they were made: the default's side of a confirmation is no control here.
    posterior = Posterior.fit(space, starts, asks_experts=True, hosts=hosts)
    starts = as_controls(starts)
    noise = estimate_noise(starts) if posterior is None else posterior.seen.noise
    by_start = speedups(starts, noise)
    feasibility = judge_feasibility(starts, constraints, space.default(), hosts)
    groups = _group(starts, config_key(space.default()))
    harmful = {config_key(config) for config in carriers(starts, noise)}
    measured = {key: [start for start in group if start.number in by_start] for key, group in groups.items()}
    left = {
        key: repeats[0].config
        for key, repeats in measured.items()
        if repeats and key not in harmful and not _scatters(repeats, by_start, hosts)
    }
    left = {key: config for key, config in left.items() if not feasibility.is_ruled_out(config)}
    found = posterior.gains_apart([*left.values()]) if posterior is not None else []
    entries = [
        Entry(
            key=key, config=config, posterior=gain, starts=len(measured[key]),
            p_feasible=feasibility.probability(config),
        )
        for (key, config), gain in zip(left.items(), found, strict=posterior is not None)
    ]  # fmt: skip
    entries.sort(key=lambda entry: (entry.p_feasible < LIKELY, -entry.posterior.log_ratio))
    return Ranking(
        noise=noise, speedups=by_start, entries=tuple(entries), posterior=posterior, feasibility=feasibility
    )


def _scatters(repeats: Sequence[Start], by_start: Mapping[int, Speedup], hosts: Hosts | None) -> bool:
    """Return whether starts of one configuration scatter too much.

    Where the winner is to hold on several hosts, on one of them: that those differ is seen by other means.
    """
    groups: dict[str, list[Speedup]] = {}
    for start in repeats:
        groups.setdefault("" if hosts is None else start.host, []).append(by_start[start.number])
    return any(map(is_unstable, groups.values()))


def _group(starts: Sequence[Start], default: str) -> dict[str, list[Start]]:
    """Return the starts of every configuration but the default, by its key."""
    groups: dict[str, list[Start]] = {}
    for start in starts:
        if start.role is not Role.CONTROL and start.state is not State.INVALID:
            groups.setdefault(config_key(start.config), []).append(start)
    groups.pop(default, None)
    return groups
