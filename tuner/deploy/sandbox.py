"""One configuration into one sandbox: render, write, check, start, wait, ask, read back."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.deploy import readiness
from tuner.deploy.content import Content
from tuner.deploy.server_log import LOG_TAIL_BYTES, quote_words, tail_command
from tuner.errors import ConfigRejected, Crashed, NotEffective, NotReady
from tuner.hosts.load_places import LoadPlace
from tuner.hosts.placement import Placement
from tuner.ports import Config, CpuSet, Facts, FileState, Host, Process, Sandbox, Scalar, Server, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long each step may take before it is given up, in seconds."""

    check_s: float = 10.0
    listen_s: float = 10.0
    answer_s: float = 5.0
    retry_s: float = 1.0
    """For how long an answer that may still come right is asked for again."""
    log_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxTarget:
    """What stays the same from start to start of one study."""

    host: Host
    servers: Mapping[str, Server]
    facts: Mapping[str, Facts]
    split: Callable[[Config, str], Config]
    """Picks one server's part of a configuration, by the server's name."""
    content: Content
    placement: Placement
    port: int = 8080
    keepalive: bool = True
    path: str = "/index.html"
    deadlines: Deadlines = Deadlines()

    @property
    def url(self) -> str:
        """What is requested, seen from inside the sandbox."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def hold(self, warn: Callable[[str], None]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Take nothing: each deployment has a sandbox of its own."""
        return nullcontext()

    def deploy(self, config: Config) -> "AbstractContextManager[SandboxDeployment]":
        """Run one configuration, see `deploy`."""
        return deploy(self, config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One server of a deployment."""

    name: str
    server: Server
    facts: Facts
    site: Site
    config: Config
    process: Process | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDeployment:
    """A configuration that runs, answers, and is in force."""

    sandbox: Sandbox
    parts: tuple[Part, ...]
    config: Config
    effective: Config
    """What was read back, for those parameters that can be."""
    url: str
    body_bytes: int
    response_bytes: int
    """Header and body of one correct response of this start."""
    duration_s: float
    """From the request to deploy until here."""
    generator_cpus: CpuSet = frozenset()
    load_files: dict[PurePosixPath, bytes] = field(default_factory=dict, repr=False)
    """What the load generator was given here."""
    deadlines: Deadlines = Deadlines()

    @property
    def host(self) -> Host:
        """Where the servers run: there the counters are read."""
        return self.sandbox

    @property
    def network_pid(self) -> int:
        """A process of the sandbox's network namespace."""
        return self.sandbox.pid

    @property
    def server_pids(self) -> Mapping[str, int]:
        """The first process of each server, by the server's name."""
        return {name: process.pid for name, process in self.processes.items()}

    @property
    def load_places(self) -> tuple[LoadPlace, ...]:
        """The generator runs inside, beside the server."""
        return (
            LoadPlace(
                host=self.sandbox, directory=self.sandbox.directory, cpus=self.generator_cpus,
                is_on_target=True, written=self.load_files,
            ),
        )  # fmt: skip

    @property
    def processes(self) -> Mapping[str, Process]:
        """The processes that were started, by server name."""
        return {part.name: part.process for part in self.parts if part.process is not None}

    def is_alive(self) -> bool:
        """Tell whether every server still runs."""
        return all(process.poll() is None for process in self.processes.values())

    def check_alive(self) -> None:
        """Raise Crashed, with the server's own words, when one has ended."""
        for part in self.parts:
            _check_alive(self.sandbox, part, self.deadlines)

    def no_longer_effective(self) -> tuple[str, ...]:
        """Name the kernel's settings that are not in force any more: something else has changed them.

        Servers read their settings once, when they start; what they are by then `deploy` has checked.
        """
        settings = [part for part in self.parts if part.process is None]
        return tuple(each for part in settings for each in _differences(part, _ask(self.sandbox, part)))

    def server_log(self) -> bytes:
        """Read the end of what the servers printed and logged."""
        return b"".join(_read_log(self.sandbox, part, self.deadlines) for part in self.parts)


@contextmanager
def deploy(plan: SandboxTarget, config: Config) -> Iterator[SandboxDeployment]:
    """Run one configuration in a fresh sandbox; leaving it ends all of it, whatever happened.

    Args:
        plan: what stays the same from start to start.
        config: one value for every active parameter.

    Raises:
        ConfigRejected: a server's own check, or the kernel, refused a value.
        Crashed: a server ended by itself.
        NotReady: it does not listen, or answers otherwise than expected.
        NotEffective: what is in force is not what was asked.
        TargetError: the host cannot do it with any configuration.
    """
    began_s = time.monotonic()
    with plan.host.sandbox(share=plan.content.directory) as sandbox:
        settings, programs = _divide(plan, config, sandbox)
        effective: dict[str, Scalar] = {}
        # Settings of the kernel first: listen() reads somaxconn, sockets their buffers, when they are made.
        for part in settings:
            _put_in_place(sandbox, part, plan.deadlines)
            effective |= _read_back(sandbox, part)
        started: list[Part] = []
        for part in programs:
            _put_in_place(sandbox, part, plan.deadlines)
            started.append(_start(sandbox, part, plan))
        deployment = SandboxDeployment(
            sandbox=sandbox, parts=(*settings, *started), config=MappingProxyType(dict(config)),
            effective=effective, url=plan.url, body_bytes=0, response_bytes=0, duration_s=0.0,
            generator_cpus=plan.placement.generator_cpus, deadlines=plan.deadlines,
        )  # fmt: skip
        answer = _await_ready(deployment, plan)
        for part in started:
            effective |= _read_back(sandbox, part)
        deployment.check_alive()
        yield replace(
            deployment,
            body_bytes=answer.body_bytes,
            response_bytes=answer.response_bytes,
            duration_s=time.monotonic() - began_s,
        )


def _divide(plan: SandboxTarget, config: Config, sandbox: Sandbox) -> tuple[list[Part], list[Part]]:
    """Split a configuration into settings, which only have to be written, and programs, which are started."""
    document_root = plan.content.put_into(sandbox)
    settings: list[Part] = []
    programs: list[Part] = []
    for name, server in plan.servers.items():
        site = Site(
            directory=sandbox.directory / name,
            document_root=document_root,
            port=plan.port,
            cpus=plan.placement.server_cpus,
        )
        facts = plan.facts[name]
        part = Part(name=name, server=server, facts=facts, site=site, config=plan.split(config, name))
        (settings if server.start(site, facts) is None else programs).append(part)
    return settings, programs


def _put_in_place(sandbox: Sandbox, part: Part, deadlines: Deadlines) -> None:
    """Write a server's files and let it check them itself."""
    for path, content in part.server.render(part.config, part.site, part.facts).items():
        sandbox.write(path, FileState(content=content))
    command = part.server.check(part.site, part.facts)
    if command is None:
        return
    checked = sandbox.run(command, timeout_s=deadlines.check_s)
    refusals = part.server.refusals(checked)
    if checked.returncode == 0 and not refusals:
        return
    if checked.timed_out:
        message = f"{part.name}: `{command[0]}` did not finish its check within {deadlines.check_s:g} s."
        raise ConfigRejected(message)
    printed = checked.stderr + checked.stdout
    message = f"{part.name}: the configuration is refused: {quote_words(refusals, printed)}"
    raise ConfigRejected(message)


def _start(sandbox: Sandbox, part: Part, plan: SandboxTarget) -> Part:
    command = part.server.start(part.site, part.facts) or ()
    process = sandbox.start(
        command, cpus=plan.placement.server_cpus, open_files=part.server.open_files(part.config)
    )
    return replace(part, process=process)


def _await_ready(deployment: SandboxDeployment, plan: SandboxTarget) -> readiness.Answer:
    """Wait for the listener, then ask for the page once, as the load will."""
    sandbox, deadlines = deployment.sandbox, plan.deadlines

    def ask() -> readiness.Answer:
        deployment.check_alive()
        return readiness.request(sandbox, plan.url, keepalive=plan.keepalive, timeout_s=deadlines.answer_s)

    try:
        readiness.await_listener(
            sandbox, plan.port, timeout_s=deadlines.listen_s, check_alive=deployment.check_alive
        )
        return readiness.await_answer(
            ask, body_bytes=plan.content.body_bytes, url=plan.url, retry_s=deadlines.retry_s
        )
    except NotReady as error:
        deployment.check_alive()
        names = ", ".join(part.name for part in deployment.parts if part.process is not None)
        complaints = [
            complaint
            for part in deployment.parts
            for complaint in part.server.complaints(_read_log(sandbox, part, deadlines))
        ]
        logged = f" Its log says: {quote_words(complaints, b'')}" if complaints else ""
        message = f"{names}: {error}{logged}"
        raise NotReady(message) from error


def _read_back(sandbox: Sandbox, part: Part) -> Config:
    """Read what is in force; it must be what was asked (a measurement belongs to what really ran)."""
    found = _ask(sandbox, part)
    differing = _differences(part, found)
    if differing:
        message = f"{part.name}: {'; '.join(differing)}."
        raise NotEffective(message)
    return found


def _ask(sandbox: Sandbox, part: Part) -> Config:
    return part.server.effective(sandbox, part.config, part.site, part.facts, part.process)


def _differences(part: Part, found: Config) -> list[str]:
    return [
        f"{name}: {part.config[name]} was asked, {value} is in force"
        for name, value in found.items()
        if name in part.config and part.config[name] != value
    ]


def _check_alive(sandbox: Sandbox, part: Part, deadlines: Deadlines) -> None:
    status = None if part.process is None else part.process.poll()
    if status is None:
        return
    how = f"was killed by signal {-status}" if status < 0 else f"ended by itself with status {status}"
    log = _read_log(sandbox, part, deadlines)
    message = f"{part.name}: it {how}: {quote_words(part.server.complaints(log), log)}"
    raise Crashed(message)


def _read_log(sandbox: Sandbox, part: Part, deadlines: Deadlines) -> bytes:
    """Read the end of what a server printed and logged; a log may be too long to be read whole."""
    if part.process is None:
        return b""
    tail = sandbox.run(tail_command(part.site.error_log), timeout_s=deadlines.log_s)
    return part.process.output()[-LOG_TAIL_BYTES:] + tail.stdout
