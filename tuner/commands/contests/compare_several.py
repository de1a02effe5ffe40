"""Measures several configurations of one study against each other, in interleaved blocks."""

from collections.abc import Mapping, Sequence

from tuner.campaign.progress import Progress, Silence
from tuner.commands.contests.compare import prepare_as_begun, resolve
from tuner.commands.contests.contest import hold_contest, say_lacks
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.ports import Config
from tuner.report.contest import Contest
from tuner.study import Study
from tuner.study.facts import ContestPlan, Entrant
from tuner.study.lock import locked


def compare_several(
    settings: Study,
    configurations: Sequence[str] | Mapping[str, Config | str],
    *,
    blocks: int | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Contest:
    """Measure several configurations in blocks, with intervals that hold for all pairs at once.

    Args:
        settings: the study whose space and load are used.
        configurations: `default`, `winner` and names of presets; or names of one's own for such, or for
            values. Relative bounds of the study are relative to the first.
        blocks: how many; by default 8, with longer presets 12 or 20.
        preset: for how long each start is loaded; the study file's own by default.
        progress: told what happens.

    Raises:
        UsageError: there is no such configuration, one is named twice, or the study is wrong.
        TargetError: the machine cannot run it, or is too noisy.
    """
    named = (
        configurations
        if isinstance(configurations, Mapping)
        else dict(zip(configurations, configurations, strict=True))
    )
    if len(named) < 2:  # noqa: PLR2004 - to compare takes two
        raise UsageError("compare: a single configuration is nothing to compare. Name two or more.")
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        entrants = [
            Entrant(study=settings.name, name=name, config=config, notes=say_lacks(setup.space, config))
            for name, chosen in named.items()
            for config in (resolve(settings, setup, chosen),)
        ]
        return hold_contest(
            ContestPlan(entrants=tuple(entrants)), {settings.name: setup}, maximized=maximized,
            preset=preset or settings.preset, blocks=blocks, progress=progress or Silence(),
        )  # fmt: skip
