"""The figure and the page of a contest."""

from tuner.report.contest import Contest
from tuner.report.contest.rows import entrant_columns, entrant_rows, pair_rows, say_to_baseline, to_baseline
from tuner.report.contest.wording import (
    list_claims,
    list_remarks,
    name_leader,
    say_effort,
    say_intervals,
)
from tuner.report.figures.theme import (
    Figure,
    RatioAxis,
    Trace,
    axis,
    error,
    label,
    level,
    make_figure,
    marker,
    tip,
)
from tuner.report.markup import render_page
from tuner.statistics.response_curve import Estimate

ROW_PX, FRAME_PX = 34, 80


def render_contest(contest: Contest) -> str:
    """Render one page, the same bytes for the same contest."""
    return render_page(
        "contest_page.html.j2",
        contest=contest, title=name_leader(contest), figures={"contest": draw_contest(contest)},
        sides=("", *entrant_columns(contest)), claims=list_claims(contest), remarks=list_remarks(contest),
        rows=[(label, *row) for label, row in zip(contest.labels, entrant_rows(contest), strict=True)],
        pairs=[(label, *row) for label, row in zip(contest.labels, pair_rows(contest), strict=True)],
        changes=list_changes(contest), effort=say_effort(contest), intervals=say_intervals(contest),
    )  # fmt: skip


def draw_contest(contest: Contest) -> Figure:
    """Draw the ratio of each entrant to the first one, with its interval."""
    estimates = to_baseline(contest)
    ratios = RatioAxis.fit(end for each in estimates if each for end in (each.low, each.high))
    traces = [
        _draw_entrant(contest, index, estimate, ratios)
        for index, estimate in enumerate(estimates)
        if estimate is not None
    ]
    return make_figure(
        f"Ratios to {contest.labels[0]}", traces, height=FRAME_PX + ROW_PX * len(traces),
        x=ratios.describe(f"of {label(contest.labels[0])}"), y=axis(autorange="reversed", showgrid=False),
        shapes=[level(1, is_upright=True)], showlegend=False,
    )  # fmt: skip


def _draw_entrant(contest: Contest, index: int, estimate: Estimate, ratios: RatioAxis) -> Trace:
    leads = index in contest.marked
    tone = "bad" if index in contest.faults else "good" if leads else "blue"
    at = ratios.clamp(estimate.ratio)
    return {
        "type": "scatter", "mode": "markers", "x": [at], "y": [label(contest.labels[index])],
        "hoverinfo": "text",
        "hovertext": [tip(f"{contest.labels[index]}: {say_to_baseline(contest)[index]}")],
        "marker": marker(tone, "diamond" if leads else "circle", 9),
        "error_x": error([at], [(ratios.clamp(estimate.low), ratios.clamp(estimate.high))], tone),
    }  # fmt: skip


def list_changes(contest: Contest) -> list[tuple[str, list[str]]]:
    """Return what each entrant changes, as name and value; entrants that change nothing are left out."""
    found = []
    for index, entrant in enumerate(contest.labels):
        space = contest.spaces[contest.plan.entrants[index].study]
        shown = [f"{name} {space.show(name, value)}" for name, (_, value) in contest.changes(index).items()]
        if shown:
            found.append((entrant, shown))
    return found
