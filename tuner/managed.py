"""One configuration onto installed services: change, check, restart, wait, ask, read back.

What changes files, checks, restarts, waits and asks is one batch of commands: over SSH one round trip. What
was there before is kept by the guard, which also puts it back.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Protocol

from tuner.aim import parse_url, take_aim
from tuner.conflicts import Conflict, find_conflicts
from tuner.errors import ConfigRejected, Crashed, NotEffective, NotReady, TargetError
from tuner.guard import Guard
from tuner.interrupts import uninterrupted
from tuner.journal import open_journal
from tuner.load_places import LoadPlace, open_load_places
from tuner.ports import (
    Command,
    Completed,
    Config,
    CpuSet,
    FileReader,
    Files,
    Host,
    Installation,
    InstalledServer,
    Scalar,
    Server,
    Service,
    Site,
)
from tuner.readiness import Answer, read_answer, waiting_request
from tuner.unit_limits import RELOAD, UNLIMITED, UnitLimits, raise_limits, touches_units
from tuner.watched_host import WatchedHost

READY_S = 15.0
"""Given to services that were started until one answers."""
SETTLE_S = 2.0
"""For so long a server that answers may still be making processes and threads."""
PAUSE_S = 0.05
SERVICE_S = 90.0
"""systemd's own limit for a start or a stop (DefaultTimeoutStartSec, systemd-system.conf(5))."""
LOG_TAIL_BYTES = 2**16
NOWHERE = Site(directory=PurePosixPath("/"), document_root=PurePosixPath("/"))
"""The kernel's settings are where they are, whatever the site."""
QUOTED_LINES = 3


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


