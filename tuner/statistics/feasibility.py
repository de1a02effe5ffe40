"""Whether configurations keep the constraints of a study: a probability, given all their trials. Pure.

A share near its bound, judged trial by trial, is a lottery: whoever is tried often enough passes, and one bad
trial would ban the best. So every metric has a posterior. Failed requests are counted
(`statistics.failure_rate`, which counts failed trials, too); of other metrics the trials' logarithms are
averaged, with Student's t and a spread that is pooled over the configurations. A study that compares what the
server costs bounds goodput from below, too (`statistics.raw_goodput`).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtr, ndtri

from tuner.ports import Config
from tuner.records import State, Trial, name_loads, under_load
from tuner.records.blend import Hosts
from tuner.statistics.failure_rate import Counts, CredibleInterval, FailureRate, FailureRates
from tuner.statistics.metric_means import MetricMeans
from tuner.statistics.raw_goodput import LEAST_SHARE, RawGoodput, is_searched_by_cost
from tuner.study.objective import FAILURE_RATE, STARTED, Constraint

RULED_OUT = 0.05
"""Less likely than that to keep the constraints, a configuration is out; above, it is measured again."""
LEAST_RULING = 2
"""Trials that it takes for that: nobody is judged by one."""
MAY_SHIP = 0.9
"""What ships keeps the constraints with this probability at least."""
MAY_SHIP_AS_BEFORE = 0.5
"""The same where a bound is what the default has: of two equal rates nobody can be so sure that one is no
worse, and the default itself would not pass. Of simulated rates of 0.15 and 0.4 %, in 4 or 8 trials beside 10
or 14 of the default, equal ones pass in 77 to 90 %, those half as high again in 7 to 27 %, and those twice as
high in 3 % at the most; with 0.6 it was 70 to 87 %, 7 to 20 % and 2 %."""
LEAST_WITHOUT_FAILURE = 1000
"""Or not one of so many requests has failed: no study can show that a rate of 10⁻⁵ is kept, and more cannot
be asked."""
EVERY_TRIAL = "every trial works"
"""How the constraint that is a part of every study is called where people read it."""
GOODPUT_RPS = "goodput_rps"
SERVES_AS_MUCH = f"{GOODPUT_RPS} >= {LEAST_SHARE:g} × default"
"""The same of the one that is a part of every study by what the server costs."""


def combine(probabilities: Sequence[float]) -> float:
    """Return what several answers to one question say together (Stouffer 1949): 1 where all are certain."""
    bounded = [min(max(each, 1e-9), 1 - 1e-9) for each in probabilities]
    return float(ndtr(sum(map(ndtri, bounded)) / math.sqrt(len(bounded))))


def share_among(least: float, count: int) -> float:
    """Return what each of several has to reach, so that all do by chance as often as one reaches `least`.

    After Šidák 1967, of probabilities that are uniform where there is nothing to find.
    """
    return float(1 - (1 - least) ** (1 / count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What is known of one configuration under one constraint."""

    constraint: str
    metric: str
    probability: float
    """That it is kept. Trials that went wrong count against `STARTED` if any failed, else against the
    rate."""
    seen: CredibleInterval | None
    """None where the metric was not measured, and for `STARTED`."""
    limit: float | None
    """None for what the default has."""
    of_default: CredibleInterval | None
    finding: str
    """What was seen, in words: fails 0.28 % [0.21 %, 0.36 %] of its requests."""
    finding_of_default: str
    as_before: float = MAY_SHIP_AS_BEFORE
    """What is needed where the bound is what the default has."""

    @property
    def needed(self) -> float:
        """Probability with which what ships keeps it at the least."""
        is_relative = self.limit is None and self.metric != STARTED
        return self.as_before if is_relative else MAY_SHIP


def _say(metric: str, seen: CredibleInterval | None) -> str:
    if seen is None:
        return "was not measured"
    if metric == FAILURE_RATE:
        low, value, high = (say_share(each) for each in (seen.low, seen.value, seen.high))
        return f"fails {value} [{low}, {high}] of its requests"
    if metric == GOODPUT_RPS:
        return f"serves {seen.value:,.0f} [{seen.low:,.0f}, {seen.high:,.0f}] requests/s"
    return f"has {metric} {seen.value:.3g} [{seen.low:.3g}, {seen.high:.3g}]"


