"""Campaigns on a host that only exists as numbers: everything else, storage and space included, is real."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import optuna

from tests.unit.simulated_study import FINGERPRINT
from tuner.adapters.loads.wrk import Wrk
from tuner.campaign.experiment import Experiment, Seat
from tuner.campaign.lost_trials import LOST
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import UNKNOWN, Leader
from tuner.campaign.trial import TrialOutcome, TrialTask
from tuner.campaign.warm_start import read_earlier
from tuner.errors import TargetError
from tuner.hosts.placement import place
from tuner.measure.trial import NO_JUDGES, Judges, Outcome
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.replay import distributions
from tuner.ports import Config, Failures, Latency, Scalar
from tuner.records import (
    SERVER_MEMORY,
    Blame,
    CheckLoad,
    Failure,
    Role,
    State,
    Timing,
    Trial,
    Verdict,
    Window,
)
from tuner.space import Space, SpaceFacts, load_space
from tuner.study import Study, load_study
from tuner.study.objective import SERVER_CPU, slacks
from tuner.study.open_storage import open_storage
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage
from tuner.testing.fakes import MemoryHost

BASE_RPS = 20_000.0
DEPLOY_S = 0.2
TUNED = ("worker_connections", "multi_accept", "sendfile", "open_file_cache", "access_log_buffer")
STUDY = """\
study: simulated
servers: [nginx]
space: [nginx, {only: [%s]}]
load: {generator: wrk, connections: 100}
budget: {preset: quick}
optimizer: %s
seed: %d
"""
SMALL_PLAN = Plan(
    minutes=60, trials=10, window_s=1, warmup_s=1, warmup_max_s=2, windows=(1, 2),
    calibration_trials=3, race_s=30, ablation_s=30, pairs=4, extend_to=4,
)  # fmt: skip


@cache
def space_of(*only: str) -> Space:
    """Load nginx's space, narrowed."""
    facts = SpaceFacts(
        names={
            "cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
        },
        versions={"nginx": (1, 22, 1)},
    )  # fmt: skip
    return load_space(["nginx", {"only": list(only)}] if only else ["nginx"], facts=facts, base=Path("/"))


def without_hints(space: Space) -> Space:
    """Return a space in which nobody knows anything beforehand."""
    return replace(space, parameters=tuple(replace(each, hint=None) for each in space.parameters))


SIX = without_hints(space_of(*TUNED, "tcp_nodelay"))
"""A space of six parameters of which no expert knows anything."""
SIX_CHANGED = SIX.complete(
    {
        "worker_connections": 2000, "multi_accept": True, "sendfile": False, "open_file_cache": 2000,
        "access_log_buffer": 64, "tcp_nodelay": False,
    }
)  # fmt: skip


def write_study(folder: Path, *, seed: int = 1, optimizer: str = "tpe", more: str = "") -> Study:
    """Write a study file and load it."""
    path = folder / "simulated.yaml"
    path.write_text(STUDY % (", ".join(TUNED), optimizer, seed) + more)
    return load_study(path)


def make_setup(
    settings: Study, space: Space, fixed_rate: Load | None = None, *, cpus: Collection[int] = (0, 1)
) -> Setup:
    """Make a setup for a host that is never asked for anything."""
    nothing: Any = SimpleNamespace()
    load = Load(generator=Wrk(), shape=settings.load, interrupt_threads=(), rate_rps=settings.load.rate_rps)
    return Setup(
        settings=settings, host=MemoryHost(), servers={}, facts={}, space=space, space_facts={}, load=load,
        target=nothing, placement=place(cpus), fingerprint=FINGERPRINT, fixed_rate=fixed_rate,
    )  # fmt: skip


