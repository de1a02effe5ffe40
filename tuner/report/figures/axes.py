"""Axes of the report's figures: where a value stands, what is written beside it, labels that do not overlap.

Nothing here knows how wide the reader's window is: the x of a figure is a percentage of its width, and
labels are laid out for the narrowest width at which the figure is shown.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tuner.report.wording import BYTES, make_printable, say_roughly

CHARACTER_PX = 6.9
"""Width of a character at the figures' 12 px, on the safe side for the usual system fonts."""
LINE_PX = 15
"""Height of a line of labels."""
GAP_PX = 6
"""Least distance between two labels of one row."""
TICKS_AT_MOST = 6
LONGEST_LABEL = 40
LEAST_RATIO = 0.5
"""Down to which ratio an axis goes anyhow; further only as far as it goes up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One text beside an axis."""

    at: float
    """Percentage of the axis."""
    text: str
    anchor: str = "middle"
    """start, middle or end: which part of the text stands at the place."""
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A range of numbers along a figure's side."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Place a number from 0 (low) to 1 (high); what lies outside is drawn at the edge."""
        if self.high <= self.low:
            return 0.5
        low, high, at = (
            (math.log(self.low), math.log(self.high), math.log(max(value, self.low)))
            if self.is_log
            else (self.low, self.high, value)
        )
        return min(1.0, max(0.0, (at - low) / (high - low)))

    def percent(self, value: float) -> float:
        """Place a number as a percentage of the width, with the digits that can be seen."""
        return round(100 * self.share(value), 2)


def measure_text(text: str) -> float:
    """Estimate the width of a label in pixels."""
    return CHARACTER_PX * len(text)


def arrange_labels(
    wanted: Iterable[tuple[float, str]], *, width_px: float, rows: int = 1
) -> tuple[Label, ...]:
    """Lay labels out in rows so that no two overlap at this width; what fits nowhere is left out.

    Args:
        wanted: place from 0 to 1 and text, the most important first.
        width_px: the narrowest width at which the axis is shown.
        rows: how many rows there may be below each other.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    placed = []
    for share, text in wanted:
        shown = shorten_label(text)
        anchor, low, high = _span(share * width_px, measure_text(shown), width_px)
        for row, spans in enumerate(taken):
            if all(high + GAP_PX <= first or last + GAP_PX <= low for first, last in spans):
                spans.append((low, high))
                placed.append(Label(at=round(100 * share, 2), text=shown, anchor=anchor, row=row))
                break
    return tuple(sorted(placed, key=lambda label: (label.at, label.row)))


def shorten_label(text: str) -> str:
    """Return a label of one printable line, cut where it would be longer than any axis."""
    shown = make_printable(text)
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[:LONGEST_LABEL]}…"


def _span(at_px: float, text_px: float, width_px: float) -> tuple[str, float, float]:
    """Return anchor and extent of a label: centred, but within the figure where it is near an edge."""
    if at_px - text_px / 2 < -GAP_PX:
        return "start", at_px, at_px + text_px
    if at_px + text_px / 2 > width_px + GAP_PX:
        return "end", at_px - text_px, at_px
    return "middle", at_px - text_px / 2, at_px + text_px / 2


def ratio_axis(ratios: Iterable[float]) -> Axis:
    """Make a logarithmic axis for ratios, with 1 on it and some room at its ends.

    It does not follow losers all the way: what lies below is drawn at the edge, so that one trial that
    nearly stood still does not squeeze all others into a strip.
    """
    values = [1.0, *(ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio))]
    high = max(values)
    low = max(min(values), min(LEAST_RATIO, 1 / high))
    room = max(1.06, (high / low) ** 0.06)
    return Axis(low=low / room, high=high * room, is_log=True)


def ratio_labels(axis: Axis, *, length_px: float, is_upright: bool = False) -> tuple[Label, ...]:
    """Label a logarithmic axis of ratios with round speedups, 1× before all others."""
    steps = choose_ratio_ticks(axis.low, axis.high)
    wanted = [(axis.share(step), f"{step:g}×") for step in sorted(steps, key=lambda step: step != 1)]
    if not is_upright:
        return arrange_labels(wanted, width_px=length_px)
    kept: list[tuple[float, str]] = []
    for share, text in wanted:
        if all(abs(share - other) * length_px >= LINE_PX for other, _ in kept):
            kept.append((share, text))
    return tuple(Label(at=round(100 * share, 2), text=text, anchor="end") for share, text in sorted(kept))


def choose_ratio_ticks(low: float, high: float) -> list[float]:
    """Choose round ratios from low to high, 1 among them."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first <= TICKS_AT_MOST:
            return [round(step * index, 2) for index in range(max(1, first), last + 1)]
    wide = [scale * 10.0**decade for decade in range(-4, 5) for scale in (1, 2, 5)]
    inside = [tick for tick in wide if low <= tick <= high]
    return inside if len(inside) <= TICKS_AT_MOST + 1 else [each for each in inside if _is_decade(each)]


