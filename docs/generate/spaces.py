"""Writes the reference of what can be tuned from the search spaces, a page for each."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape as escape_html
from pathlib import Path
from typing import Any

from docs.generate.markdown import code, escape, fields, put
from tuner.space import SpaceFacts, describe_space, load_space
from tuner.space.rules import evaluate_bounds
from tuner.space.sources import BUILT_IN, Draft, Merged, merge, read_sources
from tuner.space.values import as_flag

KINDS = {"int": "whole number", "float": "number", "categorical": "one of several", "bool": "on or off"}
APPLIED = {"live": "at once", "reload": "by a reload", "restart": "by a restart"}
RISKS = {
    "safe": "safe",
    "semantic": "semantic: it changes what the server does; tuned only if a study allows it",
    "risky": "risky: tuned only if a study allows it",
}
SCOPES = {
    "netns": "one network namespace; a sandbox has its own",
    "host": "the whole machine; a sandbox leaves it alone",
    "private": "sandboxes; an installed server keeps its own",
}
MACHINE = SpaceFacts(
    names={
        "cores": 4, "memory_mib": 8192, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
    },
    sandbox=False, loopback=False,
)  # fmt: skip
MACHINE_NAME = "a machine with 4 CPUs and 8 GiB of memory, under 100 connections"
HEAD = f"""\
# Parameter catalogue

Every setting that tuner can change, by search space. Ranges and defaults are those of
{MACHINE_NAME}; open a formula for other machines.
`tuner spaces --study FILE` lists the settings that a study searches. [Search spaces](../../spaces.md)
explains the fields, and how to write your own.

| space | server | settings | purpose |
|---|---|---|---|
"""


def write_pages(folder: Path) -> None:
    """Write `index.md` and a page for each built-in space into a folder."""
    names = sorted(path.stem for path in BUILT_IN.glob("*.yaml"))
    put(folder / "index.md", _list_spaces(names))
    for name in names:
        put(folder / f"{name}.md", "\n".join(_write_space(name)) + "\n")


def _list_spaces(names: list[str]) -> str:
    rows = []
    for name in names:
        merged = _read(name)
        count, title = len(merged.parameters), escape(merged.title)
        rows.append(f"| [{name}]({name}.md) | {', '.join(merged.servers)} | {count} | {title} |\n")
    toctree = "\n".join(["", "```{toctree}", ":hidden:", "", *names, "```", ""])
    return HEAD + "".join(rows) + toctree


@cache
def _read(name: str) -> Merged:
    return merge(read_sources([name], BUILT_IN))


def _write_space(name: str) -> Iterator[str]:
    merged, rows, resolved = _read(name), describe_space(name), _resolve(name)
    yield from (f"# {name}", "", *_introduce(name), "")
    settings = [row for row in rows if row["kind"] != "derived"]
    yield from (f"Ranges and defaults are those of {MACHINE_NAME}.", "")
    yield from ("| setting | default | range | risk |", "|---|---|---|---|")
    yield from (_write_row(row, *_find_numbers(row, resolved)) for row in settings)
    yield from ("", "## Settings", "")
    for row in settings:
        yield from _write_setting(row, *_find_numbers(row, resolved))
    follows = [row for row in rows if row["kind"] == "derived"]
    yield from _section("Derived settings", follows, _write_derived)
    yield from _section("Rules", list(merged.constraints.values()), _write_rule)
    yield from _section("Capacity", list(merged.capacity.values()), _write_figure)
    yield from _section("Presets", list(merged.presets.values()), _write_preset)
    yield from _section("Settings of old guides", list(merged.dead.items()), _write_dead)


@cache
def _resolve(name: str) -> dict[str, tuple[str, str]]:
    """Return the range and the default of each setting that is a number on MACHINE."""
    space = load_space([name, {"allow": ["semantic", "risky"]}], facts=MACHINE, base=Path())
    default = space.default()
    scope = space.rules.scope(default)
    numbers = [each for each in space.parameters if each.is_numeric and each.name in default]
    bounds = {each.name: evaluate_bounds(each, scope) for each in numbers}
    return {
        name: (f"{space.show(name, low)} to {space.show(name, high)}", space.show(name, default[name]))
        for name, (low, high) in bounds.items()
    }


def _find_numbers(row: dict[str, Any], resolved: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Return range and default of a setting, as numbers where they are."""
    if row["name"] not in resolved:
        return row["range"], _show_default(row)
    ends, default = resolved[row["name"]]
    step = f" in steps of {row['step']}" if row["step"] else ""
    log = ", log" if row["scale"] == "log" else ""
    special = "".join(f", or {label}" for label in row["special"])
    return f"{ends}{step}{log}{special}", default


