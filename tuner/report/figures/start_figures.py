"""The report's figures of starts: all over time, the confirmation's pairs, goodput against its cost."""

import math
from itertools import pairwise

from tuner.records import Role, Start, State
from tuner.report.figures.axes import Axis, number_labels, ratio_axis, ratio_labels
from tuner.report.figures.drawing import (
    BARS_PX,
    ROLES,
    Bar,
    BarChart,
    Chart,
    Note,
    Point,
    Series,
    Stroke,
    height_of,
    interval_lines,
    level_line,
)
from tuner.report.summary import Summary
from tuner.report.wording import make_printable, say_estimate, say_ratio, say_speedup
from tuner.statistics.pareto import costs

NARROW_PX = 280
"""Width of a figure over the whole page, within its axes, in a window of 390 pixels."""
TIMELINE_PX, FRONT_PX = 320, 300
"""Heights."""
REASON_SHOWN, CHANGES_SHOWN = 160, 8


def draw_timeline(summary: Summary) -> Chart | None:
    """Draw the speedup of every start in the order in which they were made."""
    measured = [start for start in summary.starts if start.number in summary.speedups]
    if not measured:
        return None
    speedups = summary.speedups
    y_axis = ratio_axis(speedups[start.number].ratio for start in measured)
    x_axis = Axis(low=0, high=max(start.number for start in summary.starts) + 1)
    series = [level_line(y_axis, 1, TIMELINE_PX)]
    for role, (name, tone, symbol) in ROLES.items():
        group = [start for start in measured if start.role is role]
        xs = [x_axis.percent(start.number) for start in group]
        points = tuple(
            Point(
                x=x, y=height_of(y_axis, speedups[start.number].ratio, TIMELINE_PX), start=start.number,
                is_hollow=start.state is State.PRUNED,
            )
            for x, start in zip(xs, group, strict=True)
        )  # fmt: skip
        lines = interval_lines(xs, [speedups[start.number] for start in group], y_axis, TIMELINE_PX)
        if group:
            series.append(
                Series(name=name, tone=tone, symbol=symbol, points=points, lines=lines, style="faint")
            )
    series += _draw_climb(summary, x_axis, y_axis)
    lost = tuple(
        Point(x=x_axis.percent(start.number), y=TIMELINE_PX - 5, start=start.number)
        for start in summary.starts
        if start.state in {State.FAILED, State.INVALID}
    )
    if lost:
        series.append(Series(name="no measurement", tone="bad", symbol="cross", points=lost))
    return Chart(
        name="timeline", title="Every start over time", height=TIMELINE_PX, series=tuple(series),
        caption="Speedup relative to the level of the control at that time, with 95 % intervals; open "
        "symbols were stopped early. Logarithmic axis; what is far slower stands at its lower edge.",
        x_labels=number_labels(x_axis, width_px=NARROW_PX), x_title="start number",
        y_labels=ratio_labels(y_axis, length_px=TIMELINE_PX, is_upright=True), y_title="speedup",
    )  # fmt: skip


def _draw_climb(summary: Summary, x_axis: Axis, y_axis: Axis) -> list[Series]:
    """Draw the incumbent's speedup as steps."""
    if not summary.climb:
        return []
    at = [(x_axis.percent(number), height_of(y_axis, best, TIMELINE_PX)) for number, best in summary.climb]
    lines = []
    for (x1, y1), (x2, y2) in pairwise(at):
        lines.append(Stroke(x1=x1, y1=y1, x2=x2, y2=y1))
        if y1 != y2:
            lines.append(Stroke(x1=x2, y1=y1, x2=x2, y2=y2))
    return [Series(name="best so far", tone="good", symbol="dash", lines=tuple(lines), style="dotted")]


def describe_starts(summary: Summary) -> dict[int, str]:
    """Return what is shown of each start where one points at it."""
    return {start.number: describe_start(summary, start) for start in summary.starts}


def describe_start(summary: Summary, start: Start) -> str:
    """Return number, role, speedup and changes of one start, a line each."""
    lines = [f"start {start.number}, {start.role.value}, {start.state.value}"]
    if start.number in summary.speedups:
        lines.append(say_speedup(summary.speedups[start.number]))
    if start.failure is not None:
        lines.append(f"{start.failure.kind}: {start.failure.reason[:REASON_SHOWN]}")
    changes = summary.show_changes(start.config)
    lines += changes[:CHANGES_SHOWN]
    if len(changes) > CHANGES_SHOWN:
        lines.append(f"… and {len(changes) - CHANGES_SHOWN} more")
    return "\n".join(map(make_printable, lines))


