"""What `tuner spaces NAME` shows: a space as written, without a host."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.merging import Draft, Merged, merge
from tuner.space.showing import show_quantity
from tuner.space.sources import available_spaces, read_sources


def describe_space(name: str) -> list[dict[str, Any]]:
    """Return the parameters and derived settings of a space (name or path), in order, as plain data.

    Every entry has name, server, kind, range, default, unit, special, when, since, until, risk, apply,
    scope, internal, why, source and also; texts are empty where the file says nothing. Derived settings
    are of kind `derived`, and their expression is their default.
    """
    merged = _merged(name)
    return [_describe(draft) for draft in merged.parameters.values()] + [
        _describe_derived(draft) for draft in merged.derived.values()
    ]


def describe_spaces() -> list[dict[str, str]]:
    """Return all spaces as entries of the same keys as their parameters.

    One that cannot be read has its fault as `why` and no server, and hides no other.
    """
    return [_describe_whole(name) for name in available_spaces()]


def _describe_whole(name: str) -> dict[str, str]:
    row = {"name": name, "kind": "space", "server": "", "default": "", "why": "", "source": ""}
    try:
        merged = _merged(name)
    except UsageError as error:
        return row | {"why": str(error)}
    return row | {"server": "".join(merged.servers), "why": merged.title}


def describe_presets(name: str) -> list[dict[str, Any]]:
    """Return name, title, source and values of the presets of a space."""
    return [
        {
            "name": draft.name,
            "title": draft.fields.get("title", ""),
            "source": draft.fields.get("source", ""),
            "values": dict(draft.fields["values"]),
        }
        for draft in _merged(name).presets.values()
    ]


def describe_dead(name: str) -> dict[str, str]:
    """Return the settings that old guides still give, with what became of them."""
    return dict(_merged(name).dead)


def _merged(name: str) -> Merged:
    return merge(read_sources([name], Path.cwd()))


def _describe(draft: Draft) -> dict[str, Any]:
    fields = draft.fields
    return {
        **_common(draft),
        "kind": fields.get("kind", ""),
        "range": _range(fields),
        "default": _show(fields.get("default", ""), fields),
        "special": dict(fields.get("special", {})),
        "choices": list(fields.get("choices", [])),
        "scale": fields.get("scale", "linear"),
        "step": fields.get("step"),
        "exists": fields.get("exists", ""),
        "risk": fields.get("risk", "safe"),
        "apply": fields.get("apply", "restart"),
        "scope": fields.get("scope", ""),
        "loopback": fields.get("loopback", True),
    }


def _describe_derived(draft: Draft) -> dict[str, Any]:
    value = str(draft.fields["value"])
    common = _common(draft)
    return {
        **common,
        "kind": "derived",
        "range": "",
        "default": value,
        "special": {},
        "choices": [],
        "scale": "linear",
        "step": None,
        "exists": "",
        "risk": "safe",
        "apply": "restart",
        "scope": "",
        "loopback": True,
        "source": common["source"] or f"follows as {value}",
    }


def _common(draft: Draft) -> dict[str, Any]:
    fields = draft.fields
    return {
        "name": draft.name,
        "server": draft.server,
        "unit": fields.get("unit", ""),
        "when": str(fields.get("when", "")),
        "since": fields.get("since", ""),
        "until": fields.get("until", ""),
        "internal": fields.get("internal", False),
        "why": fields.get("why", ""),
        "source": fields.get("source", ""),
        "also": fields.get("also", ""),
    }


def _range(fields: Mapping[str, Any]) -> str:
    if fields.get("kind") == "bool":
        return "off, on"
    if fields.get("kind") == "categorical":
        return ", ".join(map(str, fields.get("choices", [])))
    ends = " to ".join(_show(fields.get(key, ""), fields) for key in ("low", "high"))
    step = f" in steps of {fields['step']}" if "step" in fields else ""
    log = ", log" if fields.get("scale") == "log" else ""
    special = "".join(f", or {label}" for label in fields.get("special", {}))
    return f"{ends}{step}{log}{special}"


def _show(value: Scalar, fields: Mapping[str, Any]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return show_quantity(value, fields.get("unit", "")) if isinstance(value, (int, float)) else str(value)
