"""Figures of the settings: a slice per parameter, parallel coordinates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tuner.explain.variation import is_among, is_same
from tuner.ports import Scalar
from tuner.records import Role, Trial
from tuner.report.figures.axes import choose_ticks
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
from tuner.report.figures.trials import describe_trial
from tuner.report.summary import Summary
from tuner.report.wording import say_roughly
from tuner.space import Space

SLICE_PX, PARALLEL_PX = 250, 420
SLICES_AT_MOST = 12
"""More show nothing that the table of effects does not say."""
AXES_AT_MOST = 7
GOLDEN = (math.sqrt(5) - 1) / 2
SPECIAL_STEP = 0.25
"""Distance of a special value from the range and from the next one, in widths of the range."""
EDGE, EDGE_OF_CHOICES = 0.06, 0.5
"""Room at both ends of a slice: in widths of the range, in steps between choices."""
BEST_SHARE = 0.1
SIDES = {
    "default": ("grey", "square-open"),
    "other": ("blue", "circle"),
    "winner": ("good", "star"),
}
"""Colour and symbol; the winner's points are drawn last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScale:
    """The values of one parameter: words and special values by name, numbers along a scale."""

    parameter: str
    choices: tuple[Scalar, ...]
    """Choices, on and off, special values: everything that is not a number of the range, in order."""
    low: float
    high: float
    """Ends of the range that was tried; NaN when there are no numbers."""
    is_log: bool

    @property
    def has_range(self) -> bool:
        return not math.isnan(self.low)

    def position(self, value: Scalar) -> float:
        """Place a number from 0 to 1 along the range; NaN for what is not one of its numbers."""
        if not self.has_range or not is_number(value) or is_among(value, self.choices):
            return math.nan
        if self.high <= self.low:
            return 0.5
        if self.is_log:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low / 2)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def place(self, value: Scalar) -> float:
        """Place a value: numbers from 0 to 1, special values left of them; choices count from 0."""
        position = self.position(value)
        if not math.isnan(position):
            return round(position, 4)
        index = next((index for index, choice in enumerate(self.choices) if is_same(choice, value)), 0)
        return -SPECIAL_STEP * (len(self.choices) - index) if self.has_range else float(index)

    @property
    def ends(self) -> tuple[float, float]:
        """Return the first and the last place."""
        return (-SPECIAL_STEP * len(self.choices), 1.0) if self.has_range else (0.0, len(self.choices) - 1.0)


def make_scale(space: Space, name: str, values: Sequence[Scalar]) -> ValueScale:
    """Return a parameter's scale, from its description and from the values that were tried."""
    parameter = next(each for each in space.parameters if each.name == name)
    known = [*parameter.choices, *dict(parameter.special).values()]
    if parameter.kind == "bool":
        known = [True, False]
    choices: list[Scalar] = [choice for choice in known if is_among(choice, values)]
    for value in values:
        if not is_number(value) and not is_among(value, choices):
            choices.append(value)
    numbers = [value for value in values if is_number(value) and not is_among(value, choices)]
    low, high = (float(min(numbers)), float(max(numbers))) if numbers else (math.nan, math.nan)
    is_log = parameter.log and low > 0
    return ValueScale(parameter=name, choices=tuple(choices), low=low, high=high, is_log=is_log)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; on and off are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def label_values(summary: Summary, scale: ValueScale) -> tuple[list[float], list[str]]:
    """Return places and labels along a scale: special values and choices by name, round numbers."""
    show, unit = summary.space.show, unit_of(summary, scale.parameter)
    places = [scale.place(each) for each in scale.choices]
    texts = [label(show(scale.parameter, each)) for each in scale.choices]
    if scale.has_range:
        is_whole = scale.low.is_integer() and scale.high.is_integer()
        ticks = choose_ticks(scale.low, scale.high, unit=unit, is_log=scale.is_log, is_whole=is_whole)
        places += [round(scale.position(each), 4) for each in ticks]
        texts += [say_roughly(each, unit) for each in ticks]
    return places, texts


