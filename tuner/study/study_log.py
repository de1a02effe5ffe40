"""The log in a study's folder, for whoever asks afterwards what a run did and why."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tuner.log import LOGGER, BoundedLog
from tuner.study.folder import open_file, open_folder, translated

LOG = "log"
"""Its name; older parts are called log.1, log.2 …"""


@contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Keep the log of this process in a study's folder meanwhile, with the error that ends it.

    Raises:
        UsageError: the file is a link, another user's, or may be written by others.
        TargetError: it cannot be written.
    """
    with translated(folder / LOG, "written"):
        handler = BoundedLog(folder / LOG, _open)
    level = LOGGER.level
    if level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
    LOGGER.addHandler(handler)
    try:
        LOGGER.info("begins: %s", " ".join(sys.argv))
        yield
    except BaseException:
        LOGGER.info("ended by an error", exc_info=True)
        raise
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        handler.close()


def _open(path: Path) -> int:
    folder = open_folder(path.parent)
    try:
        return open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, within=folder)
    finally:
        os.close(folder)
