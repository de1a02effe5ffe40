"""`tuner check` without a study: what this host has for tuning, what is missing, and how to install it."""

import os
import platform
from dataclasses import asdict, dataclass
from typing import Any

from tuner import plugins
from tuner.commands.candidates import Candidate, find_candidates, list_generators, servers_to_tune
from tuner.deploy.discovery import LOCAL
from tuner.errors import TargetError, UsageError
from tuner.hosts.load_places import find_generators
from tuner.kit.packages import CURL, IPROUTE, OPENSSL, PROCPS, say_install
from tuner.ports import Host

TOOLS = {"curl": CURL, "ip": IPROUTE, "ss": IPROUTE, "pgrep": PROCPS, "openssl": OPENSSL}
"""What tuner itself runs besides those of a sandbox → package."""
FOR_TLS = "openssl"
"""The one of them that only loads over TLS need."""
FIND_LACKING = (
    'PATH=$PATH:/usr/sbin:/sbin; for each in "$@"; do command -v "$each" >/dev/null || echo "$each"; done'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A load generator that tuner knows."""

    name: str
    version: str = ""
    missing: str = ""
    """How to install it; empty where it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCheck:
    """What a host has."""

    python: str
    servers: tuple[Candidate, ...]
    missing: dict[str, str]
    """Server that cannot be used → why, and what to do."""
    generators: tuple[Generator, ...]
    tools: dict[str, str]
    """Program that tuner needs and does not find → how to install it."""
    sandbox: str
    """Why no private instance can start; empty where they can."""
    is_root: bool

    @property
    def trouble(self) -> str:
        """Return why nothing can be tuned, and what to do; empty where something can."""
        if not self.servers:
            return "no server that tuner knows was found. Install one of those above."
        if all(each.missing for each in self.generators):
            return "no load generator was found. Install one of those above."
        if lacking := sorted(self.tools.keys() - {FOR_TLS}):
            return f"tuner needs {' and '.join(lacking)}. Install what is missing, as said above."
        if self.sandbox and not (self.is_root and any(each.is_running for each in self.servers)):
            return f"{self.sandbox} To tune installed services instead, start them and run tuner as root."
        return ""

    def as_text(self) -> str:
        """Return it as lines, one for each program."""
        rights = "as root" if self.is_root else "in namespaces of an ordinary user"
        return "\n".join(
            (
                f"Python {self.python}",
                "servers",
                *(f"  {each.title:<16} {_describe(each)}" for each in self.servers),
                *(f"  {name:<16} {said}" for name, said in self.missing.items()),
                "load generators",
                *(
                    f"  {f'{each.name} {each.version}'.strip():<16} "
                    + (f"not found. Install it: {each.missing}" if each.missing else "found")
                    for each in self.generators
                ),
                *(["tools"] if self.tools else []),
                *(f"  {name:<16} not found. Install it: {how}" for name, how in self.tools.items()),
                "private instances",
                f"  {self.sandbox or f'can start here, {rights}'}",
                f"not ready: {self.trouble}" if self.trouble else "ready",
            )
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        servers = [{**asdict(each), "version": ".".join(map(str, each.version))} for each in self.servers]
        return {
            "ready": not self.trouble,
            "trouble": self.trouble,
            "python": self.python,
            "servers": servers,
            "missing": self.missing,
            "generators": [asdict(each) for each in self.generators],
            "tools": self.tools,
            "sandbox": self.sandbox,
        }


def check_host(host: Host) -> HostCheck:
    """Look for every server and load generator that tuner knows, and open a sandbox; nothing is changed."""
    found = find_candidates(host)
    there = {each.package for each in found}
    missing = {
        name: _explain(host, name, package)
        for package, name in servers_to_tune().items()
        if package not in there
    }
    return HostCheck(
        python=platform.python_version(),
        servers=found,
        missing=missing,
        generators=tuple(_look_at(host, name) for name in list_generators()),
        tools={name: say_install(host, TOOLS[name]) for name in _find_lacking(host)},
        sandbox=_try_sandbox(host),
        is_root=os.geteuid() == 0,
    )


def _look_at(host: Host, name: str) -> Generator:
    generator = plugins.make_load_generator(name)
    try:
        return Generator(name=name, version=find_generators(generator, {LOCAL: host}))
    except TargetError:
        install = getattr(generator, "installed_by", "") or say_install(host, generator.package)
        return Generator(name=name, missing=install)


def _find_lacking(host: Host) -> list[str]:
    try:
        found = host.run(("sh", "-c", FIND_LACKING, "find", *TOOLS), timeout_s=10)
    except TargetError:  # without a shell nothing of it can be
        return list(TOOLS)
    return found.stdout.decode(errors="replace").split()


def _explain(host: Host, name: str, package: str) -> str:
    """Return why a server cannot be used: it is not there, or its program says something unexpected."""
    install = say_install(host, package)
    try:
        plugins.make_server(name).detect(host)
    except (TargetError, UsageError) as error:
        return str(error) if install not in str(error) else f"not found. Install it: {install}"
    return ""  # it came in the meantime


def _try_sandbox(host: Host) -> str:
    try:
        with host.sandbox():
            return ""
    except TargetError as error:
        return str(error)


def _describe(server: Candidate) -> str:
    build = f"build of {server.build}" if server.build else ""
    return "; ".join(part for part in (server.program, build, server.service, server.state) if part)