def draw_pairs(summary: Summary) -> BarChart | None:
    """Draw the ratio of every confirmation pair, and the interval of their mean."""
    pairs, gain = pair_ratios(summary), summary.gain
    if not pairs or gain is None:
        return None
    axis = ratio_axis([*pairs.values(), gain.low, gain.high])
    together = Bar(
        label="together", cells=(say_estimate(gain),),
        tone="ink", dot=axis.percent(gain.ratio), low=axis.percent(gain.low), high=axis.percent(gain.high),
    )  # fmt: skip
    each = (
        Bar(
            label=f"pair {number}", cells=(say_ratio(ratio),), tone="good", symbol="diamond",
            dot=axis.percent(ratio),
        )
        for number, ratio in enumerate(pairs.values(), 1)
    )  # fmt: skip
    return BarChart(
        name="pairs", title="Confirmation, pair by pair", columns=("", "winner relative to default"),
        caption="Each diamond is one pair of fresh starts, measured next to each other in random order.",
        bars=(*each, together), origin=axis.percent(1), labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip


def pair_ratios(summary: Summary) -> dict[int, float]:
    """Compute the winner's goodput relative to the default's in every complete pair, by block."""
    sides: dict[int, dict[str, float]] = {}
    for start in summary.starts:
        level = start.log_value
        if start.role is Role.CONFIRM and start.counts and start.block is not None and level is not None:
            sides.setdefault(start.block, {})[start.arm] = level
    return {
        block: math.exp(side["winner"] - side["default"])
        for block, side in sorted(sides.items())
        if {"winner", "default"} <= side.keys()
    }


def draw_front(summary: Summary) -> Chart | None:
    """Draw goodput against the cost: every start, and the line of what nobody beats in both."""
    if summary.cost is None or not summary.front:
        return None
    paid, front = costs(summary.starts, summary.cost), summary.front
    both = [start for start in summary.starts if start.number in paid and start.number in summary.speedups]
    ratios = [summary.speedups[start.number].ratio for start in both]
    y_axis = ratio_axis([*ratios, *(choice.goodput.ratio for choice in front)])
    x_axis = ratio_axis(
        [*(paid[start.number].ratio for start in both), *(choice.cost.ratio for choice in front)]
    )
    starts = tuple(
        Point(
            x=x_axis.percent(paid[start.number].ratio), y=height_of(y_axis, ratio, FRONT_PX),
            start=start.number,
        )
        for start, ratio in zip(both, ratios, strict=True)
    )  # fmt: skip
    picks = tuple(
        Point(
            x=x_axis.percent(choice.cost.ratio), y=height_of(y_axis, choice.goodput.ratio, FRONT_PX),
            tip=f"pick {number}: {say_ratio(choice.goodput.ratio)} goodput, "
            f"{say_ratio(choice.cost.ratio)} cost",
        )
        for number, choice in enumerate(front, 1)
    )  # fmt: skip
    steps = [
        line
        for here, there in pairwise(picks)
        for line in (
            Stroke(x1=here.x, y1=here.y, x2=here.x, y2=there.y),
            Stroke(x1=here.x, y1=there.y, x2=there.x, y2=there.y),
        )
    ]
    return Chart(
        name="front", title="Goodput against its cost", height=FRONT_PX,
        caption="Numbers are the picks of the table below; up is more goodput, left is cheaper, both "
        "relative to the default. Dots are single starts as they were measured; a pick's goodput is an "
        "estimate, drawn towards the others' the fewer starts speak for it. Logarithmic axes.",
        series=(
            Series(name="starts", tone="pale", points=starts),
            Series(
                name="not beaten in both", tone="good", symbol="diamond", points=picks, lines=tuple(steps)
            ),
        ),
        notes=tuple(
            Note(x=each.x, y=each.y - 8, text=str(number), anchor="end")
            for number, each in enumerate(picks, 1)
        ),
        x_labels=ratio_labels(x_axis, length_px=NARROW_PX), x_title=summary.cost,
        y_labels=ratio_labels(y_axis, length_px=FRONT_PX, is_upright=True), y_title="goodput",
    )  # fmt: skip
