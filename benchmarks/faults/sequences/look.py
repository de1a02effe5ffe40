"""What is on a host, what tuner keeps of it, and on which side."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.host import TestHost
from tuner.errors import TunerError
from tuner.restore.journal import Journal

WATCHED = (
    "etc/sysctl.d",
    "etc/tmpfiles.d",
    "etc/udev/rules.d",
    "etc/systemd/system",
    "etc/cron.d",
)
KEPT_IN = "var/lib/tuner"
SETTING = "/proc/sys/net/core/somaxconn"
OWN = (
    "/etc/systemd/system/tuner-restore.service",
    "/etc/systemd/system/multi-user.target.wants/tuner-restore.service",
    "/etc/cron.d/tuner-restore",
)
"""What guards the way back over a reboot."""
STEPS = r"""
for each in /proc/[0-9]*; do tr '\0' ' ' 2> /dev/null < $each/cmdline && echo; done |
    grep '^/bin/sh /var/lib/tuner/keeper'
"""
WATCHDOG = frozenset({"watch", "guard", "nap"})


@dataclass(frozen=True, slots=True)
class State:
    """What is at a path."""

    content: bytes
    mode: int = 0
    owner: tuple[int, int] = (0, 0)

    @property
    def manner(self) -> tuple[int, tuple[int, int]]:
        return self.mode, self.owner

    def __repr__(self) -> str:
        return f"{len(self.content)} bytes {checksum(self.content)[:8]} {self.mode:o} {self.owner}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What tuner has kept of a path, somewhere."""

    path: str
    state: State | None
    """None: it was absent."""
    is_live: bool
    """Whether tuner says that it will put it back."""
    written: frozenset[str] = frozenset()
    """Checksums of what tuner wrote there."""


class AnyJournal(Journal):
    """Reads a record by its path: one that was set aside, too."""

    def path(self, host_name: str) -> Path:
        return Path(host_name)


def checksum(content: bytes) -> str:
    """Return what the keeper calls a content."""
    return hashlib.sha256(content).hexdigest()


def scan(host: TestHost, folder: str) -> dict[str, State]:
    """Read all files that a sequence may change, by path; and the one setting of the kernel."""
    root = host.root
    start = len(str(root))
    found = {}
    for top in (folder, *WATCHED):
        for directory, names, files in os.walk(root / top):
            for name in [*files, *names]:
                path = f"{directory}/{name}"
                with suppress(FileNotFoundError):
                    if (state := _read(path)) is not None:
                        found[path[start:]] = state
    found[SETTING] = State(host.run(["cat", SETTING]).stdout)
    return found


def _read(path: str) -> State | None:
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        return State(bytes(Path(path).readlink()))
    if not stat.S_ISREG(facts.st_mode):
        return None
    owner = facts.st_uid, facts.st_gid
    return State(Path(path).read_bytes(), stat.S_IMODE(facts.st_mode), owner)


def copies_on(host: TestHost) -> Iterator[Copy]:
    """Yield what the host keeps."""
    home = host.root / KEPT_IN
    for meta in home.rglob("meta"):
        entry = meta.parent
        with suppress(OSError, ValueError):
            path, kind, owner, *_ = meta.read_text(errors="surrogateescape").split("\n")
            is_live = not entry.is_relative_to(home / "kept") and entry.parent.name == "journal"
            written: list[str] = []
            with suppress(OSError):
                written = [line.split()[0] for line in (entry / "after").read_text().splitlines()]
            how = {"path": path, "is_live": is_live, "written": frozenset(written)}
            match kind:
                case "absent":
                    yield Copy(state=None, **how)
                case "file":
                    mode, uid, gid = owner.split()
                    state = State((entry / "content").read_bytes(), int(mode, 8), (int(uid), int(gid)))
                    yield Copy(state=state, **how)
                case "setting":
                    yield Copy(state=State((entry / "content").read_bytes()), **how)
            if (entry / "foreign").exists():
                state = _read(str(entry / "foreign"))
                yield Copy(path=path, state=state, is_live=False)


def copies_here(states: Mapping[str, Path]) -> Iterator[Copy]:
    """Yield what the controllers keep, by their state directories."""
    for directory in states.values():
        for path in directory.glob("*.journal*"):
            is_live = path.suffix == ".journal"
            with suppress(TunerError):
                record = AnyJournal(directory).read(str(path))
                for original in record.originals:
                    state = original.state
                    content = (
                        None
                        if state.content is None
                        else State(state.content, state.mode or 0, (state.uid or 0, state.gid or 0))
                    )
                    if str(original.path).startswith("/proc") and content is not None:
                        content = State(content.content)
                    written = frozenset(record.written.get(original.path, ()))
                    yield Copy(path=str(original.path), state=content, is_live=is_live, written=written)


def steps_of(host: TestHost) -> list[str]:
    """List the steps of the keeper that are at work, those of the watchdog among them."""
    said = host.run(["sh", "-c", STEPS], check=False).stdout.decode()
    return [words[2] for words in map(str.split, said.splitlines()) if len(words) > 2]
