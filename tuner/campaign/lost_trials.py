"""What was lost with its host or its worker is begun once more, and not a third time.

A configuration may be what took the machine down, and whoever is free next would begin it again: one host of
a fleet after the other. So it is noted when it is begun again. Lost again, with no measurement in between, it
has failed, without being put on another host; from that the model learns to keep away from its likes. Several
hosts that are lost at once, with the controller or the network between them, count once.
"""

from collections.abc import Sequence
from dataclasses import replace

from tuner.optimize.replay import distributions
from tuner.ports import Config
from tuner.records import Failure, State, Trial
from tuner.space import Space
from tuner.study.facts import BEGUN_AGAIN
from tuner.study.objective import Constraint, slacks
from tuner.study.storage import Opening, Storage

LOST = "interrupted"
"""Kind of the failure of a trial whose host or worker was lost (as `Storage.settle` has it, too)."""
STOPPED = "stopped"
"""Of one that somebody ended, or that could not be kept: nobody's fault on its host."""
GIVEN_UP = "lost"
REASON = "tuner lost the host or the worker twice during this trial, and does not repeat the trial"


def is_cut_off(trial: Trial, *kinds: str) -> bool:
    """Return whether a trial on one of several hosts was cut off, in one of these ways."""
    is_of_these = trial.failure is not None and trial.failure.kind in kinds
    return bool(trial.host) and trial.state is State.INVALID and is_of_these


def may_begin(storage: Storage, trials: Sequence[Trial], config: Config) -> bool:
    """Return whether a configuration may be begun; where it was lost before, that is noted.

    Args:
        storage: of the study.
        trials: all of them, those that others are at included.
        config: what is to be begun.
    """
    own = sorted((each for each in trials if dict(each.config) == dict(config)), key=lambda each: each.number)
    if any(each.failure is not None and each.failure.kind == GIVEN_UP for each in own):
        return False
    lost = _find_lost(own)
    if not lost:
        return True
    begun, first = storage.recall(BEGUN_AGAIN) or {}, str(lost[0].number)
    if first in begun:
        return lost[-1].number < begun[first]
    storage.remember(BEGUN_AGAIN, {**begun, first: 1 + max(each.number for each in trials)})
    return True


def give_up(
    storage: Storage,
    opening: Opening,
    *,
    space: Space,
    constraints: Sequence[Constraint],
    session: str,
    host: str,
) -> Trial:
    """Keep that a configuration has failed; nothing is put on a host."""
    spaces = distributions(space.dimensions) if opening.point else {}
    trial = storage.begin(opening, distributions=spaces, session=session, host=host)
    failed = replace(trial, state=State.FAILED, failure=Failure(kind=GIVEN_UP, reason=REASON))
    storage.end(failed, log_ratio=None, slacks=slacks(failed, constraints, ()))
    return failed


def _find_lost(trials: Sequence[Trial]) -> list[Trial]:
    """Return those of a configuration's trials that were lost since one was measured, or failed, last."""
    lost: list[Trial] = []
    for trial in trials:
        if is_cut_off(trial, LOST):
            lost.append(trial)
        elif trial.counts or trial.state is State.FAILED:
            lost.clear()
    return lost
