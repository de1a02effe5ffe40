"""The confirmation: fresh default/winner pairs, and what may be claimed from them.

Only these pairs are reported: whatever chose the winner has looked at luck. Pairs are adjacent in time and
in random order, so drift and phases of a shared host hit both sides alike (Laaber, Scheuner & Leitner,
EMSE 2019, doi 10.1007/s10664-019-09681-1: interleaved on one instance, 10 % slowdowns are detected).

Under several loads, the weighted geometric mean of the ratios is one figure of every pair, with its own
interval. The worst ratio is above a bound when that of every load is: an intersection-union test, which needs
no correction for the number of loads (Berger, "Multiparameter hypothesis testing and acceptance sampling",
Technometrics 24, 1982).

Under bursts t on the log ratios stays calibrated: both sides are hit alike, so a difference is symmetric,
and heavy tails make t careful, not bold (simulated: 95–97 % coverage with 5–10 % of windows hit, 6 to 20
pairs). What bursts and slow phases cost is width, and more, shorter pairs mend that: see `noise.size_pairs`.

Stalls of the winner alone are another matter, because few pairs may hold none. Simulated with 4 to 16 pairs,
σ = 0.04 a trial, and a winner that truly gains nothing on average: one that loses 0.3 log points in every
twentieth trial is "improved" in 5–7 %, one that loses half of its goodput in every tenth in 18–37 %, instead
of 2.5 % at the most. No test on so few pairs can tell such a winner; more pairs can.

Symbols: dᵢ log of winner over default in pair i of n; d̄ their mean, s `log_sd` their standard deviation. The
interval is exp(d̄ ± t · s / √n), t the quantile of Student's t with n − 1 degrees of freedom at 1 − α / 2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from tuner.errors import UsageError
from tuner.records import Metric, Trial, name_loads, under_load
from tuner.records.blend import Across, AcrossHosts, Blend
from tuner.statistics.age import Age
from tuner.study.objective import METRICS

Verdict = Literal["improved", "bears the load", "no worse", "not proven", "worse", "overfitted", "infeasible"]
CLAIMS: tuple[Verdict, ...] = ("worse", "not proven", "no worse", "improved")
"""From the weakest to the strongest."""
ALPHA = 0.05
TWO_LOOKS_INTERVAL_ALPHA = 0.04
"""Error rate of each look's interval when a second may follow. At 0.05 the reported interval holds the truth
in 92–94 % of simulated A/A confirmations, because those that look unlucky are extended; at the claim's 0.025
in 97–98 % of those of a clear gain; at 0.04 in 94–96 % of either."""
MIN_GAIN = 0.01
MIN_PAIRS = 2
LARGEST_LOG = 700.0
"""Two pairs that contradict each other have no upper end that a float can hold."""
MOST_PAIRS = 400
"""More pairs are advice to nobody."""
EXACT_PAIRS = 40
"""Up to so many pairs all sign flips are counted; beyond, their sum is normal for all purposes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What the winner gives over what the default gives, from pairs: goodput, or what else is maximized."""

    ratio: float
    """The estimate: 1.34 is 34 % more."""
    low: float
    """Ends of the interval, which allows for a planned second look; both are ratios."""
    high: float
    """Upper end of the interval."""
    pairs: int
    """Pairs of trials that it rests on."""
    verdict: Verdict
    """Whether the gain is proven."""
    p_sign_flip: float
    """Two-sided p of the exact sign-flip test that the ratio is 1."""
    hodges_lehmann: float
    """Median ratio of all pairs of pairs; far from `ratio` when single pairs carry it."""
    log_sd: float
    """SD of the log ratio between pairs."""
    alpha: float
    """Two-sided error rate behind the verdict, at each look."""
    level: float = 1 - ALPHA
    """Probability with which `low` and `high` hold the truth, over all looks."""
    metric: Metric = Metric.GOODPUT
    """Of what it is the ratio."""
    age: Age | None = None
    """How long the servers had been under load; None where that is not known."""
    by_load: Mapping[str, "Gain"] = field(default_factory=dict)
    """Of several loads: load → the gain under it. Empty for one."""
    by_host: Mapping[str, "Gain"] = field(default_factory=dict)
    """Of several hosts for all of which it is to hold: host → the gain there. Empty for one."""
    p99: "Gain | None" = None
    """Ratio of the p99 in the same pairs: below 1 is better. None where it is not known."""

    @property
    def is_proven(self) -> bool:
        """Whether the winner may take the default's place: it serves more, or bears what that does not."""
        return self.verdict in {"improved", "bears the load"}


def pair_order(
    pairs: int, rng: Random, sides: tuple[str, ...] = ("default", "winner")
) -> list[tuple[str, ...]]:
    """Return which side comes first in each pair: at random, and balanced within every two pairs.

    So drift cancels on a short scale, and also when only the first pairs come to be measured.
    """
    forward, backward = sides, sides[::-1]
    order: list[tuple[str, ...]] = []
    while len(order) < pairs:
        order += rng.sample([forward, backward], 2)
    return order[:pairs]


