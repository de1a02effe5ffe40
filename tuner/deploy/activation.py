"""Activates a configuration on installed services: one batch of commands, over SSH one round trip.

It changes files, checks, reloads or restarts, waits and asks, and ends at the first command that fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuner.deploy.discovery import DiscoveredServer, first_process, quote_words, read_pid
from tuner.deploy.learned_load import LearnedLoad
from tuner.deploy.pages import AnotherPage, Page
from tuner.deploy.readiness import Answer, read_answer, waiting_request
from tuner.deploy.systemd_limits import RELOAD
from tuner.errors import ConfigRejected, Crashed, NotReady
from tuner.kit.programs import quote_check
from tuner.ports import Argv, Command, Completed, Host, Service
from tuner.restore.keeper import replies

READY_S = 15.0
"""Time for started services until one answers."""


class StepKind(StrEnum):
    """The purpose of a command of the batch."""

    CHANGE = "change"
    CHECK = "check"
    ACTIVATE = "activate"
    ANSWER = "answer"
    PID = "pid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of a batch."""

    kind: StepKind
    command: Command
    server: DiscoveredServer | None = None
    load: LearnedLoad | None = None
    page: Page | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Checks, restarts or reloads the services of one host, and asks for their page."""

    host: Host
    servers: Sequence[DiscoveredServer]
    request: Callable[..., Command]
    """Returns the command by which the target's keeper checks, reloads or restarts a service."""
    loads: Sequence[LearnedLoad]
    """What has to be answered as with the original configuration; the first page is waited for."""

    def steps(
        self, change: Command, *, reads_units: bool, may_reload: Callable[[DiscoveredServer], bool]
    ) -> list[Step]:
        """Return all commands in their order; `change` writes the files.

        With `reads_units`, systemd reads its units again; a server that `may_reload` is not restarted.
        """
        services = self._services()
        steps = [Step(kind=StepKind.CHANGE, command=change)]
        if reads_units:
            steps.append(Step(kind=StepKind.ACTIVATE, command=self.request("units")))
        steps += [
            Step(kind=StepKind.CHECK, command=self.request("check", service.name), server=server)
            for server, service in services
            if service.check is not None
        ]
        for server, service in services:
            verb = "reload" if service.reload is not None and may_reload(server) else "restart"
            steps.append(
                Step(kind=StepKind.ACTIVATE, command=self.request(verb, service.name), server=server)
            )
        steps += [
            Step(kind=StepKind.ANSWER, command=self._ask(load, page), load=load, page=page)
            for load in self.loads
            for page in load.pages
        ]
        steps += [
            Step(kind=StepKind.PID, command=first_process(service), server=server)
            for server, service in services
        ]
        return steps

    def read_outcome(self, steps: Sequence[Step], done: Sequence[Completed]) -> dict[str, int]:
        """Return the first process of each service.

        Raises:
            ConfigRejected: a server's own check refuses the files.
            Crashed: a service does not stop or start.
            AnotherPage: another page came than the original configuration gives.
            NotReady: a process is not found.
            TargetError: the target has ended the session.
        """
        pids: dict[str, int] = {}
        for step, completed in zip(steps, done, strict=False):
            server = step.server
            if step.kind in (StepKind.CHECK, StepKind.ACTIVATE):
                self._refuse_failure(step, completed)
            if step.load is not None and step.page is not None:
                answer = read_answer(completed, self.host, protocol=step.load.manner.protocol)
                self._refuse_answer(step.page, answer, step.load.ask.url_of(step.page.kind))
            if step.kind is StepKind.PID and server is not None:
                pid = read_pid(completed)
                if pid is None:
                    raise NotReady(
                        f"{server.name}: the service answers, but its first process cannot be found. Check "
                        "its pid file or unit."
                    )
                pids[server.name] = pid
        return pids

    def _services(self) -> list[tuple[DiscoveredServer, Service]]:
        return [(server, service) for server in self.servers if (service := server.installation.service)]

    def _refuse_failure(self, step: Step, completed: Completed) -> None:
        """Raise when a service's check complained, or it did not stop or start."""
        service = None if step.server is None else step.server.installation.service
        ran = replies.read_activation(self.host.name, completed, _commands(service))
        if step.kind is StepKind.CHECK and step.server is not None:
            _refuse_checked(step.server, ran)
        elif ran.returncode != 0:
            raise Crashed(self._describe_failure(step, ran))

    def _describe_failure(self, step: Step, completed: Completed) -> str:
        printed = quote_words((), completed.stderr + completed.stdout)
        how = f"`{' '.join(completed.argv)}` ended with status {completed.returncode}: {printed}"
        if step.server is None:
            return f"{self.host.name}: {how}"
        return f"{step.server.name}: {how} Its log says: {step.server.quote_log(self.host)}"

    def _ask(self, load: LearnedLoad, page: Page) -> Command:
        # When the first page is there, the server has started.
        is_first = load is self.loads[0] and page == load.pages[0]
        return waiting_request(
            load.ask.url_of(page.kind), manner=load.manner, timeout_s=READY_S if is_first else 0.0,
            kind=page.kind,
        )  # fmt: skip

    def _refuse_answer(self, page: Page, answer: Answer, url: str) -> None:
        try:
            page.refuse_another(answer, url)
        except AnotherPage as error:
            logs = [f"{server.name} says: {server.quote_log(self.host)}" for server, _ in self._services()]
            raise AnotherPage(" ".join((str(error), *logs))) from error


def _commands(service: Service | None) -> dict[str, Argv]:
    """Return the commands that the keeper's verbs run."""
    if service is None:
        return {"units": RELOAD}
    return {verb: getattr(service, verb) or () for verb in ("check", "stop", "start", "restart", "reload")}


def _refuse_checked(server: DiscoveredServer, completed: Completed) -> None:
    refusals = server.read_refusals(completed)
    if completed.returncode == 0 and not refusals:
        return
    raise ConfigRejected(f"{server.name}: the configuration is refused: {quote_check(refusals, completed)}")
