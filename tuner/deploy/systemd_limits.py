"""Limits of systemd units, raised by a drop-in where a configuration needs more.

systemd.exec(5), LimitNOFILE; systemd.resource-control(5), TasksMax: by default 15 % of what the host allows,
so that a server with many threads stops making them without a word in its configuration.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.ports import Command, Completed, Files, Needs, Service

UNITS = PurePosixPath("/etc/systemd/system")
DROP_IN = "zz-tuner.conf"
"""Drop-ins are read in the order of their names (systemd.unit(5)); this one comes late."""
RELOAD = ("systemctl", "daemon-reload")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """The limits of one unit; None where there is none, or it cannot be told."""

    open_files: int | None = None
    tasks: int | None = None


UNLIMITED = UnitLimits()


def ask_limits(service: Service) -> Command:
    """Return the command that prints a unit's limits."""
    argv = ("systemctl", "show", "--property=LimitNOFILE,TasksMax", "--", service.name)
    return Command(argv=argv, may_fail=True)


def read_limits(printed: Completed) -> UnitLimits:
    """Parse what it printed: `infinity` stands for no limit."""
    text = printed.stdout.decode(errors="replace")
    found = dict(re.findall(r"^(LimitNOFILE|TasksMax)=(\d+)$", text, re.MULTILINE))
    return UnitLimits(
        open_files=int(found["LimitNOFILE"]) if "LimitNOFILE" in found else None,
        tasks=int(found["TasksMax"]) if "TasksMax" in found else None,
    )


def raise_limits(service: Service, limits: UnitLimits, needs: Needs) -> Files:
    """Write the drop-in that raises what is too low; nothing where all is high enough.

    The other limit stands in it as it is: it may be this very drop-in, of an earlier apply, that raised it.
    """
    pairs = (
        ("LimitNOFILE", limits.open_files, needs.open_files or 0),
        ("TasksMax", limits.tasks, needs.tasks or 0),
    )
    known = [(name, limit, need) for name, limit, need in pairs if limit is not None]
    if all(need <= limit for _, limit, need in known):
        return {}
    lines = [f"{name}={max(limit, need)}\n" for name, limit, need in known]
    path = UNITS / f"{service.name.removesuffix('.service')}.service.d" / DROP_IN
    return {path: "".join(("[Service]\n", *lines)).encode()}


def touches_units(files: Files) -> bool:
    """Check whether systemd has to read its units again after a change of these files."""
    return any(path.is_relative_to(UNITS) for path in files)
