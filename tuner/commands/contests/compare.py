"""Measures two configurations in pairs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from secrets import token_hex

from tuner.campaign.interleaved import Interleaved, Treatment, open_beside
from tuner.campaign.pairs import Pairing, read_pairs
from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.progress import NullProgress, Progress
from tuner.campaign.trial_runner import name_session
from tuner.commands.session import follow_preset, read
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.ports import Config
from tuner.records import Metric, Role, Trial
from tuner.records.blend import Blend
from tuner.report.reasons import explain_gain
from tuner.report.summary import Comparison, gather_arms, pair_seconds
from tuner.space import Preset, Space
from tuner.space.problems import suggest
from tuner.statistics.age import find_age
from tuner.statistics.arms.faults import count_whole_blocks
from tuner.statistics.confirmation.paired_gain import ALPHA, Gain, compare_tails, judge_trials, pair_order
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.facts import BLEND, CONFIRMATION, METRIC, MOVED_LOAD, PACE
from tuner.study.lock import locked
from tuner.study.open_storage import is_there, open_storage
from tuner.study.presets import Plan
from tuner.study.storage import Storage

CANDIDATE = "candidate"
"""What a study found and did not ship, or did not prove."""


def compare(
    settings: Study,
    first: Config | str,
    second: Config | str,
    *,
    pairs: int | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure two configurations in adjacent pairs of fresh trials.

    Args:
        settings: the study whose space and load are used.
        first: `default`, `winner`, a preset's name, or parameter values; the gain is relative to it.
        second: the other.
        pairs: how many; the preset's number by default.
        preset: for how long each trial is loaded; by default that of the study's run, else of its file.
        progress: told what happens.

    Raises:
        UsageError: there is no such configuration, or the study is wrong.
        TargetError: the machine cannot run it, or a side failed twice in a row.
    """
    progress = progress or NullProgress()
    name = follow_preset(settings, preset)
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        sides = {"A": resolve(settings, setup, first), "B": resolve(settings, setup, second)}
        for chosen in (first, second):
            for sentence in name_adjusted(setup, chosen):
                progress.note(sentence)
        comparing = Comparing(
            setups=dict.fromkeys(sides, setup), sides=sides, maximized=maximized,
            preset=name, progress=progress,
        )  # fmt: skip
        failed = comparing.measure(pairs or comparing.plan.pairs)
    if failed:
        raise TargetError(f"compare: a configuration failed twice in a row. {failed}")
    return comparing.read()


