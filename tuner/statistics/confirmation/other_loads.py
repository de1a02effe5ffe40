"""Whether a candidate holds under loads that it was not tuned on, from a few pairs of starts. Pure.

A few seconds say little: what counts as a loss has to be beyond the noise that the study knows, and above
5 %. So this finds outages and cliffs, not differences of a few percent; the interval says how much it sees.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from scipy.special import betainc, stdtrit

from tuner.ports import Config
from tuner.records import Situation, Window

Finding = Literal["holds", "loses", "fails"]
LOSS = 0.05
"""A loss up to here is told, and accepted."""
PRIOR_DEGREES = 8.0
"""Degrees of freedom that the study's own noise is worth: other loads may be noisier, and with two pairs that
hardly shows."""
ALPHA = 0.10
"""Two-sided, for the intervals of all situations together (Bonferroni). To pass over an equal candidate costs
little, as the next one is nearly as good; to ship an outage costs much."""
SURE = 0.95
"""Probability that a failure rate is above its bound."""
NOTABLY = 2.0
"""A failure rate that is not so many times the default's is no new failure: rates of starts differ by more
than their counts say."""
LEAST_STARTS = 2
"""One bad start is no failure of a configuration, where there is a second one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one configuration gave in one situation."""

    goodput_rps: float
    """Geometric mean over its starts; 0 when nothing was answered in one of them."""
    failed: int
    asked: int
    failing_starts: int
    """Starts whose own failure rate was above the bound."""
    starts: int
    settling_s: float = 0.0
    """How long it made room at first, in the slowest of its starts; that is no part of the rest."""

    @property
    def failure_rate(self) -> float:
        return self.failed / self.asked if self.asked else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Faced:
    """Default and candidate in one situation."""

    situation: Situation
    default: Side
    candidate: Side
    ratio: float
    """Goodput of the candidate over the default's."""
    low: float
    high: float
    finding: Finding

    @property
    def is_slower(self) -> bool:
        """Whether it is slower beyond the noise, however little."""
        return self.high < 1

    @property
    def is_doubtful(self) -> bool:
        """Whether that it holds should not be said without the figures."""
        return self.is_slower or self.ratio < 1 - LOSS


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLoads:
    """A candidate and the default under loads that nothing was tuned on."""

    config: Config
    """The candidate."""
    faced: tuple[Faced, ...]
    left_out: Mapping[str, str]
    """Situation → why nothing is known of it."""
    pairs: int
    failure: str | None = None
    """Why the candidate could not even be started, or ended by itself."""
    host: str = ""
    """Of several hosts the one that shows it alone."""

    @property
    def verdict(self) -> Finding:
        """Return the worst that was found."""
        found = {each.finding for each in self.faced}
        if self.failure is not None or "fails" in found:
            return "fails"
        return "loses" if "loses" in found else "holds"


def describe(met: OtherLoads) -> str:
    """Say what speaks against a candidate: where it fails, or else loses most."""
    if met.failure is not None:
        return f"under other loads the best {met.failure}"
    against = [each for each in met.faced if each.finding == met.verdict]
    if not against:
        return "the best holds under other loads"
    worst = min(against, key=lambda each: each.ratio)
    default, candidate, where = worst.default, worst.candidate, f" on {met.host}" if met.host else ""
    return (
        f"{worst.situation.name}{where}: the default serves {default.goodput_rps:,.0f} requests/s and fails "
        f"{default.failure_rate:.2%}, the best {candidate.goodput_rps:,.0f} and {candidate.failure_rate:.2%}"
    )


Sides = tuple[Sequence[Window], Sequence[Window]]
"""Windows of the default's start and of the candidate's, in one situation of one pair."""


def judge_situation(
    situation: Situation,
    pairs: Sequence[Sides],
    *,
    situations: int,
    pair_sd: float,
    failure_limit: float,
    settling_s: tuple[float, float] = (0.0, 0.0),
) -> Faced:
    """Compare both sides in one situation.

    Args:
        situation: what was sent.
        pairs: windows of both sides, pair by pair; every side has one at least.
        situations: how many there are in all, which share the error rate.
        pair_sd: SD of the log ratio of a pair under the study's own load.
        failure_limit: bound of the failure rate.
        settling_s: how long default and candidate made room before these windows.
    """
    default, candidate = (
        replace(_side([pair[at] for pair in pairs], failure_limit), settling_s=settling_s[at])
        for at in (0, 1)
    )
    logs = [_log(theirs) - _log(own) for own, theirs in pairs]
    mean, reach = fmean(logs), _reach(logs, pair_sd, ALPHA / situations)
    high = math.exp(min(mean + reach, LARGEST_LOG))
    fails = _is_failing(candidate, default, failure_limit)
    # Where the default fails, it serves fewer clients and so those more easily.
    loses = high < 1 and math.exp(mean) < 1 - LOSS and not _is_failing(default, candidate, failure_limit)
    return Faced(
        situation=situation, default=default, candidate=candidate,
        ratio=math.exp(mean), low=math.exp(mean - reach), high=high,
        finding="fails" if fails else "loses" if loses else "holds",
    )  # fmt: skip


LARGEST_LOG = 700.0
"""What a float can hold."""


def _side(starts: Sequence[Sequence[Window]], failure_limit: float) -> Side:
    failed = [sum(window.failures.total for window in windows) for windows in starts]
    asked = [
        failures + sum(window.correct for window in windows)
        for failures, windows in zip(failed, starts, strict=True)
    ]
    served = all(any(window.correct for window in windows) for windows in starts)
    return Side(
        goodput_rps=math.exp(fmean(_log(windows) for windows in starts)) if served else 0.0,
        failed=sum(failed),
        asked=sum(asked),
        failing_starts=sum(f > failure_limit * a for f, a in zip(failed, asked, strict=True)),
        starts=len(starts),
    )


def _log(windows: Sequence[Window]) -> float:
    return fmean(window.log_goodput for window in windows)


def _reach(logs: Sequence[float], pair_sd: float, alpha: float) -> float:
    """Return the half-width of the t interval of a mean, its variance pooled with what is known already."""
    mean = fmean(logs)
    degrees = PRIOR_DEGREES + len(logs) - 1
    squares = PRIOR_DEGREES * pair_sd**2 + sum((log - mean) ** 2 for log in logs)
    return float(stdtrit(degrees, 1 - alpha / 2)) * math.sqrt(squares / degrees / len(logs))


def _is_failing(candidate: Side, default: Side, limit: float) -> bool:
    """Return whether the candidate serves nothing where the default does, or fails above the bound."""
    if candidate.goodput_rps == 0:
        return default.goodput_rps > 0
    if candidate.failing_starts < min(LEAST_STARTS, candidate.starts):
        return False
    # The beta posterior of a rate under Jeffreys' prior.
    good = candidate.asked - candidate.failed
    below = float(betainc(candidate.failed + 0.5, good + 0.5, limit)) if limit < 1 else 1.0
    return 1 - below >= SURE and candidate.failure_rate > NOTABLY * default.failure_rate
