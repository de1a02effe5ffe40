"""The ablation: settings that do not pay are removed.

Each setting that ships is one more to read, to explain and to maintain, so it has a price. Sought is the
configuration with the most gain less the price of its settings, among the finalist and what is left of it
without some of its changes. Ablation analysis (Fawcett & Hoos 2016, doi 10.1007/s10732-014-9275-9) found
95 % of the gain in one to four parameters in all its scenarios.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tuner.campaign.experiment import Experiment
from tuner.campaign.progress import UNKNOWN
from tuner.campaign.stages.factorial import leave_out, plan_factorial
from tuner.campaign.stages.promotion import find_unmet
from tuner.campaign.stages.shortlist import (
    better,
    chance_to_pass,
    list_rejected,
    measure_what_tells_most,
)
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.statistics.observations import LEARNS_FROM, Observations
from tuner.statistics.posterior import Posterior
from tuner.statistics.ranking import config_key
from tuner.study.facts import REJECTED
from tuner.study.storage import Opening

UNHINTED_SHARE = 0.25
"""Share of an apparent effect that is there on average where experts named other settings and not
this one: most of those do nothing, and lead by luck. On 48 drawn servers such settings of 2 to 3 % had no
effect, of 3 to 6 % a quarter of that; hinted ones had the effect that they seemed to have."""
LEAST_NO_WORSE = 0.2
"""Probability with which a reduction fails no more than the finalist, at the least."""
PRICE_SHARE = 0.1
"""Of a setting at the most, as a share of the gain: where there is little to gain, little things count."""

IDLE_PRICES = 3.0
"""Prices that a setting has to bring whose effect may be nothing. Chosen from the trials of
55 quick studies of drawn servers, where the mean alone decides: 0.47 settings a claim that do nothing instead
of 0.84, and 98 % of the gain. With `SURE` and the time that there is, studies reach 0.93 (27 claims)."""
SURE = 0.7
"""Probability that a setting has any effect from which on it stays, however little it brings."""
NEGLIGIBLE = math.log(1.005)
"""Log points that are nothing to anybody."""

Array = NDArray[np.float64]


def ablate(experiment: Experiment, finalist: Config) -> Config:
    """Measure what is left of a finalist without some of its changes; return the best by gain less price."""
    chosen = finalist
    while True:
        experiment.enter("ablation", _count_made(experiment), UNKNOWN)
        configs = _candidates(experiment, chosen)
        trial = None
        if experiment.schedule.has_time_for(2):  # the last one is for what is left without idle settings
            trial = _tell_apart(experiment, chosen) or measure_what_tells_most(
                experiment, Role.ABLATION, configs, seconds=2 * experiment.plan.ablation_s,
                bonus=_bonus(experiment, finalist, configs),
            )  # fmt: skip
        chosen = _choose(experiment, finalist, configs)
        if trial or _measure_unproven(experiment, chosen) or experiment.wait_for_others():
            continue
        break
    best = _choose(experiment, finalist, [finalist, *_shippable(experiment, _candidates(experiment, chosen))])
    return _drop_idle(experiment, best)


def _count_made(experiment: Experiment) -> int:
    return sum(each.role is Role.ABLATION for each in experiment.trials)


def _tell_apart(experiment: Experiment, config: Config) -> Trial | None:
    """Make a factorial trial within half of the stage's time; None where that is over, or none is missing."""
    schedule = experiment.schedule
    if schedule.spent_s(Role.ABLATION) + schedule.mean_cost_s() > experiment.plan.ablation_s:
        return None
    trial = plan_factorial(experiment, config)
    return None if trial is None else experiment.make(Opening(role=Role.ABLATION, config=trial))


def _drop_idle(experiment: Experiment, config: Config) -> Config:
    """Put back what the posterior cannot tell from nothing; what is left is measured before it ships."""
    while True:
        reduced = _leave_out_idle(experiment, config)
        if not _measure_unproven(experiment, reduced) and not experiment.wait_for_others():
            break
    return reduced if _shippable(experiment, [reduced]) else config


def _leave_out_idle(experiment: Experiment, config: Config) -> Config:
    """Leave out, one after the other, settings with little effect and perhaps none.

    Drawn kernels, because the most probable one is too sure of what acts.
    """
    space = experiment.setup.space
    seen = Observations.of(space, [each for each in experiment.trials if each.role in LEARNS_FROM])
    if seen is None or experiment.ranking().feasibility.default_fails:
        return config
    kernels = Posterior.sample(space, seen, seed=experiment.setup.settings.seed, hosts=experiment.hosts)
    rejected = list_rejected(experiment)
    while True:
        without = [leave_out(space, config, {name}) for name in space.changes(config)]
        reduced = [each for each in without if each is not None and config_key(each) not in rejected]
        if not reduced:
            return config
        means, chances = _lose(kernels, config, reduced)
        idle = (means < IDLE_PRICES * experiment.setup.settings.line_price) & (chances < SURE)
        if not idle.any():
            return config
        config = reduced[int(np.where(idle, means, np.inf).argmin())]


def _lose(kernels: Sequence[Posterior], config: Config, reduced: Sequence[Config]) -> tuple[Array, Array]:
    """Return what each reduction loses, in log points, and the probability that it is more than nothing."""
    contrast = np.hstack([np.ones((len(reduced), 1)), -np.eye(len(reduced))])
    means, chances = [], []
    for kernel in kernels:
        gains, covariances = kernel.gains([config, *reduced], is_rough=False)
        means.append(contrast @ gains)
        deviations = np.sqrt(np.maximum((contrast @ covariances @ contrast.T).diagonal(), 1e-12))
        chances.append(ndtr((means[-1] - NEGLIGIBLE) / deviations))
    return np.mean(means, axis=0), np.mean(chances, axis=0)


def _candidates(experiment: Experiment, config: Config) -> list[Config]:
    """Return a configuration with each of its changes left out, and with ever more of the least effect."""
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
    rejected = list_rejected(experiment)
    return [each for key, each in found.items() if key not in rejected][:MOST_CANDIDATES]


def _reduce_refused(experiment: Experiment) -> list[Config]:
    """Return what is left of rejected configurations without one change, which may be to blame."""
    space = experiment.setup.space
    reduced = [
        leave_out(space, rejection.config, {name})
        for rejection in experiment.storage.recall(REJECTED) or ()
        for name in space.changes(rejection.config)
    ]
    return [each for each in reduced if each is not None]


MOST_CANDIDATES = 30


def _bonus(experiment: Experiment, finalist: Config, configs: Sequence[Config]) -> Array:
    """Return minus the price of each configuration's settings, shape (n,), in log points.

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
    if posterior is None or not list_rejected(experiment):
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
    """Measure what leads by the model alone, or may yet fail: nothing ships that was never seen to hold.

    Where it is to hold on several hosts, each sees to itself. Returns whether it was started.
    """
    if find_unmet(experiment, [config]) is None:
        at_it = {config_key(trial.config) for trial in experiment.pending}
        if config_key(config) in at_it or _shippable(experiment, [config], on=experiment.host):
            return False
    if experiment.ranking().feasibility.is_ruled_out(config) or not experiment.schedule.has_time_for(1):
        return False
    experiment.make(Opening(role=Role.ABLATION, config=config))
    return True
