"""The commands that put a configuration into force on installed services, and what came of them.

What changes files, checks, restarts, waits and asks is one batch of commands: over SSH one round trip. It
ends at the first that fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuner.errors import ConfigRejected, Crashed, NotReady
from tuner.managed_server import Installed, first_process, read_pid
from tuner.ports import Command, Completed, Host, Service
from tuner.readiness import Answer, Page, read_answer, waiting_request
from tuner.server_words import quote_words
from tuner.unit_limits import RELOAD

READY_S = 15.0
"""Given to services that were started until one answers."""
SERVICE_S = 90.0
"""systemd's own limit for a start or a stop (DefaultTimeoutStartSec, systemd-system.conf(5))."""


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
            steps.append(Step(kind=Kind.ACTIVATE, command=Command(argv=RELOAD, as_root=True)))
        steps += [
            _step(Kind.CHECK, service.check, part) for part, service in services if service.check is not None
        ]
        for part, service in services:
            reload = service.reload if may_reload(part) else None
            argvs = [reload] if reload is not None else [service.stop, service.start]
            steps += [_step(Kind.ACTIVATE, argv, part) for argv in argvs]
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
        """
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

    def _services(self) -> list[tuple[Installed, Service]]:
        return [(part, service) for part in self.parts if (service := part.installation.service)]

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


def _step(kind: Kind, argv: Sequence[str], part: Installed) -> Step:
    return Step(kind=kind, command=Command(argv=tuple(argv), timeout_s=SERVICE_S, as_root=True), part=part)


def _refuse_checked(part: Installed, completed: Completed) -> None:
    refusals = tuple(each for each in part.server.refusals(completed) if each not in part.complained)
    if completed.returncode == 0 and not refusals:
        return
    printed = completed.stderr + completed.stdout
    message = f"{part.name}: the configuration is refused: {quote_words(refusals, printed)}"
    raise ConfigRejected(message)
