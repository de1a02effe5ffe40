"""What each line of a configuration is worth, and what pairs of them give beyond that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from tuner.explain.beliefs import Array, Beliefs, read_worth
from tuner.explain.coalitions import Coalition, weigh_coalitions
from tuner.explain.explanation import Finding, Interaction, Line, Worth
from tuner.explain.findings import NEGLIGIBLE, SURE, find
from tuner.explain.variation import is_allowed, is_same, keep_lines
from tuner.ports import Config
from tuner.records import Start
from tuner.statistics.mechanism import Mechanism, attribute_mechanisms

LEAST_INTERACTION = 0.01
"""Log points below which two lines are not worth naming together."""
MOST_MECHANISMS = 3


def weigh_lines(beliefs: Beliefs, config: Config) -> tuple[Worth, tuple[Line, ...], tuple[Interaction, ...]]:
    """Return the gain of a configuration, its lines by worth, and the interactions that can be told."""
    changes = beliefs.space.changes(config)
    names = sorted(changes)
    every = frozenset(names)
    coalitions, shares = weigh_coalitions(names, lambda part: _is_part(beliefs, config, part))
    parts = dict.fromkeys([*coalitions, every])
    pairs = [pair for pair in combinations(names, 2) if _can_be_told(beliefs, config, every, pair)]
    for left_out in [*({name} for name in names), *map(set, pairs)]:
        parts.setdefault(every - left_out)
    column = {part: number for number, part in enumerate(parts)}

    def contrast(**signs: Sequence[Coalition]) -> Array:
        row = np.zeros(len(parts))
        for sign, of_sign in (1, signs["plus"]), (-1, signs["minus"]):
            for part in of_sign:
                row[column[part]] += sign
        return row

    worths = np.zeros((len(names), len(parts)))
    worths[:, [column[part] for part in coalitions]] = shares
    alone = np.array([
        contrast(plus=[every], minus=[every - {name}])
        if _is_part(beliefs, config, every - {name}) else worths[row]
        for row, name in enumerate(names)
    ]).reshape(len(names), len(parts))  # fmt: skip
    together = np.array([
        contrast(plus=[every, every - {one, other}], minus=[every - {one}, every - {other}])
        for one, other in pairs
    ]).reshape(len(pairs), len(parts))  # fmt: skip
    rows = np.concatenate([contrast(plus=[every], minus=[])[None], worths, alone, together])
    draws = beliefs.draw([keep_lines(beliefs.space, config, part) for part in parts], rows)
    of_worth, of_alone, of_pairs = np.split(draws[:, 1:], [len(names), 2 * len(names)], axis=1)
    lines = [
        _describe_line(beliefs, name, changes[name], of_worth[:, row], of_alone[:, row])
        for row, name in enumerate(names)
    ]
    return (
        read_worth(draws[:, 0]),
        tuple(sorted(lines, key=lambda line: -line.worth.ratio)),
        _describe_interactions(pairs, of_pairs),
    )


def _is_part(beliefs: Beliefs, config: Config, names: Coalition) -> bool:
    return is_allowed(beliefs.space, keep_lines(beliefs.space, config, names))


def _can_be_told(beliefs: Beliefs, config: Config, every: Coalition, pair: tuple[str, str]) -> bool:
    """Return whether a pair, and each of it alone, can be put back."""
    without = (every - {pair[0]}, every - {pair[1]}, every - set(pair))
    return all(_is_part(beliefs, config, part) for part in without)


def _describe_line(
    beliefs: Beliefs, name: str, change: tuple[object, object], worth: Array, alone: Array
) -> Line:
    finding, bound, _ = find(alone[:, None])
    default, value = change
    if name in beliefs.space.inert_but_tuned:
        finding, bound = Finding.CANNOT_ACT, None
    return Line(
        parameter=name,
        default=default,  # type: ignore[arg-type]
        value=value,  # type: ignore[arg-type]
        worth=read_worth(worth),
        alone=read_worth(alone),
        chance=float((alone > NEGLIGIBLE).mean()),
        finding=finding,
        bound=bound,
    )


def _describe_interactions(pairs: Sequence[tuple[str, str]], draws: Array) -> tuple[Interaction, ...]:
    found = []
    for pair, drawn in zip(pairs, draws.T, strict=True):
        is_sure = max((drawn > 0).mean(), (drawn < 0).mean()) >= SURE
        if is_sure and abs(drawn.mean()) >= LEAST_INTERACTION:
            found.append(Interaction(parameters=pair, worth=read_worth(drawn)))
    return tuple(sorted(found, key=lambda each: -abs(each.worth.log)))


def add_mechanisms(lines: Sequence[Line], starts: Sequence[Start], default: Config) -> tuple[Line, ...]:
    """Return the lines with the counters that moved with each, by all starts under the study's own load."""
    counted = [start for start in starts if start.counts and start.role.is_under_study_load]
    has_line = {line.parameter: [_has(start.config, line, default) for start in counted] for line in lines}
    moved: Mapping[str, tuple[Mechanism, ...]] = attribute_mechanisms(counted, has_line) if lines else {}
    return tuple(replace(line, mechanisms=moved[line.parameter][:MOST_MECHANISMS]) for line in lines)


def _has(config: Config, line: Line, default: Config) -> bool:
    """Return whether a configuration has a line: its choice, or a number nearer to its than the default's."""
    value = config.get(line.parameter, default.get(line.parameter))
    numbers = (value, line.value, line.default)
    if any(isinstance(each, bool | str) or each is None for each in numbers):
        return is_same(value, line.value)
    at, end, begin = (float(each) for each in numbers)  # type: ignore[arg-type]
    return abs(at - end) < abs(at - begin)