def say_share(share: float) -> str:
    """Write a share with two digits, but not 100 % as 1e+02."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"  # noqa: PLR2004 - what rounds to it


def _say_failed(rate: FailureRate) -> str:
    return f"fails to start or to serve the load {rate.failed_trials} times in {rate.trials}"


class Feasibility:
    """The probabilities that configurations keep the constraints."""

    def __init__(
        self,
        trials: Sequence[Trial],
        constraints: Sequence[Constraint],
        default: Config,
        *,
        n_hosts: int = 1,
    ) -> None:
        """Fit to all trials of a study, or on one of so many hosts; those under another load are no test."""
        self._ruled_out = share_among(RULED_OUT, n_hosts)
        self._as_before = share_among(MAY_SHIP_AS_BEFORE, n_hosts)
        self._n_hosts = n_hosts
        self._default = _key(default)
        self._constraints = tuple(constraints)
        self._of_rate = tuple(each for each in constraints if each.metric == FAILURE_RATE)
        groups: dict[Hashable, list[Trial]] = {self._default: []}
        for trial in trials:
            if trial.role.is_under_study_load and (trial.counts or trial.state is State.FAILED):
                groups.setdefault(_key(trial.config), []).append(trial)
        self._rates = FailureRates({key: [_count(trial) for trial in group] for key, group in groups.items()})
        self._metrics = {
            each.metric: MetricMeans.fit(each.metric, groups)
            for each in constraints
            if each.metric != FAILURE_RATE
        }
        is_by_cost = is_searched_by_cost(trials) and not self.default_fails
        self._goodput = RawGoodput.fit(groups, self._default) if is_by_cost else None

    @property
    def default_fails(self) -> bool:
        """Whether the default breaks, next to no doubt, a bound that it need not keep.

        Then it is no measure of what others have to serve: to serve few clients well is easy.
        """
        sought = [each for each in self._constraints if each.default_may_fail]
        trials = self._rates.of(self._default).trials
        return bool(sought) and trials >= LEAST_RULING and self._joint(sought, self._default) < RULED_OUT

    def within(self, part: str) -> "Feasibility":  # noqa: ARG002 - there are no parts
        """Return the same of one load or one host, by its name; of all where it names none."""
        return self

    def failure_rate(self, config: Config) -> FailureRate:
        """Return what is known of a configuration's failures."""
        return self._rates.of(_key(config))

    def probability(self, config: Config) -> float:
        """Return the probability that a configuration is sound and keeps all constraints.

        One that was never measured has what is likely of any.
        """
        return self._joint(self._constraints, _key(config)) * self._serves_as_much(_key(config))

    def is_ruled_out(self, config: Config) -> bool:
        """Return whether several trials leave next to no doubt that a configuration breaks a constraint."""
        trials = self._rates.of(_key(config)).trials
        return trials >= LEAST_RULING and self.probability(config) < self._ruled_out

    def may_ship(self, config: Config, *, as_before: float = MAY_SHIP_AS_BEFORE) -> bool:
        """Return whether a configuration keeps all constraints for all that can be known in a study.

        Args:
            config: the configuration.
            as_before: probability that it takes where a bound is what the default has.
        """
        rate = self._rates.of(_key(config))
        has_none = rate.failed == 0 and rate.requests >= LEAST_WITHOUT_FAILURE
        others = tuple(each for each in self._constraints if each.metric != FAILURE_RATE)
        return self._are_kept(self._constraints, config, as_before) or (
            has_none and self._are_kept(others, config, as_before)
        )

    def _are_kept(self, constraints: Sequence[Constraint], config: Config, as_before: float) -> bool:
        """Return whether constraints are kept as surely as what ships has to: bounds by numbers, then all."""
        key, numbers = _key(config), [each for each in constraints if each.limit is not None]
        if (numbers or not constraints) and self._joint(numbers, key) < MAY_SHIP:
            return False
        is_relative = len(numbers) < len(constraints) or self._goodput is not None
        kept = self._joint(constraints, key) * self._serves_as_much(key)
        return kept >= share_among(as_before, self._n_hosts) or not is_relative

    def is_no_worse(self, config: Config, than: Config) -> float:
        """Return the probability that a configuration fails no more often than another one, within tolerance.

        Where no constraint bounds the failure rate, nobody minds, and it is 1.
        """
        if not self._of_rate:
            return 1.0
        return self._at_most(self._rates.of(_key(config)), _key(config), _key(than))

    def assess(self, config: Config) -> tuple[Assessment, ...]:
        """Return what is known of a configuration: that it starts, and every constraint of the study."""
        key = _key(config)
        rate, default = self._rates.of(key), self._rates.of(self._default)
        started = Assessment(
            constraint=EVERY_TRIAL, metric=STARTED, seen=None, limit=None,
            probability=rate.p_sound if rate.failed_trials else 1.0,
            of_default=None, finding=_say_failed(rate), finding_of_default=_say_failed(default),
        )  # fmt: skip
        bounds = (self._assess(each, key, rate) for each in self._constraints)
        return (started, *bounds, *self._assess_goodput(key))

    def assess_sought(self, config: Config) -> tuple[Assessment, ...]:
        """Return what is known of a configuration under the bounds that the default need not keep."""
        key = _key(config)
        rate = self._rates.of(key)
        return tuple(self._assess(each, key, rate) for each in self._constraints if each.default_may_fail)

    def doubts(self, config: Config, *, as_before: float = MAY_SHIP_AS_BEFORE) -> tuple[Assessment, ...]:
        """Return what keeps a configuration from being shipped, the worst first; nothing when it may ship."""
        if self.may_ship(config, as_before=as_before):
            return ()
        least = share_among(as_before, self._n_hosts)
        found = sorted(
            (replace(each, as_before=least) for each in self.assess(config)),
            key=lambda each: each.probability,
        )
        return tuple(each for each in found if each.probability < each.needed) or (found[0],)

    def _assess(self, constraint: Constraint, key: Hashable, rate: FailureRate) -> Assessment:
        metric, kept = constraint.metric, self._probability(constraint, key, rate)
        if metric == FAILURE_RATE:
            default = self._rates.of(self._default)
            seen, of_default = (each.interval() if each.requests else None for each in (rate, default))
        else:
            means = self._metrics[metric]
            seen, of_default = means.interval(key), means.interval(self._default)
        return Assessment(
            constraint=str(constraint), metric=metric, limit=constraint.limit,
            probability=kept / rate.p_sound if metric == FAILURE_RATE and rate.failed_trials else kept,
            seen=seen, of_default=of_default, as_before=self._as_before,
            finding=_say(metric, seen), finding_of_default=_say(metric, of_default),
        )  # fmt: skip

    def _assess_goodput(self, key: Hashable) -> tuple[Assessment, ...]:
        """Return what is known of goodput where another metric is maximized; nothing where it is goodput."""
        if self._goodput is None:
            return ()
        seen, of_default = (self._goodput.interval(each, self._default) for each in (key, self._default))
        return (
            Assessment(
                constraint=SERVES_AS_MUCH, metric=GOODPUT_RPS, limit=None,
                probability=self._serves_as_much(key), seen=seen, of_default=of_default,
                as_before=self._as_before,
                finding=_say(GOODPUT_RPS, seen), finding_of_default=_say(GOODPUT_RPS, of_default),
            ),
        )  # fmt: skip

    def _serves_as_much(self, key: Hashable) -> float:
        return 1.0 if self._goodput is None else self._goodput.keeps(key, self._default)

    def _joint(self, constraints: Sequence[Constraint], key: Hashable) -> float:
        """Return the probability that a configuration is sound and keeps some of the constraints."""
        rate = self._rates.of(key)
        kept = {each: self._probability(each, key, rate) for each in constraints}
        # That it is sound is a part of every bound on the rate, and counts once.
        sound = min((p for each, p in kept.items() if each.metric == FAILURE_RATE), default=rate.p_sound)
        return sound * math.prod(p for each, p in kept.items() if each.metric != FAILURE_RATE)

    def keeps_numbers(self, key: Hashable) -> float:
        """Return the probability that a configuration is sound and keeps the bounds that are numbers."""
        return self._joint([each for each in self._constraints if each.limit is not None], key)

    def keeps_relative(self, key: Hashable) -> float:
        """Return the probability that it keeps the bounds that are what the default has."""
        relative = [each for each in self._constraints if each.limit is None]
        sound = self._rates.of(key).p_sound
        return min(1.0, self._joint(relative, key) / max(sound, 1e-9)) * self._serves_as_much(key)

    def _probability(self, constraint: Constraint, key: Hashable, rate: FailureRate) -> float:
        if constraint.metric != FAILURE_RATE:
            return self._metrics[constraint.metric].at_most(constraint, key, self._default)
        if constraint.limit is None:
            return self._at_most(rate, key, self._default)
        return rate.at_most(constraint.limit)

    def _at_most(self, rate: FailureRate, key: Hashable, other: Hashable) -> float:
        if key == other:
            return rate.p_sound
        factor, least = Constraint(metric=FAILURE_RATE, limit=None).tolerance
        return rate.at_most_that_of(self._rates.of(other), factor=factor, least=least)