def _write_row(row: dict[str, Any], shown: str, default: str) -> str:
    anchor = re.sub(r"[^\w\- ]", "", row["name"].lower()).replace(" ", "-")
    cells = (f"[{code(row['name'])}](#{anchor})", code(default), code(shown), row["risk"])
    return f"| {' | '.join(cells)} |"


def _section(title: str, entries: list[Any], write: Callable[[Any], list[str]]) -> Iterator[str]:
    if entries:
        yield from (f"## {title}", "")
        for entry in entries:
            yield from (*write(entry), "")


def _introduce(name: str) -> list[str]:
    """Return what the file says of itself at its top."""
    text = (BUILT_IN / f"{name}.yaml").read_text()
    (comment,) = re.findall(r"\A((?:#.*\n)*)", text)
    lines = [line[2:] for line in comment.splitlines() if "yaml-language-server" not in line]
    return [escape(line) for line in lines]


def _write_setting(row: dict[str, Any], shown: str, default: str) -> list[str]:
    told = _tell(row, shown, default)
    return [f"### {code(row['name'])}", "", escape(row["why"]), "", *fields(told), ""]


def _tell(row: dict[str, Any], shown: str, default: str) -> dict[str, str]:
    """Return what is known of a setting; what says nothing is empty."""
    acts = f"{code(row['acts_when'])} ({escape(row['acts_source'])})" if row["acts_when"] else ""
    return {
        "Kind": KINDS[row["kind"]],
        "Range": code(shown),
        "Default": code(default),
        "Formula": _fold_formula(row, shown, default),
        "Unit": escape(row["unit"]),
        "Takes effect": APPLIED[row["apply"]],
        "Risk": RISKS[row["risk"]],
        "Exists when": code(row["when"]),
        "Exists where": code(row["exists"]),
        "Has an effect when": acts,
        "Over loopback": "" if row["loopback"] else "no effect",
        "Versions": _tell_versions(row),
        "Scope": SCOPES.get(row["scope"], ""),
        "Written": "not itself; it builds other settings" if row["internal"] else "",
        "Hint": _tell_hint(row["hint"]),
        "Side effects": escape(row["also"]),
        "Source": escape(row["source"]),
    }


def _fold_formula(row: dict[str, Any], shown: str, default: str) -> str:
    """Return what range and default are on any machine, folded; empty where they are the same everywhere."""
    written = {"range": row["range"], "default": _show_default(row)}
    formulas = [
        f"<code>{escape_html(text)}</code> ({what})"
        for what, text in written.items()
        if text != {"range": shown, "default": default}[what]
    ]
    return f"<details><summary>show</summary>{', '.join(formulas)}</details>" if formulas else ""


def _show_default(row: dict[str, Any]) -> str:
    flag = as_flag(row["default"]) if row["kind"] == "bool" else None
    return row["default"] if flag is None else ("on" if flag else "off")


def _tell_versions(row: dict[str, Any]) -> str:
    since = f"since {row['since']}" if row["since"] else ""
    until = f"until {row['until']}" if row["until"] else ""
    return " ".join(filter(None, (since, until)))


def _tell_hint(hint: dict[str, Any]) -> str:
    if not hint:
        return ""
    better = code(str(hint["value"])) if "value" in hint else hint["direction"]
    when = f" when {code(str(hint['when']))}" if "when" in hint else ""
    return f"{better}, odds {hint['odds']:g} to 1{when} ({escape(hint['source'])})"


def _write_derived(row: dict[str, Any]) -> list[str]:
    told = {"Value": code(row["default"]), "Exists when": code(row["when"]), "Source": escape(row["source"])}
    return [f"### {code(row['name'])}", "", escape(row["why"]), "", *fields(told)]


def _write_rule(draft: Draft) -> list[str]:
    return [f"- {code(str(draft.fields['rule']))}: {escape(draft.fields['why'])}"]


def _write_figure(draft: Draft) -> list[str]:
    told = {"Value": code(str(draft.fields["value"])), "Source": escape(draft.fields.get("source", ""))}
    return [f"**{draft.name}**: {escape(draft.fields.get('why', ''))}", "", *fields(told)]


def _write_preset(draft: Draft) -> list[str]:
    preset = {"source": "", "try_first": True, **draft.fields}
    values = "\n".join(f"{name}: {value}" for name, value in preset["values"].items())
    tried = "tried before the search" if preset["try_first"] else "a recipe, for `tuner compare` only"
    told = {"Use": tried, "Source": escape(preset["source"])}
    title = escape(preset["title"])
    return [f"### {draft.name}", "", title, "", f"```yaml\n{values}\n```", "", *fields(told)]


def _write_dead(entry: tuple[str, str]) -> list[str]:
    name, told = entry
    return [f"- {code(name)}: {escape(told)}"]
