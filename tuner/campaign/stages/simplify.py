"""The simplification: the smallest configuration by price.

Each line that ships is one more to read, to explain and to maintain, so it has a price. Sought is the
configuration with the most gain less the price of its lines, among the finalist and what is left of it
without some of its changes. Ablation analysis (Fawcett & Hoos 2016, doi 10.1007/s10732-014-9275-9) found
95 % of the gain in one to four parameters in all its scenarios.
"""

import math
from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from tuner.campaign.experiment import Experiment
from tuner.campaign.progress import UNKNOWN
from tuner.campaign.schedule import cost_s
from tuner.campaign.stages.factorial import leave_out, tell_apart
from tuner.campaign.stages.promotion import find_unmet
from tuner.campaign.stages.shortlist import (
    better,
    chance_to_pass,
    list_refused,
    measure_what_tells_most,
)
from tuner.ports import Config
from tuner.records import Role
from tuner.statistics.ranking import config_key
from tuner.study.facts import REFUSALS
from tuner.study.storage import Opening

UNHINTED_SHARE = 0.25
"""Of what a line seems to be worth, what it is worth on average, where experts named other settings and not
this one: most of those do nothing, and lead by luck. On 48 drawn servers such lines of 2 to 3 % were all
worth nothing, of 3 to 6 % a quarter of it; hinted ones were worth what they seemed to be."""
LEAST_NO_WORSE = 0.2
"""Probability with which a reduction fails no more than the finalist, at the least."""
PRICE_SHARE = 0.1
"""Of a line at the most, as a share of the gain: where there is little to gain, little things count."""


def simplify(experiment: Experiment, finalist: Config) -> Config:
    """Measure what is left of a finalist without some of its changes; return the best by gain less price."""
    factorial = tell_apart(experiment, finalist)
    seconds = experiment.plan.simplify_s + math.fsum(
        cost_s(each) for each in factorial if each.host == experiment.host
    )
    chosen = finalist
    for made in count(len(factorial)):
        experiment.enter("simplify", made, UNKNOWN)
        configs = _candidates(experiment, chosen)
        bonus = _bonus(experiment, finalist, configs)
        start = measure_what_tells_most(experiment, Role.ABLATION, configs, seconds=seconds, bonus=bonus)
        chosen = _choose(experiment, finalist, configs)
        if start or _measure_unproven(experiment, chosen) or experiment.wait_for_others():
            continue
        break
    return _choose(experiment, finalist, [finalist, *_shippable(experiment, _candidates(experiment, chosen))])


def _candidates(experiment: Experiment, config: Config) -> list[Config]:
    """Return a configuration with each of its changes left out, and with more and more of the least worth."""
    space, posterior = experiment.setup.space, experiment.ranking().posterior
    names = list(space.changes(config))
    found = {config_key(config): config}
    if posterior is None or len(names) < 2:  # noqa: PLR2004 - without its only change it is the default
        return [*found.values()]
    without = {name: leave_out(space, config, {name}) for name in names}
    reduced = {name: each for name, each in without.items() if each is not None}
    if reduced:
        left, _ = posterior.gains([*reduced.values()])
        order = [name for _, name in sorted(zip(-left, reduced, strict=True))]
        dropped = [leave_out(space, config, set(order[:length])) for length in range(2, len(names))]
        for each in (*reduced.values(), *dropped):
            if each is not None:
                found.setdefault(config_key(each), each)
    for each in (*_reduce_refused(experiment), *(entry.config for entry in better(experiment))):
        found.setdefault(config_key(each), each)
    refused = list_refused(experiment)
    return [each for key, each in found.items() if key not in refused][:MOST_CANDIDATES]


def _reduce_refused(experiment: Experiment) -> list[Config]:
    """Return what is left of rejected configurations without one change, which may be to blame."""
    space = experiment.setup.space
    reduced = [
        leave_out(space, refusal.config, {name})
        for refusal in experiment.storage.recall(REFUSALS) or ()
        for name in space.changes(refusal.config)
    ]
    return [each for each in reduced if each is not None]


MOST_CANDIDATES = 30


def _bonus(experiment: Experiment, finalist: Config, configs: Sequence[Config]) -> NDArray[np.float64]:
    """Return minus the price of each configuration's lines, shape (n,), in log points.

    After a rejection, each pays for the chance that it is rejected as well.
    """
    space, posterior = experiment.setup.space, experiment.ranking().posterior
    gain = posterior.gain(finalist).log_ratio if posterior is not None else 0.0
    # Where the default fails, the gain is to bear the load; it has no price in log points.
    default_fails = experiment.ranking().feasibility.default_fails
    most = math.inf if default_fails else PRICE_SHARE * max(gain, 0.0)
    price = min(math.log1p(experiment.setup.settings.line_price), most)
    hinted = {each.name for each in space.parameters if each.hint is not None}

    def price_of(name: str) -> float:
        return min(price / UNHINTED_SHARE, most) if hinted and name not in hinted else price

    prices = np.array([math.fsum(map(price_of, space.changes(config))) for config in configs])
    if posterior is None or not list_refused(experiment):
        return -prices
    chances = np.array([chance_to_pass(experiment, config) for config in configs])
    return np.asarray(-prices - np.maximum(posterior.gains(configs)[0], 0.0) * (1 - chances))


def _choose(experiment: Experiment, finalist: Config, configs: Sequence[Config]) -> Config:
    """Return the best by posterior mean less price, of those that are not known to fail."""
    ranking = experiment.ranking()
    alive = [
        each
        for each in configs
        if not ranking.feasibility.is_ruled_out(each)
        and ranking.feasibility.is_no_worse(each, finalist) >= LEAST_NO_WORSE
    ]
    if ranking.posterior is None or not alive:
        return finalist
    means, _ = ranking.posterior.gains(alive)
    return alive[int((means + _bonus(experiment, finalist, alive)).argmax())]


def _shippable(experiment: Experiment, configs: Sequence[Config], *, on: str = "") -> list[Config]:
    """Return the configurations that were measured and keep all constraints for all that is known.

    On one of several hosts where it is named, else on all of them.
    """
    ranking = experiment.ranking()
    known = ranking.feasibility.within(on)
    measured = {entry.key for entry in ranking.entries}
    return [config for config in configs if config_key(config) in measured and known.may_ship(config)]


def _measure_unproven(experiment: Experiment, config: Config) -> bool:
    """Start what leads by the model alone, or may yet fail: nothing ships that was never seen to hold.

    Where it is to hold on several hosts, each sees to itself. Returns whether it was started.
    """
    if find_unmet(experiment, [config]) is None:
        at_it = {config_key(start.config) for start in experiment.pending}
        if config_key(config) in at_it or _shippable(experiment, [config], on=experiment.host):
            return False
    if experiment.ranking().feasibility.is_ruled_out(config) or not experiment.schedule.has_time_for(1):
        return False
    experiment.make(Opening(role=Role.ABLATION, config=config))
    return True
