"""The rate of a load, as a study file writes it: requests per second, or a multiple of a log's peak."""

import re
from dataclasses import dataclass

from tuner.space.problems import Refused, quote
from tuner.study.loads.load_bounds import MOST_RATE_RPS

_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?)"
_FORM = re.compile(rf"(?P<number>{_NUMBER})|(?:(?P<times>{_NUMBER})\s*[×x*]\s*)?peak")
SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_RATE_RPS},
        {"type": "string", "pattern": rf"^({_NUMBER}\s*[×x*]\s*)?peak$"},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Requests per second, or times the peak of a log."""

    number: float
    is_of_peak: bool = False


def read_rate(given: object) -> Rate:
    """Read `3500`, `peak` or `2 × peak`. Raises Refused."""
    form = _FORM.fullmatch(str(given).strip())
    if form is None or not 0 < float(form["number"] or form["times"] or 1) <= MOST_RATE_RPS:
        raise Refused(f"{quote(given)} is no rate", "Write requests per second as 3500, `peak` or `2 × peak`")
    if form["number"]:
        return Rate(number=float(form["number"]))
    return Rate(number=float(form["times"] or 1), is_of_peak=True)
