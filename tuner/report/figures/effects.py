"""Figures of what is explained: the effect of each setting as a waterfall, what other settings would do."""

from collections.abc import Sequence

from tuner.explain.explanation import Effect, Explanation, Finding, Setting
from tuner.report.figures.theme import (
    Figure,
    RatioAxis,
    Trace,
    axis,
    colour,
    error,
    label,
    level,
    make_figure,
    marker,
    tip,
)
from tuner.report.wording import say_estimate
from tuner.space import Space

ROW_PX, FRAME_PX = 30, 70
TONES = {Finding.HELPS: "good", Finding.HARMFUL: "bad"}
"""Colours of findings; grey for what is not shown to do anything."""


def draw_effects(found: Explanation) -> Figure | None:
    """Draw the settings from the default to the configuration that is explained, one step each."""
    gain = found.gain
    if gain is None or not found.settings:
        return None
    steps, before = [], 1.0
    for line in found.settings:
        steps.append((before, line))
        before *= line.effect.ratio
    ends = [(trial * line.effect.low, trial * line.effect.high) for trial, line in steps]
    ratios = RatioAxis.fit([gain.low, gain.high, *(end for pair in ends for end in pair)])
    rows = [
        (label(line.parameter), trial, line.effect, TONES.get(line.finding, "grey")) for trial, line in steps
    ]
    whole = Effect(ratio=gain.ratio, low=gain.low, high=gain.high)
    traces = [_draw_step(ratios, *row) for row in (*rows, ("together", 1.0, whole, "ink"))]
    return make_figure(
        "Effect per setting", traces, height=FRAME_PX + ROW_PX * len(traces),
        x=ratios.describe("relative to the default"), y=axis(autorange="reversed", showgrid=False),
        shapes=[level(1, is_upright=True)], showlegend=False, bargap=0.35,
    )  # fmt: skip


def _draw_step(ratios: RatioAxis, name: str, before: float, effect: Effect, tone: str) -> Trace:
    """Draw one bar from what stands before it to what it makes of that."""
    begin, end = (ratios.clamp(each) for each in (before, before * effect.ratio))
    bounds = (ratios.clamp(before * effect.low), ratios.clamp(before * effect.high))
    return {
        "type": "bar", "orientation": "h", "y": [name], "base": [begin], "x": [round(end - begin, 5)],
        "marker": {"color": colour(tone), "opacity": 0.75}, "hoverinfo": "text",
        "hovertext": [f"{name}: {say_estimate(effect)}"],
        "error_x": error([end], [bounds], "ink"),
    }  # fmt: skip


def draw_others(space: Space, found: Explanation) -> Figure | None:
    """Draw what the best or the worst value of each other setting would do, where that is known."""
    rows = [
        (each.parameter, "" if each.value is None else f" {space.show(each.parameter, each.value)}",
         each.effect, TONES.get(each.finding, "grey"))
        for each in found.others
        if each.effect is not None
    ]  # fmt: skip
    return _draw_dots("Expected effect of other settings", rows) if rows else None


def draw_costs(found: Explanation) -> Figure | None:
    """Draw what each setting does to the second objective, of which less is better."""
    beside = found.beside
    if beside is None or not beside.settings:
        return None
    rows = [(line.parameter, "", line.effect, _tone_of_cost(line)) for line in beside.settings]
    return _draw_dots(f"Effect per setting on {beside.metric} (less is better)", rows)


def _tone_of_cost(line: Setting) -> str:
    return "good" if line.effect.high < 1 else "bad" if line.effect.low > 1 else "grey"


def _draw_dots(title: str, rows: Sequence[tuple[str, str, Effect, str]]) -> Figure:
    """Draw a point with its interval for each row: name, value, effect, colour."""
    ratios = RatioAxis.fit(
        [end for _, _, effect, _ in rows for end in (effect.low, effect.ratio, effect.high)]
    )
    traces = [
        {
            "type": "scatter", "mode": "markers", "x": [ratios.clamp(effect.ratio)], "y": [label(name)],
            "hoverinfo": "text", "hovertext": [tip(f"{name}{value}: {say_estimate(effect)}")],
            "marker": marker(tone),
            "error_x": error(
                [ratios.clamp(effect.ratio)], [(ratios.clamp(effect.low), ratios.clamp(effect.high))], tone
            ),
        }
        for name, value, effect, tone in rows
    ]  # fmt: skip
    return make_figure(
        title, traces, height=FRAME_PX + ROW_PX * len(rows), x=ratios.describe("relative to the default"),
        y=axis(autorange="reversed", showgrid=False), shapes=[level(1, is_upright=True)], showlegend=False,
    )  # fmt: skip
