"""Writes the reference of the study file from the model that reads it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import code, escape, fields, put
from tuner.space.file_format import FLAG
from tuner.study.schema import json_schema

HEAD = """\
# Study file

Every key of a study file, with its type, default and an example. You need three: `study`, `servers` and
`space`. Run `tuner init` to write a commented file. [Studies](../studies.md) shows the keys in use. `tuner
schema` prints the JSON Schema for editors.
"""
PARTS = {
    "": ("StudyFile", "Keys of a study"),
    "servers": ("ServerEntry", "Keys of a server"),
    "target": ("TargetSettings", "Keys of a target"),
    "load": ("LoadEntry", "Keys of a load"),
    "load.requests": ("RequestEntry", "Keys of a request"),
    "loads": ("NamedLoadEntry", "Keys of one of several loads"),
    "check_loads": ("CheckLoadEntry", "Keys of a check load"),
    "backend": ("BackendEntry", "Keys of an application"),
    "budget": ("BudgetEntry", "Keys of a budget"),
}
"""Key → the model of its value, and the heading of its section. `targets` has the keys of `target`."""
TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "object": "mapping",
    "array": "list",
}
UNITS = {"_s": "seconds", "_mib": "MiB", "minutes": "minutes"}
"""End of a key → the unit of its value."""


def write_page(folder: Path) -> None:
    """Write `study-file.md` into a folder."""
    put(folder / "study-file.md", "\n".join(_write_lines(json_schema())) + "\n")


def _write_lines(schema: dict[str, Any]) -> Iterator[str]:
    yield HEAD
    models = {"StudyFile": schema, **schema["$defs"]}
    for place, (name, heading) in PARTS.items():
        yield from (f"## {heading}", "")
        known = models["LoadEntry"]["properties"] if name == "NamedLoadEntry" else {}
        if place:
            more = " Besides its own, it has the keys of a load." if known else ""
            yield from (f"{escape(models[name]['description'])} In {code(f'{place}:')}.{more}", "")
        needed = models[name].get("required", ())
        for key, told in models[name]["properties"].items():
            if key not in known:
                yield from _write_key(key, told, is_needed=key in needed)


def _write_key(key: str, told: dict[str, Any], *, is_needed: bool) -> Iterator[str]:
    unit = next((unit for end, unit in UNITS.items() if key.endswith(end)), "")
    rows = {
        "Type": escape(_name_type(told)),
        "Unit": unit,
        "Default": "none; the key is required" if is_needed else code(_show(told.get("default", ""))),
        "Example": code(f"{key}: {_show(told['examples'][0])}"),
    }
    yield from (f"### {code(key)}", "", escape(told["description"]), "", *fields(rows), "")


def _name_type(told: dict[str, Any]) -> str:
    if "$ref" in told:
        return "mapping"
    if "anyOf" in told:
        # Which names are completed depends on what is installed where the page is made.
        is_open = any("minLength" in each for each in told["anyOf"])
        names = [_name_type(each) for each in told["anyOf"] if not (is_open and "enum" in each)]
        return " or ".join(dict.fromkeys(names))
    if told.get("enum") == FLAG["enum"]:
        return "true or false"
    if "enum" in told:
        return "one of " + ", ".join(map(str, told["enum"]))
    if "items" in told:
        return f"list of {_name_type(told['items'])}"
    kind = told.get("type", "string")
    name = TYPES["string" if isinstance(kind, list) else kind]
    bounds = [f"{told[end]:,.12g}" for end in ("minimum", "maximum") if end in told]
    return " from ".join([name, " to ".join(bounds)]) if bounds else name


def _show(value: object) -> str:
    """Return a value as one line of YAML; nothing for an empty one."""
    if value == "":
        return ""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, width=1000, sort_keys=False, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...").strip()
