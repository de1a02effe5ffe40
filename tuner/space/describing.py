"""Describes spaces for `tuner spaces`: as written, and as a study searches them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.sources import Draft, Merged, available_spaces, merge, read_sources
from tuner.space.space import Space
from tuner.space.values import show_quantity

_BLANK: Mapping[str, Any] = {
    **dict.fromkeys(("name", "server", "unit", "when", "since", "until", "acts_when", "acts_source"), ""),
    "internal": False,
    "why": "",
    "source": "",
    "also": "",
    "kind": "",
    "range": "",
    "default": "",
    "special": {},
    "choices": [],
    "scale": "linear",
    "step": None,
    "hint": {},
    "exists": "",
    "risk": "safe",
    "apply": "restart",
    "scope": "",
    "loopback": True,
}
"""What a row says where the file says nothing."""


def describe_space(name: str) -> list[dict[str, Any]]:
    """Return the parameters and derived settings of a space (name or path), in order, as plain data.

    Every entry has name, server, kind, range, default, unit, special, when, since, until, risk, apply,
    acts_when, acts_source, hint, scope, internal, why, source and also; texts are empty where the file
    says nothing. Derived settings are of kind `derived`, and their expression is their default.
    """
    merged = _merged(name)
    return [_describe(draft) for draft in (*merged.parameters.values(), *merged.derived.values())]


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
    """Return name, title, source and values of the presets of a space, and whether they are tried first."""
    blank = {"title": "", "source": "", "try_first": True}
    return [{"name": draft.name, **blank, **draft.fields} for draft in _merged(name).presets.values()]


def describe_dead(name: str) -> dict[str, str]:
    """Return the settings that old guides still give, with what became of them."""
    return dict(_merged(name).dead)


def describe_searched(space: Space) -> dict[str, Any]:
    """Return what of a space is searched on its host and under its load, and what is not, with the reasons.

    The keys are searched (names), cannot_act (name → reason and source), searched_all_the_same (those that
    cannot act and that the study names), held and left_out (name → reason), and presets (name → what of it
    is not as written, each with the reason).
    """
    known = {each.name: each for each in space.parameters}
    inert = {
        name: {"reason": reason, "source": known[name].acts_source} for name, reason in space.inert.items()
    }
    held = {each.name: each.pinned for each in space.parameters if each.pinned and each.name not in inert}
    return {
        "searched": list(dict.fromkeys(each.parameter for each in space.dimensions)),
        "cannot_act": inert,
        "searched_all_the_same": space.inert_but_tuned,
        "held": held,
        "left_out": dict(space.left_out),
        "presets": {each.name: dict(each.adjusted) for each in space.open().presets},
    }


def _merged(name: str) -> Merged:
    return merge(read_sources([name], Path.cwd()))


def _describe(draft: Draft) -> dict[str, Any]:
    fields = draft.fields
    row = {key: fields.get(key, blank) for key, blank in _BLANK.items()}
    row |= {"name": draft.name, "server": draft.server}
    row |= {key: str(row[key]) for key in ("when", "acts_when")}
    row |= {"hint": fields["hint"].model_dump(exclude_none=True) if "hint" in fields else {}}
    row |= {"special": dict(row["special"]), "choices": list(row["choices"])}
    if "value" in fields:
        value = str(fields["value"])
        source = row["source"] or f"derived as {value}"
        return row | {"kind": "derived", "default": value, "source": source}
    return row | {"range": _range(fields), "default": _show(row["default"], fields)}


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
