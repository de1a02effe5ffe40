"""The waterfall of effects, and what the page says where there is little to explain."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from tests.unit.simulated_study import make_summary, small_space
from tuner.explain.explanation import (
    Effect,
    Explanation,
    Finding,
    Interaction,
    Other,
    Proof,
    Setting,
    Tolerance,
)
from tuner.report.explanation.figures import draw_costs, draw_effects, draw_others, say_finding
from tuner.report.page import render_report
from tuner.report.summary import Summary
from tuner.statistics.mechanism import Mechanism

MOVED = Mechanism(name="busy CPUs", default=1.8, winner=0.9, ratio=0.5, sentence="busy CPUs 1.8 → 0.9")


def effect(ratio: float, spread: float = 0.05) -> Effect:
    return Effect(ratio=ratio, low=ratio * math.exp(-spread), high=ratio * math.exp(spread))


def make_setting(name: str, ratio: float, finding: Finding = Finding.HELPS, **more: object) -> Setting:
    default = small_space().default()[name]
    given = {"parameter": name, "default": default, "value": default, "effect": effect(ratio), "chance": 0.99}
    return Setting(**{**given, "if_reverted": effect(ratio), "finding": finding, **more})


SETTINGS = (
    make_setting("sendfile", 1.3, mechanisms=(MOVED,)),
    make_setting("open_file_cache", 1.2),
    make_setting("aio", 1.0, Finding.NO_EFFECT, bound=0.02),
    make_setting("keepalive_requests", 0.97, Finding.UNKNOWN, chance=0.2),
)
FOUND = Explanation(
    metric="goodput_rps", is_confirmed=True, gain=effect(1.3 * 1.2 * 0.97), settings=SETTINGS, trials=57,
    others=(
        Other(parameter="listen_backlog", default=511, finding=Finding.HELPS, value=4096, effect=effect(1.1)),
        Other(parameter="tcp_nopush", default=True, finding=Finding.NO_EFFECT, bound=0.013),
        Other(parameter="worker_processes", default="auto", finding=Finding.UNKNOWN, reason="never tried"),
        Other(parameter="keepalive_timeout", default=75, finding=Finding.CANNOT_ACT, reason="closes"),
    ),
    tolerances=(
        Tolerance(
            parameter="worker_connections", value=768, low=256, high=4096, is_open_below=True,
            is_open_above=False, loss=0.01,
        ),
    ),
    interactions=(Interaction(parameters=("sendfile", "open_file_cache"), effect=effect(0.95, 0.01)),),
    conclusions=("Keep sendfile off.", "Put back aio."),
)  # fmt: skip


@cache
def summary() -> Summary:
    return make_summary(searches=5)


def shown(found: Explanation | None, **more: object) -> str:
    return render_report(replace(summary(), explanation=found, **more))


def test_each_bar_begins_where_the_one_before_ends_and_the_last_is_the_gain() -> None:
    figure = draw_effects(small_space(), FOUND)
    assert figure is not None
    *bars, together = figure.bars

    assert [bar.label for bar in bars] == [setting.parameter for setting in SETTINGS]
    for before, bar in pairwise(bars):
        assert bar.begin == pytest.approx(before.end, abs=0.02)
    assert bars[0].begin == together.begin == figure.origin
    assert together.end == pytest.approx(bars[-1].end, abs=0.02)
    for bar in figure.bars:
        assert bar.low < bar.end < bar.high
        assert min(bar.low, bar.left) >= 0
        assert bar.high <= 100


def test_what_helps_stands_out_and_every_bar_has_its_number_and_its_finding() -> None:
    figure = draw_effects(small_space(), FOUND)
    assert figure is not None

    assert [bar.tone for bar in figure.bars] == ["good", "good", "edge", "edge", "ink"]
    assert figure.bars[0].cells == (
        "1.30× [1.24, 1.37]",
        "1.30× [1.24, 1.37]",
        "helps. With it: busy CPUs 1.8 → 0.9",
    )
    assert [say_finding(setting) for setting in SETTINGS] == [
        "helps", "helps", "no effect beyond ± 2 %", "20 % likely to help",
    ]  # fmt: skip


def test_the_page_shows_every_part_of_an_explanation() -> None:
    text = shown(FOUND)

    for words in (
        "Keep sendfile off.", "Effect per setting", "1.20× [1.14, 1.26]", "256, lowest searched",
        "4096</td>", "share what they give", "511 → 4096", "none beyond ± 1.3 %", "never tried",
        "Ranges that keep the gain",
    ):  # fmt: skip
        assert words in text, words
    assert "closes" not in text
    assert text.index("Conclusions") < text.index("Effect per setting") < text.index("Confirmation")


def test_one_line_and_very_many_lines_are_drawn() -> None:
    one = draw_effects(small_space(), replace(FOUND, settings=SETTINGS[:1], gain=SETTINGS[0].effect))
    many = draw_effects(small_space(), replace(FOUND, settings=SETTINGS * 15))

    assert one is not None
    assert many is not None
    assert (len(one.bars), len(many.bars)) == (2, 61)


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    nothing = Explanation(metric="goodput_rps")

    assert draw_effects(small_space(), nothing) is None
    assert draw_others(small_space(), nothing) is None
    assert draw_costs(small_space(), nothing) is None


def test_a_refusal_is_shown_with_its_reason() -> None:
    text = shown(Explanation(metric="goodput_rps", refusal="The default has not been measured yet."))

    assert "Nothing is explained. The default has not been measured yet." in text
    assert "Effect per setting" not in text
    assert '<table class="diff">' in text


def test_without_an_explanation_the_page_shows_the_changes() -> None:
    text = shown(None)

    assert "Conclusions" not in text
    assert '<table class="diff">' in text


def test_a_gain_that_is_not_proven_says_what_would_prove_it() -> None:
    said = "14 fresh pairs (about 3 min) would prove it."
    proof = Proof(pairs=14, seconds=180, noise=0.05, expected=effect(1.04), sentence=said)
    text = shown(replace(FOUND, is_confirmed=False, proof=proof, conclusions=(said,)), gain=None, winner=None)

    assert said in text
    assert "Of the best configuration so far, which no pair has confirmed." in text


def test_where_nothing_is_changed_the_conclusions_and_the_other_settings_are_left() -> None:
    nothing = replace(
        FOUND, settings=(), gain=effect(1.0), interactions=(), conclusions=("Nothing to ship.",)
    )
    text = shown(nothing, gain=None, winner=None, incumbent=None)

    assert "<li>Nothing to ship.</li>" in text
    assert "No setting differs from the default." in text
    assert "Effect of other settings" in text


def test_a_second_objective_has_a_figure_of_its_own_or_its_reason() -> None:
    of_p99 = Explanation(
        metric="latency_p99_ms",
        settings=(make_setting("sendfile", 0.8), make_setting("aio", 1.2)),
        gain=effect(0.96),
    )
    figure = draw_costs(small_space(), replace(FOUND, beside=of_p99))
    assert figure is not None

    assert [bar.tone for bar in figure.bars] == ["good", "bad"]
    assert "Effect per setting on latency_p99_ms" in shown(replace(FOUND, beside=of_p99))
    unknown = Explanation(metric="latency_p99_ms", refusal="Too few trials have it.")
    assert "latency_p99_ms: Too few trials have it." in shown(replace(FOUND, beside=unknown))


def test_a_study_in_which_nothing_was_measured_has_a_page() -> None:
    text = render_report(make_summary(searches=0, pairs=0))

    assert "No result yet" in text
    assert "Every trial over time" not in text
