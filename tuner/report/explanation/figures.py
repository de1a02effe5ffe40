"""Figures of what is explained: the worth of each line as a waterfall, what other settings would do."""

from collections.abc import Sequence

from tuner.explain.explanation import Explanation, Finding, Line, Other, Worth
from tuner.ports import Scalar
from tuner.report.figures.axes import Axis, ratio_axis, ratio_labels
from tuner.report.figures.drawing import BARS_PX, Bar, BarChart
from tuner.report.wording import NOTHING, say_estimate, say_percent
from tuner.space import Space

TONES = {Finding.HELPS: "good", Finding.HARMFUL: "bad"}
"""Colours of findings; grey for what is not shown to do anything."""
FAINT = "edge"
WORTHS_CAPTION = (
    "Each bar begins where the one before ends: in logarithms the worths of the lines add up to the gain. By "
    "one model of all trials, with 95 % intervals; grey bars are not shown to help. Given last: what a line "
    "adds when all others are there already."
)


def draw_worths(space: Space, found: Explanation) -> BarChart | None:
    """Draw the lines from the default to the configuration that is explained."""
    gain = found.gain
    if gain is None or not found.lines:
        return None
    steps = _climb(found.lines)
    axis = ratio_axis(
        [gain.low, gain.high, *(before * end for before, line in steps for end in _ends(line.worth))]
    )
    bars = [_draw_line(space, line, before, axis) for before, line in steps]
    all_of_them = Bar(
        label="together", cells=(say_estimate(gain), "", ""), tone="ink", begin=axis.percent(1),
        end=axis.percent(gain.ratio), low=axis.percent(gain.low), high=axis.percent(gain.high),
    )  # fmt: skip
    return BarChart(
        name="worths", title="What each line is worth",
        columns=("line", "worth", "given last", "finding"),
        caption=WORTHS_CAPTION, bars=(*bars, all_of_them), origin=axis.percent(1),
        labels=ratio_labels(axis, length_px=BARS_PX), numbers=2,
    )  # fmt: skip


def _climb(lines: Sequence[Line]) -> list[tuple[float, Line]]:
    """Return what all lines before each one give together, with the line."""
    steps, level = [], 1.0
    for line in lines:
        steps.append((level, line))
        level *= line.worth.ratio
    return steps


def _ends(worth: Worth) -> tuple[float, float, float]:
    return worth.low, worth.ratio, worth.high


def _draw_line(space: Space, line: Line, before: float, axis: Axis) -> Bar:
    """Draw one line of the waterfall, with what is known of it in words."""
    low, end, high = (axis.percent(before * ratio) for ratio in _ends(line.worth))
    moved = "; ".join(each.sentence for each in line.mechanisms)
    told = say_finding(line) + (f". With it: {moved}" if moved else "")
    return Bar(
        label=line.parameter, detail=_change(space, line.parameter, line.default, line.value),
        cells=(say_estimate(line.worth), say_estimate(line.alone), told),
        tone=TONES.get(line.finding, FAINT), begin=axis.percent(before), end=end, low=low, high=high,
    )  # fmt: skip


def say_finding(line: Line) -> str:
    """Write what can be said of a line: helps, no effect beyond ± 2 %, 93 % likely to help."""
    if line.finding is Finding.UNKNOWN:
        return f"{say_percent(line.chance, 0)} likely to help"
    return _say_bound(line.finding, line.bound)


def _say_bound(finding: Finding, bound: float | None) -> str:
    if finding is Finding.NO_EFFECT and bound is not None:
        return f"{finding.value} beyond ± {say_percent(bound)}"
    return finding.value


def _change(space: Space, name: str, default: Scalar | None, value: Scalar) -> str:
    before = NOTHING if default is None else space.show(name, default)
    return f"{before} → {space.show(name, value)}"


def draw_others(space: Space, found: Explanation) -> BarChart | None:
    """Draw what the best or the worst value of each other setting would do, where that is known."""
    told = [(each, each.effect) for each in found.others if each.effect is not None]
    if not told:
        return None
    axis = ratio_axis(end for _, effect in told for end in _ends(effect))
    return BarChart(
        name="others", title="What other settings would do", columns=("setting", "effect", "finding"),
        caption="At the value where each helps or harms most, all else as above, with 95 % intervals.",
        bars=tuple(_draw_other(space, each, effect, axis) for each, effect in told),
        origin=axis.percent(1), labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip


def _draw_other(space: Space, other: Other, effect: Worth, axis: Axis) -> Bar:
    low, dot, high = (axis.percent(ratio) for ratio in _ends(effect))
    value = other.value
    return Bar(
        label=other.parameter, cells=(say_estimate(effect), _say_bound(other.finding, other.bound)),
        detail="" if value is None else _change(space, other.parameter, other.default, value),
        tone=TONES.get(other.finding, "grey"), dot=dot, low=low, high=high,
    )  # fmt: skip


def draw_costs(space: Space, found: Explanation) -> BarChart | None:
    """Draw what each line does to the second objective, of which less is better."""
    beside = found.beside
    if beside is None or not beside.lines:
        return None
    axis = ratio_axis(end for line in beside.lines for end in _ends(line.worth))
    bars = []
    for line in beside.lines:
        low, dot, high = (axis.percent(ratio) for ratio in _ends(line.worth))
        change = _change(space, line.parameter, line.default, line.value)
        tone = "good" if line.worth.high < 1 else "bad" if line.worth.low > 1 else "grey"
        bars.append(
            Bar(
                label=line.parameter, detail=change, cells=(say_estimate(line.worth),), tone=tone, dot=dot,
                low=low, high=high,
            )
        )  # fmt: skip
    return BarChart(
        name="costs", title=f"What each line does to {beside.metric}", columns=("line", "factor"),
        caption="Less is better: left of 1× the line saves.", bars=tuple(bars), origin=axis.percent(1),
        labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip
