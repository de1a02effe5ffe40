"""Measures the response curve of one parameter: interleaved blocks of fresh trials at several values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from tuner.campaign.interleaved import Interleaved, Treatment, open_beside, refuse_too_little_time
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.contests.compare import prepare_as_begun
from tuner.commands.contests.sweep_plan import plan_sweep
from tuner.commands.session import follow_preset
from tuner.errors import TargetError
from tuner.interrupts import signals_interrupt
from tuner.ports import Scalar
from tuner.records import Role, Trial
from tuner.report.sweep import Sweep, gather_sweep
from tuner.report.wording import say_duration
from tuner.space.parameters import identifier
from tuner.statistics.curves.sweep import judge_sweep
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study import Study
from tuner.study.facts import SWEEP, SweepPlan
from tuner.study.lock import locked
from tuner.study.presets import Plan
from tuner.study.side_storages import SWEEPS
from tuner.study.storage import Storage

MINUTES: Mapping[str, float] = {"quick": 4.0, "standard": 20.0, "thorough": 60.0}
"""Of a sweep under each preset, when nothing else is asked."""
GROWTH_S = 20.0
"""A pool that doubles once a second has a hundred processes after eight."""


def sweep(  # noqa: PLR0913 - given by name, and most are left out
    settings: Study,
    parameter: str,
    *,
    values: Sequence[Scalar] | None = None,
    around: str | None = None,
    at: str = DEFAULT_ARM,
    minutes: float | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Measure the response curve of one parameter, resume an interrupted one, or read a finished one.

    Its trials are kept in a storage of their own beside the study's, from which no search learns.

    Args:
        settings: the study whose space and load are used.
        parameter: what is varied; what follows from it follows.
        values: at which it is measured; by default a grid over its range, or all its choices.
        around: `default` or `winner`, for a finer grid around the value that it has there.
        at: `default` or `winner`: what the other settings are.
        minutes: wall time of the whole sweep; by default 4, with longer presets 20 or 60.
        preset: for how long each trial is loaded; by default that of the study's run, else of its file.
        progress: told what happens.

    Raises:
        UsageError: there is no such parameter, or a value that is out of its range or that a rule forbids.
        TargetError: the machine cannot run it, or the baseline failed twice in a row.
    """
    progress = progress or NullProgress()
    name = follow_preset(settings, preset)
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        planned = plan_sweep(settings, setup, parameter, values=values, around=around, at=at)
        plan = replace(setup.plan(name), growth_s=GROWTH_S)
        budget = minutes or MINUTES[name]
        refuse_too_little_time(len(planned.values), "values", plan, budget)
        storage = open_beside(
            setup, plan, folder=SWEEPS, name=identifier(planned.parameter),
            asked={"plan": SWEEP.to_json(planned), "machine": asdict(setup.fingerprint)},
        )  # fmt: skip
        storage.remember(SWEEP, planned)
        maximized.tell(storage)
        measure_sweep(setup, planned, storage, plan, minutes=budget, progress=progress)
    return gather_sweep(settings, setup.space, storage)


def measure_sweep(
    setup: Setup, planned: SweepPlan, storage: Storage, plan: Plan, *, minutes: float, progress: Progress
) -> Interleaved:
    """Measure blocks of all values until nothing is left to tell, or the time is over.

    Raises:
        TargetError: the machine cannot run it, or the baseline failed twice in a row.
    """
    settings, arms, name = setup.settings, planned.arms, planned.parameter

    def choose(trials: Sequence[Trial], failed: Mapping[str, str]) -> Sequence[str]:
        if arms[planned.control] in failed:
            return ()
        wanted = judge_sweep(planned, trials, settings.constraints, seed=settings.seed).wanted()
        return [arms[index] for index in wanted if arms[index] not in failed]

    experiment = Interleaved(
        treatments={
            arm: Treatment(setup=setup, config=config, label=f"{name} {setup.space.show(name, value)}")
            for arm, config, value in zip(arms, planned.configs, planned.values, strict=True)
        },
        storage=storage, plan=plan, progress=progress, role=Role.SWEEP, choose=choose, minutes=minutes,
        seed=f"{settings.seed}/{name}",
    )  # fmt: skip
    if experiment.is_open:
        left_s = experiment.left_s()
        progress.note(
            f"{name}: {len(arms)} values, in blocks of fresh trials: about "
            f"{int(left_s / experiment.expected_s())} trials, at most {say_duration(left_s)}"
        )
        for said in _doubts(setup, name):
            progress.note(said)
        failed = experiment.measure()
        if arms[planned.control] in failed:
            raise TargetError(
                f"sweep: the {planned.at} failed twice in a row. {failed[arms[planned.control]]}"
            )
    return experiment


def _doubts(setup: Setup, parameter: str) -> list[str]:
    """Return what makes a sweep less telling than it may seem."""
    space, settings = setup.space, setup.settings
    inert = {**space.inert, **space.inert_but_tuned}.get(parameter)
    said = [f"{parameter} has no effect under this load: {inert}"] if inert else []
    if settings.objective.cost is not None:
        said.append(
            f"the sweep judges goodput; {settings.objective.cost}, the second objective, is shown but not "
            "judged"
        )
    return said