def judge_pairs(pairs: Sequence[tuple[float, float]], *, looks: int = 1, total_alpha: float = ALPHA) -> Gain:
    """Judge pairs by the t interval of their log ratios.

    "improved" takes a lower bound above 1 and a ratio of at least 1 + `MIN_GAIN`; "no worse" a lower bound
    above 1 − `MIN_GAIN`; "worse" an interval wholly below 1. What pairs cannot show, that the winner breaks a
    constraint ("infeasible"), or keeps one that the default breaks ("bears the load"), is for others to say.

    Args:
        pairs: log goodput of default and winner, pair by pair.
        looks: how often the pairs are judged: twice when an extension is planned.
        total_alpha: two-sided error rate of the verdict over all looks, each of which gets an equal share
            (Bonferroni).

    Raises:
        UsageError: there are fewer than two pairs.
    """
    if len(pairs) < MIN_PAIRS:
        raise UsageError(f"confirmation: {len(pairs)} pairs give no interval. Measure at least {MIN_PAIRS}.")
    logs, alpha = np.asarray([winner - default for default, winner in pairs]), total_alpha / looks
    return _claim(
        logs, float(np.mean(logs)), float(np.std(logs, ddof=1)) / math.sqrt(len(logs)),
        degrees=len(logs) - 1, alpha=alpha, interval_alpha=alpha if looks == 1 else TWO_LOOKS_INTERVAL_ALPHA,
        level=1 - total_alpha,
    )  # fmt: skip


def _claim(
    logs: NDArray[np.float64],
    mean: float,
    error: float,
    *,
    degrees: float,
    alpha: float,
    interval_alpha: float,
    level: float,
) -> Gain:
    """Return what log ratios say, given their mean with its standard error."""
    reach = _quantile(interval_alpha, degrees) * error
    bound = math.exp(mean - _quantile(alpha, degrees) * error)
    high = math.exp(min(mean + reach, LARGEST_LOG))
    return Gain(
        ratio=math.exp(mean),
        low=math.exp(mean - reach),
        high=high,
        pairs=len(logs),
        verdict=_verdict(math.exp(mean), bound, high),
        p_sign_flip=p_sign_flip(logs),
        hodges_lehmann=math.exp(_walsh_median(logs)),
        log_sd=float(np.std(logs, ddof=1)),
        alpha=alpha,
        level=level,
    )


def judge_trials(
    pairs: Sequence[tuple[Trial, Trial]],
    blend: Blend | None,
    *,
    looks: int = 1,
    total_alpha: float = ALPHA,
) -> Gain:
    """Judge pairs of trials, default first; under several loads, each of them as well.

    A winner that is better under one load and worse under another, both beyond the noise, is "overfitted",
    whatever it gives together. `looks` and `total_alpha` are those of `judge_pairs`.

    Raises:
        UsageError: there are fewer than two pairs.
    """
    judge = partial(judge_pairs, looks=looks, total_alpha=total_alpha)
    together = judge(_logs(pairs))
    loads = name_loads([first for first, _ in pairs])
    if blend is None or not loads:
        return together
    by_load = {
        name: judge(_logs([(under_load(a, name), under_load(b, name)) for a, b in pairs])) for name in loads
    }
    found = _worst(by_load) if blend.across is Across.WORST else together
    return replace(found, by_load=by_load, verdict="overfitted" if is_overfitted(by_load) else found.verdict)


def judge_hosts(
    pairs: Mapping[str, Sequence[tuple[Trial, Trial]]],
    blend: Blend | None,
    across: AcrossHosts,
    *,
    looks: int = 1,
) -> Gain:
    """Judge pairs of trials that were made on several hosts: by the worst of them, or by their mean.

    The worst ratio is above a bound when that of every host is, as with several loads. The mean is that of
    these very hosts: what differs between them is no noise of it, only what differs within each.

    Args:
        pairs: host → its pairs, default first.
        blend: what counts of several loads; None for one.
        across: what counts of the hosts.
        looks: as of `judge_pairs`.

    Raises:
        UsageError: there are fewer than two pairs on a host.
    """
    by_host = {host: judge_trials(each, blend, looks=looks) for host, each in pairs.items()}
    if across is AcrossHosts.WORST:
        found = _worst(by_host)
    else:
        found = _average(by_host, [_logs(each) for each in pairs.values()])
    found = next((each for each in by_host.values() if each.verdict == "overfitted"), found)
    return replace(found, by_host=by_host)


def _average(by_host: Mapping[str, Gain], logs: Sequence[Sequence[tuple[float, float]]]) -> Gain:
    """Return the geometric mean of the ratios, each host counting the same.

    Its standard error is that of independent means, with the degrees of freedom of Welch and Satterthwaite
    (Biometrics Bulletin 2, 1946).
    """
    gains = [*by_host.values()]
    ratios = np.concatenate([[second - first for first, second in each] for each in logs])
    mean = sum(math.log(each.ratio) for each in gains) / len(gains)
    variances = np.asarray([(each.log_sd / len(gains)) ** 2 / each.pairs for each in gains])
    alpha = gains[0].alpha
    return _claim(
        ratios, mean, math.sqrt(float(variances.sum())),
        degrees=_degrees(variances, [each.pairs for each in gains]), alpha=alpha,
        interval_alpha=alpha if alpha >= ALPHA else TWO_LOOKS_INTERVAL_ALPHA, level=gains[0].level,
    )  # fmt: skip


