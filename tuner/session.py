"""One session of work on a study: lock, prepare, run or resume, read. What scripts and notebooks call."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from tuner import __version__
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.confirm import Gain, claim
from tuner.optimize.catalogue import make_optimizer
from tuner.pairs import Pairing, measure_pairs
from tuner.plan import PRESETS, Plan
from tuner.ports import Config
from tuner.progress import Progress, Silence
from tuner.records import Role, Start
from tuner.rig import Rig, prepare
from tuner.settings import Study
from tuner.standing import DEFAULT_ARM
from tuner.starter import Starter
from tuner.storage import Opening, Storage, open_storage
from tuner.storage_url import sqlite_url
from tuner.study import Campaign
from tuner.summary import Arm, Summary, gather_arm, pick, summarize
from tuner.warm_start import read_warmth


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A study as it stands, and the rig that it is read with."""

    settings: Study
    rig: Rig
    summary: Summary

    def pick(self, number: int) -> "Reading":
        """Give the study with a choice of its front in the winner's place. Raises UsageError."""
        return replace(self, summary=pick(self.summary, number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two configurations measured in pairs; the gain is of the second over the first."""

    first: Arm
    second: Arm
    gain: Gain


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
        settings: the study, from `tuner.settings.load_study`.
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
        storage = open_storage(settings.storage_url, settings.name)
        storage.claim(rig.fingerprint, definition=settings.definition(rig.space))
        plan = settle_plan(settings, storage, preset=preset, minutes=minutes, trials=trials)
        if storage.recall("finished") is None:
            warmth = read_warmth(settings, rig.space)
            default = rig.space.encode(rig.space.default())
            optimizer = make_optimizer(settings.optimizer, default, first=warmth.first, good=warmth.good)
            session = f"{int(time.time())}-{os.getpid()}"
            campaign = Campaign(rig, plan, storage, optimizer, progress, session=session)
            with rig.target.hold(progress.note):
                verdict = campaign.run()
            storage.remember("finished", verdict)
        summary = summarize(settings, rig.space, storage, running=False, version=__version__)
    return Reading(settings=settings, rig=rig, summary=summary)


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
    """Recompute a study's summary from its storage, while it runs or after."""
    storage = open_storage(settings.storage_url, settings.name, create=False)
    rig = prepare(settings)
    summary = summarize(
        settings, rig.space, storage, running=is_locked(settings), version=__version__,
        with_sensitivity=with_sensitivity,
    )  # fmt: skip
    return Reading(settings=settings, rig=rig, summary=summary)


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
        first: `default`, `winner`, or parameter values; the gain is relative to it.
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
        folder.mkdir(parents=True, exist_ok=True)
        storage = open_storage(sqlite_url(folder / f"{session}.db"), settings.name)
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
        with rig.target.hold(progress.note):
            paired = measure_pairs(
                pairing, starts, make, lambda done, total: progress.stage("compare", done, total)
            )
    if paired.failed:
        msg = f"compare: a side failed twice in a row. {paired.failed}"
        raise TargetError(msg)
    arms = [
        gather_arm(config, [start for start in starts if start.arm == arm]) for arm, config in sides.items()
    ]
    return Comparison(first=arms[0], second=arms[1], gain=claim(paired.logs))


def resolve(settings: Study, rig: Rig, chosen: Config | str) -> Config:
    """Turn `default`, `winner` or values into a whole, valid configuration. Raises UsageError."""
    if not isinstance(chosen, str):
        return rig.space.complete(dict(chosen))
    if chosen == DEFAULT_ARM:
        return rig.space.default()
    storage = open_storage(settings.storage_url, settings.name, create=False)
    record = storage.recall("confirm")
    if record is None:
        msg = f"{settings.name}: there is no winner yet. Finish the study with `tuner run`."
        raise UsageError(msg)
    return dict(record["config"])


def settle_plan(
    settings: Study,
    storage: Storage,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
) -> Plan:
    """Give the plan that a study began with; the budget may be changed later, the protocol may not.

    Raises:
        UsageError: another preset is asked than the one that the study began with.
    """
    began_with = storage.recall("preset")
    name = preset or began_with or settings.preset
    if began_with is not None and name != began_with:
        msg = (
            f"{settings.name}: this study began with the preset {began_with!r}, not {name!r}. Go on with "
            f"--preset {began_with}, or give the study a new name."
        )
        raise UsageError(msg)
    if began_with is None:
        storage.remember("preset", name)
    return PRESETS[name].fit(
        minutes=minutes or settings.minutes, trials=trials if trials is not None else settings.trials
    )


@contextmanager
def locked(settings: Study) -> Iterator[None]:
    """Hold the study for one tuner. The kernel lets go of the lock when its holder dies.

    Raises:
        TargetError: another tuner holds it, or the folder cannot be written.
    """
    path = settings.folder / "lock"
    try:
        settings.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}). Check the folder's permissions and free space."
        raise TargetError(msg) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            msg = (
                f"{settings.path}: another tuner is at work on this study (process {holder}). "
                "Wait for it, or end it; then run the same command again."
            )
            raise TargetError(msg) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_locked(settings: Study) -> bool:
    """Say whether a tuner is at work on the study now."""
    try:
        with (settings.folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
