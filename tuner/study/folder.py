"""Opens what is in a study's folder without being led elsewhere.

A folder may come from somebody else together with its study file. So nothing below it is reached through a
link, no file in it has a second name elsewhere, and nobody else may change it while tuner works there.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from tuner.errors import TargetError, UsageError

DATABASE = "study.db"
SCHEDULER = "scheduler.json"
"""Address and keys of the scheduler of a study that is measured on several hosts now."""
FOLDER_MODE, FILE_MODE, SCRIPT_MODE = 0o755, 0o644, 0o755
"""Of what is made here; the umask takes more away."""
PRIVATE = 0o700
"""What is left of a mode where a file holds what few may read."""
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
MOST_LINKS = 40
"""As the kernel follows (path_resolution(7))."""
ACCESS_LIST = "system.posix_acl_access"
SIDE_FILES = ("", "-journal", "-wal", "-shm")
"""What SQLite opens beside a database (sqlite.org/tempfiles.html); it follows links by itself."""


def require_own(folder: Path) -> None:
    """Check a study's folder and its database; what is not there yet is right.

    Raises:
        UsageError: one of them is a link, another user's, or others may write to it.
        TargetError: the folder cannot be opened.
    """
    with translated(folder, "read"):
        try:
            os.close(open_folder(folder))
        except FileNotFoundError:
            return
        require_own_database(folder / DATABASE)


def require_own_database(path: Path) -> None:
    """Check a SQLite file and those that SQLite opens beside it; what is not there is right.

    Raises:
        UsageError: one of them is a link, has several names, is another user's or no regular file.
    """
    for suffix in SIDE_FILES:
        each = path.with_name(path.name + suffix)
        try:
            found = each.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        _refuse_strange_file(each, found)
        _refuse_others(each, found)


def refuse_writable_study(path: Path) -> None:
    """Check that, as root, nobody else may write what is about to be done: a study names commands.

    Raises:
        UsageError: by their modes, others may write to the study file, or exchange it in its folder.
    """
    if os.geteuid() != 0:
        return
    with translated(path, "read"):
        file, folder = path.resolve(), path.resolve().parent
        _refuse_writers(path, file.stat())
        if not folder.stat().st_mode & stat.S_ISVTX:  # where only owners exchange files
            _refuse_writers(folder, folder.stat())


def make_folder(folder: Path) -> None:
    """Make a folder inside a study's own, or check the one that is there. Raises as `require_own` does."""
    with translated(folder, "written"), _entered(folder.parent, create=True) as parent:
        os.close(open_folder(folder, within=parent, create=True))


def write_file(path: Path, content: bytes, *, study_folder: Path, is_private: bool = False) -> None:
    """Write a file of a study's folder, directly in it or below; see `put_in_place`.

    Raises:
        UsageError: the file or a folder on the way is a link, another user's, or may be written by others.
        TargetError: it cannot be written.
    """
    with translated(path, "written"), _entered_above(path, study_folder, create=True) as directory:
        with suppress(FileNotFoundError):
            os.close(open_file(path, os.O_RDONLY, within=directory))
        put_in_place(path, content, within=directory, is_private=is_private)


def read_file(path: Path, *, study_folder: Path) -> bytes:
    """Read a file of a study's folder, directly in it or below.

    Raises:
        UsageError: the file or a folder on the way is a link, another user's, or may be written by others.
        OSError: it is not there, or cannot be read.
    """
    with (
        _entered_above(path, study_folder) as directory,
        os.fdopen(open_file(path, os.O_RDONLY, within=directory), "rb") as file,
    ):
        return file.read()


@contextmanager
def _entered_above(path: Path, study_folder: Path, *, create: bool = False) -> Iterator[int]:
    """Open the folder of a file below a study's own, one step after the other."""
    with _entered(study_folder, create=create) as top, ExitStack() as stack:
        directory = top
        for parent in reversed(path.relative_to(study_folder).parents[:-1]):
            directory = open_folder(study_folder / parent, within=directory, create=create)
            stack.callback(os.close, directory)
        yield directory


