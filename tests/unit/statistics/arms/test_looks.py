"""What planned looks decide, and how often they err."""

import math
from dataclasses import replace
from random import Random

import pytest

from tuner.errors import UsageError
from tuner.statistics.arms.looks import alpha_of, half_of, judge_lasting, judge_margin, plan_looks
from tuner.statistics.confirmation.paired_gain import Gain, judge_pairs

MARGIN = 0.03


def gain(low: float, high: float, **more: object) -> Gain:
    """Return a gain with these ends of its interval."""
    ratio = math.sqrt(low * high)
    found = judge_pairs([(0.0, math.log(ratio)), (0.0, math.log(ratio))])
    return replace(found, ratio=ratio, low=low, high=high, **more)


def run_gate(rng: Random, true_ratio: float, sd: float, most: int) -> str:
    """Measure simulated pairs until a look decides, as a gate does."""
    looks, pairs = plan_looks(most), []
    for count in looks:
        while len(pairs) < count:
            pairs.append((0.0, math.log(true_ratio) + rng.gauss(0.0, sd)))
        finding = judge_margin(judge_pairs(pairs, total_alpha=alpha_of(looks)), MARGIN)
        if finding != "cannot tell":
            break
    return finding


@pytest.mark.parametrize(
    ("most", "looks"),
    [(2, (2,)), (7, (7,)), (8, (4, 8)), (10, (5, 10)), (20, (5, 10, 20)), (32, (8, 16, 32))],
)
def test_looks_are_few_none_is_too_early_and_the_last_is_at_all_pairs(most: int, looks: tuple[int, ...]):
    assert plan_looks(most) == looks


def test_a_single_pair_has_no_interval():
    with pytest.raises(UsageError, match=r"pairs: 1 pairs are too few\. Give at least 2\."):
        plan_looks(1)


def test_what_is_slower_by_just_the_margin_passes_and_fails_rarely():
    rng = Random(1)  # noqa: S311 - no secret
    findings = [run_gate(rng, 1 - MARGIN, 0.03, 20) for _ in range(2000)]

    # 2.5 % on either side are allowed; the SD of a share of 2,000 is 0.35 %.
    assert findings.count("no slower") / len(findings) < 0.025 + 3 * 0.0035
    assert findings.count("slower") / len(findings) < 0.025 + 3 * 0.0035


@pytest.mark.parametrize(("true_ratio", "finding"), [(1.0, "no slower"), (0.9, "slower")])
def test_what_differs_from_the_bound_is_found_out(true_ratio: float, finding: str):
    rng = Random(2)  # noqa: S311 - no secret
    findings = [run_gate(rng, true_ratio, 0.02, 20) for _ in range(200)]

    assert findings.count(finding) / len(findings) > 0.9


def test_noise_is_no_verdict():
    assert run_gate(Random(3), 1.0, 0.5, 8) == "cannot tell"  # noqa: S311 - no secret


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [(0.98, 1.02, "no slower"), (0.90, 0.96, "slower"), (0.96, 1.02, "cannot tell"), (1.2, 1.3, "no slower")],
)
def test_the_interval_decides_and_not_the_ratio(low: float, high: float, finding: str):
    assert judge_margin(gain(low, high), MARGIN) == finding


def test_what_is_slower_under_one_load_is_slower():
    by_load = {"page": gain(1.1, 1.2), "images": gain(0.8, 0.9)}

    assert judge_margin(gain(0.99, 1.02, by_load=by_load), MARGIN) == "slower"


@pytest.mark.parametrize(
    ("now", "finding"),
    [
        (gain(1.3, 1.5, verdict="improved"), "holds"),
        (gain(0.5, 0.7, verdict="bears the load"), "holds"),
        (gain(0.9, 0.99, verdict="worse"), "gone"),
        (gain(1.3, 1.5, verdict="overfitted"), "gone"),
        (gain(0.95, 1.1, verdict="not proven"), "gone"),
        (gain(0.95, 1.3, verdict="not proven"), "cannot tell"),
    ],
)
def test_a_gain_is_gone_when_half_of_it_is_ruled_out(now: Gain, finding: str):
    before = gain(1.3, 1.6, verdict="improved")

    assert half_of(before) == pytest.approx(1.201, abs=0.001)
    assert judge_lasting(now, before) == finding


def test_half_of_a_small_gain_is_what_is_worth_a_change():
    assert half_of(gain(1.0, 1.01)) == 1.01
