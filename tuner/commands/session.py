"""Runs a study, or resumes it, and reads what it has found so far."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuner import __version__
from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment
from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.progress import NullProgress, Progress
from tuner.campaign.trial_runner import name_session
from tuner.campaign.warm_start import read_earlier
from tuner.corpus.collect import describe_surroundings
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.garbage_collection import short_collections
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.optimizer import Optimizer
from tuner.report.summary import Summary, pick, summarize
from tuner.shell_words import write_command
from tuner.space import Space, facts_from_json, load_space
from tuner.space.problems import in_file
from tuner.study import Study
from tuner.study.facts import BLEND, HOSTS, PRESET, SPACE_FACTS, TOO_NOISY, VERDICT
from tuner.study.folder import require_own
from tuner.study.lock import is_locked, locked
from tuner.study.open_storage import NotBegun, is_there, open_storage
from tuner.study.presets import Plan
from tuner.study.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A study as it stands."""

    settings: Study
    """What the study file says."""
    space: Space
    """Around the host as it was when the study began."""
    summary: Summary
    """What was measured so far, and the result."""
    setup: Setup | None = None
    """Where the target was looked at, too."""
    changed: str = ""
    """In what its file differs from the study that was measured; empty where it does not."""

    def pick(self, number: int) -> "Reading":
        """Return the study with a choice of its front in the winner's place. Raises UsageError."""
        return replace(self, summary=pick(self.summary, number))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecast:
    """What a run will do."""

    preset: str
    minutes: float
    """Of the whole study, earlier sessions included."""
    is_begun: bool


def run(
    settings: Study,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    progress: Progress | None = None,
    with_explanation: bool = True,
) -> Reading:
    """Run a study to its end, resume it, or read it when it is finished.

    Args:
        settings: the study, from `load_study`.
        preset: quick, standard or thorough; the study file's own by default.
        minutes: wall time of the whole campaign, instead of the preset's.
        trials: search trials at the most, instead of the preset's.
        progress: told what happens.
        with_explanation: whether the summary explains the effect of each setting, which takes seconds.

    Raises:
        UsageError: the study, or what belongs to it, is wrong.
        TargetError: the machine cannot run it, or another tuner is at work on it.
    """
    progress = progress or NullProgress()
    with locked(settings), signals_interrupt():
        study = take_up(prepare(settings), preset=preset, minutes=minutes, trials=trials)
        setup, storage = study.setup, study.storage
        if study.optimizer is not None:
            experiment = Experiment(
                setup, study.plan, storage, study.optimizer, progress, session=name_session()
            )
            with setup.target.hold(progress.note), short_collections():
                storage.remember(VERDICT, run_campaign(experiment))
        summary = summarize(
            settings, setup.space, storage, running=False, version=__version__,
            with_explanation=with_explanation,
        )  # fmt: skip
    return Reading(settings=settings, space=setup.space, summary=summary, setup=setup)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStudy:
    """A study that is about to be measured; nobody else writes it."""

    setup: Setup
    plan: Plan
    storage: Storage
    optimizer: Optimizer | None
    """None when it has its verdict."""


