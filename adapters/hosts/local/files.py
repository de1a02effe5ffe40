"""Reads and writes files whole: atomic on disk, one write under /proc and /sys."""

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

from tuner.adapters.hosts.command_runner import READ_LIMIT_BYTES, irremovable, refused, rejected
from tuner.adapters.hosts.process import CHUNK_BYTES
from tuner.ports import ABSENT, FileState

NEW_FILE_MODE = 0o644


def read_file(path: str, *, shown: str) -> FileState:
    """Read a file whole, with mode and owner; a path that is not there is ABSENT.

    Args:
        path: where it is.
        shown: what errors call it.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            content = _read_whole(file, found)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        raise refused("local", shown, "read", error) from error
    return FileState(content=content, mode=stat.S_IMODE(found.st_mode), uid=found.st_uid, gid=found.st_gid)


def _read_whole(file: IO[bytes], found: os.stat_result) -> bytes:
    """Read a file that is one, and not too long. Raises OSError."""
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "the path is not a file")
    content = bytearray()
    # Little by little: under /proc the kernel allocates what is asked for.
    while chunk := file.read(CHUNK_BYTES):
        content += chunk
        if len(content) > READ_LIMIT_BYTES:
            raise OSError(errno.EFBIG, f"the file is larger than {READ_LIMIT_BYTES} bytes")
    return bytes(content)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe in its place would wait for somebody who writes."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def write_file(path: str, state: FileState, *, shown: str) -> None:
    """Write a file, or remove it when the state is ABSENT. Readers see the old or the new one, never a part.

    Mode and owner that the state leaves open are kept, if there is a file.
    """
    target = Path(path)
    try:
        if state.content is None:
            target.unlink(missing_ok=True)
        else:
            _replace(target, state, state.content)
        _sync_directory(target.parent)
    except OSError as error:
        raise refused("local", shown, "written", error) from error


def write_pseudo(path: str, state: FileState, *, shown: str) -> None:
    """Hand a value to the kernel in one write, as it expects it.

    Raises:
        ConfigRejected: the kernel refused the value.
        TargetError: the file does not exist or may not be written.
    """
    if state.content is None:
        raise irremovable("local", shown)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    except OSError as error:
        raise refused("local", shown, "written", error) from error
    try:
        os.write(descriptor, state.content)
    except OSError as error:
        raise rejected(shown, state.content, error) from error
    finally:
        os.close(descriptor)


def _replace(target: Path, state: FileState, content: bytes) -> None:
    """Write beside the target, then rename over it (rename(2) is atomic)."""
    with contextlib.suppress(FileNotFoundError):
        before = target.stat()
        state = FileState(
            content=content,
            mode=stat.S_IMODE(before.st_mode) if state.mode is None else state.mode,
            uid=before.st_uid if state.uid is None else state.uid,
            gid=before.st_gid if state.gid is None else state.gid,
        )
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if (state.uid, state.gid) != (None, None):
                os.fchown(descriptor, *(-1 if owner is None else owner for owner in (state.uid, state.gid)))
            # After chown, which takes away set-user-id bits (chown(2)).
            os.fchmod(descriptor, NEW_FILE_MODE if state.mode is None else state.mode)
            os.fsync(descriptor)
        os.replace(name, target)  # noqa: PTH105 - the same
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - the same
        raise


def _sync_directory(directory: Path) -> None:
    """Make a rename or a removal last (fsync(2): the directory needs its own)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
