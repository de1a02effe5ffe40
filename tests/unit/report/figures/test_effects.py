"""The waterfall of effects, and what the page says where there is little to explain."""

import math
from dataclasses import replace
from functools import cache

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
from tuner.report.figures.effects import draw_costs, draw_effects, draw_others
from tuner.report.figures.theme import colour
from tuner.report.page import render_report
from tuner.report.rows import effect_rows, say_finding
from tuner.report.summary import Summary
from tuner.statistics.mechanism import Mechanism

MOVED = Mechanism(name="busy CPUs", default=1.8, winner=0.9, ratio=0.5, sentence="busy CPUs 1.8 → 0.9")


def worth(ratio: float, spread: float = 0.05) -> Effect:
    return Effect(ratio=ratio, low=ratio * math.exp(-spread), high=ratio * math.exp(spread))


def make_line(name: str, ratio: float, finding: Finding = Finding.HELPS, **more: object) -> Setting:
    default = small_space().default()[name]
    given = {"parameter": name, "default": default, "value": default, "effect": worth(ratio), "chance": 0.99}
    return Setting(**{**given, "if_reverted": worth(ratio), "finding": finding, **more})


LINES = (
    make_line("sendfile", 1.3, mechanisms=(MOVED,)),
    make_line("open_file_cache", 1.2),
    make_line("aio", 1.0, Finding.NO_EFFECT, bound=0.02),
    make_line("keepalive_requests", 0.97, Finding.UNKNOWN, chance=0.2),
)
FOUND = Explanation(
    metric="goodput_rps", is_confirmed=True, gain=worth(1.3 * 1.2 * 0.97), settings=LINES, trials=57,
    others=(
        Other(parameter="listen_backlog", default=511, finding=Finding.HELPS, value=4096, effect=worth(1.1)),
        Other(parameter="tcp_nopush", default=True, finding=Finding.NO_EFFECT, bound=0.013),
        Other(parameter="worker_processes", default="auto", finding=Finding.UNKNOWN, reason="never tried"),
        Other(parameter="keepalive_timeout", default=75, finding=Finding.CANNOT_ACT, reason="off by design"),
    ),
    tolerances=(
        Tolerance(
            parameter="worker_connections", value=768, low=256, high=4096, is_open_below=True,
            is_open_above=False, loss=0.01,
        ),
    ),
    interactions=(Interaction(parameters=("sendfile", "open_file_cache"), effect=worth(0.95, 0.01)),),
    conclusions=("Keep sendfile off.", "Revert aio."),
)  # fmt: skip


@cache
def summary() -> Summary:
    return make_summary(searches=5)


def shown(found: Explanation | None, **more: object) -> str:
    return render_report(replace(summary(), explanation=found, **more))


def test_each_bar_begins_where_the_one_before_ends_and_the_last_is_the_gain() -> None:
    figure = draw_effects(FOUND)
    assert figure is not None
    *bars, together = figure["data"]
    ends = [bar["base"][0] + bar["x"][0] for bar in bars]

    assert [bar["y"][0] for bar in bars] == [line.parameter for line in LINES]
    for end, bar in zip([1.0, *ends], bars, strict=False):
        assert bar["base"][0] == pytest.approx(end, abs=1e-3)
    assert together["base"][0] == 1
    assert together["base"][0] + together["x"][0] == pytest.approx(ends[-1], rel=1e-3)
    low, high = (10**end for end in figure["layout"]["xaxis"]["range"])
    for bar in figure["data"]:
        end, interval = bar["base"][0] + bar["x"][0], bar["error_x"]
        assert low <= end - interval["arrayminus"][0] < end < end + interval["array"][0] <= high


def test_what_helps_stands_out_and_every_setting_has_its_numbers_and_its_finding() -> None:
    figure = draw_effects(FOUND)
    assert figure is not None

    tones = ["good", "good", "grey", "grey", "ink"]
    assert [bar["marker"]["color"] for bar in figure["data"]] == [colour(tone) for tone in tones]
    assert effect_rows(replace(summary(), explanation=FOUND))[0][2:] == (
        "1.30× [1.24, 1.37]",
        "1.30× [1.24, 1.37]",
        "helps. With it: busy CPUs 1.8 → 0.9",
    )
    assert [say_finding(line) for line in LINES] == [
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
    assert "off by design" not in text
    places = [text.index(f'<h2 id="{name}">') for name in ("conclusions", "settings", "confirmation")]
    assert places == sorted(places)


def test_one_line_and_very_many_lines_are_drawn() -> None:
    one = draw_effects(replace(FOUND, settings=LINES[:1], gain=LINES[0].effect))
    many = draw_effects(replace(FOUND, settings=LINES * 15))

    assert one is not None
    assert many is not None
    assert (len(one["data"]), len(many["data"])) == (2, 61)


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    nothing = Explanation(metric="goodput_rps")

    assert draw_effects(nothing) is None
    assert draw_others(small_space(), nothing) is None
    assert draw_costs(nothing) is None


def test_a_refusal_is_shown_with_its_reason() -> None:
    text = shown(Explanation(metric="goodput_rps", refusal="The default has not been measured yet."))

    assert "Nothing is explained. The default has not been measured yet." in text
    assert "Effect per setting</" not in text
    assert 'id="diff"' in text


def test_without_an_explanation_the_page_shows_the_changes() -> None:
    text = shown(None)

    assert "Conclusions</h2>" not in text
    assert 'id="diff"' in text


def test_a_gain_that_is_not_proven_says_what_would_prove_it() -> None:
    said = "14 fresh pairs (about 3 min) would prove it."
    proof = Proof(pairs=14, seconds=180, noise=0.05, expected=worth(1.04), sentence=said)
    text = shown(replace(FOUND, is_confirmed=False, proof=proof, conclusions=(said,)), gain=None, winner=None)

    assert said in text
    assert "These are estimates for the best configuration. No pairs confirmed it." in text


def test_where_nothing_is_changed_the_conclusions_and_the_other_settings_are_left() -> None:
    nothing = replace(FOUND, settings=(), gain=worth(1.0), interactions=(), conclusions=("Nothing to ship.",))
    text = shown(nothing, gain=None, winner=None, incumbent=None)

    assert "<li>Nothing to ship.</li>" in text
    assert 'id="diff"' not in text
    assert "Expected effect of other settings" in text


def test_a_second_objective_has_a_figure_of_its_own_or_its_reason() -> None:
    of_p99 = Explanation(
        metric="latency_p99_ms",
        settings=(make_line("sendfile", 0.8), make_line("aio", 1.2)),
        gain=worth(0.96),
    )
    figure = draw_costs(replace(FOUND, beside=of_p99))
    assert figure is not None

    assert [each["marker"]["color"] for each in figure["data"]] == [colour("good"), colour("bad")]
    assert "Effect per setting on latency_p99_ms" in shown(replace(FOUND, beside=of_p99))
    unknown = Explanation(metric="latency_p99_ms", refusal="Too few trials have it.")
    assert "latency_p99_ms: Too few trials have it." in shown(replace(FOUND, beside=unknown))


def test_a_study_in_which_nothing_was_measured_has_a_page() -> None:
    text = render_report(make_summary(searches=0, pairs=0))

    assert "No result yet" in text
    assert "Every trial over time" not in text
