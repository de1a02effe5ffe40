"""Jumps of the baseline level: what is measured again, and which configurations are suspected.

A host that changes by itself and a configuration that leaves something behind look alike at first: the
default is far from where it was. Only a second jump right after the same configuration tells them apart.
(Settings of a system may keep it degraded after they are gone: SemaTune, arXiv 2605.15026.)
"""

from collections.abc import Sequence

from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.statistics.baseline_level import BaselineLevel, middle_s
from tuner.statistics.noise import Noise, estimate_noise

MOST_DOUBTFUL = 2
"""Trials of one configuration around jumps: after the second it is not tried a third time."""


def requeue(trials: Sequence[Trial], noise: Noise | None = None) -> tuple[int, ...]:
    """Return the numbers of the search trials to measure again, once each, those under suspicion last.

    Made where a jump was, and not repeated since: nobody knows on which side of the jump they were, which
    lies between the last good baseline trial and the first of the two that confirmed it.
    """
    around = _doubtful(trials, noise)
    tried = [trial.config for _, doubtful in around for trial in doubtful]
    numbers = []
    for after_s, doubtful in around:
        since = [trial.config for trial in trials if trial.counts and middle_s(trial) > after_s]
        numbers += [
            trial.number
            for trial in doubtful
            if trial.config not in since and tried.count(trial.config) < MOST_DOUBTFUL
        ]
    blamed = suspects(trials, noise)
    return tuple(sorted(numbers, key=lambda number: (number in blamed, number)))


def suspects(trials: Sequence[Trial], noise: Noise | None = None) -> tuple[int, ...]:
    """Return the numbers of the trials right after which the default was confirmed to have jumped."""
    return tuple(doubtful[-1].number for _, doubtful in _doubtful(trials, noise) if doubtful)


def carriers(trials: Sequence[Trial], noise: Noise | None = None) -> tuple[Config, ...]:
    """Return the configurations that leave something behind: around one jump, and alone before another.

    What was around a jump is measured again with a baseline trial right after it, so that it is alone.
    """
    around = [[trial.config for trial in doubtful] for _, doubtful in _doubtful(trials, noise)]
    alone = [configs[0] for configs in around if len(configs) == 1]
    return tuple(config for config in alone if sum(config in configs for configs in around) >= MOST_DOUBTFUL)


def _doubtful(trials: Sequence[Trial], noise: Noise | None) -> list[tuple[float, list[Trial]]]:
    """Return for each jump the time of the first baseline trial after it, and the search trials around it."""
    hosts = dict.fromkeys(trial.host for trial in trials)
    return [
        jump
        for host in hosts
        for jump in _doubtful_on_one([trial for trial in trials if trial.host == host], noise)
    ]


def _doubtful_on_one(trials: Sequence[Trial], noise: Noise | None) -> list[tuple[float, list[Trial]]]:
    baselines = [trial for trial in trials if trial.role is Role.BASELINE and trial.counts]
    if not baselines:
        return []
    searched = [trial for trial in trials if trial.role in {Role.SEARCH, Role.REPEAT} and trial.counts]
    jumps = BaselineLevel.fit(baselines, noise or estimate_noise(trials)).jumps
    return [
        (after_s, [trial for trial in searched if before_s < middle_s(trial) < after_s])
        for before_s, after_s in jumps
    ]
