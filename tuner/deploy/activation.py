"""The commands that put a configuration into force on installed services, and what came of them.

What changes files, checks, restarts, waits and asks is one batch of commands: over SSH one round trip. It
ends at the first that fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuner.deploy.managed_server import Installed, first_process, read_pid
from tuner.deploy.readiness import Answer, Page, read_answer, waiting_request
from tuner.deploy.server_log import quote_words
from tuner.deploy.systemd_limits import RELOAD
from tuner.errors import ConfigRejected, Crashed, NotReady
from tuner.ports import Argv, Command, Completed, Host, Service
from tuner.restore.keeper import replies

READY_S = 15.0
"""Given to services that were started until one answers."""


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
class Activation:
    """How the services of one host are checked, started again and asked for their page."""

    host: Host
    parts: Sequence[Installed]
    tell: Callable[..., Command]
    """Names the command by which the target's keeper does something with a service, within the session."""
    url: str
    page: Page
    keepalive: bool

    def plan(
        self, change: Command, *, reads_units: bool, may_reload: Callable[[Installed], bool]
    ) -> list[Step]:
        """Name all commands in their order.

        Args:
            change: writes the files.
            reads_units: whether systemd has to read its units again.
            may_reload: whether a server need not be started anew.
        """
        services = self._services()
        steps = [Step(kind=Kind.CHANGE, command=change)]
        if reads_units:
            steps.append(Step(kind=Kind.ACTIVATE, command=self.tell("units")))
        steps += [
            Step(kind=Kind.CHECK, command=self.tell("check", service.name), part=part)
            for part, service in services
            if service.check is not None
        ]
        for part, service in services:
            verb = "reload" if service.reload is not None and may_reload(part) else "restart"
            steps.append(Step(kind=Kind.ACTIVATE, command=self.tell(verb, service.name), part=part))
        ask = waiting_request(self.url, keepalive=self.keepalive, timeout_s=READY_S)
        steps.append(Step(kind=Kind.ANSWER, command=ask))
        steps += [
            Step(kind=Kind.PID, command=first_process(service), part=part) for part, service in services
        ]
        return steps

    def judge(self, steps: Sequence[Step], done: Sequence[Completed]) -> dict[str, int]:
        """Tell the first process of each service.

        Raises:
            ConfigRejected: a server's own check refuses the files.
            Crashed: a service does not stop or start.
            NotReady: another page came than the original configuration gives, or a process is not found.
            TargetError: the target has ended the session.
        """
        pids: dict[str, int] = {}
        for step, completed in zip(steps, done, strict=False):
            part = step.part
            if step.kind in (Kind.CHECK, Kind.ACTIVATE):
                self._refuse_failure(step, completed)
            if step.kind is Kind.ANSWER:
                self._refuse_answer(read_answer(completed))
            if step.kind is Kind.PID and part is not None:
                pid = read_pid(completed)
                if pid is None:
                    message = f"{part.name}: it answers, but its first process is not to be found."
                    raise NotReady(message)
                pids[part.name] = pid
        return pids

    def _services(self) -> list[tuple[Installed, Service]]:
        return [(part, service) for part in self.parts if (service := part.installation.service)]

    def _refuse_failure(self, step: Step, completed: Completed) -> None:
        """Refuse what a service's check complains of, and what did not stop or start."""
        service = None if step.part is None else step.part.installation.service
        ran = replies.read_activation(self.host.name, completed, _commands(service))
        if step.kind is Kind.CHECK and step.part is not None:
            _refuse_checked(step.part, ran)
        elif ran.returncode != 0:
            raise Crashed(self._describe_failure(step, ran))

    def _describe_failure(self, step: Step, completed: Completed) -> str:
        """Say how a service did not stop or start, in its own words."""
        printed = quote_words((), completed.stderr + completed.stdout)
        how = f"`{' '.join(completed.argv)}` ended with status {completed.returncode}: {printed}"
        if step.part is None:
            return f"{self.host.name}: {how}"
        return f"{step.part.name}: {how} Its log says: {step.part.quote_log(self.host)}"

    def _refuse_answer(self, answer: Answer) -> None:
        try:
            self.page.refuse_another(answer, self.url)
        except NotReady as error:
            logs = [f"{part.name} says: {part.quote_log(self.host)}" for part, _ in self._services()]
            message = " ".join((str(error), *logs))
            raise NotReady(message) from error


def _commands(service: Service | None) -> dict[str, Argv]:
    """Name what the keeper's words stand for."""
    if service is None:
        return {"units": RELOAD}
    return {
        "check": service.check or (),
        "stop": service.stop,
        "start": service.start,
        "reload": service.reload or (),
    }


def _refuse_checked(part: Installed, completed: Completed) -> None:
    refusals = tuple(each for each in part.server.refusals(completed) if each not in part.complained)
    if completed.returncode == 0 and not refusals:
        return
    printed = completed.stderr + completed.stdout
    message = f"{part.name}: the configuration is refused: {quote_words(refusals, printed)}"
    raise ConfigRejected(message)
