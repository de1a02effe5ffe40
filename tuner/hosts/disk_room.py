"""Watches the room on a target's disks: a web server writes a line to its log for each request.

At 25,000 requests/s that is some 2 MB/s, so that minutes of load fill a small disk.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Command, Completed

KIB, MIB = 2**10, 2**20
RESERVE_SHARE = 0.05
"""Of a disk; ext4 keeps as much for root (mke2fs(8), -m)."""
LEAST_RESERVE_BYTES = 16 * MIB
"""What originals may need."""
MOST_RESERVE_BYTES = 1024 * MIB
LEAST_ALLOWED_BYTES = 1024 * MIB
ALLOWED_SHARE = 0.1
"""Of the room at the beginning: so much a session may write there, unless its study says how much."""
STARTS_AHEAD = 2
"""One trial may write twice what those before it wrote: faster settings, a stage with longer loads."""
USUALLY_WRITTEN = tuple(PurePosixPath(path) for path in ("/var/log", "/var/lib", "/var/cache", "/tmp"))  # noqa: S108 - asked for its size only


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A mounted file system."""

    mount_point: str
    size_bytes: int
    free_bytes: int
    """To ordinary users."""

    @property
    def reserve_bytes(self) -> int:
        """Return what the load never gets."""
        return int(min(max(RESERVE_SHARE * self.size_bytes, LEAST_RESERVE_BYTES), MOST_RESERVE_BYTES))

    @property
    def allowed_bytes(self) -> int:
        """Return what a session may write that finds so much room."""
        return int(max(ALLOWED_SHARE * self.free_bytes, LEAST_ALLOWED_BYTES))


@dataclass(kw_only=True)
class DiskRoom:
    """The disks that a load may fill, from one trial to the next."""

    host_name: str
    directories: tuple[PurePosixPath, ...]
    allowed_mib: int | None = None
    """What a session may write to one disk; None for a share of the room that it finds."""
    _allowed: dict[str, int] = field(default_factory=dict, init=False)
    """By mount point; what is left of it falls with each trial."""
    _free_bytes: dict[str, int] = field(default_factory=dict, init=False)
    _most_written: dict[str, int] = field(default_factory=dict, init=False)
    """By one trial so far, in bytes, by mount point."""

    @classmethod
    def of(cls, host_name: str, logs: Iterable[PurePosixPath], allowed_mib: int | None = None) -> "DiskRoom":
        """Return the room where these logs are, and where servers usually write."""
        places = dict.fromkeys((*(log.parent for log in logs), *USUALLY_WRITTEN))
        return cls(host_name=host_name, directories=tuple(places), allowed_mib=allowed_mib)

    @property
    def command(self) -> Command:
        """Return what shows it. A directory that is missing is left out of what is printed."""
        return Command(argv=("df", "-Pk", "--", *map(str, self.directories)), may_fail=True)

    def look(self, shown: Completed) -> None:
        """Read what the command printed before a trial.

        Raises TargetError while there is still room: the next trials would fill a disk, or the session has
        written what it may.
        """
        for mount_point, disk in read_disks(shown).items():
            last = self._free_bytes.get(mount_point, disk.free_bytes) - disk.free_bytes
            written = max(self._most_written.get(mount_point, 0), last)
            self._free_bytes[mount_point], self._most_written[mount_point] = disk.free_bytes, written
            if disk.free_bytes < disk.reserve_bytes + STARTS_AHEAD * written:
                raise TargetError(self._too_full(disk, written))
            self._allowed[mount_point] = self._allowed.get(mount_point, self.allow(disk)) - max(last, 0)
            if self._allowed[mount_point] < 0:
                raise TargetError(self._too_much(mount_point))

    def allow(self, disk: Disk) -> int:
        """Return how many bytes a session may write that finds a disk so."""
        return disk.allowed_bytes if self.allowed_mib is None else self.allowed_mib * MIB

    def _too_much(self, mount_point: str) -> str:
        return (
            f"{self.host_name}: tuner stopped this run, because it wrote more to {mount_point} than the "
            "limit allows, for example access logs. Rotate the logs (`logrotate --force "
            "/etc/logrotate.conf`) and run the same command again, or raise the limit with "
            "`target.logs_mib:`."
        )

    def _too_full(self, disk: Disk, written: int) -> str:
        left = f"{_mib(disk.free_bytes)} of {_mib(disk.size_bytes)} left"
        where = f"{self.host_name}: {disk.mount_point} has only {left}"
        if not written:
            least = _mib(disk.reserve_bytes)
            return (
                f"{where}, and a server under load writes logs. Free some space: tuner needs at least "
                f"{least}."
            )
        return (
            f"{where}, and one trial under load wrote {_mib(written)} there, for example access logs. tuner "
            "stopped the run before the disk is full. Make room (`logrotate --force /etc/logrotate.conf`), "
            "or move or switch off the logs during the study. Then run the same command again."
        )


def read_disks(shown: Completed) -> Mapping[str, Disk]:
    """Read `df -Pk` (POSIX df), by mount point; lines that are none of its own are passed over."""
    return {disk.mount_point: disk for disk in _disks(shown.stdout.decode(errors="replace"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGrowth:
    """How much a load writes to one disk, as one look before and one after a window tell."""

    mount_point: str
    bytes_per_s: float
    allowed_bytes: int

    def describe(self, minutes: float) -> str:
        """Return what a run of so many minutes under this load may write, and where it ends."""
        whole = self.bytes_per_s * 60 * minutes
        limit = (
            f"{_mib(self.allowed_bytes)}{', before its planned end' if whole > self.allowed_bytes else ''}"
        )
        return (
            f"about {_mib(self.bytes_per_s * 60)} a minute under load on {self.mount_point}, up to "
            f"{_mib(whole)} in a run at this rate; tuner ends the run when it has written {limit} "
            "(target.logs_mib)"
        )

    def as_json(self) -> Mapping[str, float]:
        """Return the figures for scripts."""
        return {"mib_per_minute": self.bytes_per_s * 60 / MIB, "allowed_mib": self.allowed_bytes / MIB}


def measure_growth(
    room: DiskRoom, before: Completed, after: Completed, duration_s: float
) -> tuple[LogGrowth, ...]:
    """Return how fast each disk was filled between two looks, where it was by a MiB a minute or more."""
    later = read_disks(after)
    return tuple(
        LogGrowth(
            mount_point=name, bytes_per_s=(disk.free_bytes - later[name].free_bytes) / duration_s,
            allowed_bytes=room.allow(disk),
        )
        for name, disk in read_disks(before).items()
        if name in later and (disk.free_bytes - later[name].free_bytes) * 60 >= MIB * duration_s
    )  # fmt: skip


def _disks(printed: str) -> Iterator[Disk]:
    for line in printed.splitlines()[1:]:
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[1].isdecimal() and words[3].isdecimal():  # noqa: PLR2004 - df(1)
            yield Disk(mount_point=words[5], size_bytes=int(words[1]) * KIB, free_bytes=int(words[3]) * KIB)


def _mib(count: float) -> str:
    return f"{count / MIB:,.0f} MiB"