def take_up(
    setup: Setup,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    free: Collection[str] = (),
) -> OpenStudy:
    """Begin a study on a host, or resume it, where that is the one on which it began.

    Args:
        setup: of the host.
        preset: as for `run`, like the other two.
        minutes: of the whole study.
        trials: at the most.
        free: in what the host may differ from the one on which the study began.

    Raises:
        UsageError: the study is another one's, or the host is unlike.
        TargetError: the storage cannot be used.
    """
    settings = setup.settings
    begun = open_storage(settings.storage_url, settings.name) if is_there(settings.storage_url) else None
    setup = as_begun(setup, begun)
    # First all that may be refused: a study that begins is bound to what its file says.
    name = settle_preset(settings, begun, preset)
    plan = settle_plan(settings, begun, preset=name, minutes=minutes, trials=trials)
    optimizer = None if has_verdict(begun) else _make_optimizer(settings, setup)
    storage = begun or open_storage(settings.storage_url, settings.name)
    storage.write_alone()
    setup = _as_first(setup, storage)
    storage.claim(setup.fingerprint, definition=settings.definition(setup.space), free=free)
    if settings.hosts is not None and storage.hosts is None:
        storage.remember(HOSTS, settings.hosts)
    if storage.recall(SPACE_FACTS) is None:
        storage.remember(SPACE_FACTS, setup.space_facts)
    if settings.blend is not None and storage.blend is None:
        storage.remember(BLEND, settings.blend)
    if storage.recall(PRESET) is None:
        storage.remember(PRESET, name)
    return OpenStudy(setup=setup, plan=plan, storage=storage, optimizer=optimizer)


def _as_first(setup: Setup, storage: Storage) -> Setup:
    """Return the setup with the ranges of the first host, where machines may differ in what gives them.

    Raises UsageError where the default itself is another one.
    """
    targets, facts = setup.settings.targets, storage.recall(SPACE_FACTS)
    if targets is None or not targets.models_unlike or facts is None:
        return setup
    space = load_first_space(setup.settings, facts)
    refuse_other_default(setup, space)
    return replace(setup, space=space, space_facts=facts)


def load_first_space(settings: Study, facts: Mapping[str, Any]) -> Space:
    """Load the space around the host on which a study began."""
    return load_space(settings.space, facts=facts_from_json(facts), base=settings.path.parent)


def refuse_other_default(setup: Setup, first: Space) -> None:
    """Raise UsageError where what a host has by default is not what the first one has.

    What follows from the machine itself, as the number of workers from that of its cores, may be another.
    """
    own, there = setup.space.default(), first.default()
    differing = [
        f"{each.name} is {own.get(each.name)} instead of {there.get(each.name)}"
        for each in first.parameters
        if own.get(each.name) != there.get(each.name)
    ]
    if differing:
        raise UsageError(
            f"{setup.settings.path}: targets: {setup.settings.target.host} has another default than the "
            f"first host ({'; '.join(differing)}), so the same winner would change different settings. Make "
            "the defaults the same, or tune each host in a separate study."
        )


def as_begun(setup: Setup, storage: Storage | None) -> Setup:
    """Return the setup with the space that a study began with: an earlier tuner knew nothing of the load."""
    facts = storage.recall(SPACE_FACTS) if storage else None
    if facts is None or facts.get("load"):
        return setup
    known = {**setup.space_facts, "load": {}}
    settings = setup.settings
    space = load_space(settings.space, facts=facts_from_json(known), base=settings.path.parent)
    return replace(setup, space=space, space_facts=known)


def has_verdict(storage: Storage | None) -> bool:
    """Return whether a study is finished; one without a storage, or that noise ended early, is not."""
    verdict = None if storage is None else storage.recall(VERDICT)
    return verdict is not None and not verdict.startswith(TOO_NOISY)


def _make_optimizer(settings: Study, setup: Setup) -> Optimizer:
    here = describe_surroundings(setup.fingerprint, setup.space_facts)
    earlier = read_earlier(settings, setup.space, here=here)
    with in_file(settings.path):
        return make_optimizer(settings.optimizer, setup.space.encode(setup.space.default()), earlier=earlier)


def look_ahead(
    settings: Study, *, preset: str | None = None, minutes: float | None = None, trials: int | None = None
) -> RunForecast | None:
    """Return what a run will do; None when the study has its verdict.

    Args:
        settings: the study.
        preset: as for `run`.
        minutes: as for `run`.
        trials: as for `run`.

    Raises:
        UsageError: its file was edited since, or another preset or less time is asked than can be.
        TargetError: another tuner is at work on it; its storage may be half made.
    """
    begun = None
    if settings.folder.exists():
        with locked(settings):
            begun = open_begun(settings)
    if begun is not None:
        _refuse_edited(settings, begun)
    if has_verdict(begun):
        return None
    name = settle_preset(settings, begun, preset)
    plan = settle_plan(settings, begun, preset=name, minutes=minutes, trials=trials)
    return RunForecast(preset=name, minutes=plan.minutes, is_begun=begun is not None)