@dataclass(kw_only=True)
class Comparing:
    """Two configurations while they are measured in pairs, in a storage of their own beside the study's.

    Whoever uses it holds the locks of the studies.
    """

    setups: Mapping[str, Setup]
    """Arm → where it is started. The storage lies beside the study of the first."""
    sides: Mapping[str, Config]
    """Two arms; the gain is of the second over the first."""
    maximized: "ComparedMetric"
    preset: str
    progress: Progress
    stage: str = "compare"
    trials: Sequence[Trial] = ()
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        """Settle how long each trial is loaded."""
        self.plan = self._first.plan(self.preset)

    @property
    def _first(self) -> Setup:
        return next(iter(self.setups.values()))

    def measure(self, pairs: int, is_decided: Callable[[int], bool] = lambda _: False) -> str | None:
        """Measure so many pairs, or fewer that decide; return the side that failed, with its reason."""
        storage = open_beside(
            self._first, self.plan, folder="comparisons", name=f"{name_session()}-{token_hex(4)}"
        )
        self.maximized.tell(storage)
        rng = Random(self._first.settings.seed)  # noqa: S311 - no secret
        arms, order = tuple(self.sides), pair_order(pairs, rng, sides=tuple(self.sides))

        def choose(trials: Sequence[Trial], failed: Mapping[str, str]) -> Sequence[str]:
            done = count_whole_blocks(trials, arms)
            return () if failed or done >= pairs or is_decided(done) else arms

        experiment = Interleaved(
            treatments={
                arm: Treatment(setup=self.setups[arm], config=config) for arm, config in self.sides.items()
            },
            storage=storage, plan=self.plan, progress=self.progress, role=Role.CONFIRM, stage=self.stage,
            choose=choose, blocks=pairs, seed="", order=lambda block, _: order[block],
        )  # fmt: skip
        self.trials = experiment.trials
        failed = experiment.measure()
        return next((f"{arm}: {reason}" for arm, reason in failed.items()), None)

    def judge(self, *, total_alpha: float = ALPHA) -> Gain:
        """Judge the pairs that there are. Raises UsageError when they are fewer than two."""
        pairing = Pairing(role=Role.CONFIRM, sides=self.sides, pairs=len(self.trials))
        pairs = read_pairs(self.trials, pairing)
        gain = judge_trials(pairs, self.maximized.blend, total_alpha=total_alpha)
        first, second = zip(*pairs, strict=True)
        return replace(
            gain, metric=self.maximized.metric, age=find_age(first, second), p99=compare_tails(first, second)
        )

    def read(self, gain: Gain | None = None) -> Comparison:
        """Return both sides with their gain; by default as it is judged in a single look."""
        gain = gain or self.judge()
        arms = gather_arms(self.sides, self.trials)
        lacks = {
            side: setup.space.lacks(arm.config)
            for side, arm, setup in zip(("first", "second"), arms, self.setups.values(), strict=True)
        }
        return Comparison(
            first=arms[0], second=arms[1], gain=gain,
            reason=explain_gain(gain, pair_s=pair_seconds(self.trials)),
            lacks={side: found for side, found in lacks.items() if found},
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """What a study maximizes, for a storage of its own beside the study's."""

    metric: Metric
    blend: Blend | None
    """What counts of several loads; None for one."""

    def tell(self, storage: Storage) -> None:
        """Let a storage read its windows so."""
        storage.remember(METRIC, self.metric)
        if self.blend is not None:
            storage.remember(BLEND, self.blend)


def prepare_as_begun(settings: Study) -> tuple[Setup, ComparedMetric]:
    """Prepare a study with place and pace of its load as its run settled them; return what it maximizes."""
    setup, study = prepare(settings), _open_study(settings)
    if study is None:
        return setup, ComparedMetric(metric=settings.objective.metric, blend=settings.blend)
    moved, pace = study.recall(MOVED_LOAD), study.recall(PACE)
    setup = setup if moved is None else setup.move(moved)
    maximized = ComparedMetric(metric=study.metric, blend=study.blend or settings.blend)
    return setup if pace is None else setup.at_pace(pace), maximized


def _open_study(settings: Study) -> Storage | None:
    """Open the study's own storage, which says how it compares; None before it has begun."""
    if not is_there(settings.storage_url):
        return None
    try:
        return open_storage(settings.storage_url, settings.name, create=False)
    except UsageError:
        return None


def name_adjusted(setup: Setup, chosen: Config | str) -> tuple[str, ...]:
    """Return a sentence for each value of a preset that is not used as it is written, and why."""
    preset = list_presets(setup.space).get(chosen) if isinstance(chosen, str) else None
    if preset is None:
        return ()
    return tuple(
        f"{chosen}: {name} differs from the preset: {why}" for name, why in preset[1].adjusted.items()
    )


def list_presets(space: Space) -> Mapping[str, tuple[Space, Preset]]:
    """Return name → preset, in order, with the space that completes it.

    One that has less capacity than the default is completed by the space in which it may.
    """
    free = space.open()
    presets = {preset.name: (space, preset) for preset in space.presets}
    return {preset.name: (free, preset) for preset in free.presets} | presets


def resolve(settings: Study, setup: Setup, chosen: Config | str) -> Config:
    """Turn `default`, `winner`, `candidate`, a preset's name or values into a whole, valid configuration.

    It may hold less than the default: to be measured is not to be shipped.

    Raises:
        UsageError: there is no such configuration, or a value of it is wrong.
    """
    if not isinstance(chosen, str):
        return _complete(setup, chosen)
    if chosen == DEFAULT_ARM:
        return setup.space.default()
    presets = list_presets(setup.space)
    if chosen in presets:
        space, preset = presets[chosen]
        return space.complete(preset.values)
    if chosen == CANDIDATE:
        return _find_candidate(settings)
    if chosen != WINNER_ARM:
        known = [DEFAULT_ARM, WINNER_ARM, CANDIDATE, *presets]
        raise UsageError(
            f"{chosen!r} is no configuration. {suggest(chosen, known)} Or give a YAML file of values."
        )
    storage = open_storage(settings.storage_url, settings.name, create=False)
    planned = storage.recall(CONFIRMATION)
    if planned is None:
        raise UsageError(f"{settings.name}: the study has no winner yet. Finish the study with `tuner run`.")
    return dict(planned.config)


def _find_candidate(settings: Study) -> Config:
    """Return what a study did not ship or did not prove. Raises UsageError where there is no such thing."""
    summary = read(settings, with_explanation=False).summary
    if summary.found is not None:
        return dict(summary.found.config)
    if summary.winner is None or summary.side != CANDIDATE:
        raise UsageError(
            f"{settings.name}: the study has no candidate: the study is not finished, its gain is proven, or "
            "nothing was rejected. To see its result, run `tuner show`."
        )
    return dict(summary.winner.config)


def _complete(setup: Setup, values: Config) -> Config:
    """Complete them as the study does, so that a winner's lines give the winner; else with less capacity.

    Raises UsageError when a value is wrong whatever has to be held.
    """
    try:
        return setup.space.complete(dict(values))
    except UsageError:
        return setup.space.open().complete(dict(values))
