"""One line of a benchmark: what was seen beside what is wanted."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and the bounds that it has to keep; without bounds it is for information."""

    name: str
    seen: float
    unit: str = ""
    least: float = -math.inf
    most: float = math.inf

    @property
    def is_met(self) -> bool:
        return self.least <= self.seen <= self.most

    def __str__(self) -> str:
        low = f"≥ {self.least:g}" if math.isfinite(self.least) else ""
        high = f"≤ {self.most:g}" if math.isfinite(self.most) else ""
        mark = ("ok" if self.is_met else "MISSED") if low or high else ""
        bounds = " and ".join(bound for bound in (low, high) if bound)
        return f"{mark:<6}  {self.name:<78} {self.seen:>7.2f} {self.unit:<7} {bounds}".rstrip()
