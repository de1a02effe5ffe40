"""Everything that is shown, exported or printed of a study, recomputed from its storage."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Any

from tuner.campaign.stages.confirm import choose_bound, read_gain
from tuner.campaign.stages.fixed_rate import LatencyClaim, read_latency
from tuner.campaign.stages.robustness import read_robustness
from tuner.campaign.suggest import left_to_gain
from tuner.errors import UsageError
from tuner.explain.beliefs import TOLD
from tuner.explain.cache import explain_study
from tuner.explain.explanation import Depth, Explanation
from tuner.explain.study import explain_parameter
from tuner.ports import Config, ConnectTime, Latency, Scalar
from tuner.records import Fingerprint, Metric, Role, State, Trial, Window, is_censored, under_load
from tuner.records.blend import Across, AcrossHosts, Hosts
from tuner.records.latency import merge
from tuner.report.conclusions import conclude
from tuner.report.fidelity import Fidelity, read_fidelity
from tuner.report.reasons import explain_gain, explain_no_winner, explain_spoiled
from tuner.report.wording import capitalize
from tuner.space import Space
from tuner.space.rules import Growth
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.confirmation.robustness import Robustness
from tuner.statistics.feasibility import Assessment, Feasibility, judge_feasibility
from tuner.statistics.mechanism import Mechanism, compare_mechanisms
from tuner.statistics.noise import Noise
from tuner.statistics.pareto import FrontChoice, find_front
from tuner.statistics.posterior import estimate_gain
from tuner.statistics.ranking import (
    DEFAULT_ARM,
    WINNER_ARM,
    Ranking,
    as_baselines,
    config_key,
    follow_incumbent,
    rank,
)
from tuner.study import Study
from tuner.study.facts import (
    CONFIRMATION,
    EXPECTED_GAINS,
    FINGERPRINT,
    MOVED_LOAD,
    PRESET,
    REJECTED,
    TOO_NOISY,
    VERDICT,
    Confirmation,
    Rejection,
)
from tuner.study.objective import memory
from tuner.study.storage import Storage

P99 = 0.99
SHOWN_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": P99}
NO_CANDIDATE = "nothing better"
"""Verdict of a study in which no configuration was worth confirming; "not proven" is of one that was."""
REJECTED_CANDIDATE = "rejected"
"""The same where one was better, and must not be used."""
TOO_NOISY_TO_CONFIRM = "the host was too noisy to confirm it"
"""Why the best of a study that noise ended early is not shipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What the trials of one configuration gave together."""

    config: Config
    """Value of every setting."""
    goodput_rps: float
    """Geometric mean over its trials: where they are pairs, two of them have the gain as their quotient."""
    latency_p99_ms: float | None
    """99th percentile of the response times; None where it was not measured."""
    latency_corrected: bool
    """Whether it counts the time that requests waited to be sent."""
    failures: int
    """Failed requests of all its windows."""
    requests: int
    """Requests of all its windows, failed ones included."""
    trials: int
    """Trials that gave a measurement."""
    is_lower_bound: bool = False
    """Whether the load generator was the limit in most of the windows."""
    requests_per_cpu_s: float | None = None
    """Correct responses per CPU second of the server; None where that is not what the study maximizes."""
    connect_time: ConnectTime | None = None
    """Of all connections; None where the load generator does not say, or keeps its connections."""
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    """Response times of all windows in milliseconds: p50, p90, p99 and max, those that are known."""
    window_s: float = 0.0
    """Median length of its windows."""
    failed_trials: int = 0
    """Besides `trials`, those that gave no measurement by its own fault."""
    memory_mib: float | None = None
    """Memory of the server's processes at the end of windows, geometric mean over its trials; None where it
    could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Default and winner under one of several loads, or on one of several hosts."""

    name: str
    """Name of the load or the host, as the study file gives it."""
    default: Arm
    """The default there."""
    winner: Arm | None
    """The winner there; None until one is confirmed."""
    gain: Gain | None
    """Ratio of the winner to the default there; None without a winner."""
    weight: float = 0.0
    """Share of a load in what counts together."""
    workload: str = ""
    """What a load sends, in words."""
    is_worst: bool = False
    """Whether the winner gives least on this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best that a finished study without a winner has found."""

    config: Config
    """Every setting of it."""
    speedup: Speedup
    """As all trials estimate it; no pairs confirmed it."""
    reason: str
    """Why it is not shipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two configurations measured in pairs; the gain is of the second over the first."""

    first: Arm
    """The first configuration, as its trials measured it."""
    second: Arm
    """The second configuration, likewise."""
    gain: Gain
    """Ratio of the second to the first, with its 95 % interval."""
    reason: str = ""
    """Why the verdict is not "improved"; empty when it is."""
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each side that has less capacity than the default: first or second → in what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One study as it stands."""

    study: str
    """Name of the study."""
    state: str
    """running, stopped or finished."""
    stop_reason: str
    """Why it ended; empty while it has not."""
    preset: str
    """quick, standard or thorough."""
    created: str
    """Date and time at which it began, in UTC."""
    version: str
    """Version of tuner that began it."""
    workload: str
    """What the load generator sends, in words."""
    objective: str
    """What is maximized, as the study file says it."""
    constraints: tuple[str, ...]
    """The bounds of the study, as its file says them."""
    fingerprint: Fingerprint
    """The machine and the programs that it was measured on."""
    space: Space
    """What is tuned, with ranges, defaults and reasons."""
    trials: tuple[Trial, ...]
    """Every trial, in the order in which they began."""
    noise: Noise
    """How much trials of one configuration scatter."""
    speedups: Mapping[int, Speedup]
    """Trial number → its metric relative to the baseline at that time."""
    default: Arm
    """The default (in managed mode the current configuration), over all its trials that are compared."""
    incumbent: tuple[Config, Speedup] | None
    """Best feasible configuration so far by posterior mean."""
    winner: Arm | None
    """The confirmed configuration; None until the confirmation is complete."""
    gain: Gain | None
    """Ratio of the winner to the default, with its 95 % interval; None until it is confirmed."""
    changes: Mapping[str, tuple[Scalar, Scalar]]
    """Of the winner, or of the incumbent before: parameter → default and value."""
    explanation: Explanation | None
    """Effect of each setting, and of others; None where nobody asked for it."""
    mechanisms: tuple[Mechanism, ...]
    """Counters of the machine that differ between default and winner."""
    timing: Mapping[str, float]
    """Seconds spent in all, under load, on deploying and on suggesting."""
    metric: Metric = Metric.GOODPUT
    """What is maximized: where the load generator is the limit, not goodput."""
    latency: LatencyClaim | None = None
    """Response times at a fixed rate; None when they were not measured."""
    rejections: tuple[Rejection, ...] = ()
    """Finalists that were rejected, in order."""
    found: Found | None = None
    """What was found and is not shipped, of a finished study without a winner; None where nothing was."""
    robustness: tuple[Robustness, ...] = ()
    """What candidates gave under loads that nothing was tuned on, in the order in which they came."""
    by_load: tuple[Sides, ...] = ()
    """Both sides under each of several loads; empty for one."""
    across: str = ""
    """What counts of them together; empty for one load."""
    by_host: tuple[Sides, ...] = ()
    """Both sides on each of several hosts, for all of which the winner is to hold; empty for one."""
    across_hosts: str = ""
    """What counts of them together; empty for one host."""
    requests_total: int | None = None
    """Requests after which each window ended; None for windows by time."""
    cost: str | None = None
    """The metric that is minimized beside goodput."""
    front: tuple[FrontChoice, ...] = ()
    """What nobody beats in both, and the winner; fastest first, numbered from 1. Empty without a cost."""
    climb: tuple[tuple[int, float], ...] = ()
    """Trial number and the speedup of the incumbent after it."""
    reason: str = ""
    """Why a finished study has no proven gain; empty when it has, and before it is finished."""
    assessments: tuple[Assessment, ...] = ()
    """What is known of the winner under every constraint."""
    expected_gain: float | None = None
    """What another configuration promises, as a share; None where no model was asked."""
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)
    """Load → how well its mix of requests was sent; only mixes of which requests were counted."""

    def is_winner(self, config: Config) -> bool:
        """Return whether a configuration is the winner."""
        return self.winner is not None and dict(config) == dict(self.winner.config)

    @property
    def side(self) -> str:
        """Return what to call the side that was held against the default: what is not proven won nothing."""
        is_winner = self.found is None and (self.gain is None or self.gain.is_proven)
        return "winner" if is_winner else "candidate"

    def show_changes(self, config: Config) -> list[str]:
        """Return what a configuration changes, each as name and value."""
        changes = self.space.changes(config)
        return [f"{name} {self.space.show(name, value)}" for name, (_, value) in changes.items()]

    @property
    def verdict(self) -> str | None:
        """Return what the pairs gave, or that there was nothing to be paired; None before the end."""
        if self.gain is not None:
            return self.gain.verdict
        if self.state != "finished":
            return None
        if self.is_too_noisy:
            return "not proven"
        return NO_CANDIDATE if self.found is None else REJECTED_CANDIDATE

    @property
    def is_too_noisy(self) -> bool:
        """Return whether the study ended early, because the host was too noisy."""
        return self.stop_reason.startswith(TOO_NOISY)

    @property
    def shipped(self) -> Mapping[str, tuple[Scalar, Scalar]]:
        """Return what would be written of the winner, or of the incumbent: setting → default and value."""
        config = self.chosen
        return self.space.shipped(config) if config is not None else {}

    @property
    def chosen(self) -> Config | None:
        """Return the winner's configuration, or what was found; before the end that of the incumbent."""
        if self.winner is not None:
            return self.winner.config
        if self.found is not None:
            return self.found.config
        if self.incumbent is None or self.state == "finished":
            return None
        return self.incumbent[0]

    def look_into(self, name: str) -> Depth:
        """Return everything that is known of one parameter. Raises UsageError for an unknown name."""
        if self.explanation is None:
            raise UsageError(f"{self.study}: to look into {name}, read the study with an explanation.")
        return explain_parameter(self.space, self.trials, self.chosen, name, self.explanation)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return a sentence for everything in which the winner has less capacity than the default."""
        return self.space.lacks(self.winner.config) if self.winner is not None else ()

    @property
    def grows(self) -> tuple[Growth, ...]:
        """Return every server that takes more than twice the default's memory."""
        return self.space.grows(self.chosen) if self.chosen is not None else ()

    @property
    def winner_elsewhere(self) -> Robustness | None:
        """Return what the winner gave in the robustness check; None without one."""
        found = [each for each in self.robustness if self.is_winner(each.config)]
        return found[-1] if found else None

    @property
    def pair_ratios(self) -> Mapping[int, float]:
        """Return the winner's metric relative to the default's in every complete pair, by block."""
        sides: dict[int, dict[str, float]] = {}
        for trial in _of_finalist(self.trials, None if self.winner is None else self.winner.config):
            level = trial.log_value
            if trial.counts and trial.block is not None and level is not None:
                sides.setdefault(trial.block, {})[trial.arm] = level
        return {
            block: math.exp(side[WINNER_ARM] - side[DEFAULT_ARM])
            for block, side in sorted(sides.items())
            if {WINNER_ARM, DEFAULT_ARM} <= side.keys()
        }

    @property
    def is_held_back(self) -> bool:
        """Whether the winner has less capacity than the default, and nobody has allowed that."""
        return bool(self.lacks) and not self.space.allows_less


