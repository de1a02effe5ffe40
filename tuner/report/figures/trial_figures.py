"""The report's figures of trials: all over time, the confirmation's pairs, goodput against its cost."""

import math
from itertools import pairwise

from tuner.records import Role, State, Trial
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
    """Draw the speedup of every trial in the order in which they were made."""
    measured = [trial for trial in summary.trials if trial.number in summary.speedups]
    if not measured:
        return None
    speedups = summary.speedups
    y_axis = ratio_axis(speedups[trial.number].ratio for trial in measured)
    x_axis = Axis(low=0, high=max(trial.number for trial in summary.trials) + 1)
    series = [level_line(y_axis, 1, TIMELINE_PX)]
    for role, (name, tone, symbol) in ROLES.items():
        group = [trial for trial in measured if trial.role is role]
        xs = [x_axis.percent(trial.number) for trial in group]
        points = tuple(
            Point(
                x=x, y=height_of(y_axis, speedups[trial.number].ratio, TIMELINE_PX), trial=trial.number,
                is_hollow=trial.state is State.PRUNED,
            )
            for x, trial in zip(xs, group, strict=True)
        )  # fmt: skip
        lines = interval_lines(xs, [speedups[trial.number] for trial in group], y_axis, TIMELINE_PX)
        if group:
            series.append(
                Series(name=name, tone=tone, symbol=symbol, points=points, lines=lines, style="faint")
            )
    series += _draw_climb(summary, x_axis, y_axis)
    lost = tuple(
        Point(x=x_axis.percent(trial.number), y=TIMELINE_PX - 5, trial=trial.number)
        for trial in summary.trials
        if trial.state in {State.FAILED, State.INVALID}
    )
    if lost:
        series.append(Series(name="no measurement", tone="bad", symbol="cross", points=lost))
    return Chart(
        name="timeline", title="Every trial over time", height=TIMELINE_PX, series=tuple(series),
        caption="Speedup relative to the level of the baseline at that time, with 95 % intervals; open "
        "symbols were stopped early. Logarithmic axis; what is far slower stands at its lower edge.",
        x_labels=number_labels(x_axis, width_px=NARROW_PX), x_title="trial number",
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


def describe_trials(summary: Summary) -> dict[int, str]:
    """Return what is shown of each trial where one points at it."""
    return {trial.number: describe_trial(summary, trial) for trial in summary.trials}


def describe_trial(summary: Summary, trial: Trial) -> str:
    """Return number, role, speedup and changes of one trial, a line each."""
    lines = [f"trial {trial.number}, {trial.role.label}, {trial.state.value}"]
    if trial.number in summary.speedups:
        lines.append(say_speedup(summary.speedups[trial.number]))
    if trial.failure is not None:
        lines.append(f"{trial.failure.kind}: {trial.failure.reason[:REASON_SHOWN]}")
    changes = summary.show_changes(trial.config)
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
        caption="Each diamond is one pair of fresh trials, measured next to each other in random order.",
        bars=(*each, together), origin=axis.percent(1), labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip


def pair_ratios(summary: Summary) -> dict[int, float]:
    """Compute the winner's goodput relative to the default's in every complete pair, by block."""
    sides: dict[int, dict[str, float]] = {}
    for trial in summary.trials:
        level = trial.log_value
        if trial.role is Role.CONFIRM and trial.counts and trial.block is not None and level is not None:
            sides.setdefault(trial.block, {})[trial.arm] = level
    return {
        block: math.exp(side["winner"] - side["default"])
        for block, side in sorted(sides.items())
        if {"winner", "default"} <= side.keys()
    }


def draw_front(summary: Summary) -> Chart | None:
    """Draw goodput against the cost: every trial, and the line of what nobody beats in both."""
    if summary.cost is None or not summary.front:
        return None
    paid, front = costs(summary.trials, summary.cost), summary.front
    both = [trial for trial in summary.trials if trial.number in paid and trial.number in summary.speedups]
    ratios = [summary.speedups[trial.number].ratio for trial in both]
    y_axis = ratio_axis([*ratios, *(choice.goodput.ratio for choice in front)])
    x_axis = ratio_axis(
        [*(paid[trial.number].ratio for trial in both), *(choice.cost.ratio for choice in front)]
    )
    trials = tuple(
        Point(
            x=x_axis.percent(paid[trial.number].ratio), y=height_of(y_axis, ratio, FRONT_PX),
            trial=trial.number,
        )
        for trial, ratio in zip(both, ratios, strict=True)
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
        "relative to the default. Dots are single trials as they were measured; a pick's goodput is an "
        "estimate, drawn towards the others' the fewer trials speak for it. Logarithmic axes.",
        series=(
            Series(name="trials", tone="pale", points=trials),
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
