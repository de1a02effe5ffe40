"""A contest in words: who leads, by how much, what is told apart and what is not."""

from collections.abc import Sequence
from itertools import combinations

from tuner.records import Metric
from tuner.report.contest import Contest
from tuner.report.wording import capitalize, say_duration, say_estimate, say_metric, say_number

MOST_NAMED = 3
"""Of those that lead together; more than that are counted."""


def name_leader(contest: Contest) -> str:
    """Return who leads in one sentence: nginx tuned leads: 1.52× [1.48, 1.57] of h2o tuned."""
    leaders = contest.leaders
    if not leaders:
        return "No leader can be named: no configuration without a fault was measured often enough"
    if len(leaders) > MOST_NAMED:
        return f"No single leader: {len(leaders)} of {len(contest.arms)} configurations are not told apart"
    if len(leaders) > 1:
        return f"No single leader: {_list([contest.labels[each] for each in leaders])} are not told apart"
    (leader,) = leaders
    behind = [
        f"{say_estimate(found)} of {contest.labels[other]}"
        for other in _rivals(contest, leader)
        if (found := contest.pairs.estimates.get((leader, other))) is not None
    ]
    return f"{contest.labels[leader]} leads" + (f": {_list(behind)}" if behind else "")


def _rivals(contest: Contest, leader: int) -> list[int]:
    """Return what a leader is named against: the best of other studies; in one, next best and first."""
    if len(contest.plan.studies) > 1:
        return [each for each in _finalists(contest) if each != leader]
    ratios = {
        over: found.ratio
        for (over, under), found in contest.pairs.estimates.items()
        if under == leader and over not in contest.faults
    }
    best = max(ratios, key=lambda each: ratios[each], default=0)
    return [each for each in dict.fromkeys((best, 0)) if each != leader]


def list_claims(contest: Contest) -> list[str]:
    """Return what the contest says of the pairs that were asked for, a sentence for each."""
    asked: dict[frozenset[int], tuple[int, int]] = {}
    for over, under in _asked(contest):
        asked.setdefault(frozenset({over, under}), (over, under))
    return [claim for over, under in asked.values() if (claim := say_claim(contest, over, under))]


def _asked(contest: Contest) -> list[tuple[int, int]]:
    """Return the pairs that answer the question: between the best of the studies, and within each."""
    own: list[tuple[int, int]] = []
    for study in contest.plan.studies:
        baseline, *others = contest.of_study(study)
        own += [(each, baseline) for each in others]
        if contest.plan.is_stepwise:
            own += [(each, each - 1) for each in others[1:]]
    baselines = [contest.of_study(study)[0] for study in contest.plan.studies]
    return [*combinations(_finalists(contest), 2), *own, *combinations(baselines, 2)]


def _finalists(contest: Contest) -> list[int]:
    """Return the best of each study without fault; of a single study without steps all."""
    if len(contest.plan.studies) == 1 and not contest.plan.is_stepwise:
        return [each for each in range(len(contest.arms)) if each not in contest.faults]
    return [best for study in contest.plan.studies if (best := _best_of(contest, study)) is not None]


def _best_of(contest: Contest, study: str) -> int | None:
    """Return who stands for a study: its winner, or the best of its steps; None where all have faults."""
    baseline, *others = contest.of_study(study)
    estimates = contest.pairs.estimates
    ratios = {
        each: estimates[each, baseline].ratio
        for each in others
        if (each, baseline) in estimates and each not in contest.faults
    }
    if baseline not in contest.faults and contest.arms[baseline].trials:
        ratios[baseline] = 1.0
    if not contest.plan.is_stepwise and len(ratios) > 1:
        return others[-1]  # the winner that was confirmed stands for its study, whatever it gives today
    return max(ratios, key=lambda each: ratios[each], default=None)


def say_claim(contest: Contest, over: int, under: int) -> str:
    """Write what is known of one pair, the faster one first; nothing where it was not measured."""
    found = contest.pairs.estimates.get((over, under))
    if found is None:
        return ""
    if found.ratio < 1:
        over, under, found = under, over, contest.pairs.estimates[under, over]
    faster, slower = contest.labels[over], contest.labels[under]
    if found.low > 1:
        return f"{faster} is {say_estimate(found)} of {slower}"
    return f"{faster} and {slower} are not told apart: {say_estimate(found)}"


def say_effort(contest: Contest) -> str:
    """Write what was measured: 6 configurations, 8 blocks, 48 trials, 3 min 24 s."""
    return (
        f"{len(contest.arms)} configurations, {say_number(contest.blocks, 'block')}, "
        f"{contest.trials} trials, {say_duration(contest.seconds)}"
    )


def say_intervals(contest: Contest) -> str:
    """Write of what the ratios are, and what their intervals allow for."""
    planned = contest.pairs.planned
    what = capitalize(say_metric(contest.metric))
    if planned == 1:
        return f"{what}. The interval has 95 % confidence."
    return f"{what}. All {planned} intervals together have 95 % confidence (Bonferroni)."


def list_remarks(contest: Contest) -> list[str]:
    """Return what has to be known of the whole and of single entrants, a line for each."""
    bounds = [
        f"{label}: the load generator was the limit, so its goodput and its ratios are lower bounds"
        for label, arm in zip(contest.labels, contest.arms, strict=True)
        if arm.is_lower_bound and contest.metric is Metric.GOODPUT
    ]
    notes: dict[str, list[str]] = {}
    for label, entrant in zip(contest.labels, contest.plan.entrants, strict=True):
        for note in entrant.notes:
            notes.setdefault(note, []).append(label)
    own = [f"{_shorten(labels)}: {note}" for note, labels in notes.items()]
    faults = [f"{contest.labels[index]} is not named best: {why}" for index, why in contest.faults.items()]
    return [*contest.plan.notes, *own, *faults, *bounds]


def _shorten(labels: Sequence[str]) -> str:
    """Write of whom a remark is: one by its name, more by the first and how many there are."""
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"


def _list(parts: Sequence[str]) -> str:
    """Write parts as people enumerate them: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
