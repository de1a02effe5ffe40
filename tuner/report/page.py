"""The report: one self-contained HTML page, the same bytes for the same summary."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.records import Role, State
from tuner.report.markup import embed, render_page
from tuner.report.rows import TABLES, Row, describe_growth, describe_limit, describe_rates, describe_tail
from tuner.report.wording import (
    NOTHING_BETTER,
    capitalize,
    say_age,
    say_change,
    say_gain,
    say_metric,
    say_percent,
    say_ratio,
    say_speedup,
    say_trend,
)

if TYPE_CHECKING:
    from tuner.report.curve import Curve
    from tuner.report.figures.drawing import BarChart, Chart
    from tuner.report.summary import Summary
    from tuner.report.sweep import Sweep
    from tuner.statistics.age import Age

STATES = (State.COMPLETE, State.PRUNED, State.FAILED, State.INVALID, State.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict on the first screen."""

    tone: str
    """good, plain or open: chooses the colour."""
    figure: str
    text: str


def render_report(summary: "Summary", sweeps: "Sequence[Sweep]" = (), curves: "Sequence[Curve]" = ()) -> str:
    """Render the page, with the study's sweeps and load curves. What draws is imported here alone."""
    from tuner.report.curve.page import show_curve
    from tuner.report.figures.setting_figures import draw_slices
    from tuner.report.figures.trial_figures import describe_trials
    from tuner.report.sweep.page import draw_figure

    age = summary.gain.age if summary.gain is not None else None
    return render_page(
        "page.html.j2",
        summary=summary, headline=describe_verdict(summary), found=summary.explanation,
        age=describe_age(age, summary.side), trends=describe_trends(age, summary.side),
        figures=draw_figures(summary), slices=draw_slices(summary), counts=count_trials(summary),
        sweeps=[(sweep, draw_figure(sweep)) for sweep in sweeps],
        curves=[show_curve(curve, f"curve{number}") for number, curve in enumerate(curves)],
        tips=embed(describe_trials(summary)), limit=describe_limit(summary),
        rates=describe_rates(summary.default, summary.winner, is_fixed=summary.latency is not None),
        tail=describe_tail(summary),
        growth=describe_growth(summary),
        **{name: rows_of(summary) for name, rows_of in TABLES.items()},
    )  # fmt: skip


def describe_verdict(summary: "Summary") -> Headline:
    """Return how the study ended, or how far it is."""
    gain = summary.gain
    if gain is not None and gain.verdict == "improved":
        return Headline(
            tone="good", figure=say_gain(gain),
            text=f"{capitalize(say_metric(gain.metric))} with the winner relative to the default"
            f"{_say_across(summary)}, with the "
            f"{say_percent(1 - gain.alpha)} interval, from pairs of fresh trials that the search never saw.",
        )  # fmt: skip
    if gain is not None and gain.is_proven:
        return Headline(
            tone="good", figure=capitalize(gain.verdict),
            text=f"{summary.reason} {capitalize(say_metric(gain.metric))} relative to the default: "
            f"{say_gain(gain)}.",
        )  # fmt: skip
    if gain is not None:
        return Headline(
            tone="plain", figure=say_gain(gain),
            text=f"{gain.verdict.capitalize()}. {summary.reason} Keep the default.",
        )  # fmt: skip
    if summary.state == "finished":
        return _describe_no_winner(summary)
    if summary.incumbent is None:
        return Headline(tone="open", figure="No result yet", text=f"The study is {summary.state}.")
    _, best = summary.incumbent
    return Headline(
        tone="open",
        figure=f"{say_ratio(best.ratio)} so far, not confirmed",
        text=f"The study is {summary.state}. The best configuration is estimated at {say_speedup(best)} "
        "by all trials; only a confirmation can tell what it is worth.",
    )


def _describe_no_winner(summary: "Summary") -> Headline:
    found = summary.found
    if found is None:
        return Headline(
            tone="plain", figure=capitalize(NOTHING_BETTER), text=f"{_say_end(summary)}Keep the default.",
        )  # fmt: skip
    return Headline(
        tone="plain", figure=f"Found {say_speedup(found.speedup)}, not shipped",
        text=f"{capitalize(found.reason)}. {summary.reason} The figure is an estimate from all trials. No "
        "pairs confirmed it. Keep the default, or compare the candidate again.",
    )  # fmt: skip


def _say_across(summary: "Summary") -> str:
    """Return what counts of several loads and hosts, in brackets; nothing for one of each."""
    said = ", ".join(filter(None, (summary.across, summary.across_hosts)))
    return f" ({said})" if said else ""


def describe_age(age: "Age | None", side: str = "winner") -> str:
    """Return for which seconds under load the gain holds, with a warning when it moves with them."""
    sentences = (say_age(age), say_trend(age, ("default", side)))
    return " ".join(f"{capitalize(each)}." for each in sentences if each)


def describe_trends(age: "Age | None", side: str = "winner") -> str:
    """Return what changes between the youngest windows and the oldest; empty when no trial has two."""
    if age is None:
        return ""
    sides = (("default", age.default), (side, age.winner), ("their ratio", age.ratio))
    moved = [f"{name} {say_change(trend)}" for name, trend in sides if trend is not None]
    return f"From the youngest windows to the oldest: {'; '.join(moved)}." if moved else ""


def _say_end(summary: "Summary") -> str:
    """Return why a study ended without a winner, but for what the headline says."""
    known = summary.is_too_noisy or summary.stop_reason.startswith(NOTHING_BETTER)
    said = "" if known else f"{capitalize(summary.stop_reason or 'the study is finished')}. "
    return said + (f"{summary.reason} " if summary.reason else "")


def draw_figures(summary: "Summary") -> "dict[str, Chart | BarChart | None]":
    """Draw every figure for which there is something to show; the others are None."""
    from tuner.report.explanation.figures import draw_costs, draw_effects, draw_others
    from tuner.report.figures import setting_figures, trial_figures

    found, space = summary.explanation, summary.space
    return {
        "effects": draw_effects(space, found) if found else None,
        "others": draw_others(space, found) if found else None,
        "costs": draw_costs(space, found) if found else None,
        "pairs": trial_figures.draw_pairs(summary),
        "timeline": trial_figures.draw_timeline(summary),
        "front": trial_figures.draw_front(summary),
        "parallel": setting_figures.draw_parallel(summary),
    }


def count_trials(summary: "Summary") -> list[Row]:
    """Count trials by role (rows) and state (columns of the page's table)."""
    counts = Counter((trial.role, trial.state) for trial in summary.trials)
    return [
        (role.label, *(str(counts[role, state]) for state in STATES))
        for role in Role
        if any(counts[role, state] for state in STATES)
    ]
