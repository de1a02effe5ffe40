"""Asks whether a new build or configuration is no slower than a baseline, by a margin."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from tuner.campaign.prepare import Setup
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.contests.compare import (
    ComparedMetric,
    Comparing,
    name_adjusted,
    prepare_as_begun,
    resolve,
)
from tuner.commands.contests.contest import say_lacks
from tuner.commands.contests.versus import OF_ONE_STUDY, prepare_together, refuse_other_terms
from tuner.commands.regression.measuring import measure_until_decided
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.ports import Config, Scalar
from tuner.report.regression import BASELINE, NEW, NonInferiority
from tuner.statistics.arms.looks import judge_margin, plan_looks
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study import Study
from tuner.study.lock import locked

MOST_PAIRS: Mapping[str, int] = {"quick": 20, "standard": 20, "thorough": 32}
"""Under each preset, when nothing else is asked."""
MOST_MARGIN = 0.5
"""What is half as fast passes no gate."""
OF_ONE_BUILD = (*OF_ONE_STUDY, "server ", "backend")
"""What may differ between the studies of two builds: their programs, too."""


def gate(
    settings: Study,
    baseline: "Study | Config | str",
    *,
    new: Config | str = DEFAULT_ARM,
    margin: float = 0.03,
    pairs: int | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> NonInferiority:
    """Measure pairs until it is shown that the new side is no slower than the baseline, or that it is.

    Args:
        settings: the study; its load is what both sides get.
        baseline: `default`, `winner`, a preset's name, parameter values; or another study, whose default it
            is, as of another build of the server or of the application behind it.
        new: what is compared with it, likewise of `settings`.
        margin: share that the new side may be slower, 0 to 0.5.
        pairs: how many at the most, 2 or more; by default 20, with the preset thorough 32.
        preset: for how long each trial is loaded; the study file's own by default.
        progress: told what happens.

    Raises:
        UsageError: there is no such configuration or margin, or the studies cannot be compared.
        TargetError: the machine cannot run it, is too noisy, or the baseline itself fails.
    """
    progress, length = progress or NullProgress(), preset or settings.preset
    if not 0 <= margin <= MOST_MARGIN:
        raise UsageError(f"margin: {margin:g} is no share from 0 to {MOST_MARGIN:g}. Give 0.03 for 3 %.")
    looks = plan_looks(MOST_PAIRS[length] if pairs is None else pairs)
    studies = {BASELINE: baseline if isinstance(baseline, Study) else settings, NEW: settings}
    _refuse_twins(studies, is_apart=isinstance(baseline, Study))
    chosen = {BASELINE: DEFAULT_ARM if isinstance(baseline, Study) else baseline, NEW: new}
    with ExitStack() as held:
        held.enter_context(signals_interrupt())
        for each in {study.path: study for study in studies.values()}.values():
            held.enter_context(locked(each))
        setups, maximized, notes = _prepare(studies)
        sides = {arm: resolve(studies[arm], setups[arm], chosen[arm]) for arm in studies}
        for arm, setup in setups.items():
            notes += name_adjusted(setup, chosen[arm])
            notes += [f"{arm}: {each}" for each in say_lacks(setup.space, sides[arm])]
        for note in notes:
            progress.note(note)
        comparing = Comparing(
            setups=setups, sides=sides, maximized=maximized, preset=length, progress=progress, stage="gate"
        )
        judge = partial(judge_margin, margin=margin)
        measured = measure_until_decided(comparing, looks, judge, settings.constraints, against="slower")
    return NonInferiority(
        study=settings.name, sides={BASELINE: _name(baseline, BASELINE), NEW: _name(new, NEW)},
        workload=settings.describe_load(), margin=margin, measured=measured,
        changes=_find_changes(setups, sides), notes=tuple(notes),
    )  # fmt: skip


def _name(chosen: "Study | Config | str", otherwise: str) -> str:
    """Return what a side is called."""
    if isinstance(chosen, Study):
        return str(chosen.path)
    return chosen if isinstance(chosen, str) else otherwise


def _refuse_twins(studies: Mapping[str, Study], *, is_apart: bool) -> None:
    """Raise UsageError for a baseline that is the study itself, and for installed services of two studies."""
    new, old = studies[NEW], studies[BASELINE]
    if is_apart and old.path.resolve() == new.path.resolve():
        raise UsageError(
            f"--baseline: {old.path} is the study itself. Name another study or a file of values, or choose "
            "the other side with --new (default, winner or a preset)."
        )
    for each in (old, new) if is_apart else ():
        if each.target.is_managed:
            raise UsageError(
                f"{each.path}: target: gate compares two studies only with private instances. Write `target: "
                "{mode: sandbox}`, or give the baseline as a file of values."
            )


def _prepare(studies: Mapping[str, Study]) -> tuple[Mapping[str, Setup], ComparedMetric, list[str]]:
    """Prepare both sides with the load in the same place; of one study, once."""
    if studies[BASELINE] is studies[NEW]:
        setup, maximized = prepare_as_begun(studies[NEW])
        return dict.fromkeys(studies, setup), maximized, []
    setups, maximized, notes = prepare_together(studies)
    refuse_other_terms(setups, OF_ONE_BUILD)
    return setups, maximized, [*notes, *(_say_versions(arm, setup) for arm, setup in setups.items())]


def _say_versions(arm: str, setup: Setup) -> str:
    servers = ", ".join(f"{name} {version}".strip() for name, version in setup.fingerprint.servers.items())
    return f"{arm}: {setup.settings.path}, {servers}"


def _find_changes(
    setups: Mapping[str, Setup], sides: Mapping[str, Config]
) -> dict[str, tuple[Scalar | None, Scalar | None]]:
    """Return the settings in which both sides differ by choice; what follows from them is left out."""
    old, new = sides[BASELINE], sides[NEW]
    defaults = [setups[arm].space.default() for arm in (BASELINE, NEW)]
    chosen = {name for arm in (BASELINE, NEW) for name in setups[arm].space.changes(sides[arm])}
    chosen |= {name for name in defaults[0] if defaults[0][name] != defaults[1].get(name)}
    pairs = {name: (old.get(name), new.get(name)) for name in {**old, **new} if name in chosen}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
