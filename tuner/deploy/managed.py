"""One configuration onto installed services: change, activate, read back.

What was there before is kept by the lease, which also puts it back.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.deploy.activation import Activation, Kind
from tuner.deploy.load_target import check_load_target
from tuner.deploy.managed_server import Installed, first_process, read_pid
from tuner.deploy.readiness import Page
from tuner.deploy.systemd_limits import raise_limits, touches_units
from tuner.errors import Crashed, NotEffective, TargetError
from tuner.hosts.conflicts import Conflict, find_conflicts
from tuner.hosts.file_cache import WatchedHost
from tuner.hosts.load_places import LoadPlace, open_load_places
from tuner.hosts.url import parse_url
from tuner.interrupts import uninterrupted
from tuner.ports import Config, CpuSet, FileReader, Files, Host, Scalar, Site
from tuner.restore.journal import open_journal
from tuner.restore.lease import Lease

SETTLE_S = 2.0
"""For so long a server that answers may still be making processes and threads."""
PAUSE_S = 0.05
NOWHERE = Site(directory=PurePosixPath("/"), document_root=PurePosixPath("/"))
"""The kernel's settings are where they are, whatever the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedDeployment:
    """A configuration in force on installed services."""

    target: "ManagedTarget"
    host: WatchedHost
    server_pids: Mapping[str, int]
    config: Config
    effective: Config
    duration_s: float

    @property
    def network_pid(self) -> int:
        """A process of the host's network namespace."""
        return next(iter(self.server_pids.values()), 1)

    @property
    def load_places(self) -> tuple[LoadPlace, ...]:
        """Where the load comes from."""
        return self.target.load_places

    @property
    def url(self) -> str:
        """What the load requests."""
        return self.target.url

    @property
    def body_bytes(self) -> int | None:
        """Length of the correct body."""
        return self.target.page.body_bytes

    @property
    def response_bytes(self) -> int | None:
        """Header and body of one correct response."""
        return self.target.page.response_bytes

    def check_alive(self) -> None:
        """Raise Crashed, with the server's own words, when a server has ended."""
        for part in self.target.parts:
            pid = self.server_pids.get(part.name)
            if pid is not None and not self.host.has_process(pid):
                message = (
                    f"{part.name}: its first process, {pid}, has ended: {part.quote_log(self.target.host)}"
                )
                raise Crashed(message)

    def no_longer_effective(self) -> tuple[str, ...]:
        """Name the kernel's settings that are not in force any more: something else has changed them."""
        settings = [part for part in self.target.parts if part.installation.service is None]
        return self.target.ask(settings, self.config, self.host.latest(), {})[1] if settings else ()


