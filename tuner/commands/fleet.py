"""Looks at who works on a study, from any machine that reaches its storage; no target is asked."""

import time
from pathlib import Path

from tuner.commands.session import is_at_work
from tuner.errors import TargetError
from tuner.report.fleet import Fleet, read_fleet
from tuner.report.fleet.prometheus import prometheus_text
from tuner.study import Study
from tuner.study.folder import put_in_place, require_own
from tuner.study.open_storage import open_storage


def look_at_fleet(settings: Study) -> Fleet:
    """Return who works on a study now.

    Raises:
        UsageError: the study was never begun.
        TargetError: its storage cannot be read.
    """
    require_own(settings.folder)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    return read_fleet(settings.name, storage, is_running=is_at_work(settings, storage), now_s=time.time())


def write_prometheus(fleet: Fleet, path: Path) -> None:
    """Write the metrics whole or not at all: the collector may look at any time. Raises TargetError."""
    try:
        put_in_place(path, prometheus_text(fleet).encode())
    except OSError as error:
        raise TargetError(
            f"--prometheus: {path} cannot be written ({error.strerror}). Check the folder."
        ) from error
