"""Measures the response curve of one parameter: interleaved blocks of fresh starts at several values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuner.campaign.blocks import measure_blocks
from tuner.campaign.progress import Progress, Silence
from tuner.commands.contests.compare import prepare_as_begun
from tuner.commands.contests.interleaved import Interleaved, open_beside, refuse_too_little_time
from tuner.commands.contests.sweep_plan import plan_sweep
from tuner.errors import TargetError
from tuner.interrupts import signals_interrupt
from tuner.measure.garbage_collection import short_collections
from tuner.ports import Scalar
from tuner.records import Role, Start
from tuner.report.sweep import Sweep, gather_sweep
from tuner.report.wording import say_duration
from tuner.space.parameters import identifier
from tuner.statistics.curves.sweep import Sweeping, judge_sweep
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study import Study
from tuner.study.facts import SWEEP, SweepPlan
from tuner.study.lock import locked
from tuner.study.presets import PRESETS
from tuner.study.side_storages import SWEEPS
from tuner.study.storage import Opening

MINUTES: Mapping[str, float] = {"quick": 4.0, "standard": 20.0, "thorough": 60.0}
"""Of a sweep under each preset, when nothing else is asked."""


def sweep(  # noqa: PLR0913 - given by name, and most are left out
    settings: Study,
    parameter: str,
    *,
    values: Sequence[Scalar] | None = None,
    around: str | None = None,
    at: str = DEFAULT_ARM,
    minutes: float | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Measure the response curve of one parameter, go on with an interrupted one, or read a finished one.

    Its starts are kept in a storage of their own beside the study's, from which no search learns.

    Args:
        settings: the study whose space and load are used.
        parameter: what is varied; what follows from it follows.
        values: at which it is measured; by default a grid over its range, or all its choices.
        around: `default` or `winner`, for a finer grid around the value that it has there.
        at: `default` or `winner`: what the other settings are.
        minutes: wall time of the whole sweep; by default 4, with longer presets 20 or 60.
        preset: for how long each start is loaded; the study file's own by default.
        progress: told what happens.

    Raises:
        UsageError: there is no such parameter, or a value that is out of its range or that a rule forbids.
        TargetError: the machine cannot run it, or the control failed twice in a row.
    """
    progress = progress or Silence()
    name = preset or settings.preset
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        planned = plan_sweep(settings, setup, parameter, values=values, around=around, at=at)
        plan = PRESETS[name].under(settings.load.connections)
        budget = minutes or MINUTES[name]
        refuse_too_little_time(len(planned.values), "values", plan, budget)
        begin = identifier(planned.parameter)
        storage = open_beside(settings, setup, plan, folder=SWEEPS, name=begin, fact=SWEEP, asked=planned)
        maximized.tell(storage)
        measuring = Measuring(
            setup=setup, planned=planned, storage=storage, plan=plan, minutes=budget, progress=progress
        )
        if measuring.has_time_for_a_block():
            measuring.announce()
            with setup.target.hold(progress.note), short_collections():
                measuring.measure()
    return gather_sweep(settings, setup.space, storage)


@dataclass(kw_only=True)
class Measuring(Interleaved):
    """A sweep while it is measured."""

    planned: SweepPlan

    def has_time_for_a_block(self) -> bool:
        """Return whether something is left to tell, and time enough to tell it."""
        wanted = self.judge().wanted()
        return bool(wanted) and self.has_time(len(wanted))

    def judge(self) -> Sweeping:
        return judge_sweep(
            self.planned, self.starts, self.setup.settings.constraints, seed=self.setup.settings.seed
        )

    def announce(self) -> None:
        """Say what is to come and how long it takes."""
        values, left_s = len(self.planned.values), self.time_left_s()
        self.progress.note(
            f"{self.planned.parameter}: {values} values in blocks of fresh starts, about "
            f"{int(left_s / self.expected_s())} starts in all, {say_duration(left_s)} at the most"
        )
        for said in self._doubts():
            self.progress.note(said)

    def _doubts(self) -> list[str]:
        """Return what makes a sweep less telling than it may seem."""
        space, settings = self.setup.space, self.setup.settings
        inert = {**space.inert, **space.inert_but_tuned}.get(self.planned.parameter)
        said = [f"{self.planned.parameter} cannot act under this load: {inert}"] if inert else []
        if settings.objective.cost is not None:
            said.append(f"of two objectives the first is swept; {settings.objective.cost} is shown beside it")
        return said

    def measure(self) -> None:
        """Measure block after block until nothing is left to tell or the time is over.

        Raises:
            TargetError: the control failed twice in a row.
        """
        control = self.planned.arms[self.planned.control]
        failed = measure_blocks(
            self._choose, self._make, seed=f"{self.setup.settings.seed}/{self.planned.parameter}",
            first=self.next_block, has_time=self.has_time, wait_until_quiet=self.wait_until_quiet,
        )  # fmt: skip
        if control in failed:
            raise TargetError(f"sweep: the {self.planned.at} failed twice in a row. {failed[control]}")

    def _choose(self, failed: Mapping[str, str]) -> Sequence[str]:
        arms = self.planned.arms
        if arms[self.planned.control] in failed:
            return ()
        return [arms[index] for index in self.judge().wanted() if arms[index] not in failed]

    def _make(self, arm: str, block: int) -> Start:
        index = self.planned.arms.index(arm)
        name, value = self.planned.parameter, self.planned.values[index]
        opening = Opening(role=Role.SWEEP, config=self.planned.configs[index], arm=arm, block=block)
        return self.make(opening, f"{name} {self.setup.space.show(name, value)}")
