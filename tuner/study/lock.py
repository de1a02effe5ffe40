"""The lock on a study: one tuner at a time works on it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tuner.errors import TargetError
from tuner.study import Study
from tuner.study.folder import open_file, open_folder, refuse_writable_study, require_own, translated
from tuner.study.study_log import LOG, logged

NAME = "lock"


@contextmanager
def locked(settings: Study) -> Iterator[None]:
    """Hold the study for one tuner. The kernel lets go of the lock when its holder dies.

    A folder that was not there before, and in which nothing was put, is removed again.

    Raises:
        UsageError: the folder or a file in it is a link, another user's, or may be written by others; or, for
            root, others may write to the study file.
        TargetError: another tuner holds it, or the folder cannot be written.
    """
    refuse_writable_study(settings.path)
    is_new = not settings.folder.exists()
    with ExitStack() as opened:
        with translated(settings.folder, "written"):
            settings.folder.parent.mkdir(parents=True, exist_ok=True)
            folder = open_folder(settings.folder, create=True)
            opened.callback(os.close, folder)
        require_own(settings.folder)
        with translated(settings.folder / NAME, "written"):
            descriptor = open_file(settings.folder / NAME, os.O_RDWR | os.O_CREAT, within=folder)
            opened.callback(os.close, descriptor)
        _claim(descriptor, settings)
        if is_new:
            opened.callback(_remove_if_unused, settings.folder, folder)
        opened.enter_context(logged(settings.folder))
        yield


def _claim(descriptor: int, settings: Study) -> None:
    """Take the lock and write into it who has it."""
    try:
        _lock(descriptor)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise TargetError(
            f"{settings.path}: another tuner is at work on this study (process {holder}). Wait until that "
            "process ends, or end the process. Then run the same command again."
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _lock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not os.fstat(descriptor).st_nlink:
        # Its holder removed it since it was opened: who comes next would lock another file.
        raise BlockingIOError


def _remove_if_unused(path: Path, folder: int) -> None:
    with suppress(OSError):
        if {*os.listdir(folder)} <= {NAME, LOG}:
            for name in (LOG, NAME):
                os.unlink(name, dir_fd=folder)
            path.rmdir()


def is_locked(settings: Study) -> bool:
    """Return whether a tuner is at work on the study now. Raises UsageError as `locked` does."""
    try:
        folder = open_folder(settings.folder)
        try:
            descriptor = open_file(settings.folder / NAME, os.O_RDONLY, within=folder)
        finally:
            os.close(folder)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