class EveryFeasibility(Feasibility):
    """The same in several parts, loads or hosts: what is to be kept has to be kept in each of them."""

    def __init__(
        self,
        trials: Sequence[Trial],
        constraints: Sequence[Constraint],
        default: Config,
        *,
        parts: Mapping[str, Feasibility],
        n_hosts: int = 1,
    ) -> None:
        """Fit to what all trials of a study gave together; the parts are fitted to theirs."""
        self._in = dict(parts)
        super().__init__(trials, constraints, default, n_hosts=n_hosts)

    def within(self, part: str) -> Feasibility:
        return self._in.get(part, self)

    @property
    def default_fails(self) -> bool:
        return any(each.default_fails for each in self._in.values())

    def probability(self, config: Config) -> float:
        return min(each.probability(config) for each in self._in.values())

    def is_ruled_out(self, config: Config) -> bool:
        return any(each.is_ruled_out(config) for each in self._in.values())

    def may_ship(self, config: Config, *, as_before: float = MAY_SHIP_AS_BEFORE) -> bool:
        return all(each.may_ship(config, as_before=as_before) for each in self._in.values())

    def keeps_numbers(self, key: Hashable) -> float:
        return min(each.keeps_numbers(key) for each in self._in.values())

    def keeps_relative(self, key: Hashable) -> float:
        return min(each.keeps_relative(key) for each in self._in.values())

    def is_no_worse(self, config: Config, than: Config) -> float:
        return min(each.is_no_worse(config, than) for each in self._in.values())

    def assess(self, config: Config) -> tuple[Assessment, ...]:
        """Return that it starts, and every constraint under every load."""
        started, *_ = super().assess(config)
        bounds = (
            replace(found, constraint=f"{found.constraint} ({name})")
            for name, each in self._in.items()
            for found in each.assess(config)[1:]
        )
        return (started, *bounds)

    def assess_sought(self, config: Config) -> tuple[Assessment, ...]:
        return tuple(
            replace(found, constraint=f"{found.constraint} ({name})")
            for name, each in self._in.items()
            for found in each.assess_sought(config)
        )


