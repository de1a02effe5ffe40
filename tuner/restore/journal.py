"""Write-ahead record of originals: what was there before the first write, kept on disk until it is back.

One file per host, one JSON object per line, each on disk (fsync) before the write that it is there for. A
line that a crash cut off therefore belongs to a write that never happened. The first original of a path is
never overwritten, not even by a later run that finds the journal of one that was killed.

Beside originals it holds what a host needs that has lost all it knew: the plan (what has to run and to
answer), checksums of what was written, and directories that were made.
"""

import base64
import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

from tuner.errors import RestoreFailed, TargetError
from tuner.ports import FileState, Host

WRITTEN_KEPT = 8
"""Number of writes to a path whose checksums are returned; one that failed may have left any of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What was at a path before the first write."""

    path: PurePosixPath
    state: FileState


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """All that the journal holds of one host."""

    plan: str
    """What has to run and to answer there, in the keeper's words; empty in journals of earlier versions."""
    originals: tuple[Original, ...]
    written: Mapping[PurePosixPath, tuple[str, ...]]
    """Checksums of the last contents that were written to a path."""
    made: tuple[PurePosixPath, ...]
    """Directories, parents first."""
    values: tuple[str, ...] = ()
    """Settings of the kernel as it showed them after the last change, each as PATH:VALUE."""

    def say(self, word: str) -> str:
        """Return what the plan says of `purpose`, `session`, `study` …; empty where it does not."""
        lines = (line.partition(" ") for line in self.plan.splitlines())
        return next((value for key, _, value in lines if key == word), "")


class Journal:
    """Originals of one or more hosts in a state directory; each host's are locked from the first use on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files: dict[str, int] = {}
        self._recorded: dict[str, set[PurePosixPath]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def path(self, host_name: str) -> Path:
        """Return the file that holds a host's originals."""
        return self.directory / f"{quote(host_name, safe='')}.journal"

    def names(self) -> tuple[str, ...]:
        """Return the names of the hosts of which something is recorded."""
        return tuple(unquote(path.stem) for path in sorted(self.directory.glob("*.journal")))

    def claim(self, host_name: str) -> None:
        """Lock a host's originals. Raises TargetError when another tuner is at work on it from here."""
        self._open(host_name)

    def record(self, host: Host, paths: Sequence[PurePosixPath]) -> None:
        """Record what is at these paths now, on disk when this returns; the first original of a path stays.

        Raises TargetError when one cannot be kept; then nothing may be written.
        """
        self._open(host.name)
        new = [path for path in dict.fromkeys(paths) if path not in self._recorded[host.name]]
        if not new:
            return
        look = host.look(new)
        entries = [_encode(Original(path=path, state=look.read(path))) for path in new]
        self._append(host.name, entries, f"tuner cannot store the backup of {', '.join(map(str, new))}")
        self._recorded[host.name].update(new)

    def begin(self, host_name: str, plan: str) -> None:
        """Discard the record of a host and begin a new one with the plan of a session, on disk on return.

        Raises TargetError when it cannot be written; then nothing may be changed.
        """
        self.discard(host_name)
        self._append(host_name, [{"plan": plan}])

    def note_written(self, host_name: str, written: Mapping[PurePosixPath, str]) -> None:
        """Record the checksums of what is about to be written. Raises TargetError as `begin` does."""
        self._append(host_name, [{"written": {str(path): checksum for path, checksum in written.items()}}])

    def note_made(self, host_name: str, directories: Sequence[PurePosixPath]) -> None:
        """Record which directories were made. Raises TargetError as `begin` does."""
        self._append(host_name, [{"made": [str(path) for path in directories]}])

    def note_values(self, host_name: str, values: Sequence[str]) -> None:
        """Record how the kernel shows what was set. Raises TargetError as `begin` does."""
        self._append(host_name, [{"values": [*values]}])

    def originals(self, host_name: str) -> tuple[Original, ...]:
        """Read the originals of a host, in the order in which they were changed."""
        return self.read(host_name).originals

    def read(self, host_name: str) -> HostRecord:
        """Read all that is recorded of a host."""
        try:
            content = self.path(host_name).read_bytes()
        except FileNotFoundError:
            content = b""
        return _decode(_whole_lines(content), self.path(host_name))

    def discard(self, host_name: str) -> None:
        """Delete the record of a host; the host itself has verified that its originals are back."""
        if self.path(host_name).exists():
            self._open(host_name)
            self._remove(host_name)

    def set_aside(self, host_name: str) -> Path | None:
        """Rename a host's record, for people. Returns its new path, or None without a record."""
        path = self.path(host_name)
        if not path.exists():
            return None
        if host_name not in self._files:
            with self._translated(host_name):
                os.close(_lock(path))
        else:
            self._forget(host_name)
        if not path.stat().st_size:
            path.unlink()
            return None
        place = path.with_name(f"{path.name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.{os.getpid()}")
        path.rename(place)
        _sync(self.directory)
        return place

    def close(self) -> None:
        """Release the locks; the records stay on disk."""
        for host_name in tuple(self._files):
            self._forget(host_name)

    def _open(self, host_name: str) -> int:
        """Open and lock a host's file, once, and remove a line that a crash cut off."""
        if host_name in self._files:
            return self._files[host_name]
        path = self.path(host_name)
        with self._translated(host_name):
            # Originals may hold passwords: nobody else may read them.
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = _lock(path)
        try:
            whole = _whole_lines(path.read_bytes())
            originals = _decode(whole, path).originals
            os.ftruncate(descriptor, len(whole))
            _sync(self.directory)
            _sync(self.directory.parent)
        except BaseException:
            os.close(descriptor)
            raise
        self._files[host_name] = descriptor
        self._recorded[host_name] = {original.path for original in originals}
        return descriptor

    @contextlib.contextmanager
    def _translated(self, host_name: str) -> Iterator[None]:
        """Translate OSError from opening a host's file to TargetError."""
        path = self.path(host_name)
        try:
            yield
        except BlockingIOError as error:
            raise TargetError(
                f"{path}: another tuner is at work on {host_name}. Wait until that tuner ends, or end it."
            ) from error
        except OSError as error:
            raise TargetError(
                f"{path}: cannot be written ({error.strerror}). Set TUNER_STATE to a directory that you may "
                "write to."
            ) from error

    def _append(
        self, host_name: str, entries: Sequence[dict[str, Any]], trouble: str = "cannot be written"
    ) -> None:
        """Write one line per entry, on disk when this returns. Raises TargetError."""
        descriptor = self._open(host_name)
        left = "".join(json.dumps({"host": host_name, **entry}) + "\n" for entry in entries).encode()
        try:
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError as error:
            # Half a line may be there now; it is removed when the file is opened again.
            self._forget(host_name)
            told = f"{trouble} ({error.strerror}), so tuner changed nothing"
            raise TargetError(
                f"{self.path(host_name)}: {told}. Free some space, or set TUNER_STATE to another directory."
            ) from error

    def _remove(self, host_name: str) -> None:
        self.path(host_name).unlink()
        _sync(self.directory)
        self._forget(host_name)

    def _forget(self, host_name: str) -> None:
        os.close(self._files.pop(host_name))
        del self._recorded[host_name]


