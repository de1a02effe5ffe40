"""The table of goodput over the age of a server."""

import json
import math
from dataclasses import asdict

import pytest

from benchmarks.steady_state import EDGES, Slice, estimate, group_of, table


def made(level=0.0, *, first=0.0, spoiled=(), seconds=30):
    """Make a trial whose first second differs from all others."""
    return [
        Slice(
            age_s=1.003 * second,
            log_goodput=9.0 + level + (first if second == 0 else 0.0) - (5.0 if second in spoiled else 0.0),
            spoiled=("steal",) if second in spoiled else (),
        )
        for second in range(seconds)
    ]


def made_sides(**fast):
    lucks = (0.0, 0.05, -0.03)
    return {
        "default": [made(luck) for luck in lucks],
        "fast": [made(luck + math.log(1.4), **fast) for luck in lucks],
    }


@pytest.mark.parametrize(
    ("age_s", "group"),
    [(0.0, "0–1"), (0.999, "1–2"), (1.99, "2–3"), (4.01, "3–5"), (9.99, "10–30"), (44, "10–30")],
)
def test_ages_are_put_together_by_whole_seconds(age_s, group):
    number = group_of(age_s)

    assert f"{EDGES[number]}–{EDGES[number + 1]}" == group


def test_a_slow_first_second_of_one_side_stands_in_its_line():
    head, first, second, *_, last, foot = table(made_sides(first=math.log(0.9)))

    assert head.split()[:2] == ["age,", "s"]
    assert first.split("  ")[0] == "0–1"
    assert "+0.0 [+0.0, +0.0]" in first
    assert first.count("-10.0 [-10.0, -10.0]") == 2
    assert first.endswith("1.26 [1.26, 1.26]")
    assert second.endswith("1.40 [1.40, 1.40]")
    assert last.startswith("10–30")
    assert foot == "0 of 180 windows were spoiled and are left out"


def test_spoiled_windows_are_left_out_and_counted():
    lines = table(made_sides(spoiled=(0, 7)))

    assert "too few trials" in lines[1]
    assert all(line.endswith("1.40 [1.40, 1.40]") for line in lines[2:-1])
    assert lines[-1] == "6 of 180 windows were spoiled and are left out"


def test_short_trials_end_with_the_group_that_they_reach():
    short = {side: [made(seconds=4) for _ in range(2)] for side in ("default", "fast")}

    assert [line.split()[0] for line in table(short)[1:-1]] == ["0–1", "1–2", "2–3", "3–5"]


def test_the_interval_is_that_of_a_t_test():
    mean, low, high = estimate([0.1, 0.2, 0.3])

    assert math.log(mean) == pytest.approx(0.2)
    assert math.log(high) - math.log(mean) == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)
    assert math.log(mean) - math.log(low) == pytest.approx(math.log(high) - math.log(mean))


def test_windows_can_be_kept_as_json():
    kept = json.loads(json.dumps({"nginx": made_sides(spoiled=(1,))}, default=asdict))

    assert kept["nginx"]["fast"][0][1]["spoiled"] == ["steal"]
    assert len(kept["nginx"]["default"]) == 3
