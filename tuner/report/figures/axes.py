"""Round numbers for the axes of figures."""

import math
from collections.abc import Iterator

from tuner.report.wording import BYTES

TICKS_AT_MOST = 6


def choose_ratio_ticks(low: float, high: float) -> list[float]:
    """Choose round ratios from low to high, 1 among them."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first <= TICKS_AT_MOST:
            return [round(step * index, 2) for index in range(max(1, first), last + 1)]
    wide = [scale * 10.0**decade for decade in range(-4, 5) for scale in (1, 2, 5)]
    inside = [tick for tick in wide if low <= tick <= high]
    return inside if len(inside) <= TICKS_AT_MOST + 1 else [each for each in inside if _is_decade(each)]


def choose_ticks(
    low: float, high: float, *, unit: str = "", is_log: bool = False, is_whole: bool = False
) -> list[float]:
    """Choose round numbers of a range, as many as there are up to six; its ends where no two are round.

    Args:
        low: lowest number.
        high: highest number.
        unit: the unit of the numbers; those of bytes are round in powers of two.
        is_log: whether the axis is logarithmic.
        is_whole: whether only whole numbers are values.
    """
    best: list[float] = []
    for ticks in _candidates(low, high, unit, is_log=is_log):
        if len(best) < len(ticks) <= TICKS_AT_MOST and not (is_whole and any(tick % 1 for tick in ticks)):
            best = ticks
    return best if len(best) > 1 else [*dict.fromkeys((low, high))]


def _candidates(low: float, high: float, unit: str, *, is_log: bool) -> Iterator[list[float]]:
    """Yield sets of round numbers of a range."""
    if high - low <= 1e-9 * abs(high):
        return
    if is_log and unit in BYTES:
        first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
        for stride in (1, 2, 3, 4, 5, 10):
            start = -(-first // stride) * stride
            yield [2.0**power for power in range(start, last + 1, stride)]
    elif is_log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for scales in ((1, 2, 5), (1, 3), (1,)):
            numbers = (scale * 10.0**decade for decade in decades for scale in scales)
            yield [number for number in numbers if low <= number <= high]
    for step in _steps(high - low, 1024 if unit in BYTES else 10):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
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
