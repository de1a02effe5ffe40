"""Jumps of the control level: what is measured again, and which configurations are suspected.

A host that changes by itself and a configuration that leaves something behind look alike at first: the
default is far from where it was. Only a second jump right after the same configuration tells them apart.
(Settings of a system may keep it degraded after they are gone: SemaTune, arXiv 2605.15026.)
"""

from collections.abc import Sequence

from tuner.ports import Config
from tuner.records import Role, Start
from tuner.statistics.control_level import ControlLevel, middle_s
from tuner.statistics.noise import Noise, estimate_noise

MOST_DOUBTFUL = 2
"""Starts of one configuration around jumps: after the second it is not tried a third time."""


def requeue(starts: Sequence[Start], noise: Noise | None = None) -> tuple[int, ...]:
    """Return the numbers of the search starts to measure again, once each, those under suspicion last.

    Made where a jump was, and not repeated since: nobody knows on which side of the jump they were, which
    lies between the last good control and the first of the two that confirmed it.
    """
    around = _doubtful(starts, noise)
    tried = [start.config for _, doubtful in around for start in doubtful]
    numbers = []
    for after_s, doubtful in around:
        since = [start.config for start in starts if start.counts and middle_s(start) > after_s]
        numbers += [
            start.number
            for start in doubtful
            if start.config not in since and tried.count(start.config) < MOST_DOUBTFUL
        ]
    blamed = suspects(starts, noise)
    return tuple(sorted(numbers, key=lambda number: (number in blamed, number)))


def suspects(starts: Sequence[Start], noise: Noise | None = None) -> tuple[int, ...]:
    """Return the numbers of the starts right after which the default was confirmed to have jumped."""
    return tuple(doubtful[-1].number for _, doubtful in _doubtful(starts, noise) if doubtful)


def carriers(starts: Sequence[Start], noise: Noise | None = None) -> tuple[Config, ...]:
    """Return the configurations that leave something behind: around one jump, and alone before another.

    What was around a jump is measured again with a control right after it, so that it is alone.
    """
    around = [[start.config for start in doubtful] for _, doubtful in _doubtful(starts, noise)]
    alone = [configs[0] for configs in around if len(configs) == 1]
    return tuple(config for config in alone if sum(config in configs for configs in around) >= MOST_DOUBTFUL)


def _doubtful(starts: Sequence[Start], noise: Noise | None) -> list[tuple[float, list[Start]]]:
    """Return for each jump the time of the first control after it, and the search starts around it."""
    hosts = dict.fromkeys(start.host for start in starts)
    return [
        jump
        for host in hosts
        for jump in _doubtful_on_one([start for start in starts if start.host == host], noise)
    ]


def _doubtful_on_one(starts: Sequence[Start], noise: Noise | None) -> list[tuple[float, list[Start]]]:
    controls = [start for start in starts if start.role is Role.CONTROL and start.counts]
    if not controls:
        return []
    searched = [start for start in starts if start.role in {Role.SEARCH, Role.REPEAT} and start.counts]
    jumps = ControlLevel.fit(controls, noise or estimate_noise(starts)).jumps
    return [
        (after_s, [start for start in searched if before_s < middle_s(start) < after_s])
        for before_s, after_s in jumps
    ]
