"""Everything that a trial needs, found and checked once, before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from tuner import plugins
from tuner.campaign.prepare_load import (
    describe_generators,
    make_generators,
    prepare_fixed_rate,
    prepare_load,
)
from tuner.deploy.arrangement import (
    expect_load,
    expect_page,
    find_application,
    find_packaged,
    find_ready_paths,
    find_statuses,
    link_servers,
    manner_of,
    open_pages,
    refuse_other_protocol,
    require_offer,
    split_packaged,
)
from tuner.deploy.deployment import Target
from tuner.deploy.discovery import (
    aim_servers,
    choose_url,
    describe_requests,
    find_installed,
    leave_out_bounded,
)
from tuner.deploy.learned_load import learn_load
from tuner.deploy.managed import ManagedTarget
from tuner.deploy.readiness import ANSWER_S, split_origin
from tuner.deploy.sandbox import SandboxTarget
from tuner.errors import TargetError, UsageError
from tuner.hosts.connection_room import UNBOUNDED, ConnectionRoom, add_rooms, find_room, read_ports
from tuner.hosts.load_places import LOCAL
from tuner.hosts.machine import Machine, narrow, read_machine
from tuner.hosts.placement import Placement, choose_cpus, co_located, place, read_cores, remote
from tuner.measure.window import Load
from tuner.ports import Facts, Host, Server
from tuner.records import Fingerprint
from tuner.space import (
    Space,
    SpaceFacts,
    available_spaces,
    describe_space,
    facts_from_json,
    facts_to_json,
    load_space,
)
from tuner.space.problems import in_file
from tuner.study import Study
from tuner.study.facts import MovedLoad, Pace
from tuner.study.presets import Plan

T = TypeVar("T", SandboxTarget, ManagedTarget)

SETTINGS = "/proc/sys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A study's target, servers, space and load, ready to make trials."""

    settings: Study
    host: Host
    servers: Mapping[str, Server]
    facts: Mapping[str, Facts]
    space: Space
    space_facts: Mapping[str, Any]
    """What the space was loaded with, as JSON values."""
    load: Load
    target: Target
    placement: Placement
    fingerprint: Fingerprint
    fixed_rate: Load | None
    """The load with the generator that can keep a rate; None when it is not installed."""
    room: ConnectionRoom = UNBOUNDED
    """What bounds the connections of the load."""
    pace: Pace | None = None
    """As its study has settled it for a slow application; None for any other, and before that."""
    is_elsewhere: bool = False
    """Whether another process has the host, the target and the servers."""

    def described(self) -> "Setup":
        """Return what another process has to know of it to decide."""
        elsewhere: Any = None
        return replace(self, host=elsewhere, target=elsewhere, servers={}, facts={}, is_elsewhere=True)

    def move(self, moved: MovedLoad) -> "Setup":
        """Return the setup of a sandbox with the generator in another place."""
        cpus = frozenset(moved.server_cpus), frozenset(moved.generator_cpus)
        placement = replace(self.placement, server_cpus=cpus[0], generator_cpus=cpus[1])
        target = self.target
        return replace(
            self,
            placement=placement,
            target=replace(target, placement=placement) if isinstance(target, SandboxTarget) else target,
            load=_with_threads(self.load, moved.threads),
            fixed_rate=None if self.fixed_rate is None else _with_threads(self.fixed_rate, moved.threads),
        )

    def at_pace(self, pace: Pace) -> "Setup":
        """Return the setup with a load that knows how long the application takes for a response."""
        return replace(self, load=replace(self.load, response_s=pace.response_s), pace=pace)

    def plan(self, preset: str) -> Plan:
        """Return how long each trial is loaded under a preset, at the pace of the study."""
        plan = self.settings.plan(preset)
        return plan if self.pace is None else plan.at_pace(self.pace.window_s)


def _with_threads(load: Load, threads: int) -> Load:
    return replace(load, shape=replace(load.shape, threads=threads))


