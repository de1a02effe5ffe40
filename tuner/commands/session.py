"""One session of work on a study: lock, prepare, run or resume, read. What scripts and notebooks call."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from tuner import __version__
from tuner.campaign.campaign import Campaign
from tuner.campaign.pairs import Pairing, measure_pairs
from tuner.campaign.prepare import Rig, prepare
from tuner.campaign.progress import Progress, Silence
from tuner.campaign.start_runner import Starter
from tuner.campaign.warm_start import read_warmth
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.pauses import short_pauses
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.optimizer import Optimizer
from tuner.ports import Config
from tuner.records import Role, Start
from tuner.report.summary import Arm, Summary, gather_arm, pick, summarize
from tuner.space import Space, facts_from_json, load_space
from tuner.space.problems import suggest
from tuner.statistics.confirm import Gain, claim
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.folder import make_folder, require_own, require_own_database
from tuner.study.lock import is_locked, locked
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Opening, Storage, is_there, open_storage
from tuner.study.storage_url import sqlite_url

SPACE_FACTS = "space_facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A study as it stands."""

    settings: Study
    space: Space
    """Around the host as it was when the study began."""
    summary: Summary
    rig: Rig | None = None
    """Where the target was looked at, too."""

    def pick(self, number: int) -> "Reading":
        """Give the study with a choice of its front in the winner's place. Raises UsageError."""
        return replace(self, summary=pick(self.summary, number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two configurations measured in pairs; the gain is of the second over the first."""

    first: Arm
    second: Arm
    gain: Gain
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each side that holds less than the default: first or second → in what."""


def run(
    settings: Study,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    progress: Progress | None = None,
) -> Reading:
    """Run a study to its end, or go on with it, or say that it is finished.

    Args:
        settings: the study, from `tuner.study.load_study`.
        preset: quick, standard or thorough; the study file's own by default.
        minutes: wall time of the whole campaign, instead of the preset's.
        trials: search starts at the most, instead of the preset's.
        progress: told what happens.

    Raises:
        UsageError: the study, or what belongs to it, is wrong.
        TargetError: the machine cannot run it, or another tuner is at work on it.
    """
    progress = progress or Silence()
    with locked(settings), signals_interrupt():
        rig = prepare(settings)
        begun = open_storage(settings.storage_url, settings.name) if is_there(settings.storage_url) else None
        # First all that may be refused: a study that begins is bound to what its file says.
        name = settle_preset(settings, begun, preset)
        plan = settle_plan(settings, begun, preset=name, minutes=minutes, trials=trials)
        is_over = begun is not None and begun.recall("finished") is not None
        optimizer = None if is_over else _make_optimizer(settings, rig)
        storage = begun or open_storage(settings.storage_url, settings.name)
        storage.claim(rig.fingerprint, definition=settings.definition(rig.space))
        if storage.recall(SPACE_FACTS) is None:
            storage.remember(SPACE_FACTS, rig.space_facts)
        if storage.recall("preset") is None:
            storage.remember("preset", name)
        if optimizer is not None:
            session = f"{int(time.time())}-{os.getpid()}"
            campaign = Campaign(rig, plan, storage, optimizer, progress, session=session)
            with rig.target.hold(progress.note), short_pauses():
                verdict = campaign.run()
            storage.remember("finished", verdict)
        summary = summarize(settings, rig.space, storage, running=False, version=__version__)
    return Reading(settings=settings, space=rig.space, summary=summary, rig=rig)


def _make_optimizer(settings: Study, rig: Rig) -> Optimizer:
    warmth = read_warmth(settings, rig.space)
    default = rig.space.encode(rig.space.default())
    return make_optimizer(settings.optimizer, default, first=warmth.first, good=warmth.good)


def is_finished(settings: Study) -> bool:
    """Say whether a study has its verdict. An absent one has not.

    Raises:
        TargetError: another tuner is at work on it; its storage may be half made.
    """
    if not settings.folder.exists():
        return False
    with locked(settings):
        try:
            storage = open_storage(settings.storage_url, settings.name, create=False)
        except UsageError:
            return False
        return storage.recall("finished") is not None


def read(settings: Study, *, with_sensitivity: bool = True) -> Reading:
    """Recompute a study's summary from its storage, while it runs or after; its target is not asked."""
    require_own(settings.folder)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    facts = storage.recall(SPACE_FACTS)
    if facts is None:  # killed before it knew them
        space = prepare(settings).space
    else:
        space = load_space(settings.space, facts=facts_from_json(facts), base=settings.path.parent)
    summary = summarize(
        settings, space, storage, running=is_locked(settings), version=__version__,
        with_sensitivity=with_sensitivity,
    )  # fmt: skip
    return Reading(settings=settings, space=space, summary=summary)


def compare(
    settings: Study,
    first: Config | str,
    second: Config | str,
    *,
    pairs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure two configurations in adjacent pairs of fresh starts.

    Args:
        settings: the study whose space and load are used.
        first: `default`, `winner`, a preset's name, or parameter values; the gain is relative to it.
        second: the other.
        pairs: how many; the preset's number by default.
        progress: told what happens.
    """
    progress = progress or Silence()
    with locked(settings), signals_interrupt():
        rig = prepare(settings)
        sides = {"A": resolve(settings, rig, first), "B": resolve(settings, rig, second)}
        plan = PRESETS[settings.preset]
        session = f"{int(time.time())}-{os.getpid()}"
        folder = settings.folder / "comparisons"
        make_folder(folder)
        database = folder / f"{session}.db"
        require_own_database(database)
        storage = open_storage(sqlite_url(database), settings.name)
        starter = Starter(rig=rig, plan=plan, storage=storage, session=session)
        starts: list[Start] = []

        def make(opening: Opening) -> Start:
            progress.start_begins(opening.role, opening.arm)
            starts.append(starter.make(opening))
            progress.start_ends(starts[-1], None)
            return starts[-1]

        pairing = Pairing(
            role=Role.CONFIRM,
            sides=sides,
            pairs=pairs or plan.pairs,
            rng=Random(settings.seed),  # noqa: S311
        )
        with rig.target.hold(progress.note), short_pauses():
            paired = measure_pairs(
                pairing, starts, make, lambda done, total: progress.stage("compare", done, total)
            )
    if paired.failed:
        msg = f"compare: a side failed twice in a row. {paired.failed}"
        raise TargetError(msg)
    arms = [
        gather_arm(config, [start for start in starts if start.arm == arm]) for arm, config in sides.items()
    ]
    lacks = {
        side: found
        for side, config in zip(("first", "second"), sides.values(), strict=True)
        if (found := rig.space.lacks(config))
    }
    return Comparison(first=arms[0], second=arms[1], gain=claim(paired.logs), lacks=lacks)


def resolve(settings: Study, rig: Rig, chosen: Config | str) -> Config:
    """Turn `default`, `winner`, a preset's name or values into a whole, valid configuration.

    It may hold less than the default: to be measured is not to be shipped.

    Raises:
        UsageError: there is no such configuration, or a value of it is wrong.
    """
    free = rig.space.open()
    if not isinstance(chosen, str):
        return free.complete(dict(chosen))
    if chosen == DEFAULT_ARM:
        return rig.space.default()
    presets = {preset.name: (rig.space, preset) for preset in rig.space.presets}
    presets = {preset.name: (free, preset) for preset in free.presets} | presets
    if chosen in presets:
        space, preset = presets[chosen]
        return space.complete(preset.values)
    if chosen != WINNER_ARM:
        known = [DEFAULT_ARM, WINNER_ARM, *presets]
        msg = f"{chosen!r} is no configuration. {suggest(chosen, known)} Or give a YAML file of values."
        raise UsageError(msg)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    record = storage.recall("confirm")
    if record is None:
        msg = f"{settings.name}: there is no winner yet. Finish the study with `tuner run`."
        raise UsageError(msg)
    return dict(record["config"])


def settle_preset(settings: Study, storage: Storage | None, preset: str | None = None) -> str:
    """Give the preset that a study began with; without a storage, what is asked or its file says.

    Raises:
        UsageError: another preset is asked than the one that the study began with.
    """
    began_with = storage.recall("preset") if storage else None
    name: str = preset or began_with or settings.preset
    if began_with is not None and name != began_with:
        msg = (
            f"{settings.name}: this study began with the preset {began_with!r}, not {name!r}. Go on with "
            f"--preset {began_with}, or give the study a new name."
        )
        raise UsageError(msg)
    return name


def settle_plan(
    settings: Study,
    storage: Storage | None,
    *,
    preset: str,
    minutes: float | None = None,
    trials: int | None = None,
) -> Plan:
    """Give the plan of a preset within the budget, which may be changed while a study runs.

    Raises:
        UsageError: the time is too short for the preset's shortest run.
    """
    plan, budget = PRESETS[preset], minutes or settings.minutes
    too_short = budget is not None and budget < plan.least_minutes
    is_finished = storage is not None and storage.recall("finished") is not None
    if too_short and not is_finished:
        remedy = "Give it more time" + ("." if preset == "quick" else ", or use --preset quick.")
        msg = (
            f"minutes: {budget:g} are too few for the preset {preset!r}, whose shortest run takes "
            f"{plan.least_minutes:.1f}. {remedy}"
        )
        raise UsageError(msg)
    return plan.fit(minutes=budget, trials=trials if trials is not None else settings.trials)
