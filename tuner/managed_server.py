"""One installed server of a study: what it is, which process is its first, what its log says."""

from dataclasses import dataclass
from typing import Protocol

from tuner.ports import Command, Completed, Host, Installation, InstalledServer, Server, Service
from tuner.server_words import quote_words, tail_command
from tuner.unit_limits import UNLIMITED, UnitLimits


class ManagedServer(Server, InstalledServer, Protocol):
    """A server adapter that knows installed services as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One installed server of a study, as it was found."""

    name: str
    server: ManagedServer
    installation: Installation
    complained: frozenset[str] = frozenset()
    """What its own check says of the configuration as it was found: that is no trial's fault."""
    limits: UnitLimits = UNLIMITED
    """What systemd lets it have."""

    def log_command(self) -> Command | None:
        """Make the command that prints the end of its log; None when it keeps none."""
        log = self.installation.log
        return None if log is None else Command(argv=tail_command(log), as_root=True, may_fail=True)

    def quote_log(self, host: Host) -> str:
        """Give its own words: the lines of its log that explain, or else the last ones."""
        command = self.log_command()
        if command is None:
            return "it keeps no log."
        tail = host.run_all([command])
        return quote_words(self.server.complaints(tail[0].stdout), tail[0].stdout)


def first_process(service: Service) -> Command:
    """Name the command that prints the id of a service's first process, or nothing."""
    if service.is_systemd:
        return Command(argv=("systemctl", "show", "--property=MainPID", "--value", "--", service.name))
    return Command(argv=("cat", "--", str(service.pid_file)), may_fail=True, as_root=True)


def read_pid(completed: Completed) -> int | None:
    """Read what `first_process` printed; None when there is no process."""
    text = completed.stdout.decode(errors="replace").strip()
    return int(text) if completed.returncode == 0 and text.isdigit() and int(text) > 0 else None