class Kind(StrEnum):
    """What a command of a batch is for."""

    CHANGE = "change"
    CHECK = "check"
    ACTIVATE = "activate"
    ANSWER = "answer"
    PID = "pid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of a batch."""

    kind: Kind
    command: Command
    part: Installed | None = None


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
                message = f"{part.name}: its first process, {pid}, has ended: {self.target.quote_log(part)}"
                raise Crashed(message)

    def no_longer_effective(self) -> tuple[str, ...]:
        """Name the kernel's settings that are not in force any more: something else has changed them."""
        settings = [part for part in self.target.parts if part.installation.service is None]
        return self.target.ask(settings, self.config, self.host.latest(), {})[1] if settings else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The correct response, as the original configuration gives it."""

    status: int
    body_bytes: int | None
    """None when it differs from response to response."""
    response_bytes: int | None

    def refuse_another(self, answer: Answer, url: str) -> None:
        """Raise NotReady when an answer is not this page."""
        if answer.status == self.status and self.body_bytes in {None, answer.body_bytes}:
            return
        wanted = f"{self.status}" + ("" if self.body_bytes is None else f" with {self.body_bytes} bytes")
        came = (
            f"{answer.status} with {answer.body_bytes} bytes"
            if answer.status
            else f"no answer ({answer.said})"
        )
        message = f"{url} gave {came}, where the original configuration gives {wanted}."
        raise NotReady(message)


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
    _guard: Guard | None = field(default=None, init=False)
    _written: Files = field(default_factory=dict, init=False)
    _running: Config | None = field(default=None, init=False)
    """What the services run with; None when that is not known."""

    @contextmanager
    def hold(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Guard the host for a session; leaving it puts everything back, whatever happened."""
        for conflict in self.refuse_conflicts():
            warn(str(conflict))
        services = [part.installation.service for part in self.parts if part.installation.service]
        with self.aimed(), open_journal() as journal:
            guard = Guard(self.host, journal=journal, study=self.study, watchdog_s=self.watchdog_s)
            for warning in guard.arm(services, urls=(self.url,)):
                warn(warning)
            try:
                with self.guarded_by(guard):
                    yield
            finally:
                with uninterrupted():
                    guard.restore()

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
        take_aim(parse_url(self.url), self.host, self.load_hosts, token_directory=self.token_directory)
        with open_load_places(self.load_hosts, self.host, kept_on=self.generator_cpus) as places:
            self.load_places = places
            yield

    @contextmanager
    def guarded_by(self, guard: Guard) -> Iterator[None]:
        """Let a guard that is armed keep what deployments change."""
        self._guard, self._running, self._written = guard, None, {}
        try:
            yield
        finally:
            self._guard = None

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
        guard = self._guard
        if guard is None:
            message = f"{self.host.name}: nothing is changed before the host is held. Call hold() first."
            raise TargetError(message)
        began_s = time.monotonic()
        guard.check_alive()
        files = self.files(config) if files is None else files
        steps = [Step(kind=Kind.CHANGE, command=guard.command_to_change(files))]
        if touches_units({**files, **self._written}):
            steps.append(Step(kind=Kind.ACTIVATE, command=Command(argv=RELOAD, as_root=True)))
        steps += self._activation(config)
        self._running, self._written = None, files
        done = self.host.run_all([step.command for step in steps])
        guard.note_changed(
            [each for step, each in zip(steps, done, strict=False) if step.kind is Kind.CHANGE]
        )
        pids = self._judge(steps, done)
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

    def log_command(self, part: Installed) -> Command:
        """Make the command that prints the end of a server's log."""
        argv = ("tail", f"--bytes={LOG_TAIL_BYTES}", "--", str(part.installation.log))
        return Command(argv=argv, as_root=True, may_fail=True)

    def quote_log(self, part: Installed) -> str:
        """Give a server's own words: the lines of its log that explain, or else the last ones."""
        if part.installation.log is None:
            return "it keeps no log."
        tail = self.host.run_all([self.log_command(part)])
        return _quote(part.server.complaints(tail[0].stdout), tail[0].stdout)

    def files(self, config: Config) -> Files:
        """Give what is written for a configuration; for the original one nothing at all."""
        if config == self.original:
            return {}
        files: dict[PurePosixPath, bytes] = {}
        # Settings of the kernel first: listen() reads somaxconn, sockets their buffers, when they are made.
        for part in sorted(self.parts, key=lambda part: part.installation.service is not None):
            asked, service = self.split(config, part.name), part.installation.service
            files |= part.server.rewrite(asked, part.installation)
            if service is not None and service.is_systemd:
                files |= raise_limits(service, part.limits, part.server.needs(asked))
        return files

    def _activation(self, config: Config) -> list[Step]:
        """Name the commands that check all services, activate the configuration, and ask for the page."""
        services = [(part, service) for part in self.parts if (service := part.installation.service)]
        steps = [
            _step(Kind.CHECK, service.check, part) for part, service in services if service.check is not None
        ]
        for part, service in services:
            reload = service.reload if self._may_reload(config, part) else None
            argvs = [reload] if reload is not None else [service.stop, service.start]
            steps += [_step(Kind.ACTIVATE, argv, part) for argv in argvs]
        ask = waiting_request(self.url, keepalive=self.keepalive, timeout_s=READY_S)
        steps.append(Step(kind=Kind.ANSWER, command=ask))
        steps += [
            Step(kind=Kind.PID, command=first_process(service), part=part) for part, service in services
        ]
        return steps

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

    def _judge(self, steps: Sequence[Step], done: Sequence[Completed]) -> dict[str, int]:
        """Read the batch: raise for what failed, else tell the first process of each service."""
        pids: dict[str, int] = {}
        for step, completed in zip(steps, done, strict=False):
            part = step.part
            if step.kind is Kind.CHECK and part is not None:
                _refuse_checked(part, completed)
            if step.kind is Kind.ACTIVATE and completed.returncode != 0:
                raise Crashed(self._describe_failure(step, completed))
            if step.kind is Kind.ANSWER:
                self._refuse_answer(read_answer(completed))
            if step.kind is Kind.PID and part is not None:
                pid = read_pid(completed)
                if pid is None:
                    message = f"{part.name}: it answers, but its first process is not to be found."
                    raise NotReady(message)
                pids[part.name] = pid
        return pids

    def _describe_failure(self, step: Step, completed: Completed) -> str:
        """Say how a service did not stop or start, in its own words."""
        printed = _quote((), completed.stderr + completed.stdout)
        how = f"`{' '.join(completed.argv)}` ended with status {completed.returncode}: {printed}"
        if step.part is None:
            return f"{self.host.name}: {how}"
        return f"{step.part.name}: {how} Its log says: {self.quote_log(step.part)}"

    def _refuse_answer(self, answer: Answer) -> None:
        try:
            self.page.refuse_another(answer, self.url)
        except NotReady as error:
            logs = [
                f"{part.name} says: {self.quote_log(part)}"
                for part in self.parts
                if part.installation.service
            ]
            message = " ".join((str(error), *logs))
            raise NotReady(message) from error

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


def first_process(service: Service) -> Command:
    """Name the command that prints the id of a service's first process, or nothing."""
    if service.is_systemd:
        return Command(argv=("systemctl", "show", "--property=MainPID", "--value", "--", service.name))
    return Command(argv=("cat", "--", str(service.pid_file)), may_fail=True, as_root=True)


def _step(kind: Kind, argv: Sequence[str], part: Installed) -> Step:
    return Step(kind=kind, command=Command(argv=tuple(argv), timeout_s=SERVICE_S, as_root=True), part=part)


def _refuse_checked(part: Installed, completed: Completed) -> None:
    refusals = tuple(each for each in part.server.refusals(completed) if each not in part.complained)
    if completed.returncode == 0 and not refusals:
        return
    printed = completed.stderr + completed.stdout
    message = f"{part.name}: the configuration is refused: {_quote(refusals, printed)}"
    raise ConfigRejected(message)


def read_pid(completed: Completed) -> int | None:
    """Read what `first_process` printed; None when there is no process."""
    text = completed.stdout.decode(errors="replace").strip()
    return int(text) if completed.returncode == 0 and text.isdigit() and int(text) > 0 else None


def _quote(sentences: Sequence[str], printed: bytes) -> str:
    """Give a server's own words: the sentences that explain, or else the last lines that it printed."""
    lines = sentences or [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(line.strip() for line in lines[-QUOTED_LINES:]) or "it said nothing."
