"""What is concluded: sentences to act on, and what `explain` prints of a study."""

from dataclasses import replace

import pytest

from tests.unit.simulated_study import make_summary
from tuner.explain.explanation import Effect, Explanation, Finding, Proof
from tuner.report.conclusions import conclude, say_proof
from tuner.report.explanation.as_json import depth_json, explanation_json
from tuner.report.explanation.text import depth_text, explain_summary


@pytest.fixture(scope="module")
def summary():
    return make_summary()


def effect(ratio, low=0.5, high=2.0):
    return Effect(ratio=ratio, low=low, high=high)


def test_what_makes_the_gain_is_named_with_its_share(summary):
    helping = [setting for setting in summary.explanation.settings if setting.finding is Finding.HELPS]

    kept = next(each for each in summary.explanation.conclusions if each.startswith("Keep "))

    assert helping
    assert all(setting.parameter in kept for setting in helping)
    assert "% of the gain" in kept


def test_a_line_that_does_nothing_may_go_and_one_that_harms_is_put_back(summary):
    first, second, *rest = summary.explanation.settings
    settings = (
        replace(first, finding=Finding.NO_EFFECT, bound=0.02),
        replace(second, finding=Finding.HARMFUL),
        *rest,
    )

    said = conclude(summary.space, replace(summary.explanation, settings=settings)).conclusions

    assert any(each.startswith(f"{first.parameter} may go back") for each in said)
    assert any(each.startswith(f"Revert {second.parameter}") for each in said)


def test_what_is_not_proven_begins_with_why_and_what_would_prove_it(summary):
    proof = Proof(pairs=12, seconds=100.0, noise=0.06, expected=effect(1.04))

    found = conclude(
        summary.space, replace(summary.explanation, proof=proof), reason="The pairs do not decide."
    )

    assert found.conclusions[0] == "The pairs do not decide."
    assert "12 fresh pairs (about 1 min 40 s)" in found.conclusions[1]
    assert found.proof.sentence == found.conclusions[1]
    assert "no affordable number of pairs" in say_proof(replace(proof, pairs=None), 40)


def test_the_screen_has_80_columns_and_names_every_parameter(summary):
    printed = explain_summary(summary)

    assert max(map(len, printed.splitlines())) <= 80
    told = summary.explanation
    assert all(each.parameter in printed for each in (*told.settings, *told.others))
    assert "–" not in explain_summary(make_summary(pairs=0)).split("\n\n")[0]


def test_a_refusal_is_all_that_is_printed(summary):
    refused = replace(summary, explanation=Explanation(metric="goodput_rps", refusal="Nothing to vary."))

    assert explain_summary(refused).count("\n") <= 2
    assert "Nothing to vary." in explain_summary(refused)


def test_one_parameter_is_printed_and_written_whole(summary):
    depth = summary.look_into("keepalive_requests")

    printed = depth_text(summary.space, depth)

    assert max(map(len, printed.splitlines())) <= 80
    assert "Requests of one connection." in printed
    assert len(depth_json(depth)["curve"]) == len(depth.curve)


def test_json_has_every_line_with_its_interval(summary):
    written = explanation_json(summary.explanation)

    assert [setting["parameter"] for setting in written["settings"]] == [
        setting.parameter for setting in summary.explanation.settings
    ]
    for setting in written["settings"]:
        assert setting["effect"]["low"] <= setting["effect"]["ratio"] <= setting["effect"]["high"]
        assert setting["finding"] in {each.value for each in Finding}
