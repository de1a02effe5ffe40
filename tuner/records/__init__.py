"""Records of a study: windows, trials and what they were measured for.

Everything in a report is recomputed from these; study/storage.py keeps them, nothing else does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median
from typing import Annotated

from pydantic import Field

from tuner.ports import Config, ConnectTime, Failures, Latency
from tuner.records.blend import Blend

P99 = 0.99
SERVER_MEMORY = "server_pss_bytes"
"""Counter of a window: memory of the server's processes at its end."""
GENERATOR_BUSY = 0.90
"""Share of the load generator's CPUs. From there on goodput is a lower bound: the generator is measured."""


class Role(StrEnum):
    """Why a trial was made."""

    BASELINE = "control"
    SEARCH = "search"
    REPEAT = "repeat"
    RACE = "race"
    ABLATION = "ablation"
    CONFIRM = "confirm"
    LATENCY = "latency"
    """At a fixed rate: its response times count, its goodput says nothing."""
    ROBUSTNESS = "other loads"
    """Under check loads, which nothing was tuned on, one after the other."""
    SWEEP = "sweep"
    """With one parameter at a value whose response is measured; kept apart from the study's own trials."""
    CONTEST = "contest"
    """Against configurations of its own or of other studies; kept apart, too."""
    CURVE = "curve"
    """Under one of several numbers of connections; kept apart likewise."""

    @property
    def label(self) -> str:
        """Return the name that users see; the value is what studies keep."""
        return self.name.lower().replace("_", " ")

    @property
    def is_under_study_load(self) -> bool:
        """Whether its goodput is what the study's own load gets, and so belongs into the model."""
        return self not in {Role.LATENCY, Role.ROBUSTNESS, Role.CURVE}


class Metric(StrEnum):
    """What a study maximizes; of what it minimizes, the reciprocal."""

    GOODPUT = "goodput"
    PER_CPU = "goodput_per_cpu"
    """Correct responses per CPU second of the server, for where the load generator limits goodput."""
    CPU = "cpu_us_per_request"
    """At a fixed rate: correct responses per CPU second of the server, whatever it leaves idle."""
    LATENCY_P99 = "latency_p99_ms"
    """At a fixed rate: the reciprocal of the p99 in seconds."""
    MEMORY = "memory_mib"
    """At a fixed rate: the reciprocal of the server's memory in GiB."""

    @property
    def is_at_rate(self) -> bool:
        """Whether it is compared at a fixed rate, where all that keep up have the same goodput."""
        return self in {Metric.CPU, Metric.LATENCY_P99, Metric.MEMORY}


class State(StrEnum):
    """How a trial ended."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    """Stopped early because it was clearly worse; its windows count."""
    FAILED = "failed"
    """The configuration's fault; told to the optimizer as infeasible."""
    INVALID = "invalid"
    """The environment's fault, or cut off by an interruption; says nothing about the configuration."""


class Blame(StrEnum):
    """Whose fault a broken validity check is."""

    ENVIRONMENT = "environment"
    CONFIGURATION = "configuration"
    WARNING = "warning"


