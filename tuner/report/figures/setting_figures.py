"""Figures of the settings: a slice per parameter, parallel coordinates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeGuard

from tuner.explain.variation import is_among, is_same
from tuner.ports import Scalar
from tuner.records import Role, Trial
from tuner.report.figures.axes import Axis, Label, arrange_labels, number_labels, ratio_axis, ratio_labels
from tuner.report.figures.drawing import (
    Chart,
    Note,
    Point,
    Series,
    Stroke,
    height_of,
    interval_lines,
    level_line,
    upright_line,
)
from tuner.report.summary import Summary
from tuner.report.wording import say_roughly
from tuner.space import Space


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


AXES_AT_MOST = 7
GOLDEN = (math.sqrt(5) - 1) / 2
SIDES = {
    "default": ("grey", "square"),
    "other": ("blue", "circle"),
    "winner": ("good", "star"),
}
"""Colour and symbol; the winner's points are drawn last."""
SLICE_PX, PARALLEL_PX = 150, 380
"""Heights."""
SLICE_NARROW_PX, PARALLEL_NARROW_PX = 230, 600
"""Least widths within the axes."""
SPECIAL_STEP = 0.25
"""Distance of a special value from the range and from the next one, in widths of the range."""
EDGE, EDGE_OF_CHOICES = 0.06, 0.5
"""Room at both ends of a slice: in widths of the range, in steps between choices."""
BEST_SHARE = 0.1


def place(scale: ValueScale, value: Scalar) -> float:
    """Place a value: numbers from 0 to 1, special values left of them; choices count from 0."""
    position = scale.position(value)
    if not math.isnan(position):
        return position
    index = next((index for index, choice in enumerate(scale.choices) if is_same(choice, value)), 0)
    return -SPECIAL_STEP * (len(scale.choices) - index) if scale.has_range else float(index)


def places_axis(scale: ValueScale) -> Axis:
    """Return the axis over all places of a scale, special values included, without room at its ends."""
    if not scale.has_range:
        return Axis(low=0, high=len(scale.choices) - 1)
    return Axis(low=-SPECIAL_STEP * len(scale.choices), high=1)


def with_room(axis: Axis, scale: ValueScale) -> Axis:
    """Return the axis with room at both ends, so that no point stands on the edge."""
    room = EDGE if scale.has_range else EDGE_OF_CHOICES
    return Axis(low=axis.low - room, high=axis.high + room)


def value_labels(summary: Summary, scale: ValueScale, axis: Axis, *, width_px: float) -> tuple[Label, ...]:
    """Label the values of a parameter: special values and choices by name, numbers by round ones."""
    show = summary.space.show
    named = [(axis.share(place(scale, each)), show(scale.parameter, each)) for each in scale.choices]
    if not scale.has_range:
        return arrange_labels(named, width_px=width_px, rows=3)
    numbers = Axis(low=scale.low, high=scale.high, is_log=scale.is_log)
    return number_labels(
        numbers, unit=unit_of(summary, scale.parameter), width_px=width_px, taken=named,
        place=lambda number: axis.share(numbers.share(number)), is_whole=is_whole(scale),
    )  # fmt: skip


def is_whole(scale: ValueScale) -> bool:
    """Return whether a range has whole numbers only, by its ends."""
    return scale.low.is_integer() and scale.high.is_integer()


def unit_of(summary: Summary, name: str) -> str:
    """Return the unit of a parameter."""
    return next((each.unit for each in summary.space.parameters if each.name == name), "")


def varied_parameters(summary: Summary) -> tuple[str, ...]:
    """Return the parameters that the study varied, what is changed first."""
    varied = {dimension.parameter for dimension in summary.space.dimensions}
    found = summary.explanation
    settings, others = (found.settings, found.others) if found is not None else ((), ())
    told = [*(setting.parameter for setting in settings), *(each.parameter for each in others)]
    ranked = [name for name in told if name in varied]
    rest = [each.name for each in summary.space.parameters if each.name in varied - set(ranked)]
    return (*ranked, *rest)


def measured_trials(summary: Summary) -> list[Trial]:
    """Return every trial with a speedup."""
    return [trial for trial in summary.trials if trial.number in summary.speedups]


def side_of(summary: Summary, trial: Trial) -> str:
    """Return whose trial it is: the default's, the winner's or another's."""
    if trial.role is Role.BASELINE or dict(trial.config) == dict(summary.default.config):
        return "default"
    return "winner" if summary.is_winner(trial.config) else "other"


def draw_slices(summary: Summary) -> list[Chart]:
    """Draw one small figure per parameter of which two values were measured, what is changed first."""
    drawn = (
        draw_slice(summary, name, number=number)
        for number, name in enumerate(varied_parameters(summary))
        if len({trial.config.get(name) for trial in measured_trials(summary)}) > 1
    )
    return [chart for chart in drawn if chart is not None]


