"""Targets and deployments, whether of private or of installed servers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Protocol, Self

from tuner.deploy.asked import ResolvedLoad
from tuner.deploy.readiness import describe_right
from tuner.errors import NotReady, TargetError
from tuner.hosts.load_places import LoadPlace
from tuner.ports import ANY_BODY, Body, Config, CpuSet, Lookable, RequestKind


@dataclass(frozen=True, kw_only=True)
class Deployment(ABC):
    """A configuration that runs, answers, and is in force."""

    host: Lookable
    """Where the servers run and the counters are read."""
    network_pid: int
    """A process there whose network namespace the load goes through."""
    server_pids: Mapping[str, int]
    """The first process of each server, by the server's name."""
    server_cpus: CpuSet
    """CPUs that the servers may use; empty for all of the host's."""
    load_places: tuple[LoadPlace, ...]
    """Where the load comes from."""
    config: Config
    """What was asked."""
    effective: Config
    """What was read back, for those parameters that can be."""
    url: str
    """What the load requests."""
    body_bytes: int | None
    """Length of the correct body; None when it differs from response to response."""
    response_bytes: int | None
    """Header and body of one correct response of this start; None like `body_bytes`."""
    body: Body = ANY_BODY
    certificate: PurePosixPath | None = None
    """File that the server's certificate is checked by; None for those that the system trusts."""
    verifies: bool = True
    """Whether the server's certificate is checked."""
    judged: tuple[str, ...] = ()
    """A sentence for each request whose correct response is not known by its length."""
    requests: tuple[RequestKind, ...] = ()
    """The mix of the load, with the correct responses of this start; empty for the URL alone."""
    asked: Mapping[str, ResolvedLoad] = field(default_factory=dict)
    """Load → what it asks for, of the others where there are several."""
    duration_s: float
    """Time from the request to deploy until it was in force."""
    load_name: str = ""
    """Of several loads."""
    ask_again: Callable[[], ResolvedLoad] | None = None
    """Learns once more what the load asks for."""
    relearned: dict[str, ResolvedLoad] = field(default_factory=dict, compare=False, repr=False)
    """Load → what it asks for, where the page changed since."""

    @property
    def expected(self) -> str:
        """Return which answer is right, in words."""
        if self.requests:
            return "what each of `requests:` has to get"
        return describe_right(RequestKind(path="/", body_bytes=self.body_bytes, body=self.body))

    def under(self, name: str) -> Self:
        """Return the deployment as one of several loads asks it; the first one has no name here."""
        asked = self.asked.get(name)
        return self if asked is None else self._asking(asked, name)

    def latest(self) -> Self:
        """Return the deployment with the page as it was learned last."""
        asked = self.relearned.get(self.load_name)
        return self if asked is None else self._asking(asked, self.load_name)

    def learn_again(self) -> bool:
        """Ask for the page once more; return whether it is another one than was learned."""
        if self.ask_again is None:
            return False
        try:
            asked = self.ask_again()
        except (NotReady, TargetError):
            return False
        known = self.latest()
        if (asked.body_bytes, asked.body, asked.requests) == (known.body_bytes, known.body, known.requests):
            return False
        self.relearned[self.load_name] = asked
        return True

    def _asking(self, asked: ResolvedLoad, name: str) -> Self:
        return replace(
            self, url=asked.url, body_bytes=asked.body_bytes, response_bytes=asked.response_bytes,
            body=asked.body, requests=asked.requests, load_name=name, ask_again=asked.ask_again,
        )  # fmt: skip

    @abstractmethod
    def check_alive(self) -> None:
        """Raise Crashed, with the server's own words, when a server has ended."""

    @abstractmethod
    def no_longer_effective(self) -> tuple[str, ...]:
        """Return the kernel's settings that something else has changed since, one sentence each."""


class Target(Protocol):
    """A host with the servers of one study, on which configurations are deployed."""

    def hold(self, warn: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold the target for a session; leaving it puts everything back, whatever happened.

        Args:
            warn: told what is worth a warning.

        Raises:
            TargetError: it cannot be taken, or another tuner is at work on it.
            RestoreFailed: on leaving, something could not be put back.
        """

    def deploy_default(self, default: Config) -> AbstractContextManager[Deployment]:
        """Yield the default for a check, without changing an installed service. Raises as `deploy` does."""

    def deploy(self, config: Config) -> AbstractContextManager[Deployment]:
        """Run one configuration; leaving it ends the deployment.

        Raises:
            TrialFailed: the configuration was refused, crashed, does not answer, or is not in force.
            TargetError: the host cannot do it with any configuration.
        """
