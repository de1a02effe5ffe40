"""What the space of a study would have the servers' files hold."""

import random
from pathlib import Path

from tests.property.directives import KERNEL, NAMES, Writer, beyond, writers
from tuner.errors import TunerError
from tuner.ports import Config
from tuner.space import Dimension, Space, SpaceFacts, load_space
from tuner.study import load_study

POINTS = 4


def directives_beyond(study: Path) -> list[str]:
    """Name the directives that configurations of a study would add without owning them.

    Trusted or not: the default, and some points of its space, go to every server that its settings belong to.
    """
    try:
        settings = load_study(study)
        facts = SpaceFacts(names=NAMES, current=KERNEL.current, sandbox=False, loopback=False)
        space = load_space(settings.space, facts=facts, base=study.parent)
        configs = [space.default(), *(space.decode(each) for each in _points(space))]
    except TunerError:
        return []
    return [
        f"{way}: {name}"
        for way, writer in writers().items()
        for config in configs
        for name in _beyond(writer, space.for_server(config, writer.server))
    ]


def _points(space: Space) -> list[dict[str, object]]:
    chance = random.Random(1)  # noqa: S311 - a fixed selection
    return [{each.name: _draw(each, chance) for each in space.dimensions} for _ in range(POINTS)]


def _draw(dimension: Dimension, chance: random.Random) -> object:
    if dimension.kind == "categorical":
        return chance.choice(dimension.choices)
    return chance.choice((dimension.low, dimension.high))


def _beyond(writer: Writer, config: Config) -> list[str]:
    try:
        written = writer.write({**writer.usual, **config})
    except TunerError:
        return []
    return list(beyond(writer, {**writer.usual, **config}, written))
