"""Longer windows for slow applications, by what the first trial of the default shows.

In a closed loop a client waits for one response after the other, so that a response takes as long as all
clients together take for one each (Little, Operations Research 9, 1961): connections / throughput. Windows
have to be longer than that, or most clients are cut off in the middle of their first response.
"""

import math
from collections.abc import Sequence
from statistics import median

from tuner.campaign.experiment import Experiment
from tuner.records import Role, State, Window
from tuner.study.facts import PACE, Pace
from tuner.study.presets import Plan

RESPONSE_TIMES, RESPONSES = 20, 200
"""A window has so many response times, or so many responses: whichever comes first."""
LEAST_RESPONSE_TIMES = 1.5
MEDIAN = 0.5
TRIAL_WINDOWS = 4
"""What a trial takes, in windows: its warm-up, two windows, and the time between them."""
FEW_TRIALS = 40
"""Fewer find little and prove only large gains."""
MOST_WINDOW_S = 30.0
MOST_SHARE = 1 / 75
"""Of a study's time, for one window: a study needs some sixty of them."""
GROWTH = 3.0
"""A default that answers nothing in one window gets one that is so many times as long."""


def settle_pace(experiment: Experiment) -> None:
    """Make windows longer, where the first trial of the default shows that they are too short."""
    if _is_settled(experiment):
        return
    plan, shape, baseline = experiment.plan, experiment.setup.load.shape, experiment.own_trials()[-1]
    failure = baseline.failure
    is_silent = baseline.state is State.FAILED and failure is not None and failure.kind == "stalled"
    response_s, window_s = choose_window(
        plan, baseline.valid_windows, clients=shape.connections * shape.streams, is_silent=is_silent
    )
    if window_s <= plan.window_s:
        return
    said = f"a response takes {response_s:.1f} s" if response_s else "no response came in time"
    if plan.keeps_window:
        experiment.progress.note(
            f"{said}: `window_s:` sets windows of {plan.window_s:g} s, and tuner would choose {window_s:g} s"
        )
        window_s = plan.window_s
        if not response_s:
            return
    since = max(trial.number for trial in (*experiment.trials, *experiment.pending)) + 1
    experiment.settle(PACE, Pace(window_s=window_s, response_s=response_s, since=since))
    experiment.progress.note(f"{said}: each window lasts {window_s:.0f} s, and the calibration starts again")
    trials = int(60 * experiment.plan.minutes / (TRIAL_WINDOWS * window_s))
    if trials < FEW_TRIALS:
        experiment.progress.note(
            f"the study has time for only about {trials} trials; allow more time with `--minutes`"
        )


def _is_settled(experiment: Experiment) -> bool:
    """Return whether windows have the length that they keep, or one that nobody but the study may change."""
    load, pace, trials = experiment.setup.load, experiment.storage.recall(PACE), experiment.own_trials()
    is_paced = pace is not None and (pace.response_s > 0 or experiment.plan.keeps_window)
    is_late = len(experiment.baselines()) > 1 or any(trial.role is not Role.BASELINE for trial in trials)
    is_by_time = load.requests_total is None and not load.beside and experiment.hosts is None
    return is_paced or is_late or not is_by_time or not trials


def choose_window(
    plan: Plan, windows: Sequence[Window], *, clients: int, is_silent: bool = False
) -> tuple[float, float]:
    """Return how long a response takes, 0 where that is not known, and how long a window is to be for it.

    Args:
        plan: of the study; a longer window than its time allows is not chosen, nor a shorter one than it has.
        windows: of the default.
        clients: requests under way at once.
        is_silent: whether nothing was answered at all.
    """
    longest_s = max(plan.window_s, min(MOST_WINDOW_S, MOST_SHARE * 60 * plan.minutes))
    response_s, wanted_s = _needed_s(windows, clients)
    if not response_s:
        wanted_s = GROWTH * plan.window_s if is_silent else plan.window_s
    return response_s, max(plan.window_s, float(min(math.ceil(wanted_s), math.floor(longest_s))))


def _needed_s(windows: Sequence[Window], clients: int) -> tuple[float, float]:
    """Return the response time of the default and the length of a window for it; 0 for what is not known."""
    correct, lasted_s = sum(each.correct for each in windows), sum(each.duration_s for each in windows)
    if not correct:
        return 0.0, 0.0
    throughput = correct / lasted_s
    known = (each.latency.quantiles_ms.get(MEDIAN) for each in windows if each.latency is not None)
    seen = [each_ms / 1000 for each_ms in known if each_ms is not None]
    # What the window before has left makes throughput low at first, but no response that came slow.
    response_s = min(clients / throughput, median(seen) if seen else math.inf)
    enough_s = min(RESPONSE_TIMES * response_s, RESPONSES / throughput)
    return response_s, max(enough_s, LEAST_RESPONSE_TIMES * response_s)
