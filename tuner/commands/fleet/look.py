"""Looks at who works on a study, by its storage and the scheduler of its workers; no target is asked."""

import time
from pathlib import Path

from tuner.commands.all_targets import import_fleet
from tuner.errors import TargetError
from tuner.report.fleet import Fleet, read_fleet
from tuner.report.fleet.prometheus import prometheus_text
from tuner.study import Study
from tuner.study.folder import SCHEDULER, put_in_place, require_own
from tuner.study.lock import is_locked
from tuner.study.open_storage import open_storage


def look_at_fleet(settings: Study, scheduler: str | None = None) -> Fleet:
    """Return who works on a study now.

    Args:
        settings: the study.
        scheduler: address of the one with the workers; None for that of the study's own controller.

    Raises:
        UsageError: the study was never begun.
        TargetError: its storage cannot be read, or the scheduler cannot be reached.
    """
    require_own(settings.folder)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    is_running, silences = is_locked(settings), {}
    if scheduler is not None or (is_running and (settings.folder / SCHEDULER).exists()):
        silences = import_fleet("engine").read_silences(settings, scheduler)
    return read_fleet(settings.name, storage, is_running=is_running, now_s=time.time(), silences=silences)


def write_prometheus(fleet: Fleet, path: Path) -> None:
    """Write the metrics whole or not at all: the collector may look at any time. Raises TargetError."""
    try:
        put_in_place(path, prometheus_text(fleet).encode())
    except OSError as error:
        raise TargetError(
            f"--prometheus: {path} cannot be written ({error.strerror}). Check the folder."
        ) from error
