"""Targets and deployments, whether of private or of installed servers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Protocol, Self

from tuner.deploy.asked import ResolvedLoad
from tuner.errors import NotReady, TargetError
from tuner.hosts.load_places import LoadPlace
from tuner.ports import Config, CpuSet, Lookable


@dataclass(frozen=True, kw_only=True)
class Deployment(ABC):
    """A configuration that runs, answers, and is active."""

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
    load: ResolvedLoad
    """What is asked for."""
    certificate: PurePosixPath | None = None
    """File that the server's certificate is checked by; None for those that the system trusts."""
    verifies: bool = True
    """Whether the server's certificate is checked."""
    other_loads: Mapping[str, ResolvedLoad] = field(default_factory=dict)
    """Load → what it asks for, of the others where there are several."""
    check_loads: Mapping[str, Callable[[], ResolvedLoad]] = field(default_factory=dict)
    """Check load with a mix of its own → learns the correct responses to it."""
    duration_s: float
    """Time from the request to deploy until it was active."""
    load_name: str = ""
    """Of several loads."""
    relearned: dict[str, ResolvedLoad] = field(default_factory=dict, compare=False, repr=False)
    """Load → what it asks for, where the page changed since."""

    def under(self, name: str) -> Self:
        """Return the deployment as one of several loads asks it; the first one has no name here."""
        load = self.other_loads.get(name)
        return self if load is None else replace(self, load=load, load_name=name)

    def under_check_load(self, name: str) -> Self:
        """Return the deployment as a check load asks it: as always, unless it has a mix of its own.

        Raises NotReady where a response is another than the study says.
        """
        learn = self.check_loads.get(name)
        return self if learn is None else replace(self, load=learn(), load_name=name)

    def latest(self) -> Self:
        """Return the deployment with the page as it was learned last."""
        return replace(self, load=self.relearned.get(self.load_name, self.load))

    def learn_again(self) -> bool:
        """Ask for the page once more; return whether it is another one than was learned."""
        if self.load.ask_again is None:
            return False
        try:
            load = self.load.ask_again()
        except (NotReady, TargetError):
            return False
        if load.is_answered_as(self.latest().load):
            return False
        self.relearned[self.load_name] = load
        return True

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
            TrialFailed: the configuration was refused, crashed, does not answer, or is not active.
            TargetError: the host cannot do it with any configuration.
        """
