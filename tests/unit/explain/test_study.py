"""What is explained, on studies whose truth is known."""

import math
from dataclasses import replace
from functools import cache

import pytest

from tests.unit.simulated_study import make_trials, small_space
from tuner.errors import UsageError
from tuner.explain.beliefs import Beliefs
from tuner.explain.explanation import Explanation, Finding
from tuner.explain.responses import respond
from tuner.explain.study import explain, explain_parameter
from tuner.records import Role
from tuner.statistics.confirmation.paired_gain import judge_pairs

WINNING = {"sendfile": False, "open_file_cache": 2000, "keepalive_timeout": 30}
TRUE = {"sendfile": 0.12, "open_file_cache": 0.15, "keepalive_timeout": 0.0}


@cache
def study(*, searches: int = 40, pairs: int = 6):
    space = small_space()
    winner = space.complete(WINNING)
    return space, make_trials(space, searches=searches, pairs=pairs, winner=winner), winner


@cache
def explained(*, searches: int = 40, pairs: int = 6) -> Explanation:
    space, trials, winner = study(searches=searches, pairs=pairs)
    gain = judge_pairs([(0.0, 0.27), (0.0, 0.28), (0.0, 0.26)]) if pairs else None
    return explain(space, trials, winner, metric="goodput_rps", gain=gain)


def test_the_effects_of_the_settings_add_up_to_the_gain():
    found = explained()

    assert sum(setting.effect.log for setting in found.settings) == pytest.approx(found.gain.log, abs=1e-6)
    assert {setting.parameter for setting in found.settings} == set(WINNING)
    assert found.is_confirmed


def test_effects_hold_the_truth_and_what_helps_is_said_to_help():
    for setting in explained().settings:
        truth = TRUE[setting.parameter]
        assert math.log(setting.effect.low) - 0.01 <= truth <= math.log(setting.effect.high) + 0.01
        assert (setting.finding is Finding.HELPS) == (truth > 0)
        assert setting.chance > 0.97 or truth == 0


def test_settings_that_do_nothing_are_not_said_to_do_anything():
    idle = {"worker_processes", "worker_connections", "listen_backlog", "tcp_nopush", "aio"}

    for other in explained().others:
        if other.parameter in idle:
            assert other.finding in {Finding.NO_EFFECT, Finding.UNKNOWN, Finding.CANNOT_ACT}
        assert (other.bound is not None) == (other.finding is Finding.NO_EFFECT)
    assert {other.parameter for other in explained().others} >= idle


def test_what_its_parent_switches_off_cannot_act():
    other = next(each for each in explained().others if each.parameter == "tcp_nopush")

    assert other.finding is Finding.CANNOT_ACT
    assert other.reason == "it is used only if sendfile is on"


def test_where_no_setting_can_act_nothing_responds():
    space, trials, winner = study()

    assert respond(Beliefs.of(space, trials, seed=0), trials, winner, {}) == {}


def test_every_tolerance_holds_its_value_and_spans_a_part_of_the_range():
    for each in explained().tolerances:
        assert each.low <= each.value <= each.high
        assert each.low < each.high
        assert 0 < each.loss <= 0.1


def test_more_is_known_with_the_pairs_than_without():
    with_pairs, without = explained().gain, explained(pairs=0).gain

    assert with_pairs.high / with_pairs.low < without.high / without.low
    assert not explained(pairs=0).is_confirmed


def test_what_is_not_proven_has_a_plan_for_its_proof():
    space, trials, winner = study(pairs=1)

    proof = explain(space, trials, winner, metric="goodput_rps").proof

    assert proof is not None
    assert 3 <= proof.pairs <= 40
    assert proof.seconds == pytest.approx(proof.pairs * 2 * 3.8)
    assert explained().proof is None


def test_the_order_of_the_parameters_changes_little():
    space, trials, winner = study()
    turned = replace(space, parameters=space.parameters[::-1])

    found = explain(turned, trials, winner, metric="goodput_rps")

    before = {setting.parameter: setting.effect.log for setting in explained().settings}
    after = {setting.parameter: setting.effect.log for setting in found.settings}
    assert after == pytest.approx(before, abs=0.02)


def test_the_same_study_is_explained_the_same():
    space, trials, winner = study()

    assert explain(space, trials, winner, metric="goodput_rps") == explain(
        space, trials, winner, metric="goodput_rps"
    )


def test_nothing_is_explained_before_the_default_was_measured():
    space, trials, winner = study()
    searched = [trial for trial in trials if trial.role is Role.SEARCH]

    assert "default" in explain(space, searched, winner, metric="goodput_rps").refusal


def test_without_a_winner_the_default_is_explained():
    space, trials, _ = study(pairs=0)

    found = explain(space, trials, None, metric="goodput_rps")

    assert found.settings == ()
    assert {each.parameter for each in found.others} >= set(WINNING)
    assert found.proof is None


def test_a_second_objective_is_explained_beside_the_first():
    space, trials, winner = study()

    found = explain(space, trials, winner, metric="goodput_rps", cost="latency_p99_ms").beside

    # Made-up latency is the inverse of goodput.
    effects = {setting.parameter: setting.effect.log for setting in found.settings}
    assert effects["open_file_cache"] == pytest.approx(-0.15, abs=0.05)
    refused = explain(space, trials, winner, metric="goodput_rps", cost="cpu_us_per_request").beside
    assert "cpu_us_per_request" in refused.refusal


def test_one_parameter_is_looked_into():
    space, trials, winner = study()

    depth = explain_parameter(space, trials, winner, "open_file_cache", explained())

    assert depth.setting is not None
    assert depth.why == "Keeps files open."
    assert [point.value for point in depth.curve if point.value == 0] == [0]
    off = next(point for point in depth.curve if point.value == 0)
    assert off.at_winner.log == pytest.approx(-0.15, abs=0.05)
    assert off.at_default.ratio == pytest.approx(1.0)
    at_winner = next(point for point in depth.curve if point.value == 2000)
    assert at_winner.at_winner.ratio == pytest.approx(1.0)
    assert at_winner.at_default.log == pytest.approx(0.15, abs=0.05)
    with pytest.raises(UsageError, match="open_file_cash"):
        explain_parameter(space, trials, winner, "open_file_cash", explained())


@pytest.mark.parametrize("searches", [0, 1, 2])
def test_nothing_is_said_of_what_was_hardly_tried(searches):
    """Neither "no effect" nor a tolerance: a model that was shown nothing knows nothing."""
    found = explained(searches=searches, pairs=0)

    assert not [other for other in found.others if other.finding is Finding.NO_EFFECT]
    assert found.tolerances == ()
    unknown = [other for other in found.others if other.finding is Finding.UNKNOWN]
    assert all("at another value" in other.reason for other in unknown)


def test_the_figure_of_the_pairs_is_the_only_one_and_more_of_them_are_planned_before_them_alone():
    space, trials, winner = study()
    for verdict_logs in ([(0.0, 0.31), (0.0, 0.33), (0.0, 0.32)], [(0.0, 0.2), (0.0, -0.2), (0.0, 0.05)]):
        gain = judge_pairs(verdict_logs)

        found = explain(space, trials, winner, metric="goodput_rps", gain=gain)

        assert found.gain.ratio == gain.ratio
        assert sum(setting.effect.log for setting in found.settings) == pytest.approx(
            math.log(gain.ratio), abs=1e-6
        )
        assert found.proof is None
