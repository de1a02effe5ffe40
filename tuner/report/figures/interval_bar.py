"""Ratios with their intervals as signs on a terminal, over one logarithmic scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.report.wording import say_ratio
from tuner.statistics.response_curve import Estimate

LEAST_BAR, MOST_BAR = 16, 60
"""Columns of the drawing: narrower it shows nothing, wider nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """A logarithmic scale of ratios over some columns."""

    low: float
    high: float
    columns: int

    @classmethod
    def fit(cls, estimates: list[Estimate], columns: int) -> "IntervalBar":
        low = min([1.0, *(each.low for each in estimates)])
        high = max([1.0, *(each.high for each in estimates)])
        return cls(low=low / 1.01, high=high * 1.01, columns=max(columns, 1))

    def at(self, ratio: float) -> int:
        """Return the column of a ratio."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return min(max(round(share * (self.columns - 1)), 0), self.columns - 1)

    def scale(self) -> str:
        """Return the ends of the scale and 1×, as far as they do not overlap."""
        signs = [" "] * self.columns
        for ratio, shift in ((1.0, 0.5), (self.low, 0.0), (self.high, 1.0)):
            text = say_ratio(ratio) if ratio != 1.0 else "1×"
            first = min(max(self.at(ratio) - round(shift * (len(text) - 1)), 0), self.columns - len(text))
            around = signs[max(first - 1, 0) : first + len(text) + 1]
            if first >= 0 and not "".join(around).strip():
                signs[first : first + len(text)] = text
        return "".join(signs)

    def draw(self, estimate: Estimate, symbol: str) -> str:
        """Return an interval, its ratio, and the line of no change."""
        signs = [" "] * self.columns
        low, high = self.at(estimate.low), self.at(estimate.high)
        signs[low : high + 1] = "─" * (high - low + 1)
        if signs[self.at(1.0)] == " ":
            signs[self.at(1.0)] = "│"
        signs[self.at(estimate.ratio)] = symbol
        return "".join(signs)


def draw_estimates(estimates: Sequence[Estimate | None], symbols: Sequence[str], columns: int) -> list[str]:
    """Return the scale and each estimate with its interval; a sentence where there is none."""
    bar = IntervalBar.fit([each for each in estimates if each], columns)
    drawn = (
        bar.draw(each, symbol) if each else "no measurement"
        for each, symbol in zip(estimates, symbols, strict=True)
    )  # fmt: skip
    return [bar.scale(), *drawn]