@dataclass(kw_only=True)
class ManagedTarget:
    """A host with installed services, and what stays the same from start to start of one study."""

    host: Host
    parts: Sequence[Installed]
    split: Callable[[Config, str], Config]
    """Picks one server's part of a configuration, by the server's name."""
    original: Config
    """What is in force before anything is changed: this configuration changes no file."""
    apply_of: Callable[[str], str]
    """Tells what a changed parameter needs: live, reload or restart."""
    url: str
    page: Page
    keepalive: bool
    study: str
    watchdog_s: float
    load_hosts: Mapping[str, Host] = field(default_factory=dict)
    """Where the load comes from, by the names that the study file gives them."""
    generator_cpus: CpuSet = frozenset()
    """What a generator on the target itself is kept on."""
    token_directory: PurePosixPath | None = None
    """Document root of the site, where its address is another host's (a load balancer)."""
    load_places: tuple[LoadPlace, ...] = field(default=(), init=False)
    tuned: tuple[str, ...] = ()
    """Parameters that trials change."""
    _lease: Lease | None = field(default=None, init=False)
    _written: Files = field(default_factory=dict, init=False)
    _running: Config | None = field(default=None, init=False)
    """What the services run with; None when that is not known."""

    @contextmanager
    def hold(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Lease the host for a session; leaving it puts everything back, whatever happened."""
        for conflict in self.refuse_conflicts():
            warn(str(conflict))
        services = [part.installation.service for part in self.parts if part.installation.service]
        with self.aimed(), open_journal() as journal:
            lease = Lease(self.host, journal=journal, study=self.study, watchdog_s=self.watchdog_s)
            try:
                for warning in lease.arm(services, urls=(self.url,), files=self.files_read()):
                    warn(warning)
                with self.held_by(lease):
                    yield
            finally:
                with uninterrupted():
                    lease.restore(warn)

    def files_read(self) -> Files:
        """Give the files as they were read; what is written is made of these."""
        return {path: content for part in self.parts for path, content in part.installation.files.items()}

    def refuse_conflicts(self) -> tuple[Conflict, ...]:
        """Find what else has a hand on the host; give what is only worth a warning.

        Raises TargetError naming what has to be stopped first.
        """
        files = sorted({path for part in self.parts for path in part.installation.files})
        pids = tuple(self.first_processes().values())
        found = find_conflicts(self.host, self.tuned, files, pids=pids)
        refused = [str(each) for each in found if each.is_refused]
        if refused:
            message = f"{self.host.name}: {' '.join(refused)}"
            raise TargetError(message)
        return found

    @contextmanager
    def aimed(self) -> Iterator[None]:
        """Make the load hosts ready; the load arrives at this target and at nothing else.

        Raises TargetError when that cannot be told.
        """
        directory = self.token_directory
        check_load_target(parse_url(self.url), self.host, self.load_hosts, token_directory=directory)
        with open_load_places(self.load_hosts, self.host, kept_on=self.generator_cpus) as places:
            self.load_places = places
            yield

    @contextmanager
    def held_by(self, lease: Lease) -> Iterator[None]:
        """Let a lease that is armed keep what deployments change."""
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
            NotEffective: what is in force is not what was asked.
            TargetError: the host cannot do it with any configuration, or has put itself back.
        """
        lease = self._lease
        if lease is None:
            message = f"{self.host.name}: nothing is changed before the host is held. Call hold() first."
            raise TargetError(message)
        began_s = time.monotonic()
        lease.check_alive()
        files = self.files(config) if files is None else files
        activation = Activation(
            host=self.host, parts=self.parts, tell=lease.command_to_activate, url=self.url, page=self.page,
            keepalive=self.keepalive,
        )  # fmt: skip
        steps = activation.plan(
            lease.command_to_change(files),
            reads_units=touches_units({**files, **self._written}),
            may_reload=partial(self._may_reload, config),
        )
        self._running, self._written = None, files
        done = self.host.run_all([step.command for step in steps])
        lease.note_changed(
            [each for step, each in zip(steps, done, strict=False) if step.kind is Kind.CHANGE]
        )
        pids = activation.judge(steps, done)
        watched = self._watch(pids)
        effective = self._await_effect(watched, config, pids)
        self._running = MappingProxyType(dict(config))
        yield ManagedDeployment(
            target=self, host=watched, server_pids=pids, config=self._running, effective=effective,
            duration_s=time.monotonic() - began_s,
        )  # fmt: skip

    def first_processes(self) -> Mapping[str, int]:
        """Ask which process of each service is the first; 0 where there is none."""
        services = [(part, service) for part in self.parts if (service := part.installation.service)]
        done = self.host.run_all([first_process(service) for _, service in services])
        return {
            part.name: read_pid(completed) or 0 for (part, _), completed in zip(services, done, strict=False)
        }

    def as_found(self) -> ManagedDeployment:
        """Give what runs now as a deployment, without changing anything.

        Raises NotEffective when a server's files say something else than what is in force.
        """
        pids = self.first_processes()
        watched = self._watch(pids)
        effective = self._await_effect(watched, self.original, pids)
        return ManagedDeployment(
            target=self, host=watched, server_pids=pids, config=self.original, effective=effective,
            duration_s=0.0,
        )  # fmt: skip

    def ask(
        self, parts: Sequence[Installed], config: Config, look: FileReader, pids: Mapping[str, int]
    ) -> tuple[Config, tuple[str, ...]]:
        """Read back what is in force; give it, and a sentence for each setting that is not as asked."""
        found: dict[str, Scalar] = {}
        differing: list[str] = []
        for part in parts:
            asked = self._asked_of(part, config)
            read = part.server.in_force(self.host, look, asked, part.installation, pids.get(part.name, 0))
            found |= read
            differing += [
                f"{part.name}: {name}: {asked[name]} was asked, {value} is in force"
                for name, value in read.items()
                if name in asked and asked[name] != value
            ]
        return found, tuple(differing)

    def _asked_of(self, part: Installed, config: Config) -> Config:
        """Give one server's part of a configuration; of the original one, what is known to be in force."""
        asked = self.split(config, part.name)
        known = part.installation.facts.current
        return {name: asked[name] for name in asked if name in known} if config == self.original else asked

    def files(self, config: Config) -> Files:
        """Give what is written for a configuration; for the original one nothing at all."""
        if config == self.original:
            return {}
        files: dict[PurePosixPath, bytes] = {}
        # Settings of the kernel first: listen() reads somaxconn, sockets their buffers, when they are made.
        for part in sorted(self.parts, key=lambda part: part.installation.service is not None):
            files |= self.files_of(part, config)
        return files

    def files_of(self, part: Installed, config: Config) -> Files:
        """Give what is written for one server, with the unit's limits that it needs."""
        asked, service = self.split(config, part.name), part.installation.service
        files = dict(part.server.rewrite(asked, part.installation))
        if service is not None and service.is_systemd:
            files |= raise_limits(service, part.limits, part.server.needs(asked))
        return files

    def _may_reload(self, config: Config, part: Installed) -> bool:
        """Tell whether a reload is a fresh start: something of this server changed, and nothing needs more.

        The same configuration once more is another start of it, and a start is what statistics count.
        """
        if self._running is None:
            return False
        before, after = self.split(self._running, part.name), self.split(config, part.name)
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        others = {name for name in {*self._running, *config} if self._running.get(name) != config.get(name)}
        return bool(names) and all(self.apply_of(name) == "reload" for name in others)

    def _watch(self, pids: Mapping[str, int]) -> WatchedHost:
        """Read along what every window wants to know: the server's processes, the kernel's settings."""
        settings = (part for part in self.parts if part.installation.service is None)
        values = [
            path
            for part in settings
            for path in part.server.render(
                self.split(self.original, part.name), NOWHERE, part.installation.facts
            )
        ]
        groups = [PurePosixPath(f"/proc/{pid}/cgroup") for pid in pids.values()]
        return WatchedHost(self.host, paths=values, trees=tuple(pids.values()), lasting=groups)

    def _await_effect(self, host: WatchedHost, config: Config, pids: Mapping[str, int]) -> Config:
        """Read back what is in force, again for a moment while it is not what was asked."""
        deadline_s = time.monotonic() + SETTLE_S
        while True:
            found, differing = self.ask(self.parts, config, host.look(), pids)
            if not differing:
                return found
            if time.monotonic() > deadline_s:
                raise NotEffective("; ".join(differing) + ".")
            time.sleep(PAUSE_S)