def summarize(
    settings: Study, space: Space, storage: Storage, *, running: bool, version: str,
    with_explanation: bool = True,
) -> Summary:  # fmt: skip
    """Recompute everything from the storage."""
    trials = storage.trials()
    fingerprint = storage.recall(FINGERPRINT)
    if fingerprint is None:
        raise UsageError(f"{settings.name}: this study was never begun. Start it with `tuner run`.")
    moved = storage.recall(MOVED_LOAD)
    if moved is not None:
        fingerprint = replace(fingerprint, server_cpus=moved.server_cpus, generator_cpus=moved.generator_cpus)
    default = space.default()
    ranking = rank(space, trials, settings.constraints, storage.hosts)
    gain = read_gain(storage, trials, default, settings.constraints)
    planned = storage.recall(CONFIRMATION)
    winner_config = planned.config if planned is not None and gain is not None else None
    finished, expected = storage.recall(VERDICT), storage.recall(EXPECTED_GAINS)
    if finished and running and finished.startswith(TOO_NOISY):
        finished = None
    best, rejections = ranking.incumbent, storage.recall(REJECTED) or ()
    unshipped = _find_unshipped(finished, rejections, ranking) if finished and winner_config is None else None
    if gain is None and (shown := unshipped or best) is not None:
        estimate = estimate_gain(
            space, as_baselines(trials), shown.config, seed=settings.seed, hosts=storage.hosts, roles=TOLD
        )
        unshipped = unshipped and replace(unshipped, speedup=estimate or unshipped.speedup)
    else:
        estimate = None
    chosen = winner_config or (unshipped.config if unshipped else best.config if best else default)
    known = judge_feasibility(trials, settings.constraints, default, storage.hosts)
    confirmed = _of_whole_pairs(_of_finalist(trials, winner_config))
    of_default = [trial for trial in confirmed if trial.arm == DEFAULT_ARM] if gain else [
        trial for trial in as_baselines(trials) if trial.role is Role.BASELINE
    ]  # fmt: skip
    of_winner = [trial for trial in confirmed if trial.arm == WINNER_ARM]
    reason = _explain(gain, finished, known, planned, trials, ranking, storage)
    explanation = None
    if with_explanation:
        found = explain_study(
            settings, space, trials, chosen, metric=name_metric(storage.metric), gain=gain,
            is_finished=bool(finished),
        )  # fmt: skip
        # What was rejected is not to be proven by more pairs.
        found = replace(found, proof=None) if unshipped is not None else found
        is_shipped = unshipped is None and (not finished if gain is None else gain.is_proven)
        explanation = conclude(
            space, found, reason, is_shipped=is_shipped, rejected=[each.config for each in rejections]
        )
    return Summary(
        study=settings.name,
        state="finished" if finished else "running" if running else "stopped",
        stop_reason=finished or "",
        preset=storage.recall(PRESET) or settings.preset,
        created=f"{datetime.fromtimestamp(trials[0].started_s if trials else 0.0, UTC):%Y-%m-%d %H:%M} UTC",
        version=version,
        workload=settings.describe_load(),
        objective=str(settings.objective),
        constraints=tuple(str(constraint) for constraint in settings.constraints),
        fingerprint=fingerprint,
        space=space,
        trials=trials,
        noise=ranking.noise,
        speedups=ranking.speedups,
        default=gather_arm(default, of_default),
        incumbent=None if best is None else (best.config, estimate or best.posterior),
        winner=None if winner_config is None else gather_arm(winner_config, of_winner),
        gain=gain,
        changes=space.changes(chosen),
        explanation=explanation,
        mechanisms=compare_mechanisms(of_default, of_winner) if winner_config else (),
        timing=timing(trials),
        metric=storage.metric,
        latency=read_latency(storage, trials, default) if gain else None,
        rejections=rejections,
        found=unshipped,
        robustness=read_robustness(storage, trials, default),
        by_load=_sides_by_load(settings, (default, winner_config), (of_default, of_winner), gain),
        across=describe_across(settings),
        by_host=_sides_by_host(storage.hosts, (default, winner_config), (of_default, of_winner), gain),
        across_hosts=describe_hosts(storage.hosts),
        requests_total=None if settings.loads else settings.load.requests_total,
        cost=settings.objective.cost,
        front=find_front(trials, ranking, default, settings.objective.cost, winner=winner_config)
        if settings.objective.cost else (),
        climb=follow_incumbent(trials, ranking),
        reason=reason,
        assessments=known.assess(winner_config) if winner_config else (),
        expected_gain=left_to_gain(expected or ()),
        fidelity=read_fidelity(settings, trials),
    )  # fmt: skip


