"""Why a study ended as it did: the reason of every verdict but "improved", in a few sentences."""

import math
from collections import Counter
from collections.abc import Sequence

from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.records.blend import Hosts
from tuner.report.wording import say_duration, say_estimate, say_percent, say_ratio, say_speedup
from tuner.statistics.confirmation.paired_gain import MIN_GAIN, Gain, pairs_to_decide
from tuner.statistics.feasibility import EVERY_TRIAL, RULED_OUT, Assessment, Feasibility
from tuner.statistics.ranking import LIKELY, Ranking, as_baselines, config_key

PROBABLE = 0.5
"""Less likely to keep a constraint, a configuration is counted as one that broke it."""


def explain_gain(
    gain: Gain, doubts: Sequence[Assessment] = (), *, pair_s: float = 0.0, kept: Sequence[Assessment] = ()
) -> str:
    """Return why pairs gave this verdict; when they prove a gain, what else the winner bears.

    Args:
        gain: what the pairs gave.
        doubts: what keeps the winner from being shipped.
        pair_s: seconds that a pair took, to say how long more of them would take; 0 when that is not known.
        kept: what is known of the winner under the bounds that the default breaks.
    """
    if gain.is_proven:
        bears = [
            f"The default {each.finding_of_default}, the winner {_leave_verb(each.finding)}." for each in kept
        ]
        return " ".join([*bears, *_explain_hosts(gain)])
    said = [_explain_doubt(each) for each in doubts]
    if gain.verdict == "overfitted":
        return " ".join([*said, _explain_overfitting(gain)])
    if gain.low <= 1 or not said:
        said.append(_explain_pairs(gain, pair_s))
    return " ".join([*said, *_explain_hosts(gain)])


def _explain_hosts(gain: Gain) -> list[str]:
    """Return on which hosts the winner is not what it is on the others; nothing where it gains on all."""
    better = [host for host, each in gain.by_host.items() if each.verdict == "improved"]
    others = {host: each for host, each in gain.by_host.items() if host not in better}
    if not others or not better:
        return []
    spoiled = "; ".join(f"{host} {say_estimate(each)}, {each.verdict}" for host, each in others.items())
    least = min(gain.by_host[host].ratio for host in better)
    count = f"{len(better)} of {len(gain.by_host)} hosts"
    return [f"It gains on {count}, {say_ratio(least)} or more, but not on {spoiled}."]


def _explain_overfitting(gain: Gain) -> str:
    """Return under which loads the winner gains, and under which it loses."""
    better = [name for name, each in gain.by_load.items() if each.low > 1]
    worse = [f"{name} {say_estimate(each)}" for name, each in gain.by_load.items() if each.high < 1]
    return f"It is overfitted to {', '.join(better)}: it loses under {', '.join(worse)}."


def _explain_pairs(gain: Gain, pair_s: float) -> str:
    found = say_estimate(gain)
    if gain.high < 1:
        return f"The whole interval lies below 1: {found}."
    if gain.verdict == "no worse":
        return f"A loss of {say_percent(MIN_GAIN)} is ruled out, but no gain is shown: {found}."
    return f"No difference is proven: {found}, {say_percent(gain.level)} CI. {_say_more(gain, pair_s)}"


def _say_more(gain: Gain, pair_s: float) -> str:
    """Return how many fresh pairs would decide, were things as they seem."""
    needed = pairs_to_decide(gain)
    if needed is None:
        return "The ratio is so near to 1 that more pairs would hardly decide."
    time = f" ({say_duration(needed * pair_s)})" if pair_s else ""
    return f"If this ratio is real, about {needed} fresh pairs{time} would prove it."


def _explain_doubt(doubt: Assessment) -> str:
    if doubt.constraint == EVERY_TRIAL:
        return f"The default {doubt.finding_of_default}, the candidate {_leave_verb(doubt.finding)}."
    if doubt.probability < RULED_OUT:
        kept = f"it breaks {doubt.constraint}"
    else:
        kept = (
            f"it meets {doubt.constraint} with a probability of {say_percent(doubt.probability, 0)}, and "
            f"{say_percent(doubt.needed, 0)} is required"
        )
    candidate = _leave_verb(doubt.finding)
    return f"Over all trials the default {doubt.finding_of_default}, the candidate {candidate}: {kept}."


def _leave_verb(finding: str) -> str:
    """Return what is said of one side after the same was said of the other."""
    return (
        finding.removeprefix("fails to start or to serve the load ")
        .removeprefix("fails ")
        .removeprefix("serves ")
        .removesuffix(" of its requests")
    )


def explain_no_winner(
    trials: Sequence[Trial], ranking: Ranking, known: Feasibility, rejected: Sequence[Config] = ()
) -> str:
    """Return what became of the configurations that were tried, where none was worth confirming."""
    tried = {
        config_key(trial.config): trial.config
        for trial in as_baselines(trials)
        if trial.role is not Role.BASELINE and trial.state is not State.INVALID
    }
    if not tried:
        return "No configuration was tried."
    broken = Counter(
        worst.constraint
        for worst in (min(known.assess(config), key=_chance) for config in tried.values())
        if worst.probability < PROBABLE
    )
    said = [f"{len(tried)} configuration{'' if len(tried) == 1 else 's'} tried"]
    said += [
        f"{count} failed to start or to serve the load" if name == EVERY_TRIAL else f"{count} broke {name}"
        for name, count in broken.most_common()
    ]
    keys = {config_key(config) for config in rejected}
    likely = (entry for entry in ranking.entries if entry.p_feasible >= LIKELY and entry.key not in keys)
    best = next(likely, None)
    if best is not None:
        # After a rejection there may be no time left to confirm a better one.
        open_end = ", not confirmed either" if rejected and best.posterior.log_ratio > 0 else ""
        rest = " of the rest" if broken or rejected else ""
        said.append(f"the best{rest} is {say_speedup(best.posterior)} of the default{open_end}")
    return f"{', '.join(said)}."


def explain_spoiled(ranking: Ranking, hosts: Hosts) -> str:
    """Return which host spoils what gains on all others, where none was worth confirming; else nothing."""
    if ranking.posterior is None or not ranking.entries:
        return ""
    gains = ranking.posterior.gains_on([entry.config for entry in ranking.entries], hosts.names)
    by_entry = [dict(zip(hosts.names, column, strict=True)) for column in zip(*gains, strict=True)]
    best = max(by_entry, key=lambda on: sum(each.log_ratio for each in on.values()))
    worst = min(best, key=lambda host: best[host].log_ratio)
    least = min(each.log_ratio for host, each in best.items() if host != worst)
    if best[worst].log_ratio > 0 or least < math.log1p(MIN_GAIN):
        return ""
    return (
        f"The configuration with the best total gives {say_ratio(math.exp(least))} or more on each host but "
        f"{worst}, where it gives {say_speedup(best[worst])}."
    )


def _chance(assessment: Assessment) -> float:
    return assessment.probability
