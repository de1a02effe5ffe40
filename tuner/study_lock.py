"""The lock on a study: one tuner at a time works on it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tuner.errors import TargetError
from tuner.settings import Study


@contextmanager
def locked(settings: Study) -> Iterator[None]:
    """Hold the study for one tuner. The kernel lets go of the lock when its holder dies.

    A folder that was not there before, and in which nothing was put, is removed again.

    Raises:
        TargetError: another tuner holds it, or the folder cannot be written.
    """
    path = settings.folder / "lock"
    is_new = not settings.folder.exists()
    descriptor = _open(path)
    try:
        try:
            _lock(descriptor)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            msg = (
                f"{settings.path}: another tuner is at work on this study (process {holder}). "
                "Wait for it, or end it; then run the same command again."
            )
            raise TargetError(msg) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            if is_new:
                _remove_if_unused(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not os.fstat(descriptor).st_nlink:
        # Its holder removed it since it was opened: who comes next would lock another file.
        raise BlockingIOError


def _remove_if_unused(path: Path) -> None:
    with suppress(OSError):
        if list(path.parent.iterdir()) == [path]:
            path.unlink()
            path.parent.rmdir()


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}). Check the folder's permissions and free space."
        raise TargetError(msg) from error


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
