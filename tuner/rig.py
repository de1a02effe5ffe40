"""Everything that a start needs, found and checked once, before anything runs."""

import os
import platform
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tuner import plugins
from tuner.content import open_content
from tuner.deploy import SandboxTarget
from tuner.errors import TargetError, UsageError
from tuner.measure.load import Load
from tuner.placement import Placement, place, read_cores
from tuner.ports import Facts, Host, LoadGenerator, Server
from tuner.records import Fingerprint
from tuner.settings import Study
from tuner.space import Space, SpaceFacts, available_spaces, describe_space, load_space

RATE_GENERATOR = "h2load"
"""Keeps a rate over HTTP/1.1 and logs every response; wrk and ab know no rate."""
CAP_SYS_RESOURCE = 24
"""Number of the capability that setrlimit(2) asks for (include/uapi/linux/capability.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A study's target, servers, space and load, ready to make starts."""

    settings: Study
    host: Host
    servers: Mapping[str, Server]
    facts: Mapping[str, Facts]
    space: Space
    load: Load
    target: SandboxTarget
    placement: Placement
    fingerprint: Fingerprint
    fixed_rate: Load | None
    """The load with the generator that can keep a rate; None when it is not installed."""


def prepare(settings: Study) -> Rig:
    """Find the programs, read the facts, build the space.

    Raises:
        UsageError: an adapter, a space or the content is wrong.
        TargetError: a program or a right is missing.
    """
    content = open_content(settings.content, settings.load.path, base=settings.path.parent)
    host = plugins.make_host(settings.target.host)
    servers = {name: plugins.make_server(name) for name in settings.servers}
    generator = plugins.make_load_generator(settings.load.generator, **settings.load.options())
    version = find_generator(generator, host)
    allowed = os.sched_getaffinity(0)
    placement = place(allowed, read_cores(host, allowed))
    facts = _detect(host, servers)
    space = load_space(settings.space, facts=_space_facts(settings, host, facts), base=settings.path.parent)
    _refuse_strangers(settings, space)
    target = SandboxTarget(
        host=host, servers=servers, facts=facts, split=space.for_server, content=content,
        placement=placement, keepalive=settings.load.keepalive, path=settings.load.path,
    )  # fmt: skip
    load = Load.prepare(generator, settings.load, host)
    return Rig(
        settings=settings, host=host, servers=servers, facts=facts, space=space, target=target,
        load=load, fixed_rate=_fixed_rate(load, host), placement=placement,
        fingerprint=_fingerprint(facts, f"{generator.name} {version}".strip(), placement),
    )  # fmt: skip


def _fixed_rate(load: Load, host: Host) -> Load | None:
    """Take the generator that can keep a rate, when it is there; it cannot without kept connections."""
    if not load.shape.keepalive:
        return None
    generator = plugins.make_load_generator(RATE_GENERATOR)
    try:
        find_generator(generator, host)
    except TargetError:
        return None
    return replace(load, generator=generator)


def find_generator(generator: LoadGenerator, host: Host) -> str:
    """Say which version of the load generator is installed. Raises TargetError naming the package."""
    command = generator.version_command()
    if command is None:
        return ""
    try:
        printed = host.run(command, timeout_s=10)
    except TargetError as error:
        remedy = (
            f"Install it: apt-get install {generator.package}" if generator.package else "Run `make tools`"
        )
        msg = f"load: {generator.name} is not installed on this machine. {remedy}."
        raise TargetError(msg) from error
    return generator.read_version(printed)


def _detect(host: Host, servers: Mapping[str, Server]) -> dict[str, Facts]:
    """Read facts inside a sandbox: a new network namespace has other values than the host."""
    with host.sandbox() as sandbox:
        return {name: server.detect(sandbox) for name, server in servers.items()}


def _space_facts(settings: Study, host: Host, facts: Mapping[str, Facts]) -> SpaceFacts:
    return SpaceFacts(
        names={
            "cores": os.cpu_count() or 1,
            "memory_mib": memory_mib(),
            "connections": settings.load.connections,
            "open_files_max": open_files_max(host),
            "somaxconn": _somaxconn(host),
        },
        versions={name: each.version for name, each in facts.items() if each.version},
        current={name: value for each in facts.values() for name, value in each.current.items()},
        exists=lambda path: Path(path).exists(),
        sandbox=True,
        loopback=True,
    )


def open_files_max(host: Host) -> int:
    """Say how high RLIMIT_NOFILE can be set: fs.nr_open with the right to raise it, else the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    status = host.read(PurePosixPath("/proc/self/status")).content or b""
    found = re.search(rb"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    may_raise = found is not None and int(found[1], 16) >> CAP_SYS_RESOURCE & 1
    most = _number(host, "/proc/sys/fs/nr_open", 1_048_576)
    return most if may_raise or hard == resource.RLIM_INFINITY else min(hard, most)


def _somaxconn(host: Host) -> int:
    """Read what listen() is capped by in a new network namespace (net/core/net_namespace.c)."""
    with host.sandbox() as sandbox:
        return _number(sandbox, "/proc/sys/net/core/somaxconn", 4096)


def _number(host: Host, path: str, default: int) -> int:
    content = host.read(PurePosixPath(path)).content
    return int(content) if content else default


def memory_mib() -> int:
    """Read how much memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _refuse_strangers(settings: Study, space: Space) -> None:
    """Every parameter needs its server in the study, or nobody would apply it."""
    tuned = {parameter.server: parameter.name for parameter in space.parameters}
    # A space whose server is missing may have nothing left that this host is known to have.
    tuned |= {
        row["server"]: name
        for name in settings.space
        if isinstance(name, str) and name in available_spaces()
        for row in describe_space(name)
    }
    for server, name in tuned.items():
        if server not in settings.servers:
            msg = (
                f"{settings.path}: space: {name} belongs to the server {server!r}, which "
                "is not among `servers:`. Add it there, or leave its space out."
            )
            raise UsageError(msg)
    if not space.dimensions:
        msg = f"{settings.path}: space: nothing is left to tune. Widen `only:`, or name a space."
        raise UsageError(msg)


def _fingerprint(facts: Mapping[str, Facts], generator: str, placement: Placement) -> Fingerprint:
    return Fingerprint(
        host=platform.node(),
        kernel=platform.release(),
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        memory_mib=memory_mib(),
        servers={name: ".".join(map(str, each.version)) for name, each in facts.items()},
        generator=generator,
        co_located=True,
        server_cpus=tuple(sorted(placement.server_cpus)),
        generator_cpus=tuple(sorted(placement.generator_cpus)),
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
