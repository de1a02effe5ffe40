import json
import math
from dataclasses import replace

import pytest

from tests.unit.trials import SPOILED, trial, window
from tuner.measure.rounds import join
from tuner.records import Metric, Window, name_loads, under_load
from tuner.records.as_json import window_from_json, window_to_json
from tuner.records.blend import Across, Blend

WEIGHTED = Blend(across=Across.WEIGHTED, weights={"pages": 0.75, "images": 0.25})
LEVELS = {"pages": math.log(1000), "images": math.log(100)}
WORST = replace(WEIGHTED, across=Across.WORST, levels=LEVELS)


def round_of(pages: float, images: float, **given: object) -> Window:
    return join({"pages": window(pages, **given), "images": window(images)})


def value_of(blend: Blend, pages: float, images: float) -> float:
    return math.exp(replace(round_of(pages, images), blend=blend).log_value)


def test_the_weighted_mean_of_ratios_is_the_ratio_of_weighted_means():
    before, after = value_of(WEIGHTED, 1000, 100), value_of(WEIGHTED, 2000, 150)

    assert after / before == pytest.approx(2**0.75 * 1.5**0.25)


def test_the_worst_counts_relative_to_what_the_default_gives_under_the_same_load():
    assert value_of(WORST, 1000, 100) == pytest.approx(1)
    assert value_of(WORST, 3000, 120) == pytest.approx(1.2)
    assert value_of(WORST, 900, 500) == pytest.approx(0.9)


def test_without_levels_the_mean_stands_for_the_worst():
    assert value_of(replace(WORST, levels={}), 1000, 100) == value_of(WEIGHTED, 1000, 100)


def test_a_round_is_kept_with_its_parts_and_without_what_is_made_of_them():
    made = replace(round_of(1000, 100, failed=3), blend=WEIGHTED)

    stored = json.loads(json.dumps(window_to_json(made)))

    assert window_from_json(stored) == made
    assert window_from_json(stored).blend is None
    assert set(stored) & {"blend", "metric"} == set()
    assert stored["parts"]["pages"]["failures"] == {"status": 3}


def test_a_window_of_one_load_is_stored_as_it_always_was():
    checked = replace(window(1000), check_load="25 connections")
    assert "parts" not in window_to_json(checked)
    assert window_to_json(checked)["situation"] == "25 connections"
    assert window_to_json(window(1000, spoiled=True))["verdicts"][0]["gate"] == "steal"
    assert window_from_json({"started_s": 1.0, "duration_s": 2.0, "correct": 3}).parts == {}


def test_under_one_load_only_rounds_count_that_nothing_spoiled():
    rounds = (round_of(1000, 100), round_of(900, 90, spoiled=True), round_of(1100, 110))
    made = trial(1, windows=[replace(each, blend=WEIGHTED) for each in rounds])

    assert [each.correct for each in under_load(made, "images").windows] == [100, 110]
    assert under_load(made, "pages").log_goodput == pytest.approx(math.log(1000 * 1100) / 2)
    assert made.windows[1].verdicts == tuple(
        replace(each, reason=f"pages: {each.reason}") for each in SPOILED
    )


def test_loads_are_named_where_there_are_several():
    assert name_loads([trial(1, 1000)]) == ()
    assert name_loads([trial(1), trial(2, windows=(round_of(1, 2),))]) == ("pages", "images")


def test_one_load_is_compared_by_its_metric_as_before():
    assert replace(window(1000), metric=Metric.GOODPUT).log_value == pytest.approx(math.log(1000))
