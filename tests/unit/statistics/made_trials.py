"""Trials with the goodput that a test asks for."""

import math
from collections.abc import Sequence
from typing import Any

from tuner.ports import Config, Failures
from tuner.records import Blame, Role, State, Trial, Verdict, Window

BASE_RPS = 1e9
"""Goodput at a log goodput of 0 as tests write it: so many responses that rounding does not show."""
BASE = math.log(BASE_RPS)


def make_window(log: float, *, started_s: float = 0.0, valid: bool = True, failed: int = 0) -> Window:
    """Make one window of 1 s with this log goodput above `BASE`."""
    spoiled = Verdict(check="steal", blame=Blame.ENVIRONMENT, reason="spoiled by the test")
    correct = round(BASE_RPS * math.exp(log))
    return Window(
        started_s=started_s, duration_s=1.0, correct=correct, failures=Failures(status=failed),
        verdicts=() if valid else (spoiled,),
    )  # fmt: skip


def make_trial(
    logs: Sequence[float] | float,
    *,
    number: int = 0,
    at_s: float = 0.0,
    role: Role = Role.BASELINE,
    state: State = State.COMPLETE,
    config: Config | None = None,
    **others: Any,
) -> Trial:
    """Make a trial whose windows had these log goodputs, all in the second around `at_s`, above `BASE`."""
    every = [logs] if isinstance(logs, float | int) else logs
    return Trial(
        number=number,
        role=role,
        config=config or {},
        state=state,
        started_s=at_s,
        windows=tuple(make_window(log, started_s=at_s - 0.5) for log in every),
        **others,
    )
