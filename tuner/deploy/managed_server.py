"""One installed server of a study: what it is, which process is its first, what its log says."""

import re
from dataclasses import dataclass
from typing import Protocol

from tuner.deploy.server_log import quote_words
from tuner.deploy.systemd_limits import UNLIMITED, UnitLimits
from tuner.ports import Command, Completed, Host, Installation, InstalledServer, Server, Service
from tuner.restore.keeper import requests


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

    def quote_log(self, host: Host) -> str:
        """Give its own words: the lines of its log that explain, or else the last ones."""
        if self.installation.log is None:
            return "it keeps no log."
        (tail,) = host.run_all([requests.log_tail(self.installation.log)])
        if tail.returncode != 0:
            return f"its log cannot be read: {quote_words((), tail.stderr)}"
        return quote_words(self.server.complaints(tail.stdout), tail.stdout)


def first_process(service: Service) -> Command:
    """Name the command that prints the id of a service's first process, or nothing."""
    if service.is_systemd:
        return Command(argv=("systemctl", "show", "--property=MainPID", "--value", "--", service.name))
    return Command(argv=("cat", "--", str(service.pid_file)), may_fail=True, as_root=True)


def read_pid(completed: Completed) -> int | None:
    """Read what `first_process` printed; None when there is no process."""
    text = completed.stdout.decode(errors="replace").strip()
    # Nothing but what a kernel would say: int() refuses other digits, and thousands of them.
    is_id = re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) is not None
    return int(text) if completed.returncode == 0 and is_id and int(text) > 0 else None