class SimulatedClock:
    """Time that passes only as it is used."""

    def __init__(self) -> None:
        self.now_s = 1_767_225_600.0

    def time(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def cached_files_win(config: Config) -> float:
    """Log speedup where one setting is worth 20 %, one costs 10 % and the others do nothing."""
    return (0.18 if config["open_file_cache"] else 0.0) + (0.0 if config["sendfile"] else -0.1)


def nothing_matters(_config: Config) -> float:
    return 0.0


def nothing_helps(config: Config) -> float:
    """Whatever is changed costs something."""
    return -0.05 * len(space_of(*TUNED).changes(config))


@dataclass(kw_only=True)
class SimulatedHost:
    """What is true of the machine and of every configuration on it, and when it is cut off."""

    worth: Callable[[Config], float] = cached_files_win
    fault: Callable[[Config], Failure | None] = lambda _: None
    """Why a configuration gives no measurement."""
    failure_rate: Callable[[Config], float] = lambda _: 0.0
    level: Callable[[float], float] = lambda _: 0.0
    """Log speed of the host at a time."""
    cpu_us: Callable[[Config], float] = lambda _: 40.0
    """CPU time of the server per request."""
    memory_mib: Callable[[Config], float] | None = None
    """Memory of the server; None where it cannot be read."""
    cpus: Collection[int] = (0, 1)
    most_rps: float | None = None
    """What the load generator can send at the most; then the server's CPU time is what its speed says."""
    worth_in: Callable[[Config, CheckLoad], float] | None = None
    """Log speedup under a check load, where it is another than under the study's load."""
    failure_rate_in: Callable[[Config, CheckLoad], float] = lambda *_: 0.0
    reports_latency: bool = True
    reports_cpu: bool = True
    is_spoiled: Callable[[float], bool] = lambda _: False
    """Whether something else spoils a window at a time."""
    sigma_trial: float = 0.006
    sigma_window: float = 0.01
    suggest_s: float = 0.0
    """What every suggestion takes, however busy the machine is on which this runs."""
    busy_s: float = math.inf
    """How long it takes until the host is quiet."""
    seed: int = 1
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    cut_at: int | None = None
    """Number of the step at which everything stops."""
    steps: int = 0
    rng: Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)  # noqa: S311 - no secret

    def step(self) -> None:
        """Go on, unless this is where the run is cut off."""
        self.steps += 1
        if self.steps - 1 == self.cut_at:
            raise KeyboardInterrupt

    def suggest(self, role: Role) -> float:
        """Let the time pass that it takes to choose a configuration; return the seconds."""
        seconds = self.suggest_s if role is Role.SEARCH else 0.0
        self.clock.sleep(seconds)
        return seconds

    def deploy(self, _config: Config) -> float:
        """Start the server; return the seconds that it took."""
        self.clock.sleep(DEPLOY_S)
        return DEPLOY_S

    def log_level(self, _config: Config, begun_s: float, _duration_s: float) -> float:
        """Return what time adds to log goodput in a window."""
        return self.level(begun_s)

    def failed(self, config: Config, asked: float) -> int:
        """Return how many requests fail."""
        return round(asked * self.failure_rate(config))

    def spoils(self, begun_s: float, _duration_s: float) -> bool:
        """Return whether something else spoils a window."""
        return self.is_spoiled(begun_s)

    def window(self, config: Config, own: float, duration_s: float, rate_rps: float | None = None) -> Window:
        """Load the server for so long."""
        begun_s = self.clock.time()
        self.clock.sleep(duration_s)
        log = self.log_level(config, begun_s, duration_s) + own + self.rng.gauss(0.0, self.sigma_window)
        capacity = BASE_RPS * math.exp(log)
        asked = (capacity if rate_rps is None else min(rate_rps, capacity)) * duration_s
        generator_cpu = 0.7
        if self.most_rps is not None:
            asked = min(asked, self.most_rps * duration_s)
            generator_cpu = asked / duration_s / self.most_rps
        failed = self.failed(config, asked)
        busy = 1.0 if rate_rps is None else rate_rps / capacity
        cpu_s = asked * self.cpu_us(config) * math.exp(self.rng.gauss(0.0, 0.02)) / 1e6
        p99_ms = 2.0 * busy * BASE_RPS / capacity
        spoiled = Verdict(check="foreign CPU", blame=Blame.ENVIRONMENT, reason="a compiler ran.")
        return Window(
            started_s=begun_s, duration_s=duration_s, correct=round(asked) - failed,
            failures=Failures(status=failed), bytes=round(asked) * 850,
            latency=Latency(
                quantiles_ms={0.5: p99_ms / 4, 0.99: p99_ms}, samples=round(asked),
                histogram={p99_ms / 2: round(0.98 * asked), p99_ms: round(asked) - round(0.98 * asked)},
            ) if self.reports_latency else None,
            generator_cpu=generator_cpu,
            counters=self._counters(asked / capacity, cpu_s, duration_s) | self._memory(config),
            verdicts=(spoiled,) if self.spoils(begun_s, duration_s) else (),
        )  # fmt: skip

    def _counters(self, busy_s: float, cpu_s: float, duration_s: float) -> dict[str, float]:
        if self.most_rps is None:
            return {SERVER_CPU: round(cpu_s, 4)}
        idle = {"server_cpus": 1.0, "elapsed_s": duration_s, "server_idle_s": max(0.0, duration_s - busy_s)}
        return idle | ({SERVER_CPU: busy_s} if self.reports_cpu else {})

    def _memory(self, config: Config) -> dict[str, float]:
        if self.memory_mib is None:
            return {}
        return {SERVER_MEMORY: self.memory_mib(config) * 2**20 * math.exp(self.rng.gauss(0.0, 0.01))}

    def window_in(self, check_load: CheckLoad, config: Config, luck: float, duration_s: float) -> Window:
        """Load the server as nothing was tuned."""
        worth = self.worth(config) if self.worth_in is None else self.worth_in(config, check_load)
        window = self.window(config, worth + luck, duration_s)
        asked = window.correct + window.failures.total
        failed = round(asked * self.failure_rate_in(config, check_load))
        return replace(
            window, correct=asked - failed, failures=Failures(read=failed), check_load=check_load.name
        )


