"""Robustness checks: whether a candidate bears loads that it was not tuned on, from a few pairs. Pure.

A few seconds say little, and requests fail in bursts. So a candidate is rejected only for an outage: half of
its goodput is lost beyond the noise, or its failures are an outage with 95 % probability. Everything less is
said beside the winner, with its figures.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from scipy.special import stdtrit

from tuner.ports import Config
from tuner.records import CheckLoad, Window
from tuner.statistics.failure_rate import Counts, FailureRate, FailureRates

Finding = Literal["holds", "undecided", "slower", "fails more", "loses", "fails"]
"""Of one check load, the mildest first. The last two reject a candidate."""
Verdict = Literal["holds", "loses", "fails"]
LOSS = 0.05
"""A loss up to here needs no words unless it is beyond the noise."""
OUTAGE_SHARE = 0.05
"""Share of failed requests from which on a configuration is out of order, whatever bound a study has."""
OUTAGE_RATIO = 0.5
"""Goodput relative to the default below which a configuration is out of order."""
NOTICED_RATE = 0.001
"""Fewer failures are none that anybody would look for."""
NOTABLY = 2.0
"""A failure rate that is not so many times the default's is no new failure."""
PRIOR_DEGREES = 8.0
"""Degrees of freedom that the study's own noise is worth: check loads may be noisier, and with two pairs that
hardly shows."""
ALPHA = 0.10
"""Two-sided, for the intervals of all check loads together (Bonferroni)."""
OPEN = 0.25
"""Probability of an outage from which on another pair is worth its time."""
UNCLEAR = (0.2, 0.9)
"""Between these probabilities of notably more failures, another pair is worth spare time."""
WARNED = 0.7
"""Probability of notably more failures from which on they are told.

Simulated, up to five pairs, 200 checks of four loads each: where the rates of trials scatter by 0.4 (SD of
the logarithm), ten times the failures were told in 100 %, and equal failures of 0.2 to 1 % in 0.5 to 1.5 %.
Where they scatter by 1.0, it was 96 % and 12 to 15 %.
"""
FAILING = 0.5
"""Probability from which on the default is taken to be out of order itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one configuration gave under one check load."""

    goodput_rps: float
    """Geometric mean over its trials; 0 when nothing was answered in one of them."""
    failed: int
    asked: int
    settling_s: float = 0.0
    """How long it made room at first, in the slowest of its trials; that is no part of the rest."""

    @property
    def failure_rate(self) -> float:
        return self.failed / self.asked if self.asked else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Default and candidate under one check load."""

    check_load: CheckLoad
    default: Side
    candidate: Side
    ratio: float
    """Goodput of the candidate over the default's."""
    low: float
    high: float
    finding: Finding

    p_outage: float = 0.0
    """Probability that its failures are an outage."""
    p_more_failures: float = 0.0
    """Probability that it fails notably more than the default, and so often that anybody looks for it."""

    @property
    def is_rejected(self) -> bool:
        return self.finding in {"loses", "fails"}

    @property
    def is_warning(self) -> bool:
        """Whether something got worse, or may have, and is told beside the winner."""
        return self.finding in {"undecided", "slower", "fails more"}

    @property
    def is_open(self) -> bool:
        """Whether it may be an outage, so that another pair is worth its time."""
        return not self.is_rejected and (self.p_outage >= OPEN or self.ratio < OUTAGE_RATIO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """A candidate and the default under loads that nothing was tuned on."""

    config: Config
    """The candidate."""
    checked: tuple[Checked, ...]
    left_out: Mapping[str, str]
    """Check load → why nothing is known of it."""
    pairs: int
    failure: str | None = None
    """Why the candidate could not even be started, or ended by itself."""
    host: str = ""
    """Of several hosts the one that shows it alone."""

    @property
    def verdict(self) -> Verdict:
        """Return the worst that was found."""
        found = {each.finding for each in self.checked}
        if self.failure is not None or "fails" in found:
            return "fails"
        return "loses" if "loses" in found else "holds"

    @property
    def is_rejected(self) -> bool:
        return self.verdict != "holds"

    @property
    def warnings(self) -> tuple[Checked, ...]:
        """Return where something got worse, or may have."""
        return tuple(each for each in self.checked if each.is_warning)

    @property
    def is_open(self) -> bool:
        """Whether another pair may yet reject it."""
        return not self.is_rejected and any(each.is_open for each in self.checked)

    @property
    def is_unclear(self) -> bool:
        """Whether another pair may tell if it fails more than the default."""
        low, high = UNCLEAR
        return not self.is_rejected and any(low <= each.p_more_failures < high for each in self.checked)


def describe(found: Robustness) -> str:
    """Say what speaks against a candidate: where it fails, or else loses most."""
    if found.failure is not None:
        return f"under the check loads it {found.failure}"
    against = [each for each in found.checked if each.finding == found.verdict]
    if not against:
        return "it passes the robustness check"
    worst = min(against, key=lambda each: each.ratio)
    default, candidate, where = worst.default, worst.candidate, f" on {found.host}" if found.host else ""
    return (
        f"with {worst.check_load.name}{where} the default serves {default.goodput_rps:,.0f} requests/s and "
        f"fails {100 * default.failure_rate:.3g} %, the candidate serves {candidate.goodput_rps:,.0f} "
        f"requests/s and fails {100 * candidate.failure_rate:.3g} %"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPairs:
    """What was measured under one check load."""

    check_load: CheckLoad
    pairs: Sequence[tuple[Sequence[Window], Sequence[Window]]]
    """Windows of the default's trial and of the candidate's, pair by pair; every side has one at least."""
    settling_s: tuple[float, float] = (0.0, 0.0)
    """How long default and candidate made room before these windows."""


def judge_check_loads(
    measured: Sequence[CheckedPairs], *, count: int, pair_sd: float, failure_limit: float
) -> tuple[Checked, ...]:
    """Compare both sides under every check load.

    Failure rates of all check loads are learned together: how much trials differ is common to them.

    Args:
        measured: each check load that was.
        count: how many there are in all, which share the error rate.
        pair_sd: SD of the log ratio of a pair under the study's own load.
        failure_limit: share of failed requests that is an outage.
    """
    counts: dict[Hashable, list[Counts]] = {
        (at, side): [Counts.of(pair[side]) for pair in each.pairs]
        for at, each in enumerate(measured)
        for side in (0, 1)
    }
    rates = FailureRates(counts)
    return tuple(
        _judge(
            each, rates.of((at, 0)), rates.of((at, 1)), alpha=ALPHA / count, pair_sd=pair_sd,
            failure_limit=failure_limit,
        )
        for at, each in enumerate(measured)
    )  # fmt: skip


def _judge(
    measured: CheckedPairs, of_default: FailureRate, of_candidate: FailureRate, *, alpha: float,
    pair_sd: float, failure_limit: float,
) -> Checked:  # fmt: skip
    logs = [_log(theirs) - _log(own) for own, theirs in measured.pairs]
    mean, reach = fmean(logs), _reach(logs, pair_sd, alpha)
    checked = Checked(
        check_load=measured.check_load,
        default=_side(measured, 0, of_default),
        candidate=_side(measured, 1, of_candidate),
        ratio=math.exp(mean), low=math.exp(mean - reach), high=math.exp(min(mean + reach, LARGEST_LOG)),
        finding="holds",
        p_outage=_p_above(of_candidate, of_default, failure_limit),
        p_more_failures=_p_above(of_candidate, of_default, min(NOTICED_RATE, failure_limit)),
    )  # fmt: skip
    # Where the default is out of order, it serves fewer clients and so those more easily.
    default_fails = _p_above(of_default, of_candidate, failure_limit) >= FAILING
    return replace(checked, finding=_find(checked, sure=1 - alpha / 2, default_fails=default_fails))


def _find(checked: Checked, *, sure: float, default_fails: bool) -> Finding:
    if checked.p_outage >= sure:
        return "fails"
    if checked.high < OUTAGE_RATIO and not default_fails:
        return "loses"
    if checked.p_more_failures >= WARNED:
        return "fails more"
    if default_fails or (checked.ratio >= 1 - LOSS and checked.high >= 1):
        return "holds"
    return "slower" if checked.high < 1 else "undecided"


def _p_above(one: FailureRate, other: FailureRate, limit: float) -> float:
    """Return the probability that a rate is above a limit and notably above another rate."""
    return 1 - one.at_most_that_of(other, factor=NOTABLY, least=limit)


LARGEST_LOG = 700.0
"""What a float can hold."""


def _side(measured: CheckedPairs, at: int, rate: FailureRate) -> Side:
    trials = [pair[at] for pair in measured.pairs]
    served = all(any(window.correct for window in windows) for windows in trials)
    return Side(
        goodput_rps=math.exp(fmean(_log(windows) for windows in trials)) if served else 0.0,
        failed=rate.failed,
        asked=rate.requests,
        settling_s=measured.settling_s[at],
    )


def _log(windows: Sequence[Window]) -> float:
    return fmean(window.log_goodput for window in windows)


def _reach(logs: Sequence[float], pair_sd: float, alpha: float) -> float:
    """Return the half-width of the t interval of a mean, its variance pooled with what is known already."""
    mean = fmean(logs)
    degrees = PRIOR_DEGREES + len(logs) - 1
    squares = PRIOR_DEGREES * pair_sd**2 + sum((log - mean) ** 2 for log in logs)
    return float(stdtrit(degrees, 1 - alpha / 2)) * math.sqrt(squares / degrees / len(logs))
