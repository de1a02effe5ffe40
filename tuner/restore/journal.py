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
from urllib.parse import quote

from tuner.errors import RestoreFailed, TargetError, TunerError
from tuner.ports import FileState, Host

PSEUDO = (PurePosixPath("/proc"), PurePosixPath("/sys"))
"""Where files are the kernel's: their mode and owner are not ours to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What was at a path before the first write."""

    path: PurePosixPath
    state: FileState
    session: str = ""
    """In which it was kept."""


WRITTEN_KEPT = 8
"""Of how many writes to a path the checksums are told; one that failed may have left any of the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """All that is kept of a host."""

    plan: str
    """What has to run and to answer there, as the keeper is told; empty when an earlier version kept it."""
    originals: tuple[Original, ...]
    written: Mapping[PurePosixPath, tuple[str, ...]]
    """Checksums of what was written to a path, the last ones."""
    made: tuple[PurePosixPath, ...]
    """Directories, parents first."""


class Journal:
    """Originals of one or more hosts in a state directory; each host's are locked from the first use on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files: dict[str, int] = {}
        self._kept: dict[str, set[PurePosixPath]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def path(self, host_name: str) -> Path:
        """Name the file that holds a host's originals."""
        return self.directory / f"{quote(host_name, safe='')}.journal"

    def claim(self, host_name: str) -> None:
        """Lock a host's originals. Raises TargetError when another tuner is at work on it from here."""
        self._open(host_name)

    def record(self, host: Host, paths: Sequence[PurePosixPath], *, session: str = "") -> None:
        """Keep what is at these paths now, on disk when this returns, unless an original is kept already.

        Raises TargetError when one cannot be kept; then nothing may be written.
        """
        descriptor = self._open(host.name)
        new = [path for path in dict.fromkeys(paths) if path not in self._kept[host.name]]
        if not new:
            return
        look = host.look(new)
        originals = [Original(path=path, state=look.read(path), session=session) for path in new]
        lines = [json.dumps({"host": host.name, **_encode(original)}) + "\n" for original in originals]
        try:
            _append(descriptor, "".join(lines).encode())
        except OSError as error:
            # Half a line may be there now; it is taken away when the file is opened again.
            self._forget(host.name)
            told = ", ".join(str(path) for path in new)
            message = (
                f"{self.path(host.name)}: the original of {told} cannot be kept ({error.strerror}), so "
                "nothing was changed. Make room, or set TUNER_STATE to another directory."
            )
            raise TargetError(message) from error
        self._kept[host.name].update(new)

    def begin(self, host_name: str, plan: str) -> None:
        """Forget what is kept of a host, and keep the plan of a new session. On disk when this returns.

        Raises TargetError when it cannot be kept; then nothing may be written.
        """
        self.discard(host_name)
        self._note(host_name, {"plan": plan})

    def note_written(self, host_name: str, written: Mapping[PurePosixPath, str]) -> None:
        """Keep the checksums of what is about to be written. Raises TargetError as `begin` does."""
        self._note(host_name, {"written": {str(path): checksum for path, checksum in written.items()}})

    def note_made(self, host_name: str, directories: Sequence[PurePosixPath]) -> None:
        """Keep which directories were made. Raises TargetError as `begin` does."""
        self._note(host_name, {"made": [str(path) for path in directories]})

    def originals(self, host_name: str) -> tuple[Original, ...]:
        """Read the originals of a host, in the order in which they were changed."""
        return self.kept(host_name).originals

    def kept(self, host_name: str) -> Kept:
        """Read all that is kept of a host."""
        try:
            content = self.path(host_name).read_bytes()
        except FileNotFoundError:
            content = b""
        return _decode(_whole_lines(content), self.path(host_name))

    def restore(self, host: Host) -> tuple[PurePosixPath, ...]:
        """Put everything back, last change first, and read it back; then the journal is removed.

        Returns the paths that had to be written.

        Raises:
            RestoreFailed: something is not back; the journal is kept, and the same call can be made again.
            TargetError: another tuner is at work on this host.
        """
        if not self.path(host.name).exists():
            return ()
        self._open(host.name)
        originals = tuple(reversed(self.originals(host.name)))
        written: list[PurePosixPath] = []
        troubles: dict[PurePosixPath, str] = {}
        for original in originals:
            try:
                if not _is_back(host, original):
                    host.write(original.path, original.state)
                    written.append(original.path)
            except TunerError as error:
                troubles[original.path] = str(error)
        # After all writes, because one setting of the kernel may change another.
        for original in originals:
            try:
                if not _is_back(host, original):
                    troubles.setdefault(original.path, "it was written, and reads differently.")
            except TunerError as error:
                troubles.setdefault(original.path, str(error))
        if troubles:
            told = " ".join(f"{path} ({reason})" for path, reason in troubles.items())
            message = (
                f"{host.name}: {len(troubles)} of {len(originals)} originals could not be put back: {told} "
                f"They are kept in {self.path(host.name)}. Remove the cause, then run: tuner restore"
            )
            raise RestoreFailed(message)
        self._remove(host.name)
        return tuple(written)

    def discard(self, host_name: str) -> None:
        """Forget a host's originals: the host itself has verified that they are back."""
        if self.path(host_name).exists():
            self._open(host_name)
            self._remove(host_name)

    def set_aside(self, host_name: str) -> Path | None:
        """Keep a host's originals under another name, for people. Returns it, or None without originals."""
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
        """Let go of the locks; what is kept stays on disk."""
        for host_name in tuple(self._files):
            self._forget(host_name)

    def _open(self, host_name: str) -> int:
        """Open and lock a host's file, once. A line that a crash cut off is taken away."""
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
        self._kept[host_name] = {original.path for original in originals}
        return descriptor

    @contextlib.contextmanager
    def _translated(self, host_name: str) -> Iterator[None]:
        """Raise TargetError for what the system says when a host's file is opened."""
        path = self.path(host_name)
        try:
            yield
        except BlockingIOError as error:
            message = f"{path}: another tuner is at work on {host_name}. Wait for its end, or end it."
            raise TargetError(message) from error
        except OSError as error:
            message = (
                f"{path}: cannot be written ({error.strerror}). Set TUNER_STATE to a directory that can."
            )
            raise TargetError(message) from error

    def _note(self, host_name: str, entry: dict[str, Any]) -> None:
        """Add a line that is no original."""
        descriptor = self._open(host_name)
        try:
            _append(descriptor, (json.dumps({"host": host_name, **entry}) + "\n").encode())
        except OSError as error:
            self._forget(host_name)
            told = f"cannot be written ({error.strerror}), so nothing was changed"
            message = f"{self.path(host_name)}: {told}. Make room, or set TUNER_STATE to another directory."
            raise TargetError(message) from error

    def _remove(self, host_name: str) -> None:
        self.path(host_name).unlink()
        _sync(self.directory)
        self._forget(host_name)

    def _forget(self, host_name: str) -> None:
        os.close(self._files.pop(host_name))
        del self._kept[host_name]


def open_journal(directory: Path | None = None) -> Journal:
    """Open the journal of this user, or of a given state directory."""
    return Journal(directory or find_state_directory())


def find_state_directory() -> Path:
    """Name the directory for what must outlive a run (TUNER_STATE, or by the XDG Base Directory rules)."""
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


def _append(descriptor: int, line: bytes) -> None:
    """Add a line, on disk when this returns. Raises OSError."""
    left = line
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _sync(directory: Path) -> None:
    """Make the creation or removal of a file last (fsync(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_back(host: Host, original: Original) -> bool:
    found = host.read(original.path)
    if any(original.path.is_relative_to(root) for root in PSEUDO):
        return found.content == original.state.content
    return found == original.state


def _encode(original: Original) -> dict[str, Any]:
    state = original.state
    content = None if state.content is None else base64.b64encode(state.content).decode()
    owner = {"mode": state.mode, "uid": state.uid, "gid": state.gid}
    session = {"session": original.session} if original.session else {}
    return {"path": str(original.path), "content": content, **owner, **session}


def _whole_lines(content: bytes) -> bytes:
    """Leave out what a crash cut off: a line without its end was not on disk when the crash came."""
    return content[: content.rfind(b"\n") + 1]


def _decode(content: bytes, path: Path) -> Kept:
    """Read whole lines. Raises RestoreFailed: an original that cannot be read must not be forgotten."""
    plan = ""
    originals: list[Original] = []
    written: dict[PurePosixPath, tuple[str, ...]] = {}
    made: list[PurePosixPath] = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            entry = json.loads(line)
            if "plan" in entry:
                plan = str(entry["plan"])
                continue
            if "made" in entry:
                made += map(PurePosixPath, entry["made"])
                continue
            if "written" in entry:
                for name, checksum in entry["written"].items():
                    at = PurePosixPath(name)
                    before = [each for each in written.get(at, ()) if each != checksum]
                    written[at] = (*before, str(checksum))[-WRITTEN_KEPT:]
                continue
            data = None if entry["content"] is None else base64.b64decode(entry["content"], validate=True)
            state = FileState(content=data, mode=entry["mode"], uid=entry["uid"], gid=entry["gid"])
            path_there, session = PurePosixPath(entry["path"]), str(entry.get("session", ""))
            originals.append(Original(path=path_there, state=state, session=session))
        except (ValueError, KeyError, TypeError) as error:
            message = (
                f"{path}, line {number}: the original cannot be read ({error}). Put that file back by hand, "
                "remove the line, then run: tuner restore"
            )
            raise RestoreFailed(message) from error
    return Kept(plan=plan, originals=tuple(originals), written=written, made=tuple(sorted(set(made))))
