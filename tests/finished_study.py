"""A study that has its winner without having been run: everything is as a run leaves it but the load.

Its space and fingerprint are those of the real target; only what its trials served is invented.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from tests.unit.simulation import SimulatedHost, SimulatedRunner
from tuner.campaign.pairs import Pairing, measure_pairs
from tuner.campaign.prepare import prepare
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.facts import CONFIRMATION, PRESET, SPACE_FACTS, VERDICT, Confirmation
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS
from tuner.study.storage import Opening

PAIRS = 4


def finish(
    settings: Study, values: Config, *, log_gain: float = 1.0, surroundings: Mapping[str, Any] | None = None
) -> None:
    """Write the storage of a study whose winner has these values.

    Args:
        settings: the study; it is prepared on its real target.
        values: what the winner changes.
        log_gain: what it served more than the default, in log points.
        surroundings: in what its fingerprint is other than that of the target now.
    """
    settings.folder.mkdir()
    setup = prepare(settings)
    winner = setup.space.complete(dict(values))
    storage = open_storage(settings.storage_url, settings.name)
    fingerprint = replace(setup.fingerprint, **(surroundings or {}))
    storage.claim(fingerprint, definition=settings.definition(setup.space))
    storage.remember(SPACE_FACTS, setup.space_facts)
    storage.remember(PRESET, "quick")
    planned = Confirmation(config=winner, pairs=PAIRS, windows=2, extend_to=PAIRS, looks=1)
    storage.remember(CONFIRMATION, planned)
    host = SimulatedHost(worth=lambda config: log_gain if config == winner else 0.0)
    runner = SimulatedRunner(
        host=host, setup=setup, plan=PRESETS["quick"], storage=storage, session="invented"
    )
    trials: list[Trial] = []

    def make(opening: Opening) -> Trial:
        trials.append(runner.make(opening))
        return trials[-1]

    sides = {DEFAULT_ARM: setup.space.default(), WINNER_ARM: winner}
    rng = Random(f"{settings.seed}/confirm")  # noqa: S311 - no secret
    measure_pairs(Pairing(role=Role.CONFIRM, sides=sides, pairs=PAIRS, rng=rng), trials, make)
    storage.remember(VERDICT, "confirmed")