def put_in_place(path: Path, content: bytes, *, within: int | None = None, is_private: bool = False) -> None:
    """Write a file beside and rename it, so that the old one stays until the new one is whole.

    Mode and owner stay those of the old one.

    Args:
        path: where it is to be.
        content: all of it.
        within: descriptor of its folder; without it, links on the way are followed.
        is_private: whether nobody else may read it, whatever the mode of the old one.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    aside = path.with_name(f".{path.name}.{token_hex(4)}")
    name, place = (each if within is None else each.name for each in (aside, path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    usual = SCRIPT_MODE if content.startswith(b"#!") else FILE_MODE
    most = usual & PRIVATE if is_private else usual
    descriptor = os.open(name, flags, most, dir_fd=within)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                old = os.stat(place, dir_fd=within, follow_symlinks=False)
                _take_after(descriptor, old, most if is_private else stat.S_IMODE(old.st_mode))
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(name, place, src_dir_fd=within, dst_dir_fd=within)
    except BaseException:
        os.unlink(name, dir_fd=within)
        raise


def _take_after(descriptor: int, old: os.stat_result, mode: int) -> None:
    """Give a new file its mode, and the owner of an old one where that is permitted."""
    os.fchmod(descriptor, mode)
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)


def write_named(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write to a path that the user named, which may be a link, a pipe or a terminal.

    Raises:
        TargetError: it cannot be written.
    """
    with translated(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            put_in_place(_follow(path), content, is_private=is_private)


def _follow(path: Path) -> Path:
    """Return where a link leads, so that the link stays; folders on the way are left as they are named.

    To resolve those as well would lead out of /proc/PID/root, for one (proc(5)).
    """
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return path


def list_files(folder: Path, *, study_folder: Path) -> tuple[Path, ...]:
    """List the files of a folder inside a study's own, sorted; none when it is not there."""
    try:
        with _entered_above(folder, study_folder) as above:
            directory = open_folder(folder, within=above)
            try:
                names = sorted(os.listdir(directory))  # noqa: PTH208 - by its descriptor
            finally:
                os.close(directory)
    except OSError:
        return ()
    # Hidden is what was being written when its tuner was killed.
    return tuple(folder / name for name in names if not name.startswith("."))


def open_folder(path: Path, *, within: int | None = None, create: bool = False) -> int:
    """Open a folder that is really there and nobody else's, and return its descriptor.

    Args:
        path: where it is.
        within: its parent's descriptor; without it, links on the way to its parent are followed.
        create: whether to make it.

    Raises:
        UsageError: it is a link, another user's, or others may write to it.
        OSError: it cannot be opened.
    """
    name = path if within is None else path.name
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=within)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except OSError as error:
        if path.is_symlink():
            raise UsageError(
                f"{path}: this is a symbolic link, which tuner does not follow. Remove the link; tuner "
                "makes the folder."
            ) from error
        if isinstance(error, NotADirectoryError):
            raise UsageError(
                f"{path}: this is not a folder. Remove the file; tuner makes the folder."
            ) from error
        raise
    return _checked(descriptor, path)


def open_file(path: Path, flags: int, *, within: int) -> int:
    """Open a regular file in an open folder and return its descriptor; one that is made has FILE_MODE.

    Raises:
        UsageError: it is a link, has several names, is another user's or no regular file.
        OSError: it cannot be opened.
    """
    try:
        # Looked at first: to open a device is to use it.
        _refuse_strange_file(path, os.stat(path.name, dir_fd=within, follow_symlinks=False))
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    quietly = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path.name, flags | quietly, FILE_MODE, dir_fd=within)
    return _checked(descriptor, path)


def _checked(descriptor: int, path: Path) -> int:
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode):
            _refuse_strange_file(path, found)
        _refuse_others(path, found, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_strange_file(path: Path, found: os.stat_result) -> None:
    problem = None
    if stat.S_ISLNK(found.st_mode):
        problem = "this is a symbolic link, which tuner does not follow"
    elif not stat.S_ISREG(found.st_mode):
        problem = "this is no regular file"
    elif found.st_nlink > 1:
        problem = f"this file has {found.st_nlink} hard links, so a change would also change its other names"
    if problem:
        raise UsageError(f"{path}: {problem}. Remove the file; tuner makes a new one.")


def _refuse_others(path: Path, found: os.stat_result, descriptor: int | None = None) -> None:
    """Raise UsageError when another user owns something, or may write to it."""
    if not _may_own(found.st_uid):
        raise UsageError(
            f"{path}: this file belongs to user {found.st_uid}, and tuner runs as user {os.geteuid()}. Run "
            "tuner as its owner, or copy the study file to a folder of your own."
        )
    _refuse_writers(path, found, descriptor)


def _refuse_writers(path: Path, found: os.stat_result, descriptor: int | None = None) -> None:
    """Raise UsageError when others than the owner may write to something."""
    writers = found.st_mode & OTHERS_MAY_WRITE
    if writers == stat.S_IWGRP and _is_private_group(found.st_gid) and not _has_access_list(path, descriptor):
        return
    if writers:
        raise UsageError(
            f"{path}: other users may write to this file (mode {stat.S_IMODE(found.st_mode):04o}). If you "
            f"trust the content, run: chmod go-w {path}"
        )


def _may_own(user: int) -> bool:
    """Return whether a user may own what tuner works with.

    That is the one it runs as; root, who can change everything anyway; and whoever became root with sudo:
    it is the same person, whose checkout it is that `sudo make tune` works in.
    """
    if user in {os.geteuid(), 0}:
        return True
    return os.geteuid() == 0 and os.environ.get("SUDO_UID") == str(user)


def _is_private_group(group: int) -> bool:
    """Return whether a group has members, and none but those who may own a study's folder.

    Where each user has a group of the same name, the umask is often 002.
    """
    try:
        named = [pwd.getpwnam(name).pw_uid for name in grp.getgrgid(group).gr_mem]
    except KeyError:
        return False
    members = [*named, *(user.pw_uid for user in pwd.getpwall() if user.pw_gid == group)]
    return bool(members) and all(map(_may_own, members))


def _has_access_list(path: Path, descriptor: int | None) -> bool:
    """Return whether single users may have been given rights, which the group's bits then cover (acl(5))."""
    try:
        return ACCESS_LIST in os.listxattr(path if descriptor is None else descriptor)
    except OSError:
        return False


@contextmanager
def _entered(study_folder: Path, *, create: bool = False) -> Iterator[int]:
    if create:
        study_folder.parent.mkdir(parents=True, exist_ok=True)
    descriptor = open_folder(study_folder, create=create)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def translated(path: Path, done: str) -> Iterator[None]:
    """Turn an OSError into a TargetError that names the path and what cannot be done with it."""
    try:
        yield
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be {done} ({error.strerror}). Check the folder, its permissions and free space."
        ) from error
