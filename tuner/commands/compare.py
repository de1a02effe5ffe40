"""Measures two configurations in pairs."""

from dataclasses import replace
from random import Random

from tuner.campaign.pairs import Pairing, measure_pairs, read_starts
from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.progress import Progress, Silence
from tuner.campaign.start_runner import Starter
from tuner.commands.session import name_session
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.garbage_collection import short_collections
from tuner.ports import Config
from tuner.records import Metric, Role, Start
from tuner.report.reasons import explain_gain
from tuner.report.summary import Comparison, gather_arm, pair_seconds
from tuner.space.problems import suggest
from tuner.statistics.age import find_age
from tuner.statistics.paired_gain import judge_pairs
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.facts import CONFIRMATION, METRIC, MOVED_LOAD
from tuner.study.folder import make_folder, require_own_database
from tuner.study.lock import locked
from tuner.study.presets import PRESETS
from tuner.study.storage import Opening, Storage, is_there, open_storage
from tuner.study.storage_url import sqlite_url


def compare(
    settings: Study,
    first: Config | str,
    second: Config | str,
    *,
    pairs: int | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure two configurations in adjacent pairs of fresh starts.

    Args:
        settings: the study whose space and load are used.
        first: `default`, `winner`, a preset's name, or parameter values; the gain is relative to it.
        second: the other.
        pairs: how many; the preset's number by default.
        preset: for how long each start is loaded; the study file's own by default.
        progress: told what happens.

    Raises:
        UsageError: there is no such configuration, or the study is wrong.
        TargetError: the machine cannot run it, or a side failed twice in a row.
    """
    progress = progress or Silence()
    with locked(settings), signals_interrupt():
        setup, metric = prepare_as_begun(settings)
        sides = {"A": resolve(settings, setup, first), "B": resolve(settings, setup, second)}
        plan, session = PRESETS[preset or settings.preset], name_session()
        storage = _open_comparison(settings, session)
        storage.remember(METRIC, metric)
        starter = Starter(setup=setup, plan=plan, storage=storage, session=session)
        starts: list[Start] = []

        def make(opening: Opening) -> Start:
            progress.start_begins(opening.role, opening.arm)
            starts.append(starter.make(opening))
            progress.start_ends(starts[-1], None)
            return starts[-1]

        rng = Random(settings.seed)  # noqa: S311 - no secret
        pairing = Pairing(role=Role.CONFIRM, sides=sides, pairs=pairs or plan.pairs, rng=rng)
        with setup.target.hold(progress.note), short_collections():
            paired = measure_pairs(
                pairing, starts, make, lambda done, total: progress.stage("compare", done, total)
            )
    if paired.failed:
        raise TargetError(f"compare: a side failed twice in a row. {paired.failed}")
    arms = [gather_arm(sides[arm], [start for start in starts if start.arm == arm]) for arm in sides]
    lacks = {side: setup.space.lacks(arm.config) for side, arm in zip(("first", "second"), arms, strict=True)}
    age = find_age(*read_starts(starts, pairing))
    gain = replace(judge_pairs(paired.logs), metric=metric, age=age)
    return Comparison(
        first=arms[0], second=arms[1], gain=gain,
        reason=explain_gain(gain, pair_s=pair_seconds(starts)),
        lacks={side: found for side, found in lacks.items() if found},
    )  # fmt: skip


def prepare_as_begun(settings: Study) -> tuple[Setup, Metric]:
    """Prepare a study with the load where its run has moved it; return what it maximizes, too."""
    setup, study = prepare(settings), _open_study(settings)
    if study is None:
        return setup, Metric.GOODPUT
    moved = study.recall(MOVED_LOAD)
    return setup if moved is None else setup.move(moved), study.metric


def _open_comparison(settings: Study, session: str) -> Storage:
    """Open a storage of its own for a comparison, beside the study's."""
    folder = settings.folder / "comparisons"
    make_folder(folder)
    database = folder / f"{session}.db"
    require_own_database(database)
    return open_storage(sqlite_url(database), settings.name)


def _open_study(settings: Study) -> Storage | None:
    """Open the study's own storage, which says how it compares; None before it has begun."""
    if not is_there(settings.storage_url):
        return None
    try:
        return open_storage(settings.storage_url, settings.name, create=False)
    except UsageError:
        return None


def resolve(settings: Study, setup: Setup, chosen: Config | str) -> Config:
    """Turn `default`, `winner`, a preset's name or values into a whole, valid configuration.

    It may hold less than the default: to be measured is not to be shipped.

    Raises:
        UsageError: there is no such configuration, or a value of it is wrong.
    """
    free = setup.space.open()
    if not isinstance(chosen, str):
        return _complete(setup, chosen)
    if chosen == DEFAULT_ARM:
        return setup.space.default()
    presets = {preset.name: (setup.space, preset) for preset in setup.space.presets}
    presets = {preset.name: (free, preset) for preset in free.presets} | presets
    if chosen in presets:
        space, preset = presets[chosen]
        return space.complete(preset.values)
    if chosen != WINNER_ARM:
        known = [DEFAULT_ARM, WINNER_ARM, *presets]
        raise UsageError(
            f"{chosen!r} is no configuration. {suggest(chosen, known)} Or give a YAML file of values."
        )
    storage = open_storage(settings.storage_url, settings.name, create=False)
    planned = storage.recall(CONFIRMATION)
    if planned is None:
        raise UsageError(f"{settings.name}: there is no winner yet. Finish the study with `tuner run`.")
    return dict(planned.config)


def _complete(setup: Setup, values: Config) -> Config:
    """Complete them as the study does, so that a winner's lines give the winner; else with less capacity.

    Raises UsageError when a value is wrong whatever has to be held.
    """
    try:
        return setup.space.complete(dict(values))
    except UsageError:
        return setup.space.open().complete(dict(values))
