"""Deploys configurations on installed services: change, activate, read back.

The lease keeps the originals and puts them back.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.deploy.activation import Activation
from tuner.deploy.deployment import Deployment
from tuner.deploy.discovery import DiscoveredServer, first_process, read_pid
from tuner.deploy.learned_load import LearnedLoad
from tuner.deploy.load_target import check_load_target
from tuner.deploy.pages import AnotherPage
from tuner.deploy.readiness import describe_right
from tuner.deploy.systemd_limits import raise_limits, touches_units
from tuner.errors import Crashed, NotEffective, TargetError
from tuner.hosts.conflicts import Conflict, find_conflicts
from tuner.hosts.disk_room import DiskRoom
from tuner.hosts.edited_files import RunningServer, find_unloaded
from tuner.hosts.file_cache import FileCache
from tuner.hosts.load_places import LoadPlace, open_load_places
from tuner.hosts.url import parse_url
from tuner.interrupts import uninterrupted
from tuner.ports import (
    Config,
    CpuSet,
    FileReader,
    Files,
    Host,
    PrivateServer,
    Scalar,
    Service,
    Site,
)
from tuner.restore.journal import open_journal
from tuner.restore.lease import Lease

SETTLE_S = 2.0
"""Time in which a server that answers may still be making processes and threads."""
POLL_S = 0.05
NOWHERE = Site(directory=PurePosixPath("/"), document_root=PurePosixPath("/"))
"""The kernel's settings are where they are, whatever the site."""


@dataclass(frozen=True, kw_only=True)
class ManagedDeployment(Deployment):
    """An active configuration on installed services."""

    target: "ManagedTarget"
    host: FileCache

    def check_alive(self) -> None:
        for server in self.target.servers:
            pid = self.server_pids.get(server.name)
            if pid is not None and not self.host.has_process(pid):
                said = server.quote_log(self.target.host)
                raise Crashed(f"{server.name}: its first process ({pid}) has ended: {said}")

    def no_longer_effective(self) -> tuple[str, ...]:
        settings = self.target.settings
        return self.target.ask(settings, self.config, self.host.latest(), {})[1] if settings else ()


