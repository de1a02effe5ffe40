"""The lock on a study: one tuner at a time works on it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tuner.errors import TargetError
from tuner.settings import Study


@contextmanager
def locked(settings: Study) -> Iterator[None]:
    """Hold the study for one tuner. The kernel lets go of the lock when its holder dies.

    Raises:
        TargetError: another tuner holds it, or the folder cannot be written.
    """
    path = settings.folder / "lock"
    try:
        settings.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}). Check the folder's permissions and free space."
        raise TargetError(msg) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            msg = (
                f"{settings.path}: another tuner is at work on this study (process {holder}). "
                "Wait for it, or end it; then run the same command again."
            )
            raise TargetError(msg) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_locked(settings: Study) -> bool:
    """Say whether a tuner is at work on the study now."""
    try:
        with (settings.folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
