"""An explanation as JSON values: what `tuner explain --json` prints, and `show --json` holds."""

from collections.abc import Collection
from typing import Any

from pydantic import TypeAdapter

from tuner.explain.explanation import Depth, Effect, Explanation, Other, Setting

_EXPLANATIONS, _DEPTHS = TypeAdapter(Explanation), TypeAdapter(Depth)


def explanation_json(found: Explanation) -> dict[str, Any]:
    """Return the whole explanation; docs/json-output.md explains every key."""
    data: dict[str, Any] = _EXPLANATIONS.dump_python(found, mode="json")
    data["confirmed"] = data.pop("is_confirmed")
    data["beside"] = None if found.beside is None else explanation_json(found.beside)
    for setting, told in zip(found.settings, data["settings"], strict=True):
        told["mechanisms"] = _say_mechanisms(setting)
    return data


def depth_json(depth: Depth) -> dict[str, Any]:
    """Return everything that is known of one parameter."""
    data: dict[str, Any] = _DEPTHS.dump_python(depth, mode="json")
    if depth.setting is not None:
        data["setting"]["mechanisms"] = _say_mechanisms(depth.setting)
    return data


def _say_mechanisms(setting: Setting) -> list[str]:
    return [each.sentence for each in setting.mechanisms]


def sensitivity_json(found: Explanation, kept: Collection[str]) -> list[dict[str, Any]]:
    """Return one entry for each parameter, in short; effects are shares: 0.12 is 12 % more.

    Args:
        found: the explanation.
        kept: what the winner changes.
    """
    effects: list[tuple[Setting | Other, Effect | None]] = [
        *((setting, setting.effect) for setting in found.settings),
        *((other, other.effect) for other in found.others),
    ]
    return [
        {
            "parameter": each.parameter,
            "effect": None if effect is None else effect.ratio - 1,
            "low": None if effect is None else effect.low - 1,
            "high": None if effect is None else effect.high - 1,
            "kept": each.parameter in kept,
            "verdict": each.finding.value,
        }
        for each, effect in effects
    ]