def unit_of(summary: Summary, name: str) -> str:
    """Return the unit of a parameter."""
    return next((each.unit for each in summary.space.parameters if each.name == name), "")


def varied_parameters(summary: Summary) -> tuple[str, ...]:
    """Return the parameters that the study varied, what is changed first."""
    varied = {dimension.parameter for dimension in summary.space.dimensions}
    found = summary.explanation
    lines, others = (found.settings, found.others) if found is not None else ((), ())
    told = [*(line.parameter for line in lines), *(each.parameter for each in others)]
    ranked = [name for name in told if name in varied]
    rest = [each.name for each in summary.space.parameters if each.name in varied - set(ranked)]
    return (*ranked, *rest)


def telling_parameters(summary: Summary) -> tuple[str, ...]:
    """Return the parameters whose slice shows something: what is changed, and what is known to act."""
    found = summary.explanation
    if found is None:
        return varied_parameters(summary)[:SLICES_AT_MOST]
    told = {*summary.changes, *(each.parameter for each in found.others if each.effect is not None)}
    return tuple(name for name in varied_parameters(summary) if name in told)[:SLICES_AT_MOST]


def measured_trials(summary: Summary) -> list[Trial]:
    """Return every trial with a ratio."""
    return [trial for trial in summary.trials if trial.number in summary.speedups]


def side_of(summary: Summary, trial: Trial) -> str:
    """Return whose trial it is: the default's, the winner's or another's."""
    if trial.role is Role.BASELINE or dict(trial.config) == dict(summary.default.config):
        return "default"
    return "winner" if summary.is_winner(trial.config) else "other"


def draw_slices(summary: Summary) -> dict[str, Figure]:
    """Draw a small figure for each telling parameter that had two values, what is changed first."""
    varied = (
        name
        for name in telling_parameters(summary)
        if len({trial.config.get(name) for trial in measured_trials(summary)}) > 1
    )
    return {name: drawn for name in varied if (drawn := draw_slice(summary, name)) is not None}


def draw_slice(summary: Summary, name: str) -> Figure | None:
    """Draw the ratio of every trial against its value of one parameter, where it has one."""
    trials = [trial for trial in measured_trials(summary) if name in trial.config]
    if not trials:
        return None
    default = summary.default.config.get(name)
    winner = summary.winner.config.get(name) if summary.winner is not None else None
    # What another setting switches off has no value there.
    marked = [each for each in (default, winner) if each is not None]
    scale = make_scale(summary.space, name, [*(trial.config[name] for trial in trials), *marked])
    ratios = RatioAxis.fit(summary.speedups[trial.number].ratio for trial in measured_trials(summary))
    shapes = [level(1)]
    if default is not None:
        shapes.append(level(scale.place(default), is_upright=True, dash="dash"))
    if winner is not None and (default is None or not is_same(winner, default)):
        shapes.append(level(scale.place(winner), is_upright=True, tone="good"))
    traces = [
        _draw_side(summary, side, group, ratios, scale)
        for side in SIDES
        if (group := [trial for trial in trials if side_of(summary, trial) == side])
    ]
    low, high = scale.ends
    room = EDGE if scale.has_range else EDGE_OF_CHOICES
    places, texts = label_values(summary, scale)
    return make_figure(
        name, traces, height=SLICE_PX, y=ratios.describe(), shapes=shapes, showlegend=False,
        x=axis(range=[low - room, high + room], tickvals=places, ticktext=texts, showgrid=False),
    )  # fmt: skip


def _draw_side(
    summary: Summary, side: str, trials: Sequence[Trial], ratios: RatioAxis, scale: ValueScale
) -> Trace:
    """Draw the trials of one side of a slice; only other configurations than these two have intervals."""
    tone, symbol = SIDES[side]
    spread = 0.012 if scale.has_range else 0.14
    speedups = [summary.speedups[trial.number] for trial in trials]
    at = [ratios.clamp(each.ratio) for each in speedups]
    trace: Trace = {
        "type": "scatter", "mode": "markers", "name": side, "hoverinfo": "text",
        "x": [
            round(scale.place(trial.config[scale.parameter]) + spread * jitter(trial.number), 4)
            for trial in trials
        ],
        "y": at, "hovertext": [tip(describe_trial(summary, trial)) for trial in trials],
        "marker": marker(tone, symbol, 7),
    }  # fmt: skip
    if side == "other":
        ends = [tuple(ratios.clamp(end) for end in each.interval()) for each in speedups]
        trace["error_y"] = error(at, [(low, high) for low, high in ends], "pale", thickness=1, width=0)
    return trace


