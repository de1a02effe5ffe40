"""An explanation as JSON values: what `tuner explain --json` prints, and `show --json` holds."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from tuner.explain.explanation import CurvePoint, Depth, Explanation, Interaction, Line, Other, Worth


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return the whole explanation; docs/measurement.md explains every key."""
    return {
        "metric": found.metric,
        "refusal": found.refusal,
        "confirmed": found.is_confirmed,
        "starts": found.starts,
        "gain": _worth(found.gain),
        "conclusions": list(found.conclusions),
        "lines": [_line(each) for each in found.lines],
        "others": [_other(each) for each in found.others],
        "tolerances": [asdict(each) for each in found.tolerances],
        "interactions": [_interaction(each) for each in found.interactions],
        "proof": None if found.proof is None else asdict(found.proof),
        "beside": None if found.beside is None else explanation_json(found.beside),
    }


def depth_json(depth: Depth) -> dict[str, Any]:
    """Return everything that is known of one parameter."""
    texts = ("parameter", "unit", "why", "source", "also", "acts_when", "acts_source")
    return {
        **{name: getattr(depth, name) for name in texts},
        "line": None if depth.line is None else _line(depth.line),
        "other": None if depth.other is None else _other(depth.other),
        "tolerance": None if depth.tolerance is None else asdict(depth.tolerance),
        "interactions": [_interaction(each) for each in depth.interactions],
        "curve": [_point(each) for each in depth.curve],
    }


def sensitivity_json(found: Explanation, kept: Collection[str]) -> list[dict[str, Any]]:
    """Return one entry for each parameter, in short; effects are shares: 0.12 is 12 % more.

    Args:
        found: the explanation.
        kept: what the winner changes.
    """
    lines: Sequence[tuple[Line | Other, Worth | None]] = [(line, line.worth) for line in found.lines]
    others: Sequence[tuple[Line | Other, Worth | None]] = [(each, each.effect) for each in found.others]
    return [
        {
            "parameter": each.parameter,
            "effect": None if worth is None else worth.ratio - 1,
            "low": None if worth is None else worth.low - 1,
            "high": None if worth is None else worth.high - 1,
            "kept": each.parameter in kept,
            "verdict": each.finding.value,
        }
        for each, worth in (*lines, *others)
    ]


def _worth(worth: Worth | None) -> dict[str, float] | None:
    return None if worth is None else asdict(worth)


def _line(line: Line) -> dict[str, Any]:
    return {
        **{name: getattr(line, name) for name in ("parameter", "default", "value", "chance", "bound")},
        "finding": line.finding.value,
        "worth": _worth(line.worth),
        "alone": _worth(line.alone),
        "mechanisms": [each.sentence for each in line.mechanisms],
    }


def _other(other: Other) -> dict[str, Any]:
    return {
        **{name: getattr(other, name) for name in ("parameter", "default", "value", "bound", "reason")},
        "finding": other.finding.value,
        "effect": _worth(other.effect),
    }


def _interaction(each: Interaction) -> dict[str, Any]:
    return {"parameters": list(each.parameters), "worth": _worth(each.worth)}


def _point(point: CurvePoint) -> dict[str, Any]:
    return {
        "value": point.value,
        "at_winner": _worth(point.at_winner),
        "at_default": _worth(point.at_default),
        "starts": point.starts,
    }
