"""What a study's choice makes of the target's files, as its storage keeps them under their owner's seal."""

import json
from pathlib import PurePosixPath

from tuner.commands.differences import Differences
from tuner.commands.session import Reading, open_begun
from tuner.export import differences_from_json, differences_to_json, installed_of
from tuner.ports import Config
from tuner.statistics.ranking import config_key
from tuner.study.cache import is_sealed, make_seal
from tuner.study.facts import DIFFERENCES, SealedDifferences


def remember_differences(reading: Reading, differences: Differences) -> None:
    """Keep what the winner makes of the files, for the report, and for exports when the target is gone.

    Nothing is kept of files that not everybody may read: whoever reads the storage would read them.
    What is known of this winner already stays: later the host may have it active.
    """
    storage, winner = open_begun(reading.settings), reading.summary.winner
    if storage is None or winner is None or list_private(differences):
        return
    if recall_differences(reading, winner.config) is not None:
        return
    text = json.dumps(differences_to_json(differences))
    seal = make_seal(*_sealed_parts(reading, winner.config, text))
    if seal is not None:
        storage.remember(DIFFERENCES, SealedDifferences(winner=dict(winner.config), text=text, seal=seal))


def recall_differences(reading: Reading, chosen: Config) -> Differences | None:
    """Return what is kept of a choice; None for nothing, and for what another user's tuner wrote."""
    stored = recall_stored(reading, chosen)
    if stored is None or not is_sealed(stored.seal, *_sealed_parts(reading, chosen, stored.text)):
        return None
    return differences_from_json(json.loads(stored.text))


def recall_stored(reading: Reading, chosen: Config) -> SealedDifferences | None:
    """Return what is kept of a choice, whoever wrote it."""
    storage = open_begun(reading.settings)
    stored = storage.recall(DIFFERENCES) if storage else None
    return stored if stored is not None and dict(stored.winner) == dict(chosen) else None


def list_private(differences: Differences) -> list[PurePosixPath]:
    """Return the files of the target that not everybody may read."""
    installed = (installed_of(each) for each in differences.values())
    return sorted(path for each in installed if each is not None for path in each.private)


def _sealed_parts(reading: Reading, chosen: Config, text: str) -> tuple[bytes, ...]:
    return reading.settings.name.encode(), config_key(chosen).encode(), text.encode()