@dataclass(kw_only=True)
class ManagedTarget:
    """A host with installed services, and what stays the same from trial to trial of one study."""

    host: Host
    servers: Sequence[DiscoveredServer]
    split: Callable[[Config, str], Config]
    """Picks one server's part of a configuration, by the server's name."""
    original: Config
    """What is active before anything is changed: this configuration changes no file."""
    apply_of: Callable[[str], str]
    """Returns what a changed parameter needs: live, reload or restart."""
    load: LearnedLoad
    """What the study's load asks for; of several loads, the first."""
    study: str
    watchdog_s: float
    load_hosts: Mapping[str, Host]
    """Where the load comes from, by the names that the study file gives them."""
    server_cpus: CpuSet = frozenset()
    """CPUs that the services may use; empty for all of the host's."""
    generator_cpus: CpuSet = frozenset()
    """CPUs of a generator on the target itself."""
    other_loads: Mapping[str, LearnedLoad] = field(default_factory=dict)
    """Of several loads: load → what it asks for, all but the first."""
    check_loads: Mapping[str, LearnedLoad] = field(default_factory=dict)
    """Check load with a mix of its own → what it asks for."""
    token_directory: PurePosixPath | None = None
    """Document root of the site, where its address is another host's (a load balancer)."""
    logs_mib: int | None = None
    """What the load may write to a disk in one session; None for a share of its room."""
    may_change: frozenset[str] = frozenset()
    """Settings that trials may write otherwise than they were found."""
    load_places: tuple[LoadPlace, ...] = field(default=(), init=False)
    _lease: Lease | None = field(default=None, init=False)
    _written: Files = field(default_factory=dict, init=False)
    _running: Config | None = field(default=None, init=False)
    """What the services run with; None when that is not known."""
    room: DiskRoom = field(init=False)
    _warn: Callable[[str], None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        logs = (each.installation.log for each in self.servers)
        self.room = DiskRoom.of(self.host.name, [log for log in logs if log is not None], self.logs_mib)

    @property
    def loads(self) -> tuple[LearnedLoad, ...]:
        """Return what each load asks for, the study's own first."""
        return (self.load, *self.other_loads.values())

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the URL of each load, each once."""
        return tuple(dict.fromkeys(each.url for each in self.loads))

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a configuration may restart."""
        return tuple(each.installation.service for each in self.servers if each.installation.service)

    @property
    def settings(self) -> tuple[DiscoveredServer, ...]:
        """The servers that are no programs: the kernel's settings."""
        return tuple(each for each in self.servers if each.installation.service is None)

    @property
    def files_read(self) -> Files:
        """The files as they were found; what is written is made of these."""
        return {path: content for each in self.servers for path, content in each.installation.files.items()}

    @contextmanager
    def hold(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Lease the host for a session; leaving it puts everything back, whatever happened."""
        self._warn = warn
        for conflict in self.refuse_conflicts():
            warn(str(conflict))
        with self._open_load(), open_journal() as journal:
            lease = Lease(self.host, journal=journal, study=self.study, watchdog_s=self.watchdog_s)
            try:
                for warning in lease.arm(self.services, urls=self.urls, files=self.files_read):
                    warn(warning)
                with self.held_by(lease):
                    yield
            finally:
                with uninterrupted():
                    lease.restore(warn)

    def refuse_conflicts(self, changed: Collection[str] = ()) -> tuple[Conflict, ...]:
        """Return what else changes this host and is only worth a warning.

        `changed` are settings, by default those that trials may change. Raises TargetError naming what has to
        be stopped first.
        """
        pids = self._first_processes()
        names = [service.name for service in self.services if service.is_systemd]
        found = find_conflicts(
            self.host, sorted(changed or self.may_change), sorted(self.files_read),
            pids=tuple(pids.values()), services=names,
        )  # fmt: skip
        refused = [str(each) for each in found if each.is_refused]
        if refused:
            raise TargetError(f"{self.host.name}: {' '.join(refused)}")
        return (*found, *find_unloaded(self.host, list(self._running_servers(pids))))

    def _running_servers(self, pids: Mapping[str, int]) -> Iterator[RunningServer]:
        for each in self.servers:
            service, files = each.installation.service, sorted(each.installation.files)
            if service is not None and pids.get(each.name):
                unit = service.name if service.is_systemd else ""
                yield RunningServer(name=service.name, pid=pids[each.name], unit=unit, files=files)

    @contextmanager
    def _open_load(self) -> Iterator[None]:
        """Prepare the load hosts. Raises TargetError when their load may arrive at another host than this."""
        directory = self.token_directory
        for url in {url.origin: url for url in map(parse_url, self.urls)}.values():
            check_load_target(url, self.host, self.load_hosts, token_directory=directory)
        with open_load_places(self.load_hosts, self.host, kept_on=self.generator_cpus) as places:
            self.load_places = places
            yield

    @contextmanager
    def held_by(self, lease: Lease) -> Iterator[None]:
        """Deploy under this lease, which is armed."""
        self._lease, self._running, self._written = lease, None, {}
        try:
            yield
        finally:
            self._lease = None

    @contextmanager
    def deploy(self, config: Config, *, files: Files | None = None) -> Iterator[ManagedDeployment]:
        """Put one configuration into force; the next one, or the end of the session, takes it away.

        Args:
            config: one value for every active parameter.
            files: what to write, instead of what `files` says.

        Raises:
            ConfigRejected: a value cannot be written, or the server's own check or the kernel refused it.
            Crashed: a service does not start.
            NotReady: it answers otherwise than with the original configuration.
            NotEffective: what is active is not what was asked.
            TargetError: the host cannot do it with any configuration, or has put itself back.
        """
        lease = self._lease
        if lease is None:
            raise TargetError(
                f"{self.host.name}: nothing may be changed before the host is locked. Call hold() first."
            )
        began_s = time.monotonic()
        files = self.files(config) if files is None else files
        try:
            pids = self._activate(lease, config, files)
        except AnotherPage:
            if not self._has_changed(lease, config):
                raise
            pids = self._activate(lease, config, files)
        deployment = self._observe(MappingProxyType(dict(config)), pids, began_s)
        self._running = deployment.config
        yield deployment

    def _activate(self, lease: Lease, config: Config, files: Files) -> dict[str, int]:
        """Write files and put them into force; return the first process of each service."""
        lease.check_alive()
        activation = Activation(
            host=self.host, servers=self.servers, request=lease.command_to_activate, loads=self.loads
        )
        steps = activation.steps(
            lease.command_to_change(files),
            reads_units=touches_units({**files, **self._written}),
            may_reload=partial(self._may_reload, config),
        )
        self._running, self._written = None, files
        shown, *done = self.host.run_all([self.room.command, *(step.command for step in steps)])
        # What the change met on the host is noted first: the way back needs it.
        lease.note_changed(done[:1])
        self.room.look(shown)
        return activation.read_outcome(steps, done)

    def _has_changed(self, lease: Lease, config: Config) -> bool:
        """Return whether the original configuration, too, gives another page now; it is learned then.

        A page that somebody replaced meanwhile is not the fault of the configuration that met it first.
        """
        if config != self.original:
            with suppress(AnotherPage):
                self._activate(lease, self.original, {})
                return False
        changed = [each for each in self.loads if each.learn_again()]
        if not changed:
            return False
        if self._warn is not None:
            pages = (page for each in changed for page in each.pages)
            right = "; ".join(f"{each.kind.path}: {describe_right(each.kind)}" for each in pages)
            self._warn(
                f"{self.host.name}: a page changed during the run. The correct response is now: {right}."
            )
        return True

    @contextmanager
    def deploy_default(self, default: Config) -> Iterator[ManagedDeployment]:  # noqa: ARG002
        """Open the load hosts and yield what runs now, without changing anything."""
        with self._open_load():
            yield self.as_found()

    def as_found(self) -> ManagedDeployment:
        """Return what runs now as a deployment.

        Raises NotEffective when a server's files say something else than what is active.
        """
        return self._observe(self.original, self._first_processes(), time.monotonic())

    def read_back(self, config: Config) -> Config:
        """Return what is active of these settings, as far as it can be read back; nothing is changed."""
        pids = self._first_processes()
        return self.ask(self.servers, config, self._watch(pids).look(), pids)[0]

    def _observe(self, config: Config, pids: Mapping[str, int], began_s: float) -> ManagedDeployment:
        watched = self._watch(pids)
        effective = self._await_effect(watched, config, pids)
        return ManagedDeployment(
            target=self, host=watched, network_pid=next(iter(pids.values()), 1), server_pids=pids,
            server_cpus=self.server_cpus, load_places=self.load_places, config=config, effective=effective,
            load=self.load.asked(),
            other_loads={name: each.asked() for name, each in self.other_loads.items()},
            check_loads={name: each.asked for name, each in self.check_loads.items()},
            certificate=self.load.manner.certificate, verifies=self.load.manner.verifies,
            duration_s=time.monotonic() - began_s,
        )  # fmt: skip

    def _first_processes(self) -> dict[str, int]:
        """Read the id of each service's first process; 0 where there is none."""
        names = [each.name for each in self.servers if each.installation.service]
        done = self.host.run_all([first_process(service) for service in self.services])
        return {name: read_pid(completed) or 0 for name, completed in zip(names, done, strict=False)}

    def ask(
        self, servers: Sequence[DiscoveredServer], config: Config, look: FileReader, pids: Mapping[str, int]
    ) -> tuple[Config, tuple[str, ...]]:
        """Return what is active, and a sentence for each setting that is not as asked."""
        found: dict[str, Scalar] = {}
        differing: list[str] = []
        for server in servers:
            asked = self._asked_of(server, config)
            read = server.adapter.in_force(
                self.host, look, asked, server.installation, pids.get(server.name, 0)
            )
            found |= read
            differing += [
                f"{server.name}: {name}: {asked[name]} was requested, {value} is active"
                for name, value in read.items()
                if name in asked and asked[name] != value
            ]
        return found, tuple(differing)

    def _asked_of(self, server: DiscoveredServer, config: Config) -> Config:
        """Return one server's part of a configuration; of the original one, what is known to be active."""
        asked = self.split(config, server.name)
        known = server.installation.facts.current
        return {name: asked[name] for name in asked if name in known} if config == self.original else asked

    def files(self, config: Config) -> Files:
        """Return what is written for a configuration; for the original one nothing at all."""
        if config == self.original:
            return {}
        files: dict[PurePosixPath, bytes] = {}
        # Settings of the kernel first: listen() reads somaxconn, sockets their buffers, when they are made.
        for server in sorted(self.servers, key=lambda server: server.installation.service is not None):
            files |= self.files_of(server, config)
        return files

    def files_of(self, server: DiscoveredServer, config: Config) -> Files:
        """Return what is written for one server, with the unit's limits that it needs."""
        asked, service = self.split(config, server.name), server.installation.service
        files = dict(server.adapter.rewrite(asked, server.installation))
        if service is not None and service.is_systemd:
            files |= raise_limits(service, server.limits, server.adapter.needs(asked))
        return files

    def _may_reload(self, config: Config, server: DiscoveredServer) -> bool:
        """Check whether a reload is a fresh start: something of this server changed, and nothing needs more.

        The same configuration once more is another trial of it, and a trial is what statistics count.
        """
        if self._running is None:
            return False
        before, after = self.split(self._running, server.name), self.split(config, server.name)
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        others = {name for name in {*self._running, *config} if self._running.get(name) != config.get(name)}
        return bool(names) and all(self.apply_of(name) == "reload" for name in others)

    def _watch(self, pids: Mapping[str, int]) -> FileCache:
        """Return the host, reading along what every window needs: its processes and the kernel's settings."""
        values = [
            path
            for server in self.settings
            if isinstance(server.adapter, PrivateServer)
            for path in server.adapter.render(
                self.split(self.original, server.name), NOWHERE, server.installation.facts
            )
        ]
        groups = [PurePosixPath(f"/proc/{pid}/cgroup") for pid in pids.values()]
        return FileCache(self.host, paths=values, trees=tuple(pids.values()), lasting=groups)

    def _await_effect(self, host: FileCache, config: Config, pids: Mapping[str, int]) -> Config:
        """Read back what is active, again for a moment while it is not what was asked."""
        deadline_s = time.monotonic() + SETTLE_S
        while True:
            found, differing = self.ask(self.servers, config, host.look(), pids)
            if not differing:
                return found
            if time.monotonic() > deadline_s:
                raise NotEffective("; ".join(differing) + ".")
            time.sleep(POLL_S)
