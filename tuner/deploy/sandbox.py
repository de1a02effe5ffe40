"""Deploys configurations in sandboxes: render, write, check, start, wait, ask, read back."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.deploy import readiness
from tuner.deploy.asked import ExpectedLoad, ResolvedLoad
from tuner.deploy.certificate import make_certificate
from tuner.deploy.chain import Chain, endpoint
from tuner.deploy.content import Content
from tuner.deploy.deployment import Deployment
from tuner.deploy.discovery import LOG_TAIL_BYTES, quote_words, tail_command
from tuner.deploy.pages import Pages
from tuner.errors import ConfigRejected, Crashed, NotEffective, NotReady
from tuner.hosts.load_places import LoadPlace
from tuner.hosts.placement import Placement
from tuner.kit.programs import quote_check
from tuner.ports import (
    BackendServer,
    Certificate,
    Config,
    CpuSet,
    Facts,
    FileState,
    Host,
    PrivateServer,
    Process,
    RequestKind,
    Sandbox,
    Scalar,
    Site,
    StoppableServer,
    Upstream,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Timeout of each step, in seconds."""

    check_s: float = 10.0
    listen_s: float = 10.0
    answer_s: float = 5.0
    retry_s: float = 1.0
    """Time in which an answer that may still come right is asked for again."""
    log_s: float = 5.0
    stop_s: float = 5.0
    """Time that a server may take to end by itself; what is left then is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One private instance of a server in one sandbox."""

    name: str
    server: PrivateServer
    facts: Facts
    site: Site
    config: Config
    process: Process | None = None

    @property
    def endpoint(self) -> Upstream:
        """Where it is asked."""
        return endpoint(self.server, self.config, self.site, self.facts)

    def put_in_place(self, sandbox: Sandbox, timeout_s: float) -> None:
        """Write the server's files and let it check them itself. Raises ConfigRejected."""
        for path, content in self.server.render(self.config, self.site, self.facts).items():
            sandbox.write(path, FileState(content=content))
        command = self.server.check(self.site, self.facts)
        if command is None:
            return
        checked = sandbox.run(command, timeout_s=timeout_s)
        refusals = self.server.refusals(checked)
        if checked.returncode == 0 and not refusals:
            return
        if checked.timed_out:
            raise ConfigRejected(
                f"{self.name}: `{command[0]}` did not finish the check of the configuration within "
                f"{timeout_s:g} s."
            )
        raise ConfigRejected(f"{self.name}: the configuration is refused: {quote_check(refusals, checked)}")

    def start(self, sandbox: Sandbox, cpus: CpuSet) -> "Instance":
        """Start the server and return the running instance."""
        command = self.server.start(self.site, self.facts) or ()
        process = sandbox.start(command, cpus=cpus, open_files=self.server.needs(self.config).open_files)
        return replace(self, process=process)

    def read_back(self, sandbox: Sandbox) -> tuple[Config, list[str]]:
        """Return what is active, and a sentence for each value that is not as asked."""
        found = self.server.effective(sandbox, self.config, self.site, self.facts, self.process)
        return found, [
            f"{name}: {self.config[name]} was requested, {value} is active"
            for name, value in found.items()
            if name in self.config and self.config[name] != value
        ]

    def require_effect(self, sandbox: Sandbox) -> Config:
        """Return what is active: what was asked, for a measurement belongs to what really ran."""
        found, differing = self.read_back(sandbox)
        if differing:
            raise NotEffective(f"{self.name}: {'; '.join(differing)}.")
        return found

    def ask_to_end(self, sandbox: Sandbox, timeout_s: float) -> None:
        """Run the command by which the server ends by itself, where it has one.

        Whether it does makes no difference: the sandbox ends all that still runs.
        """
        command = (
            self.server.stop(self.site, self.facts) if isinstance(self.server, StoppableServer) else None
        )
        if command is not None:
            sandbox.run(command, timeout_s=timeout_s)

    def check_alive(self, sandbox: Sandbox, timeout_s: float) -> None:
        """Raise Crashed, with the server's own words, when it has ended."""
        status = None if self.process is None else self.process.poll()
        if status is None:
            return
        how = f"was killed by signal {-status}" if status < 0 else f"ended by itself with status {status}"
        log = self.read_log(sandbox, timeout_s)
        raise Crashed(f"{self.name}: it {how}: {quote_words(self.server.complaints(log), log)}")

    def read_log(self, sandbox: Sandbox, timeout_s: float) -> bytes:
        """Read the end of what the server printed and logged; a log may be too long to be read whole."""
        if self.process is None:
            return b""
        tail = sandbox.run(tail_command(self.site.error_log), timeout_s=timeout_s)
        return self.process.output()[-LOG_TAIL_BYTES:] + tail.stdout