def _refuse_edited(settings: Study, begun: Storage) -> None:
    """Raise UsageError when the study file is not the one that was measured, before the target is asked."""
    facts = begun.recall(SPACE_FACTS)
    if facts is not None:
        begun.refuse_changed(settings.definition(load_first_space(settings, facts)))


def open_begun(settings: Study) -> Storage | None:
    """Open the storage of a study that has begun; None for one that has not."""
    try:
        return open_storage(settings.storage_url, settings.name, create=False)
    except NotBegun:
        return None


def read(settings: Study, *, with_explanation: bool = True) -> Reading:
    """Recompute a study's summary from its storage, while it runs or after; its target is not asked.

    Args:
        settings: the study, from `load_study`.
        with_explanation: whether the summary explains the effect of each setting, which takes seconds.

    Raises:
        UsageError: the study has not begun, or its folder is another user's.
    """
    require_own(settings.folder)
    storage = open_storage(settings.storage_url, settings.name, create=False)
    facts = storage.recall(SPACE_FACTS)
    if facts is None:  # killed before it knew them; to ask the target now may run what the study names
        resume = write_command("tuner", "run", settings.path)
        raise NotBegun(f"{settings.path}: the study has no measurements yet. Resume with: {resume}")
    space = load_first_space(settings, facts)
    summary = summarize(
        settings, space, storage, running=is_locked(settings), version=__version__,
        with_explanation=with_explanation,
    )  # fmt: skip
    changed = storage.describe_changes(settings.definition(space))
    return Reading(settings=settings, space=space, summary=summary, changed=changed)


def settle_preset(settings: Study, storage: Storage | None, preset: str | None = None) -> str:
    """Return the preset that a study began with; without a storage, what is asked or its file says.

    Raises:
        UsageError: another preset is asked than the one that the study began with.
    """
    began_with = storage.recall(PRESET) if storage else None
    name: str = preset or began_with or settings.preset
    if began_with is not None and name != began_with:
        raise UsageError(
            f"{settings.name}: this study began with the preset {began_with!r}, not {name!r}. Continue with "
            f"--preset {began_with}, or copy the study file to a new name."
        )
    return name


def follow_preset(settings: Study, preset: str | None = None) -> str:
    """Return the preset that is asked, else that of the study's run, else that of its file.

    Raises:
        TargetError: another tuner is at work on the study; its storage may be half made.
    """
    if preset is not None or not settings.folder.exists():
        return preset or settings.preset
    with locked(settings):
        begun = open_begun(settings)
    began_with = None if begun is None else begun.recall(PRESET)
    return began_with or settings.preset


def settle_plan(
    settings: Study,
    storage: Storage | None,
    *,
    preset: str,
    minutes: float | None = None,
    trials: int | None = None,
) -> Plan:
    """Return the plan of a preset within the budget, which may be changed while a study runs.

    Raises:
        UsageError: the time is too short for the preset's shortest run.
    """
    plan, budget = settings.plan(preset), minutes or settings.minutes
    if settings.hosts is not None:
        plan = plan.on(len(settings.hosts.names))
    if budget is not None and budget < plan.least_minutes and not has_verdict(storage):
        remedy = "Allow more time" + ("." if preset == "quick" else ", or use --preset quick.")
        raise UsageError(
            f"minutes: {budget:g} minutes are too few: the shortest run of the preset {preset!r} takes "
            f"{plan.least_minutes:.1f} minutes. {remedy}"
        )
    return plan.fit(minutes=budget, trials=trials if trials is not None else settings.trials)
