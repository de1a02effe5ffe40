"""Races servers: each is tuned with the same budget, then all defaults and winners run in one contest."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise

from tuner.campaign.prepare import Setup
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.all_targets import run
from tuner.commands.contests.compare import ComparedMetric, list_presets, prepare_as_begun
from tuner.commands.contests.contest import expect_s, hold_contest, say_lacks
from tuner.commands.session import Reading, look_ahead, read, settle_preset
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.records import Metric
from tuner.report.contest import Contest
from tuner.report.wording import say_duration
from tuner.space.parameters import Preset
from tuner.space.space import Space
from tuner.space.yaml_text import Document
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study import Study
from tuner.study.facts import PRESET, ContestPlan, Entrant, MovedLoad
from tuner.study.folder import require_own
from tuner.study.lock import locked
from tuner.study.open_storage import is_there, open_storage
from tuner.study.presets import PRESETS

TUNED = "tuned"
OF_ONE_STUDY = ("study", "servers", "parameter ", "default of ", "backend of ")
"""What may differ between the definitions of studies whose servers are compared; all else has to agree."""


def versus(
    studies: Sequence[Study],
    *,
    with_presets: bool = False,
    preset: str | None = None,
    minutes: float | None = None,
    blocks: int | None = None,
    progress: Progress | None = None,
    when_tuned: Callable[[Reading], object] = lambda _: None,
) -> Contest:
    """Tune what is not tuned yet, then measure all defaults and winners against each other.

    Args:
        studies: of private instances, under the same load on the same target.
        with_presets: measure the defaults and the presets that the files themselves name; nothing is tuned.
        preset: quick, standard or thorough; what the studies began with, or their files say, by default.
        minutes: wall time of the tuning of each study that is not finished, instead of the preset's.
        blocks: of the contest; by default 8, with longer presets 12 or 20.
        progress: told what happens.
        when_tuned: called with each study that has just been tuned.

    Raises:
        UsageError: the studies cannot be compared, or one of them is wrong.
        TargetError: the machine cannot run it, or another tuner is at work on one of them.
    """
    progress = progress or NullProgress()
    _refuse_twins(studies, least=1 if with_presets else 2)
    for each in studies:
        require_own(each.folder)
    with signals_interrupt():
        named = {each.name: each for each in studies}
        refuse_other_terms(prepare_together(named)[0])
        if with_presets:
            name = preset or studies[0].preset
        else:
            name = _settle_budget(studies, preset, minutes)
            waiting, ahead = _look_ahead(studies, name, minutes, blocks)
            progress.note(ahead)
            for each in waiting:
                progress.note(f"tuner tunes {each.name} first")
                when_tuned(run(each, preset=name, minutes=minutes, progress=progress))
        with ExitStack() as held:
            for each in studies:
                held.enter_context(locked(each))
            setups, maximized, notes = prepare_together(named)
            planned = _enter_presets(setups, notes) if with_presets else _enter_winners(setups, notes)
            return hold_contest(
                planned, setups, maximized=maximized, preset=name, blocks=blocks, progress=progress
            )


def _refuse_twins(studies: Sequence[Study], *, least: int) -> None:
    """Raise UsageError for too few studies, and for those that are not apart."""
    if len(studies) < least:
        raise UsageError(
            f"versus: only {len(studies)} study is given. Name two or more, or compare the presets of one "
            "study with --presets."
        )
    for settings in studies:
        if settings.target.is_managed:
            raise UsageError(
                f"{settings.path}: target: versus compares only private instances, because installed "
                "services serve different pages. Write `target: {mode: sandbox}`."
            )
    files, names = [str(each.path.resolve()) for each in studies], [each.name for each in studies]
    for what, known in (("file", files), ("name", names)):
        first: dict[str, Study] = {}
        for settings, name in zip(studies, known, strict=True):
            twin = first.setdefault(name, settings)
            if twin is not settings:
                raise UsageError(
                    f"{settings.path}: this study file is given twice. Give each study once."
                    if what == "file"
                    else f"{settings.path}: {twin.path} has the same study name, {name!r}. Give each study "
                    "its own name."
                )


def prepare_together(
    studies: Mapping[str, Study],
) -> tuple[Mapping[str, Setup], ComparedMetric, list[str]]:
    """Prepare studies with the load in the same place; return what is compared, and what to say of it."""
    first, *others = studies.values()
    for each in others:
        if each.objective.metric is not first.objective.metric:
            raise UsageError(
                f"{each.path}: objective: {each.objective} differs from {first.objective} of {first.path}. "
                "Give both studies the same `objective:` and the same `load: rate`."
            )
    prepared = {name: prepare_as_begun(each) for name, each in studies.items()}
    setups, notes = give_same_room({name: setup for name, (setup, _) in prepared.items()})
    limited = [name for name, (_, maximized) in prepared.items() if maximized.metric is Metric.PER_CPU]
    if limited:
        notes.append(
            f"the load generator is the limit of {', '.join(limited)}, so tuner compares requests per CPU "
            "second of their servers"
        )
    (_, of_first), *_ = prepared.values()
    return setups, replace(of_first, metric=Metric.PER_CPU) if limited else of_first, notes


def give_same_room(setups: Mapping[str, Setup]) -> tuple[Mapping[str, Setup], list[str]]:
    """Place the load of all studies where the one runs that has the most room."""
    rooms = {name: _find_room(setup) for name, setup in setups.items()}
    widest = max(rooms, key=lambda name: (len(rooms[name].generator_cpus), rooms[name].threads))
    if all(room == rooms[widest] for room in rooms.values()):
        return setups, []
    moved = {
        name: setup if rooms[name] == rooms[widest] else setup.move(rooms[widest])
        for name, setup in setups.items()
    }
    cpus = ", ".join(map(str, rooms[widest].generator_cpus))
    return moved, [f"all studies get their load from the same CPUs as {widest}: {cpus}"]


def _find_room(setup: Setup) -> MovedLoad:
    return MovedLoad(
        server_cpus=tuple(sorted(setup.placement.server_cpus)),
        generator_cpus=tuple(sorted(setup.placement.generator_cpus)),
        threads=setup.load.shape.threads,
        since=0,
    )


def refuse_other_terms(setups: Mapping[str, Setup], may_differ: tuple[str, ...] = OF_ONE_STUDY) -> None:
    """Raise UsageError when the studies differ in more than their servers and settings.

    Args:
        setups: of the studies.
        may_differ: beginnings of the names of those parts of their definitions that may.
    """
    for first, second in pairwise(setups.values()):
        one, other = _terms(first, may_differ), _terms(second, may_differ)
        differing = [
            f"{name} is {one.get(name, '')!r} and {other.get(name, '')!r}"
            for name in {**one, **other}
            if one.get(name, "") != other.get(name, "")
        ]
        if differing:
            raise UsageError(
                f"{first.settings.path}, {second.settings.path}: these studies cannot be compared: "
                f"{'; '.join(differing)}. Make these parts the same."
            )


def _terms(setup: Setup, may_differ: tuple[str, ...]) -> Mapping[str, str]:
    """Return under what a study measures, part by part."""
    target = setup.settings.target
    definition = setup.settings.definition(setup.space)
    terms = {name: text for name, text in definition.items() if not name.startswith(may_differ)}
    return {"target.host": target.host, **terms}


def _settle_budget(studies: Sequence[Study], preset: str | None, minutes: float | None) -> str:
    """Return the preset of all studies: what is asked, what they began with, or what their files say.

    Raises:
        UsageError: their budgets differ.
    """
    began = {each.name: name for each in studies if (name := _find_begun(each, preset)) is not None}
    names = began or {each.name: preset or each.preset for each in studies}
    _refuse_unfair("presets", names)
    _refuse_unfair("minutes", {each.name: minutes or each.minutes for each in studies})
    _refuse_unfair("trials", {each.name: each.trials for each in studies})
    return next(iter(names.values()))


def _find_begun(settings: Study, preset: str | None) -> str | None:
    """Return the preset that a study began with; None where it has not begun."""
    if not is_there(settings.storage_url):
        return None
    storage = open_storage(settings.storage_url, settings.name)
    return None if storage.recall(PRESET) is None else settle_preset(settings, storage, preset)


def _refuse_unfair(what: str, found: Mapping[str, object]) -> None:
    """Raise UsageError when the studies do not all have the same part of their budgets."""
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} {'none' if value is None else value}" for name, value in found.items())
        raise UsageError(
            f"versus: the {what} of the studies differ ({said}). Write the same value in all files. To tune "
            "a study again, copy its file to a new name."
        )


def _look_ahead(
    studies: Sequence[Study], preset: str, minutes: float | None, blocks: int | None
) -> tuple[Sequence[Study], str]:
    """Return the studies that are not finished, and in words what is to come and how long it takes."""
    waiting, entrants = [each for each in studies if look_ahead(each) is not None], 2 * len(studies)
    each_s = 60 * (minutes or studies[0].minutes or PRESETS[preset].minutes)
    contest_s = expect_s(entrants, preset, blocks)
    tuning = ", ".join(f"{each.name} {say_duration(each_s)}" for each in waiting)
    return waiting, (
        f"to tune: {tuning or 'nothing, all studies are finished'}; then a comparison of up to "
        f"{entrants} configurations, about {say_duration(contest_s)}; in all about "
        f"{say_duration(len(waiting) * each_s + contest_s)}"
    )


def _enter_winners(setups: Mapping[str, Setup], notes: Sequence[str]) -> ContestPlan:
    """Return the plan with the default and the winner of each study."""
    entrants: list[Entrant] = []
    said = list(notes)
    for name, setup in setups.items():
        summary = read(setup.settings, with_explanation=False).summary
        entrants.append(Entrant(study=name, name=DEFAULT_ARM, config=setup.space.default()))
        took = f"{say_duration(summary.timing['total_s'])}, {len(summary.trials)} trials"
        if summary.winner is None or summary.gain is None or not summary.gain.is_proven:
            said.append(
                f"{name}: no configuration is proven better than its default ({took}), so versus compares "
                "its default"
            )
            continue
        said.append(f"{name}: tuned in {took}")
        config = summary.winner.config
        entrants.append(Entrant(study=name, name=TUNED, config=config, notes=say_lacks(setup.space, config)))
    return ContestPlan(entrants=tuple(entrants), notes=tuple(said))


def _enter_presets(setups: Mapping[str, Setup], notes: Sequence[str]) -> ContestPlan:
    """Return the plan with the default of each study and the presets that its file names, in order.

    Raises:
        UsageError: a single study names none, or none that fits this host.
    """
    entrants: list[Entrant] = []
    said = list(notes)
    for study, setup in setups.items():
        known, left_out = list_presets(setup.space), setup.space.open().left_out
        entrants.append(Entrant(study=study, name=DEFAULT_ARM, config=setup.space.default()))
        for name in _names_of(setup.settings):
            if name in known:
                entrants.append(_enter_preset(study, *known[name]))
            else:
                said.append(f"{study} {name} is left out: {left_out[f'preset {name}']}")
    if len(entrants) == 1:
        path = setups[entrants[0].study].settings.path
        raise UsageError(f"{path}: space: the search space has no presets. Write some under `presets:`.")
    return ContestPlan(entrants=tuple(entrants), notes=tuple(said), is_stepwise=True)


def _names_of(settings: Study) -> list[str]:
    """Return the presets that a study file names itself."""
    own = (entry.data.get("presets") for entry in settings.space if isinstance(entry, Document))
    return [name for presets in own if isinstance(presets, Mapping) for name in presets]


def _enter_preset(study: str, space: Space, preset: Preset) -> Entrant:
    config = space.complete(preset.values)
    # Of a reason its first clause: the rest is how it follows, which `tuner spaces --study` shows.
    fitted = tuple(
        f"{name} differs from the preset: {re.split(': | [(]', why)[0]}"
        for name, why in preset.adjusted.items()
    )
    return Entrant(study=study, name=preset.name, config=config, notes=(*fitted, *say_lacks(space, config)))
