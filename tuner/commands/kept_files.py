"""What a study's choice makes of the target's files, as its storage keeps them under their owner's seal."""

import json

from tuner.commands.differences import Differences
from tuner.commands.session import Reading, open_begun
from tuner.export import differences_from_json
from tuner.ports import Config
from tuner.statistics.ranking import config_key
from tuner.study.cache import is_sealed
from tuner.study.facts import DIFFERENCES, SealedDifferences


def recall_differences(reading: Reading, chosen: Config) -> Differences | None:
    """Return what is kept of a choice; None for nothing, and for what another user's tuner wrote."""
    stored = recall_stored(reading, chosen)
    if stored is None or not is_sealed(stored.seal, *sealed_parts(reading, chosen, stored.text)):
        return None
    return differences_from_json(json.loads(stored.text))


def recall_stored(reading: Reading, chosen: Config) -> SealedDifferences | None:
    """Return what is kept of a choice, whoever wrote it."""
    storage = open_begun(reading.settings)
    stored = storage.recall(DIFFERENCES) if storage else None
    return stored if stored is not None and dict(stored.winner) == dict(chosen) else None


def sealed_parts(reading: Reading, chosen: Config, text: str) -> tuple[bytes, ...]:
    """Return what a seal is of: study, choice and text."""
    return reading.settings.name.encode(), config_key(chosen).encode(), text.encode()