def open_journal(directory: Path | None = None) -> Journal:
    """Open the journal of this user, or of a given state directory."""
    return Journal(directory or find_state_directory())


def find_state_directory() -> Path:
    """Return the directory for what must outlive a run (TUNER_STATE, or by the XDG Base Directory rules)."""
    if asked := os.environ.get("TUNER_STATE"):
        return Path(asked)
    if os.geteuid() == 0:
        return Path("/var/lib/tuner")
    state = os.environ.get("XDG_STATE_HOME", "")
    # Relative values are to be ignored (XDG Base Directory Specification).
    return (Path(state) if state.startswith("/") else Path.home() / ".local/state") / "tuner"


def _lock(path: Path) -> int:
    """Open a file for appending and lock it. Raises OSError; BlockingIOError when it is locked already."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Somebody removed it after all was back, between our open and our lock.
        os.close(descriptor)


def _sync(directory: Path) -> None:
    """Flush the creation or removal of a file to disk (fsync(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _encode(original: Original) -> dict[str, Any]:
    state = original.state
    content = None if state.content is None else base64.b64encode(state.content).decode()
    owner = {"mode": state.mode, "uid": state.uid, "gid": state.gid}
    return {"path": str(original.path), "content": content, **owner}


def _whole_lines(content: bytes) -> bytes:
    """Return the content up to its last newline: a line that a crash cut off preceded no write."""
    return content[: content.rfind(b"\n") + 1]


def _decode(content: bytes, path: Path) -> HostRecord:
    """Parse whole lines. Raises RestoreFailed: an original that cannot be read must not be forgotten."""
    plan = ""
    originals: list[Original] = []
    written: dict[PurePosixPath, tuple[str, ...]] = {}
    made: list[PurePosixPath] = []
    values: tuple[str, ...] = ()
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            match json.loads(line):
                case {"plan": str(plan)}:
                    pass
                case {"made": paths}:
                    made += map(PurePosixPath, paths)
                case {"values": shown}:
                    values = tuple(map(str, shown))
                case {"written": checksums}:
                    for name, checksum in checksums.items():
                        at = PurePosixPath(name)
                        before = [each for each in written.get(at, ()) if each != checksum]
                        written[at] = (*before, str(checksum))[-WRITTEN_KEPT:]
                case entry:
                    originals.append(_decode_original(entry))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RestoreFailed(
                f"{path}, line {number}: the backup cannot be read ({error}). Restore the file of that "
                "backup by hand, remove that line, then run: tuner restore"
            ) from error
    return HostRecord(
        plan=plan,
        originals=tuple(originals),
        written=written,
        made=tuple(sorted(set(made))),
        values=values,
    )


def _decode_original(entry: dict[str, Any]) -> Original:
    content = None if entry["content"] is None else base64.b64decode(entry["content"], validate=True)
    state = FileState(content=content, mode=entry["mode"], uid=entry["uid"], gid=entry["gid"])
    return Original(path=PurePosixPath(entry["path"]), state=state)