@dataclass(frozen=True, kw_only=True)
class SimulatedExecutor:
    """Runs trials as `tuner.campaign.trial.InProcessExecutor` does, on a simulated host."""

    host: SimulatedHost

    def measure(self, task: TrialTask, keep: Callable[[Window], None]) -> TrialOutcome:
        deploy_s = self.host.deploy(task.config)
        loading_s = self.host.clock.monotonic()
        failure = self.host.fault(task.config)
        return TrialOutcome(
            outcome=None if failure else self._load(task, keep), failure=failure, deploy_s=deploy_s,
            load_s=self.host.clock.monotonic() - loading_s, retries=task.retries,
        )  # fmt: skip

    def wait_until_quiet(self, most_s: float) -> bool:
        self.host.clock.sleep(min(most_s, self.host.busy_s))
        return True

    def _load(self, task: TrialTask, keep: Callable[[Window], None]) -> Outcome:
        host, plan, rate_rps = self.host, task.plan, task.load.rate_rps
        luck = host.rng.gauss(0.0, host.sigma_trial)
        for check_load in task.check_loads:
            keep(host.window_in(check_load, task.config, luck, task.check_s))
        if task.check_loads:
            return Outcome(steady=True, pruned=None)
        own = host.worth(task.config) + luck
        warm_up = host.window(task.config, own, plan.warmup_s, rate_rps)
        if (reason := task.judges.judge_warm_up(warm_up)) is not None:
            keep(warm_up)
            return Outcome(steady=True, pruned=reason)
        valid: list[Window] = []
        while len(valid) < plan.windows[1]:
            valid.append(host.window(task.config, own, plan.window_s, rate_rps))
            keep(valid[-1])
            reason = task.judges.prune(valid) if plan.windows[0] <= len(valid) < plan.windows[1] else None
            if reason is not None:
                return Outcome(steady=True, pruned=reason)
        return Outcome(steady=True, pruned=None)


@dataclass(kw_only=True)
class SimulatedRunner:
    """Makes trials as `tuner.campaign.trial_runner.TrialRunner` does, on a simulated host."""

    host: SimulatedHost
    setup: Setup
    plan: Plan
    storage: Storage
    session: str
    host_name: str = ""
    elsewhere: Callable[[], AbstractContextManager[None]] = nullcontext
    """Lets others decide while a trial is made."""
    retries: RetryBudget = field(default_factory=RetryBudget)
    openings: list[Opening] = field(default_factory=list)

    def wait_until_quiet(self, most_s: float) -> bool:
        self.host.clock.sleep(min(most_s, self.host.busy_s))
        return True

    def sit_out_noise(self, waits: object) -> bool:  # noqa: ARG002 - nobody listens
        return self.wait_until_quiet(0.0)

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        value: Callable[[Trial], float | None] = lambda _: None,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
        baselines: Sequence[Trial] = (),
    ) -> Trial:
        self.openings.append(opening)
        plan = plan or self.plan
        dimensions = self.setup.space.dimensions
        self.host.step()
        suggest_s += self.host.suggest(opening.role)
        trial = self.storage.begin(
            opening, distributions=distributions(dimensions) if opening.point else {}, session=self.session,
            host=self.host_name,
        )  # fmt: skip
        try:
            with self.elsewhere():
                self.host.step()
                deploy_s = self.host.deploy(opening.config)
                loading_s = self.host.clock.monotonic()
                fault = self.host.fault(opening.config)
                if fault is None:
                    trial = self._measure(trial, judges, plan, (load or self.setup.load).rate_rps)
                else:
                    trial = replace(trial, state=State.FAILED, failure=fault)
                self.host.step()
                load_s = self.host.clock.monotonic() - loading_s
        except TargetError:
            lost = replace(trial, state=State.INVALID, failure=Failure(kind=LOST, reason="cut off"))
            self.storage.end(lost, log_ratio=None, slacks={})
            raise
        trial = replace(trial, timing=Timing(suggest_s=suggest_s, deploy_s=deploy_s, load_s=load_s))
        self.storage.end(
            trial,
            log_ratio=value(trial) if trial.counts else None,
            slacks=slacks(trial, self.setup.settings.constraints, baselines),
        )
        return trial

    def make_under(self, check_loads: Sequence[CheckLoad], opening: Opening, *, window_s: float) -> Trial:
        self.openings.append(opening)
        host, storage = self.host, self.storage
        host.step()
        trial = storage.begin(opening, distributions={}, session=self.session, host=self.host_name)
        with self.elsewhere():
            host.step()
            host.clock.sleep(DEPLOY_S)
            loading_s = host.clock.monotonic()
            fault = host.fault(opening.config)
            if fault is None:
                luck = host.rng.gauss(0.0, host.sigma_trial)
                for check_load in check_loads:
                    window = host.window_in(check_load, opening.config, luck, window_s)
                    trial = storage.keep_window(trial, window)
                    host.step()
                trial = replace(trial, state=State.COMPLETE)
            else:
                trial = replace(trial, state=State.FAILED, failure=fault)
        load_s = host.clock.monotonic() - loading_s
        trial = replace(trial, timing=Timing(deploy_s=DEPLOY_S, load_s=load_s))
        storage.end(trial, log_ratio=0.0, slacks={})
        return trial

    def _measure(self, trial: Trial, judges: Judges, plan: Plan, rate_rps: float | None) -> Trial:
        own = self.host.worth(trial.config) + self.host.rng.gauss(0.0, self.host.sigma_trial)
        warm_up = self.host.window(trial.config, own, plan.warmup_s, rate_rps)
        reason = judges.judge_warm_up(warm_up)
        if reason is not None:
            return self._pruned(self.storage.keep_window(trial, warm_up), reason)
        self.retries.begin_trial()
        while len(trial.valid_windows) < plan.windows[1]:
            window = self.host.window(trial.config, own, plan.window_s, rate_rps)
            trial = self.storage.keep_window(trial, window)
            self.host.step()
            self.retries.begin_window()
            again = self.retries.allows_another(window.verdicts, at_s=self.host.clock.monotonic())
            if not window.is_valid and not again:
                break
            seen = trial.valid_windows
            reason = judges.prune(seen) if plan.windows[0] <= len(seen) < plan.windows[1] else None
            if reason is not None:
                return self._pruned(trial, reason)
        if not trial.valid_windows:
            failure = Failure(kind="environment", reason="every window was spoiled")
            return replace(trial, state=State.INVALID, failure=failure)
        return replace(trial, state=State.COMPLETE)

    def _pruned(self, trial: Trial, reason: str) -> Trial:
        return replace(trial, state=State.PRUNED, failure=Failure(kind="pruned", reason=reason))


