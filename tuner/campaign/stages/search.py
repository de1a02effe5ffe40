"""The search: configuration after configuration, with baselines in between, until the budget is spent."""

import math
from collections.abc import Sequence

from tuner.campaign.baselines import made_at_a_jump, measure_baseline
from tuner.campaign.experiment import Experiment
from tuner.campaign.lost_trials import LOST, STOPPED, is_cut_off
from tuner.campaign.stages.promotion import find_promotion
from tuner.campaign.suggest import is_exhausted, left_to_gain, promising_entry, suggest
from tuner.measure.trial import NO_JUDGES, Judges
from tuner.ports import Config
from tuner.records import Role, State, Window
from tuner.statistics.noise import baseline_interval
from tuner.statistics.pruning import judge_warm_up, should_prune
from tuner.statistics.ranking import config_key
from tuner.study.facts import EXPECTED_GAINS, IS_SEARCHED, PLANNED, SearchPlan
from tuner.study.storage import Opening


def search(experiment: Experiment) -> None:
    """Try configurations, with a baseline trial every few, until the budget is spent."""
    storage, progress = experiment.storage, experiment.progress
    if storage.recall(IS_SEARCHED):
        return
    again = made_at_a_jump(experiment)
    while True:
        expected = [*(storage.recall(EXPECTED_GAINS) or ())]
        if not _goes_on(experiment, expected):
            if experiment.wait_for_others():
                continue  # what they are at may be lost, and is to be done then
            break
        experiment.enter("search", _searched(experiment), experiment.plan.trials)
        if lost := _find_lost(experiment):
            _try(experiment, Role.SEARCH, lost[0])
        elif again:
            _try(experiment, Role.REPEAT, again.pop(0))
            # A baseline trial right after each, to see which of them makes the machine change.
            again = measure_baseline(experiment) or again
        elif _is_baseline_due(experiment):
            again = measure_baseline(experiment)
        else:
            try_next(experiment, expected)
    own = experiment.own_trials()
    if not own or own[-1].role is not Role.BASELINE:
        measure_baseline(experiment)
    storage.remember(IS_SEARCHED, value=True)
    left = left_to_gain(expected)
    if left is not None:
        progress.note(
            f"the search ends, because further trials would gain only about {100 * left:.1f} % more"
        )


def _goes_on(experiment: Experiment, expected: Sequence[float | None]) -> bool:
    searched = _searched(experiment)
    if not searched:
        return True  # however little time there is: without any the study would answer nothing
    if is_exhausted(expected[: _ended(experiment)], workers=1 + len(experiment.pending)):
        return False
    return searched < experiment.plan.trials and experiment.schedule.has_time_to_search()


def _ended(experiment: Experiment) -> int:
    """Return how many new configurations were measured: whatever others are at was chosen without them."""
    return sum(trial.role is Role.SEARCH and trial.state is not State.INVALID for trial in experiment.trials)


def _searched(experiment: Experiment) -> int:
    return sum(
        trial.role in {Role.SEARCH, Role.REPEAT} and trial.state is not State.INVALID
        for trial in (*experiment.trials, *experiment.pending)
    )


def _find_lost(experiment: Experiment) -> list[Config]:
    """Return the configurations that were lost with their workers, and that nobody has begun since.

    What was to be measured once more is chosen anew.
    """
    begun = [*experiment.trials, *experiment.pending]
    return [
        trial.config
        for trial in experiment.trials
        if trial.role is Role.SEARCH and is_cut_off(trial, LOST, STOPPED)
        if not any(each.config == trial.config and each.number > trial.number for each in begun)
    ]


def _is_baseline_due(experiment: Experiment) -> bool:
    interval = baseline_interval(
        experiment.ranking().noise, experiment.schedule.mean_cost_s(), experiment.plan.windows[1]
    )
    since = 0
    for trial in reversed(experiment.own_trials()):
        if trial.role is Role.BASELINE:
            break
        since += trial.state is not State.INVALID
    return since >= interval


def try_next(experiment: Experiment, expected: list[float | None]) -> None:
    """Measure a new configuration, or once more the one that may be the best.

    The expected gains of new ones are added to `expected`, and kept.
    """
    repeat = find_promotion(experiment)
    if repeat is None and (entry := promising_entry(experiment)) is not None:
        repeat = entry.config
    if repeat is not None:
        _try(experiment, Role.REPEAT, repeat)
        return
    moment = experiment.clock.monotonic()
    config = find_planned(experiment) or plan_next(experiment, expected)
    _try(experiment, Role.SEARCH, config, suggest_s=experiment.clock.monotonic() - moment)


def find_planned(experiment: Experiment) -> Config | None:
    """Return the first configuration of the plan that nobody has begun; None where there is none."""
    plan = experiment.storage.recall(PLANNED)
    if plan is None:
        return None
    begun = [each.config for each in (*experiment.trials, *experiment.pending) if each.number >= plan.since]
    return next((config for config in plan.configs if config not in begun), None)


def plan_next(experiment: Experiment, expected: list[float | None]) -> Config:
    """Choose by all that is known: for this worker, and where many work, for those that come next."""
    numbers = [trial.number for trial in (*experiment.trials, *experiment.pending)]
    experiment.rank()
    moment = experiment.clock.monotonic()
    chosen = suggest(experiment, experiment.count_ahead())
    experiment.shared.suggest_s = experiment.clock.monotonic() - moment
    expected += [each.expected_gain for each in chosen]
    experiment.storage.remember(EXPECTED_GAINS, tuple(expected))
    first, *others = [each.config for each in chosen]
    if others:
        plan = SearchPlan(configs=tuple(others), since=1 + max(numbers))
        experiment.storage.remember(PLANNED, plan)
    return first


def _try(experiment: Experiment, role: Role, config: Config, *, suggest_s: float = 0.0) -> None:
    opening = Opening(role=role, config=config, point=experiment.setup.space.encode(config))
    experiment.make(opening, judges=_judges(experiment, config), suggest_s=suggest_s)


def _judges(experiment: Experiment, config: Config) -> Judges:
    ranking = experiment.ranking()
    posterior = ranking.posterior
    if posterior is None:
        return NO_JUDGES
    level, variance = posterior.level(experiment.clock.time(), experiment.host)
    best = ranking.incumbent
    rival = None if best is None or best.key == config_key(config) else best.posterior
    # What judges know goes to the target with them.
    noise, most = ranking.noise, experiment.plan.windows[1]

    def prune(windows: Sequence[Window]) -> str | None:
        verdict = should_prune(
            windows, level=level, level_variance=variance, incumbent=rival, noise=noise, max_windows=most
        )
        return f"clearly worse than the best so far (z = {verdict.z:.1f})" if verdict.prune else None

    # What a failing default serves to the few whom it serves is no measure for others.
    least = 0.0 if ranking.feasibility.default_fails else math.exp(level)
    return Judges(judge_warm_up=lambda window: judge_warm_up(window, least), prune=prune)