@dataclass(frozen=True, kw_only=True)
class SandboxDeployment(Deployment):
    """An active configuration in a sandbox of its own."""

    sandbox: Sandbox
    instances: tuple[Instance, ...]
    log_timeout_s: float

    @property
    def processes(self) -> Mapping[str, Process]:
        """The processes that were started, by server name."""
        return {each.name: each.process for each in self.instances if each.process is not None}

    def check_alive(self) -> None:
        for each in self.instances:
            each.check_alive(self.sandbox, self.log_timeout_s)

    def no_longer_effective(self) -> tuple[str, ...]:
        # Servers read their settings once, when they start; what they are by then was checked.
        settings = [each for each in self.instances if each.process is None]
        return tuple(differing for each in settings for differing in each.read_back(self.sandbox)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """Asks the servers in a sandbox as one of the loads does."""

    target: "SandboxTarget"
    sandbox: Sandbox
    started: Sequence[Instance]
    manner: readiness.Manner

    def url_of(self, kind: RequestKind) -> str:
        return f"{readiness.split_origin(self.target.url)[0]}{kind.path}"

    def once(self, kind: RequestKind) -> readiness.Answer:
        """Ask for one request. Raises NotReady when its program failed."""
        answer = readiness.request(
            self.sandbox, self.url_of(kind), kind=kind, manner=self.manner,
            timeout_s=self.target.deadlines.answer_s,
        )  # fmt: skip
        self.target.refuse_page_errors(self.sandbox, self.started, answer)
        return answer

    def often(self, kind: RequestKind, times: int, seconds: float) -> Sequence[readiness.Answer]:
        return readiness.request_often(
            self.sandbox, self.url_of(kind), kind=kind, manner=self.manner, times=times, seconds=seconds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxTarget:
    """Private instances of servers: what stays the same from trial to trial of one study."""

    host: Host
    servers: Mapping[str, PrivateServer]
    facts: Mapping[str, Facts]
    split: Callable[[Config, str], Config]
    """Picks one server's part of a configuration, by the server's name."""
    content: Content
    chain: Chain
    placement: Placement
    load: ExpectedLoad = field(default_factory=ExpectedLoad)
    """What is asked for; its page is waited for."""
    has_tls: bool = False
    """Whether that is done over TLS."""
    other_loads: Mapping[str, ExpectedLoad] = field(default_factory=dict)
    """Load → what it asks for, of the others where there are several."""
    check_loads: Mapping[str, ExpectedLoad] = field(default_factory=dict)
    """Check load with a mix of its own → what it asks for."""
    ready: Mapping[str, str] = field(default_factory=dict)
    """Server → the path that it answers with 200 when it is ready; the others are as soon as they listen."""
    statuses: Collection[int] = ()
    """What else is a correct answer to the request that waits for all of them."""
    deadlines: Deadlines = Deadlines()
    pages: Pages = field(default_factory=Pages, compare=False, repr=False)
    """What earlier trials showed of the pages."""

    @property
    def url(self) -> str:
        """What is requested, seen from inside the sandbox."""
        return f"{'https' if self.has_tls else 'http'}://127.0.0.1:{self.chain.port}{self.load.page.path}"

    def hold(self, warn: Callable[[str], None]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: each deployment has a sandbox of its own."""
        return nullcontext()

    def deploy_default(self, default: Config) -> AbstractContextManager[SandboxDeployment]:
        return self.deploy(default)

    @contextmanager
    def deploy(self, config: Config) -> Iterator[SandboxDeployment]:
        """Run one configuration in a fresh sandbox; leaving it ends all of it, whatever happened.

        Raises:
            ConfigRejected: a server's own check, or the kernel, refused a value.
            Crashed: a server ended by itself.
            NotReady: it does not listen, or answers otherwise than expected.
            NotEffective: what is active is not what was asked.
            TargetError: the host cannot do it with any configuration.
        """
        began_s = time.monotonic()
        with self.host.sandbox(share=self.content.directory) as sandbox, ExitStack() as running:
            certificate = make_certificate(sandbox) if self.has_tls else None
            manner = replace(self.load.manner, certificate=certificate.file if certificate else None)
            settings, programs = self._divide(config, sandbox, certificate)
            effective: dict[str, Scalar] = {}
            # The kernel first: listen() reads somaxconn, sockets their buffers, when they are made.
            for each in settings:
                each.put_in_place(sandbox, self.deadlines.check_s)
                effective |= each.require_effect(sandbox)
            started: list[Instance] = []
            for each in programs:
                each.put_in_place(sandbox, self.deadlines.check_s)
                started.append(each.start(sandbox, self.placement.server_cpus))
                running.callback(each.ask_to_end, sandbox, self.deadlines.stop_s)
            answer = self._await_ready(sandbox, started, manner)
            load = self._learn(sandbox, started, self.load, manner.certificate, first=answer)
            others = {
                name: self._learn(sandbox, started, each, manner.certificate)
                for name, each in self.other_loads.items()
            }
            checked = {
                name: partial(self._learn, sandbox, started, each, manner.certificate)
                for name, each in self.check_loads.items()
            }
            for each in started:
                effective |= each.require_effect(sandbox)
            self._check_alive(sandbox, started)
            # The generator runs inside, beside the server.
            place = LoadPlace(
                host=sandbox, directory=sandbox.directory, cpus=self.placement.generator_cpus,
                is_on_target=True, has_private_network=True,
            )  # fmt: skip
            yield SandboxDeployment(
                sandbox=sandbox, instances=(*settings, *started), log_timeout_s=self.deadlines.log_s,
                host=sandbox, network_pid=sandbox.pid, load_places=(place,),
                server_pids={each.name: each.process.pid for each in started if each.process},
                server_cpus=self.placement.server_cpus,
                config=MappingProxyType(dict(config)), effective=effective, load=load,
                other_loads=others, check_loads=checked, certificate=manner.certificate,
                duration_s=time.monotonic() - began_s,
            )  # fmt: skip

    def _divide(
        self, config: Config, sandbox: Sandbox, certificate: Certificate | None
    ) -> tuple[list[Instance], list[Instance]]:
        """Split a configuration into settings, which are only written, and programs, first to start first."""
        root = Site(
            directory=sandbox.directory,
            document_root=self.content.put_into(sandbox),
            port=self.chain.port,
            cpus=self.placement.server_cpus,
        )
        beside = [self._instance(name, config, root) for name in self.servers if name not in self.chain.ports]
        settings = [each for each in beside if each.server.start(each.site, each.facts) is None]
        programs = {each.name: each for each in beside if each not in settings}
        for name in self.chain.from_the_end:
            behind = programs.get(self.chain.backends.get(name, ""))
            site = replace(root, port=self.chain.ports[name], backend=behind.endpoint if behind else None)
            if name == self.chain.front:
                site = replace(site, protocol=self.load.manner.protocol, certificate=certificate)
            programs[name] = self._instance(name, config, site)
        return settings, list(programs.values())

    def _instance(self, name: str, config: Config, site: Site) -> Instance:
        own = self.split(config, name)
        return Instance(
            name=name, server=self.servers[name], facts=self.facts[name], config=own,
            site=replace(site, directory=site.directory / name, settings=own),
        )  # fmt: skip

    def _learn(
        self,
        sandbox: Sandbox,
        started: Sequence[Instance],
        wanted: ExpectedLoad,
        certificate: PurePosixPath | None,
        *,
        first: readiness.Answer | None = None,
    ) -> ResolvedLoad:
        """Ask for all that a load asks for. Raises NotReady for another response than the study says."""
        ask = _Asking(
            target=self,
            sandbox=sandbox,
            started=started,
            manner=replace(wanted.manner, certificate=certificate),
        )
        page, url = wanted.page, ask.url_of(wanted.page)
        if first is not None and first.status in self.statuses:
            return ResolvedLoad(url=url, body_bytes=None, response_bytes=None)
        if first is None:
            first = readiness.await_answer(
                lambda: ask.once(page), page, url=url, retry_s=self.deadlines.retry_s
            )

        def learn(first: readiness.Answer | None, *, is_doubtful: bool) -> ResolvedLoad:
            pages = self.pages.learn(wanted.kinds, ask, first=first, is_doubtful=is_doubtful)
            again = partial(learn, None, is_doubtful=True)
            return ResolvedLoad.of(url, pages, is_mix=bool(wanted.requests), ask_again=again)

        return learn(first if wanted.kinds[0] == page else None, is_doubtful=False)

    def _check_alive(self, sandbox: Sandbox, started: Sequence[Instance]) -> None:
        for each in started:
            each.check_alive(sandbox, self.deadlines.log_s)

    def _await_ready(
        self, sandbox: Sandbox, started: Sequence[Instance], manner: readiness.Manner
    ) -> readiness.Answer:
        """Wait for the listeners, then request the page once, as the load will."""
        deadlines, check_alive = self.deadlines, partial(self._check_alive, sandbox, started)
        page = self.load.page

        def ask() -> readiness.Answer:
            check_alive()
            return readiness.request(
                sandbox, self.url, manner=manner, timeout_s=deadlines.answer_s, kind=page
            )

        try:
            for each in (each for each in started if each.name in self.chain.ports):
                readiness.await_listener(
                    sandbox, each.endpoint, timeout_s=deadlines.listen_s, check_alive=check_alive
                )
                self._await_own_answer(sandbox, each, check_alive)
            answer = readiness.await_answer(
                ask, page, url=self.url, retry_s=deadlines.retry_s, statuses=self.statuses
            )
            self.refuse_page_errors(sandbox, started, answer)
            self._refuse_another_page(answer)
        except NotReady as error:
            check_alive()
            complaints = [
                complaint
                for each in started
                for complaint in each.server.complaints(each.read_log(sandbox, deadlines.log_s))
            ]
            logged = f" Its log says: {quote_words(complaints, b'')}" if complaints else ""
            names = ", ".join(each.name for each in reversed(started))
            raise NotReady(f"{names}: {error}{logged}") from error
        return answer

    def _refuse_another_page(self, answer: readiness.Answer) -> None:
        """Raise NotReady for a page that is not the study's, once it is read as clients read it."""
        content, page = self.content, self.load.page
        if (page.path, page.status, page.method) != (content.path, HTTPStatus.OK, "GET"):
            return
        if content.body not in {None, answer.body}:
            raise NotReady(f"{self.url} answered with another page of the same length: {answer.said!r}.")
        if self.load.manner.accept_encoding and content.body_bytes not in {None, len(answer.body)}:
            raise NotReady(
                f"{self.url} answered with a page of {len(answer.body)} uncompressed bytes, where "
                f"{content.body_bytes} bytes were expected. Compress the file again, or remove the old "
                "compressed file."
            )

    def _await_own_answer(
        self, sandbox: Sandbox, instance: Instance, check_alive: Callable[[], None]
    ) -> None:
        """Wait until a server answers by itself that it is ready, where the study says how."""
        path = self.ready.get(instance.name)
        if path is None:
            return
        url = f"http://{instance.endpoint.address}{path}"

        def ask() -> readiness.Answer:
            check_alive()
            plain = readiness.Manner(keepalive=False)
            return readiness.request(sandbox, url, manner=plain, timeout_s=self.deadlines.answer_s)

        readiness.await_answer(ask, readiness.PLAIN, url=url, retry_s=self.deadlines.listen_s)

    def refuse_page_errors(
        self, sandbox: Sandbox, started: Sequence[Instance], answer: readiness.Answer
    ) -> None:
        """Raise NotReady when a program behind the page failed, whatever the status: it is no reference."""
        backends = [each.server for each in started if isinstance(each.server, BackendServer)]
        if not backends:
            return
        log = b"".join(each.read_log(sandbox, self.deadlines.log_s) for each in started)
        found = [error for each in backends for error in each.page_errors(sandbox, answer.body, log)]
        if found:
            raise NotReady(
                f"{self.url} answered {answer.status}, but the program behind it failed: "
                f"{quote_words(found, b'')}. Correct the page first."
            )