def _degrees(variances: NDArray[np.float64], pairs: Sequence[int]) -> float:
    parts = variances**2 / (np.asarray(pairs) - 1)
    return float(variances.sum() ** 2 / parts.sum()) if parts.sum() > 0 else float(sum(pairs) - len(pairs))


def is_overfitted(by_load: Mapping[str, Gain]) -> bool:
    """Return whether there is a gain under one load and a loss under another, both beyond the noise."""
    return any(each.low > 1 for each in by_load.values()) and any(each.high < 1 for each in by_load.values())


def _worst(parts: Mapping[str, Gain]) -> Gain:
    """Return the smallest ratio; its bounds are the smallest of all parts, and so is what it claims."""
    gains = parts.values()
    return replace(
        min(gains, key=lambda each: each.ratio),
        low=min(each.low for each in gains),
        high=min(each.high for each in gains),
        verdict=min(
            (each.verdict for each in gains if each.verdict in CLAIMS), key=CLAIMS.index, default="worse"
        ),
    )


def _logs(pairs: Sequence[tuple[Trial, Trial]]) -> list[tuple[float, float]]:
    logs = ((first.log_value, second.log_value) for first, second in pairs)
    return [(first, second) for first, second in logs if first is not None and second is not None]


def _quantile(alpha: float, degrees: float) -> float:
    return float(stdtrit(degrees, 1 - alpha / 2))


def _verdict(ratio: float, bound: float, high: float) -> Verdict:
    if bound > 1 and ratio >= 1 + MIN_GAIN:
        return "improved"
    if high < 1:
        return "worse"
    return "no worse" if bound > 1 - MIN_GAIN else "not proven"


def needs_extension(gain: Gain) -> bool:
    """Return whether the planned extension may still turn the verdict into "improved".

    It may while the interval holds a gain worth a change and the winner is ahead at all; from behind, as
    many pairs again do not end above (in none of 1 500 simulated A/A confirmations).
    """
    is_open = not gain.is_proven and gain.verdict not in {"overfitted", "infeasible"}
    return is_open and gain.ratio > 1 and gain.high >= 1 + MIN_GAIN


def pairs_to_decide(gain: Gain) -> int | None:
    """Return how many pairs in all would decide, were ratio and spread what they seem to be.

    None when the ratio is too near to 1 for a verdict of `MOST_PAIRS` pairs.
    """
    mean = math.log(gain.ratio)
    if 0 <= mean < math.log1p(MIN_GAIN):
        return None
    alike = (n for n in range(gain.pairs + 1, MOST_PAIRS + 1) if _reach(gain, n) < abs(mean))
    return next(alike, None)


def _reach(gain: Gain, pairs: int) -> float:
    return _quantile(gain.alpha, pairs - 1) * gain.log_sd / math.sqrt(pairs)


def p_sign_flip(logs: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the two-sided p of the exact sign-flip test that the log ratios are symmetric around 0.

    The share of all 2ⁿ assignments of signs whose sum is as far from 0 as the one seen (Fisher, "The Design
    of Experiments", 1935, section 21). The sums of both halves of the pairs are enumerated apart and
    counted against each other in sorted order (Horowitz & Sahni, Journal of the ACM 21, 1974), so 2^(n/2)
    sums do for 2ⁿ.
    """
    values = np.asarray(logs, dtype=float)
    seen = abs(float(values.sum()))
    scale = float(np.abs(values).sum())
    if scale == 0:
        return 1.0
    if len(values) > EXACT_PAIRS:
        return float(2 * ndtr(-seen / math.sqrt(float(np.sum(values**2)))))
    # Sums that differ by rounding alone are ties, and ties count.
    threshold = seen - 1e-9 * scale
    middle = len(values) // 2
    first, second = _signed_sums(values[:middle]), np.sort(_signed_sums(values[middle:]))
    reaching = len(second) - np.searchsorted(second, threshold - first, side="left")
    # The distribution is symmetric: as many sums are as far on the other side.
    return min(1.0, 2 * int(reaching.sum()) / 2.0 ** len(values))


def _signed_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _walsh_median(values: NDArray[np.float64]) -> float:
    """Return the median of the means of all pairs of values, each with itself too (Hodges & Lehmann 1963)."""
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2))


P99_MS = "latency_p99_ms"


def compare_tails(first: Sequence[Trial], second: Sequence[Trial]) -> Gain | None:
    """Return p99 of the second side over that of the first; None where one is unknown, or loads are several.

    Args:
        first: trials of one configuration, of the default in a confirmation.
        second: those of the other, each of the same pair as the trial at its place in `first`.
    """
    logs = []
    for sides in zip(first, second, strict=True):
        before, after = (METRICS[P99_MS](trial) for trial in sides)
        if not before or not after:
            return None
        logs.append((math.log(before), math.log(after)))
    return judge_pairs(logs) if len(logs) >= MIN_PAIRS and not name_loads(first) else None
