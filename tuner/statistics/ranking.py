"""The ranking: what all starts so far say about every configuration that was tried."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.statistics.control_level import Speedup, combine, is_unstable, speedups
from tuner.statistics.jumps import carriers
from tuner.statistics.noise import Noise, estimate_noise
from tuner.statistics.promotion import shrunk
from tuner.study.objective import Constraint, slacks

DEFAULT_ARM = "default"
WINNER_ARM = "winner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One configuration and what its starts say."""

    key: str
    config: Config
    speedup: Speedup
    """Repeats combined by inverse variance."""
    posterior: Speedup
    """The same, shrunk towards what configurations of this study are usually worth."""
    starts: int
    is_feasible: bool
    """Whether it keeps all constraints, gives the same at every start and leaves nothing behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Noise, speedups by start, and the configurations by posterior mean."""

    noise: Noise
    speedups: Mapping[int, Speedup]
    entries: tuple[Entry, ...]
    """Feasible configurations other than the default, best first."""

    @property
    def incumbent(self) -> Entry | None:
        return self.entries[0] if self.entries else None


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
    """Return the speedup of the incumbent after each start that told something of it, by start number.

    By posterior mean, as far as was known then, among the configurations that are feasible by all that is
    known now.
    """
    feasible = {entry.key for entry in ranking.entries}
    repeats: dict[str, list[Speedup]] = {}
    combined: dict[str, Speedup] = {}
    path = []
    for start in as_controls(starts):
        key = config_key(start.config)
        if start.role is Role.CONTROL or key not in feasible or start.number not in ranking.speedups:
            continue
        repeats.setdefault(key, []).append(ranking.speedups[start.number])
        combined[key] = combine(repeats[key], ranking.noise)
        path.append((start.number, max(each.ratio for each in shrunk(combined).values())))
    return tuple(path)


def rank(starts: Sequence[Start], constraints: Sequence[Constraint], default: Config) -> Ranking:
    """Rank all configurations anew: a new control revises the speedups of the past."""
    starts = as_controls(starts)
    controls = [start for start in starts if start.role is Role.CONTROL and start.counts]
    noise = estimate_noise(starts)
    by_start = speedups(starts, noise)
    groups: dict[str, list[Start]] = {}
    for start in starts:
        if start.role is not Role.CONTROL and start.state is not State.INVALID:
            groups.setdefault(config_key(start.config), []).append(start)
    groups.pop(config_key(default), None)
    repeats = {
        key: [by_start[start.number] for start in group if start.number in by_start]
        for key, group in groups.items()
    }
    combined = {key: combine(speedups, noise) for key, speedups in repeats.items() if speedups}
    posterior = shrunk(combined)
    harmful = {config_key(config) for config in carriers(starts, noise)}
    entries = [
        Entry(
            key=key,
            config=groups[key][0].config,
            speedup=combined[key],
            posterior=posterior[key],
            starts=len(repeats[key]),
            is_feasible=not is_unstable(repeats[key])
            and key not in harmful
            and all(
                slack <= 0
                for start in groups[key]
                if start.state is not State.RUNNING
                for slack in slacks(start, constraints, controls).values()
            ),
        )
        for key in combined
    ]
    feasible = (entry for entry in entries if entry.is_feasible)
    best_first = sorted(feasible, key=lambda entry: -entry.posterior.log_ratio)
    return Ranking(noise=noise, speedups=by_start, entries=tuple(best_first))