def number_labels(
    axis: Axis,
    *,
    unit: str = "",
    width_px: float,
    taken: Sequence[tuple[float, str]] = (),
    place: Callable[[float], float] | None = None,
    is_whole: bool = False,
) -> tuple[Label, ...]:
    """Label an axis of numbers with round values: as many as fit without an overlap, up to six.

    Args:
        axis: the range.
        unit: the unit of its numbers.
        width_px: the narrowest width at which the axis is shown.
        taken: labels that must stand there too, such as those of special values.
        place: where a number stands from 0 to 1; by the axis where it fills the whole width.
        is_whole: whether only whole numbers are values.
    """
    share_of = place or axis.share
    alone = len(arrange_labels(taken, width_px=width_px))
    best: tuple[Label, ...] = ()
    for ticks in _candidates(axis, unit):
        if not 0 < len(ticks) <= TICKS_AT_MOST or (is_whole and any(tick % 1 for tick in ticks)):
            continue
        numbers = [(share_of(tick), say_roughly(tick, unit)) for tick in ticks]
        free = [
            each for each in numbers if len(arrange_labels([*taken, each], width_px=width_px)) == alone + 1
        ]
        labels = arrange_labels([*taken, *free], width_px=width_px)
        if len(labels) == alone + len(free) > len(best):
            best = labels
    if alone == len(taken) and len(best) > alone + 1:
        return best
    ends = [axis.low] if axis.high <= axis.low else [axis.low, axis.high]
    return arrange_labels(
        [*taken, *((share_of(end), say_roughly(end, unit)) for end in ends)], width_px=width_px, rows=2
    )


def _candidates(axis: Axis, unit: str) -> Iterator[list[float]]:
    """Yield sets of round numbers of a range."""
    if axis.high <= axis.low:
        return
    if axis.is_log and unit in BYTES:
        first, last = math.ceil(math.log2(axis.low) - 1e-9), math.floor(math.log2(axis.high) + 1e-9)
        for stride in (1, 2, 3, 4, 5, 10):
            trial = -(-first // stride) * stride
            yield [2.0**power for power in range(trial, last + 1, stride)]
    elif axis.is_log:
        decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        for scales in ((1, 2, 5), (1, 3), (1,)):
            numbers = (scale * 10.0**decade for decade in decades for scale in scales)
            yield [number for number in numbers if axis.low <= number <= axis.high]
    for step in _steps(axis.high - axis.low, 1024 if unit in BYTES else 10):
        first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
        yield [step * index for index in range(first, last + 1)]


def _steps(width: float, base: int) -> Iterator[float]:
    """Yield round steps that divide a range into a few parts."""
    power = math.floor(math.log(width, base))
    scales = (1, 2, 5) if base == 10 else tuple(2**exponent for exponent in range(10))  # noqa: PLR2004
    for decade in (power - 1, power):
        for scale in scales:
            step = scale * float(base) ** decade
            if width / TICKS_AT_MOST <= step <= width:
                yield step


def _is_decade(value: float) -> bool:
    return abs(math.log10(value) - round(math.log10(value))) < 1e-9  # noqa: PLR2004 - rounding only