class Check(StrEnum):
    """What can be wrong with a window; `Verdict.check` holds the name."""

    GENERATOR = "generator"
    DURATION = "duration"
    SCHEDULE = "schedule"
    SATURATED = "generator saturated"
    STEAL = "steal"
    FOREIGN = "foreign CPU"
    QUOTA = "CPU quota"
    PORTS = "ports"
    MEMORY = "memory"
    BODY = "wrong body"
    ERRORS = "errors"
    EFFECTIVE = "not effective"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLoad:
    """A load that a configuration was not tuned on."""

    name: str
    """As reports show it: `400 connections`."""
    changes: str
    """What is other than in the study's load: `connections`, `keepalive`, `clients` or `requests`."""
    connections: int
    """Open connections of the load."""
    keepalive: bool
    """Whether connections are kept for the next request."""
    slow_clients: int = 0
    """Clients beside the load that send their header a byte a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One validity check that did not pass."""

    check: Annotated[str, Field(alias="gate")]
    """Name of the check."""
    blame: Blame
    """Whether the configuration or the environment is the cause."""
    reason: str
    """What was found, with its figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One counted slice of load."""

    started_s: float
    """Seconds since the epoch."""
    duration_s: float
    """Its length."""
    correct: int
    """Responses with the expected status and body."""
    failures: Failures
    """Requests that failed, by kind."""
    bytes: int = 0
    """Bytes received, as the load generator counts them."""
    latency: Latency | None = None
    """Response times; None where the load generator does not say."""
    connect_time: ConnectTime | None = None
    """Time to connect; None where the load generator does not say."""
    generator_cpu: float = 0.0
    """CPU seconds of the generator per second and per CPU it may use, 0 to 1."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Differences of the target's counters over the window (measure/counters.py names them)."""
    verdicts: tuple[Verdict, ...] = ()
    """The validity checks that it did not pass; empty for one that counts."""
    sent: tuple[int, ...] = field(default=(), compare=False)
    """Of a mix, how many requests of each kind were sent; empty where the load generator does not say."""
    check_load: Annotated[str, Field(alias="situation")] = ""
    """Name of the check load that it was measured under; empty under the study's own load."""
    parts: Mapping[str, "Window"] = field(default_factory=dict)
    """Of a study with several loads: load → its own window, all next to each other. This one has their sums,
    and counts when all of them do. Empty for one load."""
    metric: Metric = field(default=Metric.GOODPUT, compare=False)
    """What the study maximizes, by which its storage reads all windows; not kept with them."""
    blend: Blend | None = field(default=None, compare=False)
    """What counts of several loads, in the same way; None for one load."""

    @property
    def goodput_rps(self) -> float:
        """Return the correct responses per second."""
        return self.correct / self.duration_s if self.duration_s > 0 else 0.0

    @property
    def log_goodput(self) -> float:
        """Natural logarithm of goodput; a window without any correct response counts as 0.01/s."""
        return math.log(max(self.goodput_rps, 0.01))

    @property
    def log_value(self) -> float:
        """Natural logarithm of what the study maximizes, bounded like `log_goodput`."""
        if self.blend is not None and self.parts:
            return self.blend.combine({name: part.log_goodput for name, part in self.parts.items()})
        if self.metric is Metric.GOODPUT:
            return self.log_goodput
        return math.log(max(self._compared, 0.01))

    @property
    def _compared(self) -> float:
        """What a metric other than goodput compares; 0 where it was not measured."""
        if self.metric is Metric.LATENCY_P99:
            p99_ms = None if self.latency is None else self.latency.quantiles_ms.get(P99)
            return 1000 / p99_ms if p99_ms else 0.0
        if self.metric is Metric.MEMORY:
            return 1024 / self.memory_mib if self.memory_mib else 0.0
        cost_s = self.counters.get("server_cpu_s", 0.0) if self.metric is Metric.CPU else self.server_cost_s
        return self.correct / cost_s if cost_s else 0.0

    @property
    def server_cost_s(self) -> float:
        """CPU seconds that the server's work took, interrupts included.

        A generator that was not busy waited: then the server was the limit, be it asleep, and what it left
        idle of its CPUs could not have served anybody. So that time is charged to it, or a configuration
        that only waits would seem cheap.
        """
        counters = self.counters
        spent_s = counters.get("server_cpu_s", 0.0) + counters.get("server_interrupts_s", 0.0)
        capacity_s = counters.get("server_cpus", 1.0) * self.duration_s
        waited = max(0.0, GENERATOR_BUSY - self.generator_cpu)
        return max(spent_s, min(spent_s + waited * capacity_s, capacity_s))

    @property
    def memory_mib(self) -> float | None:
        """Memory of the server's processes at the end, in MiB; None where it could not be read."""
        size_bytes = self.counters.get(SERVER_MEMORY)
        return None if size_bytes is None else size_bytes / 2**20

    @property
    def failure_rate(self) -> float:
        """Failed requests per request."""
        asked = self.correct + self.failures.total
        return self.failures.total / asked if asked else 1.0

    @property
    def is_valid(self) -> bool:
        """Whether the environment let the window be what it should be."""
        return not any(verdict.blame is Blame.ENVIRONMENT for verdict in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the seconds of one trial went."""

    suggest_s: float = 0.0
    """Choosing the configuration."""
    deploy_s: float = 0.0
    """Writing, checking and starting it, until it answered."""
    load_s: float = 0.0
    """Warm-up and windows."""
    store_s: float = 0.0
    """Slowest single write of a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a trial gave no measurement."""

    kind: str
    """Class of the failure, as errors.TrialFailed.kind names it."""
    reason: str
    """What happened, in one or two sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One fresh start of the server with one configuration, measured: the replicate of all statistics."""

    number: int
    """Number of the trial, from 0."""
    role: Role
    """What it was made for: calibration, search, confirmation …"""
    config: Config
    """Value of every setting."""
    state: State
    """running, complete, pruned or failed."""
    started_s: float
    """Seconds since the epoch."""
    windows: tuple[Window, ...] = ()
    """What was counted, in order, windows that are not valid included."""
    failure: Failure | None = None
    """Why it gave no measurement; None when it gave one."""
    arm: str = ""
    """Which side of a comparison it is: default, winner, or a configuration's name in a race."""
    block: int | None = None
    """Number of the block or pair it belongs to."""
    steady: bool = True
    """False when the warm-up found no steady state; its variance is inflated."""
    timing: Timing = Timing()
    """Where its seconds went."""
    session: str = ""
    """Which run of the tuner made it."""
    host: str = ""
    """On which of several hosts it was made; empty in a study of one."""
    valid_windows: tuple[Window, ...] = field(init=False, repr=False, compare=False)
    """Those that the environment let be what they should be."""

    def __post_init__(self) -> None:
        valid = tuple(window for window in self.windows if window.is_valid)
        object.__setattr__(self, "valid_windows", valid)

    @property
    def log_goodput(self) -> float | None:
        """Mean of the logarithms over valid windows (median from five); None without any."""
        return _center([window.log_goodput for window in self.valid_windows])

    @property
    def log_value(self) -> float | None:
        """The same of what the study maximizes."""
        return _center([window.log_value for window in self.valid_windows])

    @property
    def has_collapsed(self) -> bool:
        """Whether most of what was asked of it failed: what it served then says little of the host."""
        failed = sum(window.failures.total for window in self.valid_windows)
        correct = sum(window.correct for window in self.valid_windows)
        return not correct or failed > correct

    @property
    def counts(self) -> bool:
        """Whether its windows are a measurement of its configuration."""
        return self.state in {State.COMPLETE, State.PRUNED} and bool(self.valid_windows)


def _center(logs: Sequence[float]) -> float | None:
    if not logs:
        return None
    if len(logs) < 5:  # noqa: PLR2004 - measurement protocol: mean of logs below five windows
        return sum(sorted(logs)) / len(logs)
    return median(logs)


def measured_by(trial: Trial, metric: Metric) -> Trial:
    """Return a trial whose windows are judged by another metric."""
    return replace(trial, windows=tuple(replace(window, metric=metric) for window in trial.windows))


def under_load(trial: Trial, name: str) -> Trial:
    """Return what a trial gave under one of several loads, in those windows that count."""
    return replace(trial, windows=tuple(window.parts[name] for window in trial.valid_windows if window.parts))


def name_loads(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the names of the loads of a study with several of them; none for one load."""
    parts = (window.parts for trial in trials for window in trial.windows if window.parts)
    return tuple(next(parts, {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The machine and the programs of a study; it is continued only where they agree."""

    host: str
    """Name of the machine."""
    kernel: str
    """Release of its Linux kernel."""
    cpu: str
    """Model of its processor."""
    cores: int
    """Logical CPUs that may be used at once."""
    memory_mib: int
    """Memory that may be used, in MiB."""
    servers: Mapping[str, str]
    """Server name → version."""
    generator: str
    """Name and version of the load generator."""
    co_located: bool
    """Whether the load generator ran on the target itself."""
    server_cpus: tuple[int, ...]
    """CPUs of the server."""
    generator_cpus: tuple[int, ...]
    """CPUs of the load generator."""
    limits: str = ""
    """What may be used of the machine where that is not all: CPUs, CPU quota, memory."""


def is_censored(windows: Sequence[Window]) -> bool:
    """Return whether goodput is only a lower bound: in most windows the generator could not send more."""
    full = sum(any(verdict.check == Check.SATURATED for verdict in window.verdicts) for window in windows)
    return 2 * full > len(windows)
