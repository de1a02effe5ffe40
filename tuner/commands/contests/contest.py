"""Measures configurations of one or several studies against each other, in interleaved blocks of trials."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tuner.campaign.interleaved import Interleaved, Treatment, open_beside, trial_s
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.contests.compare import ComparedMetric, prepare_as_begun, resolve
from tuner.commands.session import follow_preset
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.report.contest import CONTESTS, Contest, gather_contest
from tuner.report.wording import say_duration
from tuner.space import Space
from tuner.statistics.arms.faults import count_whole_blocks, find_failure
from tuner.study import Study
from tuner.study.facts import CONTEST, ContestPlan, Entrant
from tuner.study.lock import locked
from tuner.study.presets import PRESETS

BLOCKS: Mapping[str, int] = {"quick": 8, "standard": 12, "thorough": 20}
"""Under each preset, when nothing else is asked. Their number is settled before the first: who stops when the
intervals look good has other intervals."""


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
        preset: for how long each trial is loaded; by default that of the study's run, else of its file.
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
        raise UsageError("compare: only one configuration is given. Name two or more.")
    name = follow_preset(settings, preset)
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        entrants = [
            Entrant(study=settings.name, name=title, config=config, notes=say_lacks(setup.space, config))
            for title, chosen in named.items()
            for config in (resolve(settings, setup, chosen),)
        ]
        return hold_contest(
            ContestPlan(entrants=tuple(entrants)), {settings.name: setup}, maximized=maximized,
            preset=name, blocks=blocks, progress=progress or NullProgress(),
        )  # fmt: skip


def hold_contest(
    planned: ContestPlan,
    setups: Mapping[str, Setup],
    *,
    maximized: ComparedMetric,
    preset: str,
    blocks: int | None = None,
    progress: Progress,
) -> Contest:
    """Measure the blocks that are missing, or read a contest that has them all.

    Its trials are kept in a storage of their own in the folder of the first study, from which no search
    learns. Whoever calls this holds the locks of all studies.

    Args:
        planned: the entrants.
        setups: of each study, by its name.
        maximized: what is compared.
        preset: for how long each trial is loaded.
        blocks: how many there are to be; by default 8, with longer presets 12 or 20.
        progress: told what happens.

    Raises:
        TargetError: the machine cannot run it, or is too noisy.
    """
    first, count = setups[planned.studies[0]], blocks or BLOCKS[preset]
    plan = max((setup.plan(preset) for setup in setups.values()), key=lambda each: each.window_s)
    storage = open_beside(
        first, plan, folder=CONTESTS, name="-".join(planned.studies)[:80],
        asked={
            "entrants": [(each.arm, dict(each.config)) for each in planned.entrants],
            "machines": [asdict(setup.fingerprint) for setup in setups.values()],
        },
    )  # fmt: skip
    maximized.tell(storage)
    storage.remember(CONTEST, planned)
    arms = [each.arm for each in planned.entrants]

    def choose(trials: Sequence[Trial], failed: Mapping[str, str]) -> Sequence[str]:
        live = [arm for arm in arms if arm not in failed and find_failure(arm, trials) is None]
        return live if count_whole_blocks(trials, arms) < count and len(live) > 1 else ()

    experiment = Interleaved(
        treatments={
            each.arm: Treatment(setup=setups[each.study], config=each.config) for each in planned.entrants
        },
        storage=storage, plan=plan, progress=progress, role=Role.CONTEST, choose=choose, blocks=count,
        seed=f"{first.settings.seed}/contest",
    )  # fmt: skip
    if experiment.is_open:
        progress.note(
            f"comparing {len(arms)} configurations in {count} blocks of fresh trials, about "
            f"{say_duration(experiment.left_s())}"
        )
        experiment.measure()
    settings = {name: setup.settings for name, setup in setups.items()}
    return gather_contest(settings, {name: setup.space for name, setup in setups.items()}, storage)


def say_lacks(space: Space, config: Config) -> tuple[str, ...]:
    """Return a sentence for everything in which an entrant has less capacity than the default."""
    return tuple(
        (f"this configuration has less capacity than the default: {lack}") for lack in space.lacks(config)
    )


def expect_s(entrants: int, preset: str, blocks: int | None = None) -> float:
    """Return the seconds that a contest is expected to take before anything was measured."""
    return entrants * (blocks or BLOCKS[preset]) * trial_s(PRESETS[preset])