class FeasibilityOnHosts(EveryFeasibility):
    """The same on several hosts, which answer together whether it is as with the default.

    Of two equal rates the chances are even on each host. So one alone is heard where it contradicts more than
    chance lets the most contrary of so many.
    """

    def probability(self, config: Config) -> float:
        """Return the probability that each host keeps the numbers, and all together what is relative."""
        key = _key(config)
        measured = [each for each in self._in.values() if each.failure_rate(config).trials]
        asked = measured or [*self._in.values()]
        return self.keeps_numbers(key) * combine([each.keeps_relative(key) for each in asked])

    def may_ship(self, config: Config, *, as_before: float = MAY_SHIP_AS_BEFORE) -> bool:
        together = combine([each.keeps_relative(_key(config)) for each in self._in.values()])
        is_kept = self._has_no_failure(config) or together >= as_before
        return is_kept and super().may_ship(config, as_before=as_before)

    def _has_no_failure(self, config: Config) -> bool:
        """Return whether none failed anywhere, so that there is nothing to compare but other metrics."""
        return all(each.failure_rate(config).failed == 0 for each in self._in.values())

    def is_no_worse(self, config: Config, than: Config) -> float:
        return combine([each.is_no_worse(config, than) for each in self._in.values()])


def judge_feasibility(
    trials: Sequence[Trial],
    constraints: Sequence[Constraint],
    default: Config,
    hosts: Hosts | None = None,
    *,
    n_hosts: int = 1,
) -> Feasibility:
    """Return the probabilities that configurations keep the constraints, under each load and on each host.

    Args:
        trials: of the study.
        constraints: of the study.
        default: the default configuration.
        hosts: for all of which the winner is to hold; None for one, or where any of several will do.
        n_hosts: of how many such hosts these are the trials of one.
    """
    if hosts is not None:
        groups = {name: [trial for trial in trials if trial.host == name] for name in hosts.names}
        parts = {
            name: judge_feasibility(group, constraints, default, n_hosts=len(groups))
            for name, group in groups.items()
        }
        return FeasibilityOnHosts(trials, constraints, default, parts=parts)
    names = name_loads(trials)
    if not names:
        return Feasibility(trials, constraints, default, n_hosts=n_hosts)
    parts = {
        name: Feasibility(
            [under_load(trial, name) for trial in trials], constraints, default, n_hosts=n_hosts
        )
        for name in names
    }
    return EveryFeasibility(trials, constraints, default, parts=parts, n_hosts=n_hosts)


def _key(config: Config) -> Hashable:
    """Return what equal configurations have in common; JSON may have turned 1.0 into 1."""
    return frozenset(config.items())


def _count(trial: Trial) -> Counts:
    """Return the counts of one trial. One that answered nothing failed all that was asked."""
    if not trial.counts:
        return Counts()
    counts = Counts.of(trial.valid_windows)
    return counts if counts.requests else Counts(failed=1, requests=1)
