"""What is concluded: sentences to act on, and what `explain` prints of a study."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.explain.explanation import Effect, Explanation, Finding, Other, Proof
from tuner.report.conclusions import conclude, say_proof
from tuner.report.explanation.as_json import depth_json, explanation_json
from tuner.report.explanation.screen import depth_screen, explain_screen
from tuner.report.terminal import headline


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


def test_nobody_is_told_to_keep_the_settings_of_what_is_not_shipped(summary):
    said = conclude(summary.space, summary.explanation, is_shipped=False).conclusions

    assert not [each for each in said if each.startswith("Keep ")]
    assert [each for each in said if each.startswith("The gain comes from ")]


def test_what_is_not_shipped_has_nothing_to_revert(summary):
    first, second, *rest = summary.explanation.settings
    settings = (
        replace(first, finding=Finding.NO_EFFECT, bound=0.02),
        replace(second, finding=Finding.HARMFUL),
        *rest,
    )

    said = conclude(
        summary.space, replace(summary.explanation, settings=settings), is_shipped=False
    ).conclusions

    assert f"{first.parameter} has no effect." in said
    assert f"{second.parameter} makes the server slower." in said
    assert "go back" not in "".join(said)


@pytest.mark.parametrize("gain", [effect(1.02, 0.99, 1.05), effect(0.8, 0.7, 0.9), None])
def test_without_a_gain_there_is_none_to_keep_and_a_loss_is_not_to_be_proven(summary, gain):
    proof = Proof(pairs=None, seconds=0.0, noise=0.06, expected=effect(0.8, 0.7, 0.9))
    assert summary.explanation.tolerances

    found = conclude(summary.space, replace(summary.explanation, gain=gain, proof=proof))

    assert found.tolerances == ()
    assert found.proof is None
    assert "keeps the gain" not in "".join(found.conclusions)
    assert "prove" not in "".join(found.conclusions)


def test_nobody_is_told_to_try_what_was_rejected(summary):
    name = next(iter(summary.changes))
    value = summary.changes[name][1]
    other = Other(
        parameter=name, default=summary.space.default()[name], value=value, finding=Finding.HELPS,
        effect=effect(1.2, 1.1, 1.3),
    )  # fmt: skip
    found = replace(summary.explanation, others=(other,))
    rejected = [summary.space.complete({name: value})]

    assert f"Try {name}" in "".join(conclude(summary.space, found).conclusions)
    said = "".join(conclude(summary.space, found, rejected=rejected).conclusions)
    assert "Try " not in said
    assert "1.20× [1.10, 1.30], but a candidate with it was rejected." in said


def test_the_first_line_says_what_the_screen_of_the_study_ends_with(summary):
    for each in (summary, replace(summary, gain=None, winner=None), make_summary(pairs=0)):
        assert show(explain_screen(each), 400).splitlines()[0] == show(headline(each), 400).strip()


def test_what_is_not_proven_begins_with_why_and_what_would_prove_it(summary):
    proof = Proof(pairs=12, seconds=100.0, noise=0.06, expected=effect(1.04))

    found = conclude(
        summary.space, replace(summary.explanation, proof=proof), reason="The pairs do not decide."
    )

    assert found.conclusions[0] == "The pairs do not decide."
    assert "12 fresh pairs (about 1 min 40 s)" in found.conclusions[1]
    assert found.proof.sentence == found.conclusions[1]
    assert "no affordable number of pairs" in say_proof(replace(proof, pairs=None), 40)


def show(shown, width=80, **options):
    console = Console(width=width, file=StringIO(), **options)
    console.print(shown)
    return console.file.getvalue()


def test_the_screen_is_as_wide_as_the_terminal_and_names_every_parameter(summary):
    told = summary.explanation
    for width in (40, 80, 200):
        printed = show(explain_screen(summary), width)
        assert max(map(len, printed.splitlines())) <= width
        assert all(each.parameter in printed for each in (*told.settings, *told.others))
    assert "–" not in show(explain_screen(make_summary(pairs=0))).splitlines()[0]


def test_effects_have_bars_on_one_scale_in_the_colour_of_their_finding(summary):
    first, *_ = summary.explanation.settings
    (narrow,), (wide,) = (
        [
            line
            for line in show(explain_screen(summary), width).splitlines()
            if line.startswith(first.parameter)
        ]
        for width in (80, 200)
    )

    assert first.finding is Finding.HELPS
    assert 3 < narrow.count("█") < wide.count("█")
    coloured = show(explain_screen(summary), force_terminal=True, color_system="standard")
    assert re.search(r"\x1b\[32m *█+─* *\x1b", coloured)


def test_a_refusal_is_all_that_is_printed(summary):
    refused = replace(summary, explanation=Explanation(metric="goodput_rps", refusal="Nothing to vary."))

    assert show(explain_screen(refused)).count("\n") <= 2
    assert "Nothing to vary." in show(explain_screen(refused))


def test_one_parameter_is_printed_and_written_whole(summary):
    depth = summary.look_into("keepalive_requests")

    printed = show(depth_screen(summary.space, depth))

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
