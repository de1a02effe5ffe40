"""What the search measures next: presets, the optimizer's suggestions, or the likely best once more."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tuner.campaign.experiment import Experiment
from tuner.optimize.optimizer import Observation, Point
from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.statistics.noise import trial_variance
from tuner.statistics.pareto import LEAST_VARIANCE, costs
from tuner.statistics.ranking import Entry, as_baselines, config_key
from tuner.study.objective import STARTED, slacks

PROMOTE_EVERY = 5
"""New configurations between two that may be measured again instead (the measurement protocol's share)."""
MOST_SUGGESTIONS = 100
"""Suggestions in a row that may break a constraint."""
MOST_KNOWN = 20
"""Suggestions in a row that may have been tried: then the space is taken for exhausted. Several points are
one configuration, as numbers are rounded; those that follow hints come first each time."""
LEAST_SUGGESTIONS = 30
NEGLIGIBLE = 0.002
"""Log points. After LEAST_SUGGESTIONS the search ends when the last few promised less than this each: it
costs more to measure them than they can bring. Of several workers, each costs a share of that time."""
IN_A_ROW = 5
MOST_RIVALS = 10
"""Configurations, the best ones, of which one may be measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A configuration to try, and what is expected of it."""

    config: Config
    expected_gain: float | None = None
    """Log points above the best so far, 0 where nothing new is left; None where nobody asked a model."""


def suggest(experiment: Experiment, count: int = 1) -> list[Proposal]:
    """Return presets not yet tried, or what the optimizer suggests and no constraint forbids.

    Each counts as begun for the next. There may be fewer than `count`, at least one.
    """
    space = experiment.setup.space
    begun = [*experiment.trials, *experiment.pending]
    tried = {config_key(trial.config) for trial in begun if trial.state is not State.INVALID}
    presets = [space.complete(preset.values) for preset in space.presets if preset.is_tried]
    untried = {config_key(config): config for config in presets if config_key(config) not in tried}
    proposals = [Proposal(config=config) for config in [*untried.values()][:count]]
    if len(proposals) == count:
        return proposals
    tried |= set(untried)
    observations = observe(experiment) + _expect(experiment, [each.config for each in proposals])
    while len(proposals) < count:
        proposal = _suggest(experiment, observations, tried)
        key = config_key(proposal.config)
        if key in tried:
            return proposals or [proposal]
        proposals.append(proposal)
        tried.add(key)
        observations += _expect(experiment, [proposal.config])
    return proposals


def _suggest(experiment: Experiment, known: Sequence[Observation], tried: Collection[str]) -> Proposal:
    """Return what was not tried; where all was, what is to be tried once more."""
    space, observations = experiment.setup.space, [*known]
    refused, seen = 0, 0
    for _ in range(MOST_SUGGESTIONS):
        suggestion = experiment.optimizer.suggest(
            space.dimensions, observations, seed=experiment.setup.settings.seed, refused=refused
        )
        # What is measured can ship as it is: with numbers that a person would write.
        config = space.round(space.decode(suggestion.point))
        is_allowed = not space.violations(config)
        if is_allowed and config_key(config) not in tried:
            return Proposal(config=config, expected_gain=suggestion.expected_gain)
        seen += is_allowed
        if seen == MOST_KNOWN:
            break
        twins = _twins(observations, suggestion.point, space.encode(config)) if is_allowed else []
        observations += twins
        refused += not twins
    return Proposal(config=_once_more(experiment), expected_gain=0.0 if seen == MOST_KNOWN else None)


def _twins(observations: Sequence[Observation], point: Point, measured: Point) -> list[Observation]:
    """Return what is known of a configuration under another of its points, which decodes to it as well."""
    if dict(point) == dict(measured):
        return []
    return [replace(seen, point=point) for seen in observations if dict(seen.point) == dict(measured)]


def _once_more(experiment: Experiment) -> Config:
    """Return, where all was tried, the one of those that may be the best that was measured least."""
    ranking = experiment.ranking()
    best = ranking.incumbent
    if best is None:
        return experiment.default
    rivals = [each for each in ranking.entries if each.posterior.interval()[1] >= best.posterior.ratio]
    return min(rivals, key=lambda entry: entry.trials).config


def observe(experiment: Experiment) -> list[Observation]:
    """Return what the optimizer learns from: the default and every trial, with today's speedups."""
    posterior = experiment.ranking().posterior
    if posterior is None:
        return []
    settings, space = experiment.setup.settings, experiment.setup.space
    baselines = _group_baselines(experiment)
    metric = settings.objective.cost
    paid = {} if metric is None else costs(experiment.trials, metric)
    _, variance = posterior.level(experiment.clock.time(), experiment.host)
    seen = [
        Observation(
            point=space.encode(experiment.default),
            log_ratio=0.0,
            variance=variance,
            constraints=_slacks_of_default(experiment),
            cost=(0.0, LEAST_VARIANCE) if paid else None,
        )
    ]
    counted = [trial for trial in experiment.trials if trial.counts and trial.log_value is not None]
    speedups = dict(zip((trial.number for trial in counted), posterior.speedups(counted), strict=True))
    # Where a winner is to hold on several hosts: as it would have been where that counts.
    shifts = dict(zip((trial.number for trial in counted), posterior.shifts(counted).tolist(), strict=True))
    for trial in experiment.trials:
        if trial.role is Role.BASELINE or trial.state is State.INVALID or not trial.role.is_under_study_load:
            continue
        speedup = speedups.get(trial.number)
        cost = paid.get(trial.number)
        seen.append(
            Observation(
                point=space.encode(trial.config),
                log_ratio=None if speedup is None else speedup.log_ratio + shifts[trial.number],
                variance=0.0 if speedup is None else speedup.variance,
                constraints=slacks(trial, settings.constraints, baselines.get(trial.host, ())),
                cost=None if cost is None else (cost.log_ratio, cost.variance),
            )
        )
    return [*seen, *_expect(experiment, [trial.config for trial in experiment.pending_under_load()])]


def _group_baselines(experiment: Experiment) -> dict[str, list[Trial]]:
    """Return the trials of the default that are measurements, by host."""
    groups: dict[str, list[Trial]] = {}
    for each in as_baselines(experiment.trials):
        if each.role is Role.BASELINE and each.counts:
            groups.setdefault(each.host, []).append(each)
    return groups


def _expect(experiment: Experiment, configs: Sequence[Config]) -> list[Observation]:
    """Return what is expected of trials that nobody has ended yet."""
    posterior = experiment.ranking().posterior
    if posterior is None:
        return []
    space, windows = experiment.setup.space, experiment.plan.windows[1]
    return [
        Observation(
            point=space.encode(config),
            log_ratio=gain.log_ratio,
            variance=trial_variance(posterior.seen.noise, windows),
            constraints={},
            is_pending=True,
        )
        for config, gain in zip(configs, posterior.gains_apart(configs), strict=True)
    ]


def _slacks_of_default(experiment: Experiment) -> dict[str, float]:
    """Return how far the default is above each bound: it keeps those that it has to keep."""
    kept = dict.fromkeys((STARTED, *map(str, experiment.setup.settings.constraints)), -1.0)
    baselines = experiment.baselines()
    for each in experiment.setup.settings.constraints:
        if each.default_may_fail and baselines:
            kept[str(each)] = fmean(each.slack(baseline, ()) for baseline in baselines)
    return kept


def promising_entry(experiment: Experiment) -> Entry | None:
    """Return, after every few new configurations, the one of which another trial would tell most.

    None where none tells enough to be worth it.
    """
    begun = [*experiment.trials, *experiment.pending]
    made = [trial.role for trial in begun if trial.state is not State.INVALID]
    new, repeats = made.count(Role.SEARCH), made.count(Role.REPEAT)
    ranking = experiment.ranking()
    rivals = ranking.entries[:MOST_RIVALS]
    if new < PROMOTE_EVERY * (repeats + 1) or ranking.posterior is None or not rivals:
        return None
    worth = ranking.posterior.worth_of_a_trial(
        [entry.config for entry in rivals],
        at_s=experiment.clock.time(),
        windows=experiment.plan.windows[1],
        host=experiment.host,
        pending=experiment.pending_under_load(),
    )
    return rivals[int(worth.argmax())] if worth.max() >= NEGLIGIBLE else None


def is_exhausted(expected: Sequence[float | None], workers: int = 1) -> bool:
    """Return whether the search has found what there is, by the expected gains of its suggestions.

    Of several workers each has to have promised too little, and what one of them tries takes little time. And
    a model knows each host's level only after some trials there; before, it takes all that it sees for noise.
    """
    in_a_row = max(IN_A_ROW, workers)
    last = _told(expected)[-in_a_row:]
    is_long = len(expected) >= workers * LEAST_SUGGESTIONS and len(last) == in_a_row
    return is_long and max(last) < NEGLIGIBLE / workers


def left_to_gain(expected: Sequence[float | None]) -> float | None:
    """Return the gain that another configuration promises, as a share; None where no model was asked."""
    told = _told(expected)
    return math.expm1(told[-1]) if told else None


def _told(expected: Sequence[float | None]) -> list[float]:
    """Return the known gains. That nothing is left, 0, holds until something is found all the same."""
    told: list[float] = []
    for gain in expected:
        if gain is None:
            told = [each for each in told if each > 0]
        else:
            told.append(gain)
    return told
