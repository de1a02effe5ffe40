"""Where load comes from: the hosts whose generators send it, each with a private directory."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.hosts.machine import read_share
from tuner.kit.packages import say_install
from tuner.ports import Argv, Command, CpuSet, Host, LoadGenerator

BOOT_ID = PurePosixPath("/proc/sys/kernel/random/boot_id")
LOCAL = "local"
NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
ASK_SESSION: Argv = (
    "sh",
    "-c",
    """
    pid=$PPID
    read -r _ _ _ parent _ <"/proc/$pid/stat"
    read -r name <"/proc/$parent/comm"
    case $name in sshd*) pid=$parent ;; esac
    echo "$pid"
    """,
)
"""Prints the process that a host's commands are children of: tuner itself, or the session of its sshd, which
may have several shells."""
PREPARATION: tuple[Argv, ...] = (
    ("nproc",),
    ASK_SESSION,
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
    """Whether the connection to it may break in the middle of a window, which does not count as a failure."""
    has_private_network: bool = False
    """Whether every address of 127.0.0.0/8 there is the server's alone."""
    session_pid: int = field(default_factory=os.getpid)
    """The process of its host that waits for the generator."""
    written: dict[PurePosixPath, bytes] = field(default_factory=dict, compare=False, repr=False)
    """What was put into the directory; a generator that fails makes that doubtful."""

    def cpus_of(self, threads: int, busy: float) -> int:
        """Return how many CPUs a generator can use that has so many threads and keeps `busy` CPUs busy.

        Some generators take no number of threads, which shows when they use more CPUs than that.
        """
        most = len(self.cpus) or self.cores
        return most if busy > threads else min(most, threads)


def find_generators(generator: LoadGenerator, hosts: Mapping[str, Host]) -> str:
    """Return which version of the generator all load hosts have.

    Args:
        generator: the program.
        hosts: load hosts, by the names that the study file gives them.

    Raises:
        TargetError: it is missing on one, or not the same everywhere: then results cannot be added up,
            since versions count differently.
    """
    command = generator.version_command()
    if command is None:
        return ""
    versions = {name: _find_version(generator, command, name, host) for name, host in hosts.items()}
    if len(set(versions.values())) > 1:
        found = ", ".join(f"{version or 'unknown'} on {name}" for name, version in versions.items())
        raise TargetError(
            f"load.host: {generator.name} has different versions on the load hosts: {found}. Install the "
            "same version on each of them."
        )
    return next(iter(versions.values()))


def _find_version(generator: LoadGenerator, command: Argv, name: str, host: Host) -> str:
    try:
        return generator.read_version(host.run(command, timeout_s=10))
    except TargetError as error:
        host.read(BOOT_ID)  # a host that cannot be reached says so itself: nothing is to be installed there
        install = getattr(generator, "installed_by", "") or say_install(host, generator.package)
        own = "this machine" if host.name == LOCAL else host.name  # in a sandbox the target sends the load
        where = own if name == LOCAL else name
        raise TargetError(
            f"load: {generator.name} is not installed on {where}. Install it: {install}. ({error})"
        ) from error


@contextmanager
def open_load_places(
    hosts: Mapping[str, Host], target: Host, *, kept_on: CpuSet = frozenset()
) -> Iterator[tuple[LoadPlace, ...]]:
    """Make a private directory on each load host, gone in the end.

    Args:
        hosts: load hosts, by the names that the study file gives them.
        target: the host that is tuned.
        kept_on: CPUs of a generator that runs on the target itself.

    Raises:
        TargetError: a host cannot be used.
    """
    boot_id = (target.read(BOOT_ID).content or b"").decode().strip()
    with ExitStack() as stack:
        places: list[LoadPlace] = []
        for name, host in hosts.items():
            places.append(_open(name, host, boot_id, kept_on))
            stack.callback(_remove, places[-1])
        yield tuple(places)


def _open(name: str, host: Host, boot_id: str, kept_on: CpuSet) -> LoadPlace:
    done = host.run_all([Command(argv=argv) for argv in PREPARATION])
    if len(done) < len(PREPARATION) or done[-1].returncode != 0:
        said = done[-1].stderr.decode(errors="replace").strip() or f"`{done[-1].argv[0]}` failed"
        raise TargetError(
            f"load.host: {name} cannot be prepared: {said}. A load host needs coreutils and free space "
            "in /tmp."
        )
    processors, session, boot, directory = (each.stdout.decode(errors="replace").strip() for each in done)
    if not (NUMBER.fullmatch(processors) and NUMBER.fullmatch(session)):
        raise TargetError(
            f"load.host: {name} cannot be prepared: `nproc` printed {processors[:20]!r}. Check `nproc` on "
            "this host."
        )
    is_on_target, share = boot == boot_id, read_share(host)
    return LoadPlace(
        host=host,
        directory=PurePosixPath(directory),
        cpus=kept_on if is_on_target else frozenset(),
        cores=int(processors) if share is None else share.count_cpus(int(processors)),
        is_on_target=is_on_target,
        is_remote=name != LOCAL,
        session_pid=int(session),
    )


def _remove(place: LoadPlace) -> None:
    # A host that is gone keeps the directory in its /tmp, which its next boot empties.
    with contextlib.suppress(TargetError):
        place.host.run(("rm", "-rf", "--", str(place.directory)), timeout_s=10)
