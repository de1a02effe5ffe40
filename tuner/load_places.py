"""Where load comes from: the hosts whose generators send it, each with a private directory."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Argv, Command, CpuSet, Host, LoadGenerator

BOOT_ID = PurePosixPath("/proc/sys/kernel/random/boot_id")
LOCAL = "local"
OWN_COMMANDS: tuple[Argv, ...] = (
    ("nproc",),
    ("sh", "-c", "echo $PPID"),
    ("cat", "--", str(BOOT_ID)),
    # Last, so that nothing is left behind when one fails; for its owner alone, under a name not known before.
    ("mktemp", "-d", "/tmp/tuner-load.XXXXXXXXXX"),  # noqa: S108
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlace:
    """Where a load generator runs."""

    host: Host
    directory: PurePosixPath
    """Where it may put its script and its raw data."""
    cpus: CpuSet = frozenset()
    """CPUs that it is kept on; empty for all of its host's."""
    cores: int = 1
    """How many CPUs it may use when it is not kept on some."""
    is_on_target: bool = False
    """Whether it uses the target's own CPUs."""
    is_remote: bool = False
    """Whether it may be lost in the middle of a window, which is no fault of what is measured."""
    session_pid: int = field(default_factory=os.getpid)
    """The process of its host that waits for the generator."""
    written: dict[PurePosixPath, bytes] = field(default_factory=dict, compare=False, repr=False)
    """What was put into the directory; a generator that fails makes that doubtful."""

    def cpus_of(self, threads: int, busy: float) -> int:
        """Tell how many CPUs a generator can use that was given so many threads and keeps `busy` CPUs busy.

        Some generators take no number of threads, which shows when they use more CPUs than that.
        """
        most = len(self.cpus) or self.cores
        return most if busy > threads else min(most, threads)


@contextmanager
def open_load_places(
    hosts: Mapping[str, Host], generator: LoadGenerator, target: Host
) -> Iterator[tuple[tuple[LoadPlace, ...], str]]:
    """Make a private directory on each load host, gone in the end; give the places and the one version.

    Args:
        hosts: load hosts, by the names that the study file gives them.
        generator: must be there in the same version on all of them.
        target: the host that is tuned.

    Raises:
        TargetError: a host cannot be used, or the generator is missing on one or of different versions.
    """
    boot_id = target.read(BOOT_ID).content
    with ExitStack() as stack:
        places: list[LoadPlace] = []
        versions: dict[str, str] = {}
        for name, host in hosts.items():
            place, versions[name] = _open(name, host, generator, boot_id)
            stack.callback(_remove, place)
            places.append(place)
        yield tuple(places), _same_version(generator, versions)


def _open(name: str, host: Host, generator: LoadGenerator, boot_id: bytes | None) -> tuple[LoadPlace, str]:
    asked = generator.version_command()
    # Some print their version and end with another status than 0 (wrk).
    version = () if asked is None else (Command(argv=asked, may_fail=True),)
    try:
        done = host.run_all((*version, *map(_command, OWN_COMMANDS)))
    except TargetError as error:
        remedy = f" Install there: apt-get install {generator.package}." if generator.package else ""
        message = f"load.host: {name} cannot send load with {generator.name}: {error}{remedy}"
        raise TargetError(message) from error
    own = done[len(version) :]
    if len(own) < len(OWN_COMMANDS) or own[-1].returncode != 0:
        said = done[-1].stderr.decode(errors="replace").strip() or f"`{done[-1].argv[0]}` failed"
        message = f"load.host: {name} cannot be made ready: {said}. It needs coreutils and room in /tmp."
        raise TargetError(message)
    processors, session, boot, directory = (each.stdout.decode().strip() for each in own)
    place = LoadPlace(
        host=host,
        directory=PurePosixPath(directory),
        cores=int(processors),
        is_on_target=boot.encode() == (boot_id or b"").strip(),
        is_remote=name != LOCAL,
        session_pid=int(session),
    )
    return place, "".join(generator.read_version(each) for each in done[: len(version)])


def _command(argv: Argv) -> Command:
    return Command(argv=argv)


def _same_version(generator: LoadGenerator, versions: Mapping[str, str]) -> str:
    """Results of different versions cannot be added up: they count differently."""
    if len(set(versions.values())) > 1:
        found = ", ".join(f"{version or 'unknown'} on {name}" for name, version in versions.items())
        message = f"load.host: {generator.name} is not the same everywhere: {found}. Install one version."
        raise TargetError(message)
    return next(iter(versions.values()), "")


def _remove(place: LoadPlace) -> None:
    # A host that is gone keeps the directory in its /tmp, which its next boot empties.
    with contextlib.suppress(TargetError):
        place.host.run(("rm", "-rf", "--", str(place.directory)), timeout_s=10)
