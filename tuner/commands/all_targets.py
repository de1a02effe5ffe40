"""Runs a study on all of its targets from one process, which alone decides; a worker for each measures."""

import multiprocessing
from importlib import import_module
from types import ModuleType

from tuner.campaign.progress import NullProgress, Progress
from tuner.commands import session
from tuner.commands.session import Reading
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.kit.packages import say_extra
from tuner.study import Study
from tuner.study.lock import locked


def run(
    settings: Study,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    progress: Progress | None = None,
    with_explanation: bool = True,
    scheduler: str | None = None,
) -> Reading:
    """Run a study to its end, resume it, or read it when it is finished; on all its targets at once.

    Args:
        settings: the study, from `load_study`.
        preset: quick, standard or thorough; the study file's own by default.
        minutes: wall time of the whole campaign, instead of the preset's.
        trials: search trials at the most, instead of the preset's.
        progress: told what happens.
        with_explanation: whether the summary explains the effect of each setting, which takes seconds.
        scheduler: address of a Dask scheduler whose workers measure, begun with `tuner worker`; None for
            workers of this process's own.

    Raises:
        UsageError: the study, or what belongs to it, is wrong.
        TargetError: a machine cannot run it, or another tuner is at work on it.
    """
    if settings.targets is None and scheduler is None:
        return session.run(
            settings, preset=preset, minutes=minutes, trials=trials, progress=progress,
            with_explanation=with_explanation,
        )  # fmt: skip
    if multiprocessing.parent_process() is not None:
        raise UsageError(
            f"{settings.path}: targets: a worker process called run() again while it imported your program. "
            'Put the call of run() below `if __name__ == "__main__":`.'
        )
    control = import_fleet("control")
    with locked(settings), signals_interrupt():
        if not session.has_verdict(session.open_begun(settings)):
            request = control.Request(
                settings=settings, progress=progress or NullProgress(), preset=preset, minutes=minutes,
                trials=trials,
            )  # fmt: skip
            control.control(request, scheduler)
    return session.read(settings, with_explanation=with_explanation)


def import_fleet(name: str) -> ModuleType:
    """Import a module that needs Dask, which takes a second. Raises TargetError where it is missing."""
    try:
        return import_module(f"tuner.commands.fleet.{name}")
    except ImportError as error:
        raise TargetError(
            f"several hosts: {error.name} is not installed. Install this package: {say_extra('fleet')}"
        ) from error