class Log:
    """Writes down what a campaign tells."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []
        self.ended: list[Trial] = []
        self.incumbents: list[Mapping[str, tuple[Scalar, Scalar]]] = []

    def stage(self, name: str, done: int, total: int) -> None:
        assert 0 <= done <= total or total == UNKNOWN
        if not self.stages or self.stages[-1] != name:
            self.stages.append(name)

    def trial_begins(self, role: Role, label: str) -> None:
        assert role
        assert label

    def trial_ends(self, trial: Trial, speedup: object) -> None:
        assert trial.state is not State.RUNNING
        assert (speedup is not None) == (trial.counts and trial.role.is_under_study_load)
        self.ended.append(trial)

    def leaders(self, leaders: Sequence[Leader]) -> None:
        assert all(leader.trials for leader in leaders)
        if leaders and self.incumbents[-1:] != [leaders[0].changes]:
            self.incumbents.append(leaders[0].changes)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def waits(self, seconds: float) -> None:
        assert seconds > 0

    def time_left(self, seconds: float) -> None:
        assert seconds >= 0


def open_on_disk(settings: Study, clock: SimulatedClock) -> Storage:
    settings.folder.mkdir(exist_ok=True)
    return open_storage(settings.storage_url, settings.name, clock=clock)


def open_in_memory(clock: SimulatedClock) -> Storage:
    """Keep a study in memory: the same code, without a disk."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, study_name="simulated", direction="maximize")
    return Storage(storage, study, "memory", clock=clock)


def make_campaign(  # noqa: PLR0913 - what a campaign is made of
    settings: Study,
    host: SimulatedHost,
    storage: Storage,
    *,
    plan: Plan = SMALL_PLAN,
    session: str = "first",
    space: Space | None = None,
    fixed_rate: Load | None = None,
    seat: Seat | None = None,
) -> Experiment:
    """Take up a study on a simulated host."""
    space = space or space_of(*TUNED)
    setup = make_setup(settings, space, fixed_rate, cpus=host.cpus)
    earlier = read_earlier(settings, space)
    optimizer = make_optimizer(settings.optimizer, space.encode(space.default()), earlier=earlier)
    campaign = Experiment(
        setup, plan, storage, optimizer, Log(), session=session, seat=seat, clock=host.clock
    )
    runner: Any = SimulatedRunner(
        host=host, setup=campaign.setup, plan=plan, storage=storage, session=session, host_name=campaign.host,
        elsewhere=nullcontext if seat is None else seat.shared.turn.others_turn,
    )  # fmt: skip
    campaign.runner = runner
    return campaign