def prepare(settings: Study) -> Setup:
    """Find the programs, read the facts, build the space.

    Raises:
        UsageError: an adapter, a space or the content is wrong.
        TargetError: a program or a right is missing.
    """
    with in_file(settings.path):
        host = plugins.make_host(settings.target.host)
    generators = make_generators(settings)
    found: Found[ManagedTarget] | Found[SandboxTarget]
    if settings.target.is_managed:
        names = settings.load.hosts
        load_hosts = {
            name: host if name == settings.target.host else plugins.make_host(name) for name in names
        }
        described = describe_generators(generators, load_hosts)
        found = find_target(settings, host, load_hosts)
        servers: Mapping[str, Server] = {each.name: each.adapter for each in found.target.servers}
        room = add_rooms(
            [find_room(read_machine(each), ports=read_ports(each)) for each in load_hosts.values()]
        )
    else:
        load_hosts = {LOCAL: host}
        described = describe_generators(generators, load_hosts)
        found = _make_sandbox_target(settings, host)
        protocol = found.target.chain.protocols(found.target.facts).get(found.target.chain.front, "")
        for generator in generators:
            refuse_other_protocol(settings, generator, protocol)
        servers = {name: found.target.servers[name] for name in settings.servers}
        # Its network is its own, with as many addresses as it takes.
        room = find_room(found.machine)
    for each in settings.sent_loads:
        room.refuse(each.connections)
    load = prepare_load(settings, generators, host)
    return Setup(
        settings=settings, host=host, servers=servers, facts=found.facts, space=found.space,
        space_facts=found.space_facts, target=found.target, load=load,
        fixed_rate=prepare_fixed_rate(load, settings, load_hosts), placement=found.placement,
        fingerprint=take_fingerprint(found.machine, found.facts, described, found.placement), room=room,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """A study's target, and the space around what is active there."""

    target: T
    facts: Mapping[str, Facts]
    space: Space
    space_facts: Mapping[str, Any]
    machine: Machine
    placement: Placement


def _make_sandbox_target(settings: Study, host: Host) -> Found[SandboxTarget]:
    """Return the target for private instances, with the load generator beside them."""
    with in_file(settings.path):
        content = open_pages(settings)
        servers = {
            name: plugins.make_private_server(name, **settings.adapter_options(name))
            for name in settings.servers
        }
    with host.sandbox() as sandbox:
        # A new network namespace has other values than the host.
        machine = read_machine(sandbox)
        facts = {name: server.detect(sandbox) for name, server in servers.items()}
    application = find_application(settings)
    all_facts = facts | {name: each.detect(host) for name, each in application.items()}
    chain = link_servers(settings, all_facts)
    require_offer(settings, chain.front, all_facts[chain.front])
    backends = chain.protocols(all_facts)
    cores = read_cores(host, machine.allowed)
    placement = place(choose_cpus(machine.allowed, cores, machine.cores), cores)
    space, space_facts = _load_space(
        settings, host, machine, facts, loopback=True, page_bytes=content.body_bytes, backends=backends,
    )  # fmt: skip
    for name, own in settings.options.items():
        items = (*space.parameters, *space.derived)
        own.refuse_unknown([each.name for each in items if each.server == name])
    target = SandboxTarget(
        host=host, servers={**servers, **application}, facts=all_facts, content=content, chain=chain,
        split=partial(split_packaged, space, find_packaged(chain, space, facts_from_json(space_facts))),
        placement=placement, load=expect_load(settings.load, content), has_tls=settings.load.tls,
        other_loads={each.name: expect_load(each.load, content) for each in settings.loads[1:]},
        check_loads={each.name: expect_load(each.load, content) for each in settings.check_loads},
        ready=find_ready_paths(settings), statuses=find_statuses(backends, chain.front),
    )  # fmt: skip
    return Found(
        target=target, facts=facts, space=space, space_facts=space_facts, machine=machine,
        placement=placement,
    )  # fmt: skip


def find_target(
    settings: Study, host: Host, load_hosts: Mapping[str, Host] | None = None
) -> Found[ManagedTarget]:
    """Find the installed services of a host, and the space around what is active there.

    Args:
        settings: the study.
        host: the target.
        load_hosts: where the load comes from, by the names in the study file; none when nothing is loaded.

    Raises:
        UsageError: an adapter or a space does not fit.
        TargetError: a service is missing, does not run, or does not answer.
    """
    session = read_machine(host)
    with in_file(settings.path):
        adapters = {
            name: plugins.make_installed_server(name, **settings.adapter_options(name))
            for name in settings.servers
        }
    servers = find_installed(host, adapters)
    url = choose_url(settings, servers)
    manner, mix = manner_of(settings.load), settings.load.requests
    _require_readable(manner.certificate, {settings.target.host: host, **(load_hosts or {})})
    page = expect_page(settings.load, split_origin(url)[1])
    kinds = mix if page in mix else (page, *mix)
    learn = partial(learn_load, host, servers=tuple(adapters.values()))
    load = learn(url, manner, kinds, mix=len(mix))
    source = next(iter((load_hosts or {}).values()), host)
    sent, others = [*describe_requests(source, url, mix or (page,))], {}
    for each in settings.loads[1:]:
        there, own = choose_url(replace(settings, load=each.load), servers), each.load
        wanted = own.requests or (expect_page(own, split_origin(there)[1]),)
        others[each.name] = learn(there, manner_of(own), wanted, mix=len(own.requests))
        sent += describe_requests(source, there, wanted)
    # Nothing is tuned on these, so they do not decide which site and location is.
    checked = {
        each.name: learn(url, manner_of(each.load), each.load.requests, mix=len(each.load.requests))
        for each in (settings.check_loads if load_hosts else ())
    }
    servers = leave_out_bounded(host, aim_servers(servers, sent, host))
    facts = {each.name: each.installation.facts for each in servers}
    is_beside = settings.target.host in settings.load.hosts
    machine = narrow(session, host, [each.pid for each in servers if each.pid is not None])
    placement = _place_beside(host, session, machine) if is_beside else remote(machine.allowed)
    space, space_facts = _load_space(
        settings, host, machine, facts, loopback=is_beside, page_bytes=load.pages[0].kind.body_bytes,
    )  # fmt: skip
    target = ManagedTarget(
        host=host, servers=servers, split=space.for_server, original=space.default(), apply_of=space.apply_of,
        load=load, other_loads=others, check_loads=checked, study=settings.name,
        watchdog_s=settings.target.watchdog_s, logs_mib=settings.target.logs_mib, load_hosts=load_hosts or {},
        server_cpus=placement.server_cpus,
        generator_cpus=placement.generator_cpus if is_beside else frozenset(),
        token_directory=settings.load.token_directory,
        may_change=space.may_change | {
            name for each in facts.values() for name, value in each.current.items()
            if space.default().get(name, value) != value
        },
    )  # fmt: skip
    return Found(
        target=target, facts=facts, space=space, space_facts=space_facts, machine=machine,
        placement=placement,
    )  # fmt: skip


def _place_beside(host: Host, session: Machine, services: Machine) -> Placement:
    """Return the placement of a generator beside installed services, within the limits of tuner's session."""
    cores = read_cores(host, session.allowed)
    allowed = choose_cpus(session.allowed, cores, session.cores)
    return co_located(allowed, cores, server_cpus=services.allowed)


def _require_readable(certificate: PurePosixPath | None, hosts: Mapping[str, Host]) -> None:
    """Raise TargetError where the file is missing by which the server's certificate is checked."""
    for host in hosts.values() if certificate else ():
        if host.run(("test", "-r", str(certificate)), timeout_s=ANSWER_S).returncode:
            raise TargetError(
                f"load.ca: {certificate} cannot be read on {host.name}. Copy the certificate to that path, "
                "or correct the path."
            )


def _load_space(
    settings: Study,
    host: Host,
    machine: Machine,
    facts: Mapping[str, Facts],
    *,
    loopback: bool,
    page_bytes: int | None,
    backends: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Space, Mapping[str, Any]]:
    paths, sandbox = _Paths(host), not settings.target.is_managed
    space_facts = SpaceFacts(
        names={
            "cores": machine.cores,
            "online_cores": machine.online_cores,
            "memory_mib": machine.memory_mib,
            "connections": max(each.connections for each in settings.all_loads),
            "open_files_max": machine.open_files_max,
            "somaxconn": machine.somaxconn,
        },
        versions={name: each.version for name, each in facts.items() if each.version},
        current={name: value for each in facts.values() for name, value in each.current.items()},
        withheld={name: reason for each in facts.values() for name, reason in each.withheld.items()},
        exists=paths,
        sandbox=sandbox,
        loopback=loopback,
        installed=not sandbox,
        load=settings.load_facts(
            page_bytes=page_bytes,
            is_loopback=loopback and len(set(settings.load.hosts)) == 1,
            is_installed=not sandbox,
        ),
        backends=dict(backends),
    )
    space = load_space(settings.space, facts=space_facts, base=settings.path.parent)
    _refuse_strangers(settings, space)
    return space, facts_to_json(space_facts, paths.told)


class _Paths:
    """Tells which paths a host has, and keeps what it has told."""

    def __init__(self, host: Host) -> None:
        """List the kernel's settings in one go; other paths are asked for one by one."""
        self.told: dict[str, bool] = {}
        self._host = host
        # Those of single interfaces and routes are in no space, and on some hosts they are many.
        single = ("-path", "*/conf", "-o", "-path", "*/neigh", "-o", "-path", "*/route")
        listed = host.run(("find", SETTINGS, "(", *single, ")", "-prune", "-o", "-print"), timeout_s=10.0)
        self._settings = frozenset(listed.stdout.decode(errors="replace").splitlines())

    def __call__(self, path: str) -> bool:
        """Return whether there is such a path."""
        if path not in self.told:
            self.told[path] = (
                path in self._settings
                if path.startswith(f"{SETTINGS}/")
                else self._host.run(("test", "-e", path), timeout_s=10.0).returncode == 0
            )
        return self.told[path]


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
            raise UsageError(
                f"{settings.path}: space: {name} belongs to the server {server!r}, which "
                "is not among `servers:`. Add that server, or leave out the search space."
            )
    if not space.dimensions:
        raise UsageError(
            f"{settings.path}: space: nothing is left to tune. Widen `only:`, or name a search space."
        )


def take_fingerprint(
    machine: Machine, facts: Mapping[str, Facts], generator: str, placement: Placement
) -> Fingerprint:
    """Return the machine and the programs, as a study keeps them; `generator` is its name and version."""
    return Fingerprint(
        host=machine.name,
        kernel=machine.kernel,
        cpu=machine.cpu,
        cores=machine.cores,
        memory_mib=machine.memory_mib,
        limits=machine.limits,
        servers={name: ".".join(map(str, each.version)) for name, each in facts.items()},
        generator=generator,
        co_located=placement.is_co_located,
        server_cpus=tuple(sorted(placement.server_cpus)),
        generator_cpus=tuple(sorted(placement.generator_cpus)),
    )
