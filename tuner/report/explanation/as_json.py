"""An explanation as JSON values: what `tuner explain --json` prints, and `show --json` holds."""

from collections.abc import Collection
from typing import Any

from pydantic import TypeAdapter

from tuner.explain.explanation import Depth, Explanation, Line, Other, Worth

_EXPLANATIONS, _DEPTHS = TypeAdapter(Explanation), TypeAdapter(Depth)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return the whole explanation; docs/measurement.md explains every key."""
    data: dict[str, Any] = _EXPLANATIONS.dump_python(found, mode="json")
    data["confirmed"] = data.pop("is_confirmed")
    data["beside"] = None if found.beside is None else explanation_json(found.beside)
    for line, told in zip(found.lines, data["lines"], strict=True):
        told["mechanisms"] = _say_mechanisms(line)
    return data


def depth_json(depth: Depth) -> dict[str, Any]:
    """Return everything that is known of one parameter."""
    data: dict[str, Any] = _DEPTHS.dump_python(depth, mode="json")
    if depth.line is not None:
        data["line"]["mechanisms"] = _say_mechanisms(depth.line)
    return data


def _say_mechanisms(line: Line) -> list[str]:
    return [each.sentence for each in line.mechanisms]


def sensitivity_json(found: Explanation, kept: Collection[str]) -> list[dict[str, Any]]:
    """Return one entry for each parameter, in short; effects are shares: 0.12 is 12 % more.

    Args:
        found: the explanation.
        kept: what the winner changes.
    """
    worths: list[tuple[Line | Other, Worth | None]] = [
        *((line, line.worth) for line in found.lines),
        *((other, other.effect) for other in found.others),
    ]
    return [
        {
            "parameter": each.parameter,
            "effect": None if worth is None else worth.ratio - 1,
            "low": None if worth is None else worth.low - 1,
            "high": None if worth is None else worth.high - 1,
            "kept": each.parameter in kept,
            "verdict": each.finding.value,
        }
        for each, worth in worths
    ]
