"""Measures configurations under more and more connections: interleaved blocks of fresh trials."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from math import ceil

from tuner.campaign.interleaved import (
    Interleaved,
    Treatment,
    open_beside,
    refuse_too_little_time,
    trial_s,
)
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.contests.compare import prepare_as_begun, resolve
from tuner.commands.session import follow_preset
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.window import Load, example_workload
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.report.curve import Curve, gather_curve
from tuner.report.curve.page import MOST_CONFIGURATIONS
from tuner.report.wording import say_duration
from tuner.statistics.curves.load_curve import WHOLE_BLOCKS, judge_curve
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.facts import CURVE, CurvePlan
from tuner.study.loads.load_bounds import MOST_CONNECTIONS
from tuner.study.lock import locked
from tuner.study.objective import FAILURE_RATE
from tuner.study.open_storage import is_there
from tuner.study.presets import Plan
from tuner.study.side_storages import CURVES
from tuner.study.storage import Storage

CONNECTIONS = (100, 300, 1000, 3000, 10_000)
MOST_COUNTS = 12
FAILURE_LIMIT = 0.001
"""Of a study that bounds no failure rate by a number."""
BLOCKS: Mapping[str, int] = {"quick": WHOLE_BLOCKS + 1, "standard": 6, "thorough": 10}
"""For which there is time under each preset, when nothing else is asked."""


def curve(
    settings: Study,
    configurations: Mapping[str, Config | str] | None = None,
    *,
    connections: Sequence[int] = CONNECTIONS,
    minutes: float | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Curve:
    """Measure goodput, failures and p99 over the number of connections, resume it, or read it.

    Its trials are kept in a storage of their own beside the study's, from which no search learns.

    Args:
        settings: the study whose space and load are used; its connections are what is varied.
        configurations: name → `default`, `winner`, a preset's name, or parameter values; ratios are relative
            to the first. The default, and the winner if there is one, when left out.
        connections: under how many each is measured.
        minutes: wall time of the whole curve; by default that of four blocks, with longer presets 6 or 10.
        preset: for how long each trial is loaded; by default that of the study's run, else of its file.
        progress: told what happens.

    Raises:
        UsageError: there is no such configuration, or more connections than there is room for.
        TargetError: the machine cannot run it.
    """
    progress = progress or NullProgress()
    name = follow_preset(settings, preset)
    with locked(settings), signals_interrupt():
        setup, _ = prepare_as_begun(settings)
        planned = plan_curve(settings, setup, configurations, connections)
        setup = _slow_down(setup, planned.connections[-1])
        plan = setup.plan(name).under(planned.connections[-1])
        budget = minutes or expected_minutes(planned, plan, BLOCKS[name])
        refuse_too_little_time(len(planned.arms), "numbers of connections", plan, budget)
        storage = open_beside(
            setup, plan, folder=CURVES, name="connections",
            asked={"plan": CURVE.to_json(planned), "machine": asdict(setup.fingerprint)},
        )  # fmt: skip
        storage.remember(CURVE, planned)
        measure_curve(setup, planned, storage, plan, minutes=budget, progress=progress)
    return gather_curve(settings, storage)


def _slow_down(setup: Setup, connections: int) -> Setup:
    """Return a setup at the pace of more connections: a server that is full needs as much longer for each."""
    pace, slower = setup.pace, connections / setup.load.shape.connections
    if pace is None or slower <= 1:
        return setup
    return setup.at_pace(replace(pace, window_s=pace.window_s * slower, response_s=pace.response_s * slower))


def expected_minutes(planned: CurvePlan, plan: Plan, blocks: int) -> float:
    """Return the minutes that so many blocks take, rounded up to tenths."""
    return ceil(blocks * len(planned.arms) * trial_s(plan) / 6) / 10


def plan_curve(
    settings: Study,
    setup: Setup,
    configurations: Mapping[str, Config | str] | None,
    connections: Sequence[int],
) -> CurvePlan:
    """Settle what is measured. Raises UsageError for what cannot be."""
    if settings.loads:
        raise UsageError(
            f"{settings.path}: loads: a curve varies the connections of one load. Name a study with a single "
            "load."
        )
    counts = _settle_connections(setup, connections)
    chosen = _settle_configurations(settings, setup, configurations)
    bounds = (each.limit for each in settings.constraints if each.metric == FAILURE_RATE)
    return CurvePlan(
        names=tuple(chosen), configs=tuple(dict(config) for config in chosen.values()), connections=counts,
        failure_limit=max(next((bound for bound in bounds if bound is not None), FAILURE_LIMIT), 1e-6),
    )  # fmt: skip


def _settle_connections(setup: Setup, connections: Sequence[int]) -> tuple[int, ...]:
    counts = tuple(sorted(set(connections)))
    if not counts or len(counts) > MOST_COUNTS:
        raise UsageError(
            f"--connections: {len(counts)} numbers are too many. Give 1 to {MOST_COUNTS}, such as "
            "100,1000,10000."
        )
    if counts[0] < 1 or counts[-1] > MOST_CONNECTIONS:
        raise UsageError(
            f"--connections: {counts[0]:,} to {counts[-1]:,} connections are out of range. Give 1 to "
            f"{MOST_CONNECTIONS:,}."
        )
    setup.room.refuse(counts[-1], "--connections")
    _refuse_fixed_load(setup.load, counts)
    return counts


def _refuse_fixed_load(load: Load, counts: Sequence[int]) -> None:
    """Raise UsageError for a load generator that sends the same whatever it is asked for."""
    examples = [example_workload(replace(load.shape, connections=count)) for count in counts]
    sent = {(load.generator.command(each), str(load.generator.files(each))) for each in examples}
    if len(sent) < len(counts):
        raise UsageError(
            f"load: {load.generator.name} sends the same load for every number of connections. Write "
            "{connections} into the command of the generator, or use another load generator."
        )


def _settle_configurations(
    settings: Study, setup: Setup, configurations: Mapping[str, Config | str] | None
) -> dict[str, Config]:
    if configurations is None:
        found = {DEFAULT_ARM: resolve(settings, setup, DEFAULT_ARM)}
        if is_there(settings.storage_url):
            with suppress(UsageError):  # there may be none yet
                found[WINNER_ARM] = resolve(settings, setup, WINNER_ARM)
        return found
    if not 1 <= len(configurations) <= MOST_CONFIGURATIONS:
        raise UsageError(
            f"curve: {len(configurations)} configurations are too many. Name 1 to {MOST_CONFIGURATIONS}."
        )
    return {name: resolve(settings, setup, each) for name, each in configurations.items()}


def measure_curve(
    setup: Setup, planned: CurvePlan, storage: Storage, plan: Plan, *, minutes: float, progress: Progress
) -> Interleaved:
    """Measure blocks of all configurations and connections until nothing is left to tell, or time is over.

    Raises:
        TargetError: the machine cannot run it, or is too noisy.
    """
    seed, load = setup.settings.seed, setup.load

    def choose(trials: Sequence[Trial], failed: Mapping[str, str]) -> Sequence[str]:
        return [arm for arm in judge_curve(planned, trials, seed=seed).wanted() if arm not in failed]

    experiment = Interleaved(
        treatments={
            arm: Treatment(
                setup=setup, config=planned.configs[config],
                label=f"{planned.names[config]}, {connections:,} connections",
                # By time: so many requests end sooner than thousands of connections are open.
                load=replace(
                    load, shape=replace(load.shape, connections=connections), requests_total=None,
                    rate_rps=None,
                ),
            )
            for arm, (config, connections) in zip(planned.arms, planned.cells, strict=True)
        },
        storage=storage, plan=plan, progress=progress, role=Role.CURVE, choose=choose, minutes=minutes,
        seed=f"{seed}/curve",
    )  # fmt: skip
    if experiment.is_open:
        counts, left_s = ", ".join(f"{count:,}" for count in planned.connections), experiment.left_s()
        progress.note(
            f"{' and '.join(planned.names)} at {counts} connections, in blocks of fresh trials: about "
            f"{int(left_s / experiment.expected_s())} trials, at most {say_duration(left_s)}"
        )
        experiment.measure()
    return experiment
