"""The tables of the campaign benchmark."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.campaign.play import Played
from benchmarks.campaign.table import Target, compare, interval_of_share, paired, ratio_of_means

TODAY = Path(__file__).parents[3] / "benchmarks/campaign/today.jsonl"


@pytest.fixture(scope="module")
def today():
    return [Played(**json.loads(line)) for line in TODAY.read_text().splitlines()]


def test_the_interval_of_a_ratio_is_paired():
    theirs = [0.1 * number for number in range(1, 50)]

    ratio = ratio_of_means([1.3 * gain for gain in theirs], theirs)

    assert ratio.seen == pytest.approx(1.3)
    assert ratio.low == pytest.approx(1.3)
    assert ratio.high == pytest.approx(1.3)


def test_the_interval_of_a_share_is_exact():
    assert interval_of_share(0, 100) == pytest.approx((0.0, 0.0362), abs=1e-4)
    assert interval_of_share(10, 400) == pytest.approx((0.0121, 0.0455), abs=1e-4)


def test_results_of_other_servers_are_refused(today):
    other = [replace(each, truth="of another one") for each in today]

    with pytest.raises(ValueError, match="server 0 is not the same in both files"):
        paired(today, other)


def test_what_gains_a_third_more_everywhere_reaches_the_first_number(today, capsys):
    better = [replace(each, arm="ours", gain=1.34 * each.gain) for each in today]

    compare([("today", today), ("new", better)])

    said = capsys.readouterr().out
    assert "| ok | new | mean gain, as a ratio to today's | 1.340 [1.340, 1.340] | ≥ 1.3 |" in said
    assert "| MISSED | new | 10th percentile" in said


def test_a_target_is_met_at_its_bound_unless_it_has_to_be_beaten():
    at = Target(name="", arm="", seen=1.0, bound=1.0, sign="≥")

    assert at.is_met
    assert replace(at, sign="≤").is_met
    assert not replace(at, sign=">").is_met
