"""What every host and sandbox has in common: how commands are placed, and what errors say."""

import logging
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from tuner.errors import ConfigRejected, TargetError
from tuner.kit.packages import CURL, IPROUTE, UTIL_LINUX, say_install
from tuner.ports import Argv, Command, Completed, CpuSet, Host, Process

LOG = logging.getLogger(__name__)
SANDBOX_PROGRAMS = ("setpriv", "unshare", "nsenter", "taskset", "prlimit")
PACKAGES = {**dict.fromkeys(SANDBOX_PROGRAMS, UTIL_LINUX), "curl": CURL, "ss": IPROUTE}
"""Packages of what hosts and the core themselves run; servers and generators name their own."""
PSEUDO = ("/proc/", "/sys/")
"""Where the kernel makes up files: they cannot be replaced or removed, only written to."""
READ_LIMIT_BYTES = 64 * 2**20
"""Of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command as it is run."""

    asked: Argv
    """What the caller named: the result names it, and its program must exist."""
    cpus: CpuSet | None = None
    open_files: int | None = None
    timeout_s: float = 0.0
    stdin: bytes = b""
    as_root: bool = False
    may_fail: bool = False
    enters: Argv = ()
    """The program that brings it where it runs."""
    drops: Argv = ()
    """The program that takes rights away, after they were used to raise the limit of open files."""

    @property
    def command(self) -> Argv:
        """The command line; each program replaces itself by the next (exec), so the process id stays."""
        pinned = ("taskset", "--cpu-list", ",".join(map(str, sorted(self.cpus)))) if self.cpus else ()
        limited = ("prlimit", f"--nofile={self.open_files}:{self.open_files}") if self.open_files else ()
        return (*self.enters, *pinned, *limited, *self.drops, *self.asked)


class CommandRunner(ABC):
    """Turns the ways in which the port Host runs commands into steps."""

    name: str
    """Which machine it is, for messages."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cpus: CpuSet | None = None,
        stdin: bytes = b"",
        open_files: int | None = None,
        as_root: bool = False,
    ) -> Completed:
        step = Step(
            asked=tuple(argv),
            cpus=cpus,
            open_files=open_files,
            timeout_s=timeout_s,
            stdin=stdin,
            as_root=as_root,
        )
        return self._run_logged([step])[0]

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return self._run_logged(
            [
                Step(
                    asked=each.argv,
                    timeout_s=each.timeout_s,
                    stdin=each.stdin,
                    as_root=each.as_root,
                    may_fail=each.may_fail,
                )
                for each in commands
            ]
        )

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> Process:
        LOG.debug("starts %s", shlex.join(argv))
        with self.naming_packages():
            return self._start(Step(asked=tuple(argv), cpus=cpus, open_files=open_files))

    @contextmanager
    def naming_packages(self) -> Iterator[None]:
        """Add to the error of a missing program how its package is installed here."""
        try:
            yield
        except MissingProgram as error:
            package = PACKAGES.get(error.program)
            how = f" with: {say_install(cast('Host', self), package)}" if package else "."
            raise TargetError(f"{error} Install it{how}") from error

    def _run_logged(self, steps: Sequence[Step]) -> tuple[Completed, ...]:
        with self.naming_packages():
            done = self._run(steps)
        for each in done if LOG.isEnabledFor(logging.DEBUG) else ():
            said = each.stderr.decode(errors="replace").strip() if each.returncode else ""
            LOG.debug("ran %s: exit %s %s", shlex.join(each.argv), each.returncode, said)
        return done

    @abstractmethod
    def _run(self, steps: Sequence[Step]) -> tuple[Completed, ...]:
        """Run commands one after the other, up to the first that fails and may not."""

    @abstractmethod
    def _start(self, step: Step) -> Process:
        """Start a program that runs on."""


class MissingProgram(TargetError):
    """A program is not there; the host that ran it adds what to do."""

    def __init__(self, where: str, program: str) -> None:
        """Name the program and where it was looked for."""
        super().__init__(f"{where}: there is no program {program!r} that may be run.")
        self.program = program


def too_many_files(where: str, needed: int, allowed: int | None = None) -> ConfigRejected:
    """Return the error for a limit of open files that cannot be set."""
    only = "fewer" if allowed is None else f"only {allowed}"
    return ConfigRejected(
        f"{where}: the load needs {needed} open files, and {only} are allowed. Raise the limit "
        "(`ulimit -Hn`, /etc/security/limits.conf, fs.nr_open), or use fewer connections."
    )


def refused(where: str, path: object, done: str, error: OSError) -> TargetError:
    """Return the error for a file that cannot be used."""
    is_permission = isinstance(error, PermissionError)
    advice = "Run as root, or correct its permissions." if is_permission else "Check this path on the host."
    return TargetError(f"{where}: {path} cannot be {done}: {error.strerror}. {advice}")


def rejected(path: object, content: bytes | None, error: OSError) -> ConfigRejected:
    """Return the error for a value that the kernel does not take."""
    value = (content or b"").decode(errors="replace").strip()
    return ConfigRejected(
        f"{path}: the kernel refused {value!r}: {error.strerror}. Correct the range of this setting."
    )


def irremovable(where: str, path: object) -> TargetError:
    """Return the error for a file of the kernel that is to be removed."""
    return TargetError(
        f"{where}: {path} is a kernel file, and nobody can remove it. Write a value to this file."
    )
