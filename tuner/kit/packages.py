"""Say how a missing package is installed on a host: by which command, and by which name there."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Self

from tuner.errors import TargetError
from tuner.ports import Host

DEBIAN = "apt-get"
INSTALL: Mapping[str, str] = {
    DEBIAN: "install",
    "dnf": "install",
    "zypper": "install",
    "apk": "add",
    "pacman": "-S",
}
"""Package manager → its word for installing. Of several that a host has, the first is its own."""


class Package(str):
    """The name of a package on Debian, which knows its names elsewhere.

    Args:
        name: on Debian.
        elsewhere: package manager (dnf, zypper, apk, pacman) → name there, where it is known.
    """

    __slots__ = ("elsewhere",)
    elsewhere: Mapping[str, str]

    def __new__(cls, name: str, **elsewhere: str) -> Self:
        """Make the name."""
        made = super().__new__(cls, name)
        made.elsewhere = elsewhere
        return made

    @classmethod
    def everywhere(cls, name: str) -> Self:
        """Return a package that has the same name everywhere."""
        return cls(name, **dict.fromkeys(INSTALL, name))


CURL, OPENSSL = Package.everywhere("curl"), Package.everywhere("openssl")
PROCPS = Package("procps", dnf="procps-ng", zypper="procps", apk="procps-ng", pacman="procps-ng")
IPROUTE = Package("iproute2", dnf="iproute", zypper="iproute2", apk="iproute2", pacman="iproute2")
UTIL_LINUX = Package.everywhere("util-linux")
# The PATH of an ordinary user over SSH may lack these.
_FIND = 'PATH=$PATH:/usr/sbin:/sbin; for each in "$@"; do command -v "$each" && exit; done; exit 0'
FIND_TIMEOUT_S = 10.0


def say_install(host: Host, package: str) -> str:
    """Return the command that installs a package on a host: `dnf install httpd`.

    Args:
        host: where it is missing. A host that cannot be asked is taken for a Debian.
        package: what is missing. Debian's name is told where the name on the host is not known.
    """
    manager = _find_manager(host)
    elsewhere = package.elsewhere if isinstance(package, Package) else {}
    name = package if manager == DEBIAN else elsewhere.get(manager)
    if name:
        return name_command(manager, name)
    return f"{manager or 'the package manager of the host'}; Debian calls the package {package}"


def name_command(manager: str, package: str) -> str:
    """Return the command by which a package manager installs a package."""
    return f"{manager} {INSTALL[manager]} {package}"


def _find_manager(host: Host) -> str:
    """Return the package manager that a host has: what is there tells more than a distribution's name.

    Empty where it has none of these.
    """
    with suppress(TargetError):
        found = host.run(("sh", "-c", _FIND, "find", *INSTALL), timeout_s=FIND_TIMEOUT_S).stdout
        name = PurePosixPath(found.decode(errors="replace").strip()).name
        return name if name in INSTALL else ""
    return DEBIAN


def say_extra(name: str) -> str:
    """Return the command that adds an extra of tuner to the environment that runs this."""
    return f"{sys.executable} -m pip install 'servertuner[{name}]'"