def draw_slice(summary: Summary, name: str, *, number: int = 0) -> Chart | None:
    """Draw the speedup of every trial against its value of one parameter, where it has one."""
    trials = [trial for trial in measured_trials(summary) if name in trial.config]
    if not trials:
        return None
    default = summary.default.config.get(name)
    winner = summary.winner.config.get(name) if summary.winner is not None else None
    # What another setting switches off has no value there.
    marked = [each for each in (default, winner) if each is not None]
    scale = make_scale(summary.space, name, [*(trial.config[name] for trial in trials), *marked])
    x_axis = with_room(places_axis(scale), scale)
    y_axis = ratio_axis(summary.speedups[trial.number].ratio for trial in measured_trials(summary))
    series = [level_line(y_axis, 1, SLICE_PX)]
    if default is not None:
        series.append(upright_line(x_axis.percent(place(scale, default)), SLICE_PX, style="dashed"))
    if winner is not None and (default is None or not is_same(winner, default)):
        series.append(upright_line(x_axis.percent(place(scale, winner)), SLICE_PX, tone="good"))
    for side in SIDES:
        group = [trial for trial in trials if side_of(summary, trial) == side]
        series.append(_draw_side(summary, side, group, (x_axis, y_axis), scale))
    return Chart(
        name=f"slice-{number}", title=name, height=SLICE_PX, series=tuple(series),
        x_labels=value_labels(summary, scale, x_axis, width_px=SLICE_NARROW_PX),
        y_labels=ratio_labels(y_axis, length_px=SLICE_PX, is_upright=True),
    )  # fmt: skip


def _draw_side(
    summary: Summary, side: str, trials: Sequence[Trial], axes: tuple[Axis, Axis], scale: ValueScale
) -> Series:
    """Draw the trials of one side of a slice; only other configurations than these two have intervals."""
    x_axis, y_axis = axes
    tone, symbol = SIDES[side]
    spread = 0.012 if scale.has_range else 0.14
    xs = [
        x_axis.percent(place(scale, trial.config[scale.parameter]) + spread * jitter(trial.number))
        for trial in trials
    ]
    speedups = [summary.speedups[trial.number] for trial in trials]
    points = tuple(
        Point(x=x, y=height_of(y_axis, speedup.ratio, SLICE_PX), trial=trial.number)
        for x, speedup, trial in zip(xs, speedups, trials, strict=True)
    )
    lines = interval_lines(xs, speedups, y_axis, SLICE_PX) if side == "other" else ()
    return Series(tone=tone, symbol=symbol, points=points, lines=lines, style="faint")


def jitter(number: int) -> float:
    """Return a trial's own offset between −1 and 1, so that equal values do not hide each other."""
    return 2 * (number * GOLDEN % 1) - 1


def draw_parallel(summary: Summary) -> Chart | None:
    """Draw every trial as a line over the parameters that matter most, coloured by speedup."""
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
    columns = Axis(low=-0.1, high=len(names) - 0.5)
    xs = [columns.percent(index) for index in range(len(names))]
    labels = [(columns.share(index), name) for index, name in enumerate(names)]
    return Chart(
        name="parallel", title="Parallel coordinates", height=PARALLEL_PX,
        caption="One line per trial of the search through the parameters that matter most; off and other "
        "special values stand below the range.",
        series=(
            *(upright_line(x, PARALLEL_PX, tone="ink") for x in xs),
            *_draw_lines(summary, trials, scales, xs),
        ),
        notes=tuple(
            note for x, scale in zip(xs, scales, strict=True) for note in _note_values(summary, scale, x)
        ),
        x_labels=arrange_labels(labels, width_px=PARALLEL_NARROW_PX, rows=4),
    )  # fmt: skip


def _draw_lines(
    summary: Summary, trials: Sequence[Trial], scales: Sequence[ValueScale], xs: Sequence[float]
) -> list[Series]:
    """Draw the trials in three groups, the best tenth last and boldest."""
    ratios = sorted(summary.speedups[trial.number].ratio for trial in trials)
    top = ratios[max(0, math.ceil((1 - BEST_SHARE) * len(ratios)) - 1)]
    groups: tuple[tuple[str, str, str, Callable[[float], bool]], ...] = (
        ("below the default", "pale", "thin", lambda ratio: ratio < min(1.0, top)),
        ("above the default", "blue", "thin", lambda ratio: 1.0 <= ratio < top),
        ("best tenth", "good", "bold", lambda ratio: ratio >= top),
    )
    drawn = []
    for name, tone, style, belongs in groups:
        points: list[Point] = []
        lines: list[Stroke] = []
        for trial in (each for each in trials if belongs(summary.speedups[each.number].ratio)):
            own = [
                None if (value := trial.config.get(scale.parameter)) is None
                else Point(x=x, y=_stretch(scale, value), trial=trial.number)
                for x, scale in zip(xs, scales, strict=True)
            ]  # fmt: skip
            points += [point for point in own if point is not None]
            lines += [
                Stroke(x1=here.x, y1=here.y, x2=there.x, y2=there.y)
                for here, there in pairwise(own)
                if here is not None and there is not None
            ]
        drawn.append(
            Series(name=name, tone=tone, style=style, points=tuple(points), lines=tuple(lines))
        )  # fmt: skip
    return [each for each in drawn if each.points]


def _stretch(scale: ValueScale, value: Scalar) -> float:
    """Return a value's height along an upright scale."""
    return height_of(places_axis(scale), place(scale, value), PARALLEL_PX)


def _note_values(summary: Summary, scale: ValueScale, x: float) -> list[Note]:
    """Write special values, choices and both ends of the range beside an upright scale."""
    notes = [(_stretch(scale, each), summary.space.show(scale.parameter, each)) for each in scale.choices]
    if scale.has_range:
        unit = unit_of(summary, scale.parameter)
        ends = dict.fromkeys((scale.low, scale.high))
        axis = places_axis(scale)
        notes += [(height_of(axis, scale.position(end), PARALLEL_PX), say_roughly(end, unit)) for end in ends]
    return [Note(x=x, y=y, text=text) for y, text in notes]
