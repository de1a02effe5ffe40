"""Measures pairs until one of a few planned looks decides."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tuner.campaign.interleaved import trial_s
from tuner.campaign.stages.confirm import credit_bearing
from tuner.commands.contests.compare import Comparing
from tuner.errors import TargetError
from tuner.records import Trial
from tuner.report.regression import Measurement
from tuner.report.wording import say_duration
from tuner.statistics.arms.faults import find_faults
from tuner.statistics.arms.looks import Finding, alpha_of
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.feasibility import judge_feasibility
from tuner.study.objective import Constraint

ARM = "arm"


def measure_until_decided(
    comparing: Comparing,
    looks: tuple[int, ...],
    judge: Callable[[Gain], Finding],
    constraints: Sequence[Constraint],
    *,
    against: Finding,
) -> Measurement:
    """Measure the pairs of each look until one decides, or all are there.

    A second side that fails to start, or breaks a bound of the study, has lost, whatever else it gives.

    Args:
        comparing: both sides.
        looks: after how many pairs they are judged.
        judge: what the pairs of a look say, `cannot tell` to go on.
        constraints: of the study; relative ones are relative to the first side.
        against: the finding when something speaks against the second side.

    Raises:
        TargetError: the first side cannot be measured, or the host is too noisy.
    """
    first, second = comparing.sides
    most_s = 2 * looks[-1] * trial_s(comparing.plan)
    judged = " and ".join(map(str, looks))
    comparing.progress.note(
        f"at most {looks[-1]} pairs, about {say_duration(most_s)}; judged after {judged} pairs"
    )

    def find_fault() -> str | None:
        arms = {arm: {ARM: arm} for arm in comparing.sides}
        return find_faults(arms, arms[first], label_by_arm(comparing.trials), constraints).get(second)

    def look() -> tuple[Finding, Gain]:
        known = judge_feasibility(label_by_arm(comparing.trials), constraints, {ARM: first})
        gain = credit_bearing(comparing.judge(total_alpha=alpha_of(looks)), known)
        return judge(gain), gain

    failed = comparing.measure(
        looks[-1], lambda done: done in looks and (find_fault() is not None or look()[0] != "cannot tell")
    )
    fault = find_fault()
    if fault is not None:
        return Measurement(finding=against, comparison=None, fault=f"{second}: {fault}", most_pairs=looks[-1])
    if failed:
        raise TargetError(
            f"{comparing.stage}: {failed} The baseline of this comparison failed twice in a row. Correct the "
            "baseline first."
        )
    finding, gain = look()
    return Measurement(finding=finding, comparison=comparing.read(gain), fault="", most_pairs=looks[-1])


def label_by_arm(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials with their arm for a configuration.

    Two programs may have the same configuration, and what is known of one says nothing of the other.
    """
    return [replace(trial, config={ARM: trial.arm}) for trial in trials]