def jitter(number: int) -> float:
    """Return a trial's own offset between −1 and 1, so that equal values do not hide each other."""
    return 2 * (number * GOLDEN % 1) - 1


def draw_parallel(summary: Summary) -> Figure | None:
    """Draw every trial of the search as a line over the parameters that matter most, by group of ratio."""
    trials = [trial for trial in measured_trials(summary) if trial.role in {Role.SEARCH, Role.REPEAT}]
    names = [
        name for name in varied_parameters(summary) if any(name in trial.config for trial in trials)
    ][:AXES_AT_MOST]  # fmt: skip
    if len(names) < 2 or not trials:  # noqa: PLR2004 - lines need two ends
        return None
    scales = [
        make_scale(summary.space, name, [trial.config[name] for trial in trials if name in trial.config])
        for name in names
    ]
    notes = [
        {
            "x": at, "y": _upright(scale, place), "text": text, "showarrow": False, "xanchor": "left",
            "xshift": 4, "font": {"size": 11, "color": colour("ink")}, "bgcolor": colour("paper"),
        }
        for at, scale in enumerate(scales)
        for place, text in zip(*label_values(summary, scale), strict=True)
    ]  # fmt: skip
    return make_figure(
        "Parallel coordinates", _draw_groups(summary, trials, scales), height=PARALLEL_PX,
        x=axis(range=[-0.1, len(names) - 0.4], tickvals=[*range(len(names))],
               ticktext=[label(name) for name in names], gridcolor=colour("edge")),
        y=axis(range=[-0.05, 1.05], showticklabels=False, showgrid=False),
        annotations=notes,
    )  # fmt: skip


def _draw_groups(summary: Summary, trials: Sequence[Trial], scales: Sequence[ValueScale]) -> list[Trace]:
    """Draw the trials in three groups, the best tenth last and boldest."""
    best = sorted(summary.speedups[trial.number].ratio for trial in trials)
    top = best[max(0, math.ceil((1 - BEST_SHARE) * len(best)) - 1)]
    groups: tuple[tuple[str, str, float, Callable[[float], bool]], ...] = (
        ("below the default", "pale", 1.0, lambda ratio: ratio < min(1.0, top)),
        ("above the default", "blue", 1.2, lambda ratio: 1.0 <= ratio < top),
        ("best tenth", "good", 2.5, lambda ratio: ratio >= top),
    )
    drawn: list[Trace] = []
    for name, tone, width, belongs in groups:
        xs: list[float | None] = []
        ys: list[float | None] = []
        tips: list[str] = []
        for trial in (each for each in trials if belongs(summary.speedups[each.number].ratio)):
            told = tip(describe_trial(summary, trial))
            for at, scale in enumerate(scales):
                value = trial.config.get(scale.parameter)
                xs.append(at)
                ys.append(None if value is None else _upright(scale, scale.place(value)))
                tips.append(told)
            xs.append(None)
            ys.append(None)
            tips.append("")
        if xs:
            drawn.append(
                {
                    "type": "scatter", "mode": "lines+markers", "name": name, "x": xs, "y": ys,
                    "hoverinfo": "text", "hovertext": tips, "opacity": 0.8,
                    "line": {"color": colour(tone), "width": width}, "marker": marker(tone, size=4),
                }
            )  # fmt: skip
    return drawn


def _upright(scale: ValueScale, place: float) -> float:
    """Return a place on an upright scale from 0 to 1."""
    low, high = scale.ends
    return 0.5 if high <= low else round((place - low) / (high - low), 4)
