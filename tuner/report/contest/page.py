"""The page and the figure of a contest: one self-contained HTML document, light and dark."""

from tuner.report.contest import Contest
from tuner.report.contest.rows import entrant_columns, entrant_rows, pair_rows, say_to_baseline, to_baseline
from tuner.report.contest.wording import (
    list_claims,
    list_remarks,
    name_leader,
    say_effort,
    say_intervals,
)
from tuner.report.figures.axes import Axis, ratio_axis, ratio_labels
from tuner.report.figures.drawing import BARS_PX, Bar, BarChart
from tuner.report.markup import load_templates, render_page
from tuner.statistics.response_curve import Estimate


def render_contest(contest: Contest) -> str:
    """Render one self-contained page, the same bytes for the same contest."""
    return render_page(
        "contest_page.html.j2",
        contest=contest, title=name_leader(contest), figure=draw_ratios(contest),
        sides=("", *entrant_columns(contest)), claims=list_claims(contest), remarks=list_remarks(contest),
        rows=[(label, *row) for label, row in zip(contest.labels, entrant_rows(contest), strict=True)],
        pairs=[(label, *row) for label, row in zip(contest.labels, pair_rows(contest), strict=True)],
        changes=list_changes(contest), effort=say_effort(contest), intervals=say_intervals(contest),
    )  # fmt: skip


def render_figure(contest: Contest) -> str:
    """Return the figure as HTML that brings its own style, for notebooks."""
    return (
        load_templates()
        .get_template("contest_figure.html.j2")
        .render(figure=draw_ratios(contest), title=name_leader(contest))
    )


def draw_ratios(contest: Contest) -> BarChart:
    """Draw the ratio of each entrant to the first one, with its interval."""
    estimates = to_baseline(contest)
    axis = ratio_axis(end for each in estimates if each for end in (each.low, each.high))
    bars = (_draw_entrant(contest, index, estimate, axis) for index, estimate in enumerate(estimates))
    return BarChart(
        name="contest", title=f"Ratios to {contest.labels[0]}",
        columns=("", f"of {contest.labels[0]}", "requests/s"), numbers=2, bars=tuple(bars),
        origin=axis.percent(1), labels=ratio_labels(axis, length_px=BARS_PX),
        caption="Green diamonds: nobody is shown to be ahead of them. Red: not named best, as said below.",
    )  # fmt: skip


def _draw_entrant(contest: Contest, index: int, estimate: Estimate | None, axis: Axis) -> Bar:
    leads = index in contest.leaders
    return Bar(
        label=contest.labels[index],
        cells=(say_to_baseline(contest)[index], entrant_rows(contest)[index][0]),
        tone="bad" if index in contest.faults else "good" if leads else "blue",
        symbol="diamond" if leads else "circle",
        low=axis.percent(estimate.low) if estimate else None,
        high=axis.percent(estimate.high) if estimate else None,
        dot=axis.percent(estimate.ratio) if estimate else None,
    )


def list_changes(contest: Contest) -> list[tuple[str, list[str]]]:
    """Return what each entrant changes, as name and value; entrants that change nothing are left out."""
    found = []
    for index, label in enumerate(contest.labels):
        space = contest.spaces[contest.plan.entrants[index].study]
        shown = [f"{name} {space.show(name, value)}" for name, (_, value) in contest.changes(index).items()]
        if shown:
            found.append((label, shown))
    return found