def _of_finalist(trials: Sequence[Trial], config: Config | None) -> Sequence[Trial]:
    """Return the pairs of one finalist: those that were rejected before have had pairs of their own."""
    pairs = [trial for trial in trials if trial.role is Role.CONFIRM]
    own = {
        (trial.host, trial.block) for trial in pairs
        if trial.arm == WINNER_ARM and config is not None and dict(trial.config) == dict(config)
    }  # fmt: skip
    return [trial for trial in pairs if (trial.host, trial.block) in own]


def _of_whole_pairs(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Leave out what was measured of a pair whose other side was not: the gain is without it, too."""
    sides = Counter(_pair_of(trial) for trial in trials if trial.counts)
    return [trial for trial in trials if not trial.counts or sides[_pair_of(trial)] > 1]


def _pair_of(trial: Trial) -> tuple[str, int | None, str]:
    return trial.host, trial.block, trial.session


def _find_unshipped(verdict: str, rejections: Sequence[Rejection], ranking: Ranking) -> Found | None:
    """Return the best of what was rejected, or could not be confirmed; None where nothing was better."""
    best = ranking.incumbent
    if verdict.startswith(TOO_NOISY) and best is not None and best.posterior.log_ratio > 0:
        configs = [dict(each.config) for each in rejections]
        if dict(best.config) not in configs:
            return Found(config=best.config, speedup=best.posterior, reason=TOO_NOISY_TO_CONFIRM)
    entries = {entry.key: entry for entry in ranking.entries}
    rejected = [
        Found(config=each.config, speedup=entries[key].posterior, reason=each.reason)
        for each in rejections
        if (key := config_key(each.config)) in entries and entries[key].posterior.log_ratio > 0
    ]
    return max(rejected, key=lambda each: each.speedup.log_ratio, default=None)


def _gather_sides(
    configs: tuple[Config, Config | None],
    trials: Sequence[Sequence[Trial]],
    **known: Any,  # noqa: ANN401 - the other fields
) -> Sides:
    (default, winner), (of_default, of_winner) = configs, trials
    return Sides(
        default=gather_arm(default, of_default),
        winner=None if winner is None else gather_arm(winner, of_winner), **known,
    )  # fmt: skip


def _sides_by_load(
    settings: Study,
    configs: tuple[Config, Config | None],
    trials: Sequence[Sequence[Trial]],
    gain: Gain | None,
) -> tuple[Sides, ...]:
    """Return both sides under each of several loads."""
    blend = settings.blend
    if blend is None:
        return ()
    return tuple(
        _gather_sides(
            configs, [[under_load(trial, each.name) for trial in side] for side in trials], name=each.name,
            weight=blend.weights[each.name], workload=each.load.describe(),
            gain=None if gain is None else gain.by_load.get(each.name),
        )
        for each in settings.loads
    )  # fmt: skip


def _sides_by_host(
    hosts: Hosts | None,
    configs: tuple[Config, Config | None],
    trials: Sequence[Sequence[Trial]],
    gain: Gain | None,
) -> tuple[Sides, ...]:
    """Return both sides on each of the hosts for which the winner is to hold."""
    gains = {} if gain is None else gain.by_host
    worst = min(gains, key=lambda host: gains[host].ratio, default=None)
    return tuple(
        _gather_sides(
            configs, [[trial for trial in side if trial.host == host] for side in trials], name=host,
            gain=gains.get(host), is_worst=host == worst,
        )
        for host in (() if hosts is None else hosts.names)
    )  # fmt: skip


def describe_hosts(hosts: Hosts | None) -> str:
    """Return what counts of several hosts together; empty for one."""
    if hosts is None:
        return ""
    what = "worst ratio" if hosts.across is AcrossHosts.WORST else "mean ratio"
    return f"{what} of {len(hosts.names)} hosts"


def describe_across(settings: Study) -> str:
    """Return what counts of several loads together; empty for one."""
    if not settings.loads:
        return ""
    what = "worst ratio" if settings.across is Across.WORST else "weighted mean"
    return f"{what} of {len(settings.loads)} loads"


def name_metric(metric: Metric) -> str:
    """Return what a study maximizes as its explanation names it."""
    names = {
        Metric.GOODPUT: "goodput_rps", Metric.LATENCY_P99: "1 / latency_p99_ms",
        Metric.MEMORY: "1 / memory_mib",
    }  # fmt: skip
    return names.get(metric, "requests_per_cpu_s")


def _explain(
    gain: Gain | None,
    finished: str | None,
    known: Feasibility,
    planned: Confirmation | None,
    trials: Sequence[Trial],
    ranking: Ranking,
    storage: Storage,
) -> str:
    """Return why there is no proven gain; nothing when there is one, or the study goes on."""
    if gain is not None and planned is not None:
        kept = known.assess_sought(planned.config) if known.default_fails else ()
        doubts = known.doubts(planned.config, as_before=choose_bound(planned, trials))
        return explain_gain(gain, doubts, pair_s=pair_seconds(trials), kept=kept)
    if not finished:
        return ""
    noise = f"{capitalize(finished)} " if finished.startswith(TOO_NOISY) else ""
    spoiled = "" if storage.hosts is None else explain_spoiled(ranking, storage.hosts)
    rejected = [each.config for each in storage.recall(REJECTED) or ()]
    tried = explain_no_winner(trials, ranking, known, rejected)
    return noise + " ".join(filter(None, (tried, spoiled)))


def pair_seconds(trials: Sequence[Trial]) -> float:
    """Return the mean seconds of a pair of the confirmation; 0 without any."""
    paired = [trial for trial in trials if trial.role is Role.CONFIRM and trial.counts]
    return 2 * fmean(each.timing.deploy_s + each.timing.load_s for each in paired) if paired else 0.0


def gather_arms(configs: Mapping[str, Config], trials: Sequence[Trial]) -> tuple[Arm, ...]:
    """Summarize the trials of each arm of an experiment; of each arm the configuration is given."""
    return tuple(
        gather_arm(config, [trial for trial in trials if trial.arm == arm]) for arm, config in configs.items()
    )


def gather_arm(config: Config, trials: Sequence[Trial]) -> Arm:
    """Summarize the trials of one configuration."""
    counted = [trial for trial in trials if trial.counts]
    windows = [window for trial in counted for window in trial.valid_windows]
    latencies = [window.latency for window in windows if window.latency is not None]
    p99 = [each.quantiles_ms[P99] for each in latencies if P99 in each.quantiles_ms]
    merged = merge(latencies) if latencies else None
    merged_p99 = None if merged is None else merged.quantiles_ms.get(P99)
    failures, answered = (
        sum(window.failures.total for window in windows), sum(window.correct for window in windows)
    )  # fmt: skip
    return Arm(
        config=config,
        goodput_rps=_geometric_mean([trial.log_goodput for trial in counted]) if answered else 0.0,
        latency_p99_ms=merged_p99 if merged_p99 is not None else (median(p99) if p99 else None),
        latency_corrected=any(each.corrected for each in latencies),
        failures=failures,
        requests=failures + answered,
        trials=len(counted),
        is_lower_bound=is_censored(windows),
        requests_per_cpu_s=_per_cpu(counted),
        connect_time=_merge_connect_times(windows),
        latency_ms={} if merged is None else _name_quantiles(merged),
        window_s=_median([window.duration_s for window in windows]),
        failed_trials=sum(trial.state is State.FAILED for trial in trials),
        memory_mib=_memory_mib(counted),
    )


def _memory_mib(trials: Sequence[Trial]) -> float | None:
    sizes = [size for trial in trials if (size := memory(trial))]
    return _geometric_mean([math.log(size) for size in sizes]) if sizes else None


def _per_cpu(trials: Sequence[Trial]) -> float | None:
    per_cpu = {Metric.PER_CPU, Metric.CPU}
    if not any(window.metric in per_cpu for trial in trials for window in trial.valid_windows):
        return None
    return _geometric_mean([trial.log_value for trial in trials])


def _name_quantiles(latency: Latency) -> Mapping[str, float]:
    """Return the quantiles that benchmarks usually show, by their usual names."""
    known = {name: latency.quantiles_ms.get(quantile) for name, quantile in SHOWN_QUANTILES.items()}
    return {name: value for name, value in {**known, "max": latency.max_ms}.items() if value is not None}


def _merge_connect_times(windows: Sequence[Window]) -> ConnectTime | None:
    """Merge connect times, each mean weighted by the requests of its window."""
    seen = [(window.connect_time, window.correct) for window in windows if window.connect_time is not None]
    if not seen:
        return None
    weights = sum(correct for _, correct in seen)
    return ConnectTime(
        min_ms=min(each.min_ms for each, _ in seen),
        mean_ms=sum(each.mean_ms * correct for each, correct in seen) / weights
        if weights
        else fmean(each.mean_ms for each, _ in seen),
        max_ms=max(each.max_ms for each, _ in seen),
    )


def timing(trials: Sequence[Trial]) -> dict[str, float]:
    """Return where the wall time between the first and the last trial of each session went, in seconds."""
    sessions: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.state is not State.RUNNING:
            sessions.setdefault(trial.session, []).append(trial)
    ends = ((group[0], group[-1]) for group in sessions.values())
    total_s = sum(
        last.started_s + (last.timing.deploy_s + last.timing.load_s) - first.started_s for first, last in ends
    )
    return {
        "total_s": total_s,
        "load_s": sum(trial.timing.load_s for trial in trials),
        "deploy_s": sum(trial.timing.deploy_s for trial in trials),
        "suggest_s": sum(trial.timing.suggest_s for trial in trials),
        "deploy_median_s": _median([trial.timing.deploy_s for trial in trials if trial.counts]),
        "suggest_max_s": max((trial.timing.suggest_s for trial in trials), default=0.0),
        "store_max_s": max((trial.timing.store_s for trial in trials), default=0.0),
    }


def pick(summary: Summary, number: int) -> Summary:
    """Return the summary with a choice of the front in the winner's place, not confirmed unless it won.

    Raises:
        UsageError: there is no front, or it has no such choice.
    """
    if not summary.front:
        raise UsageError(
            f"--pick: {summary.study} has one objective, so there is nothing to pick from. Leave --pick out, "
            "or write `objective: [maximize goodput_rps, minimize latency_p99_ms]` in a new study."
        )
    if not 1 <= number <= len(summary.front):
        raise UsageError(
            f"--pick: there is no choice {number}. Give 1 to {len(summary.front)}; `tuner show` lists them."
        )
    config = summary.front[number - 1].config
    if summary.is_winner(config):
        return summary
    return _put_in_winners_place(summary, config)


def as_candidate(summary: Summary) -> Summary:
    """Return the summary with what was found in the winner's place. Raises UsageError without."""
    if summary.found is None:
        raise UsageError(f"{summary.study}: nothing was found that could be a candidate.")
    return _put_in_winners_place(summary, summary.found.config)


def _put_in_winners_place(summary: Summary, config: Config) -> Summary:
    measured = [
        trial
        for trial in summary.trials
        if dict(trial.config) == dict(config) and trial.role.is_under_study_load
    ]
    return replace(
        summary, winner=gather_arm(config, measured), gain=None, changes=summary.space.changes(config),
        mechanisms=(), latency=None, reason="", assessments=(), explanation=None,
    )  # fmt: skip


def _geometric_mean(logs: Sequence[float | None]) -> float:
    known = [each for each in logs if each is not None]
    return math.exp(fmean(known)) if known else 0.0


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0
