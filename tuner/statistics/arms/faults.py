"""Arms that may not be named best: they fail to start, or break a constraint."""

from collections.abc import Mapping, Sequence

from tuner.ports import Config
from tuner.records import State, Trial
from tuner.statistics.feasibility import judge_feasibility
from tuner.study.objective import Constraint

MOST_FAILURES = 2
"""Failed trials in a row after which an arm is measured no more."""


def find_faults(
    arms: Mapping[str, Config], baseline: Config, trials: Sequence[Trial], constraints: Sequence[Constraint]
) -> Mapping[str, str]:
    """Return the arms that fail to start, or that break a constraint, with what was seen.

    Args:
        arms: name → configuration.
        baseline: what a relative bound is relative to.
        trials: of these arms, finished or not.
        constraints: of the study.
    """
    known = judge_feasibility(trials, constraints, baseline)
    found: dict[str, str] = {}
    for arm, config in arms.items():
        failure = find_failure(arm, trials)
        if failure is not None:
            found[arm] = failure
        elif known.is_ruled_out(config):
            worst = min(known.assess(config), key=lambda each: each.probability)
            found[arm] = f"{worst.finding}; the limit is {worst.constraint}"
    return found


def find_failure(arm: str, trials: Sequence[Trial]) -> str | None:
    """Return why an arm is measured no more: its last trials failed; None where they did not."""
    own = [trial for trial in trials if trial.arm == arm]
    ended = [trial for trial in own if trial.state not in {State.INVALID, State.RUNNING}]
    last = ended[-MOST_FAILURES:]
    if len(last) < MOST_FAILURES or any(trial.state is not State.FAILED for trial in last):
        return None
    failure = last[-1].failure
    return failure.reason if failure else "the configuration gave no measurement"


def count_whole_blocks(trials: Sequence[Trial], arms: Sequence[str]) -> int:
    """Return how many blocks hold every arm that did not fail."""
    held: dict[tuple[str, int | None], set[str]] = {}
    for trial in trials:
        if trial.counts:
            held.setdefault((trial.session, trial.block), set()).add(trial.arm)
    wanted = {arm for arm in arms if find_failure(arm, trials) is None}
    return sum(wanted <= found for found in held.values()) if wanted else 0
