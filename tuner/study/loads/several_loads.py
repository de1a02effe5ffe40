"""Reads `loads:`, the loads of a study that each start is measured under, with their names and weights."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tuner.records.blend import Across
from tuner.space.problems import quote
from tuner.space.yaml_text import Document
from tuner.study.fields import Fields, Keys

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
LEAST_LOADS, MOST_LOADS = 2, 12
OWN = ("name", "weight")
"""Keys of an entry beside those of `load:`."""
SHARED = ("content", "backend")
"""Keys of a study that decide what its loads may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEntry:
    """One entry of `loads:`."""

    name: str
    weight: float
    fields: Fields
    """The rest of it, as the `load:` of a study with one."""


def read_entries(fields: Fields) -> tuple[LoadEntry, ...]:
    """Read the entries of `loads:`; none where the study has one `load:`.

    Raises UsageError naming file, line, value and remedy.
    """
    keys: Keys = ("loads",)
    given = fields.value(keys)
    if given is None:
        if fields.value(("across_loads",)) is not None:
            raise fields.wrong(("across_loads",), "there are no `loads:`", "Leave it out, or write `loads:`")
        return ()
    if fields.value(("load",)) is not None:
        raise fields.wrong(("load",), "`load:` beside `loads:`", "Make it one of them")
    if not isinstance(given, list) or not LEAST_LOADS <= len(given) <= MOST_LOADS:
        raise fields.wrong(
            keys, f"{quote(given)} is not a list of {LEAST_LOADS} to {MOST_LOADS} loads",
            "Write `- {name: pages, path: /index.html, weight: 2}` lines, or one `load:`",
        )  # fmt: skip
    entries = tuple(_read_entries(fields, len(given)))
    names = [each.name for each in entries]
    if len(set(names)) < len(names):
        raise fields.wrong(keys, f"the names {', '.join(names)} are not all different", "Name each once")
    if not sum(each.weight for each in entries):
        raise fields.wrong(
            keys, "the weights sum to zero, so that nothing counts", "Give one a weight above 0"
        )
    return entries


def read_across(fields: Fields) -> Across:
    """Read what counts of the gains under several loads."""
    return Across(fields.choice(("across_loads",), Across.WEIGHTED.value, tuple(Across)))


def _read_entries(fields: Fields, count: int) -> Iterator[LoadEntry]:
    for index in range(count):
        below = fields.document.below(("loads", index))
        own = Fields(below)
        name = own.text(("name",), own.text(("content",), ""))
        if not NAME.fullmatch(name):
            wrong = f"{quote(name)} is no name of a load" if name else "a load without `name:`"
            raise own.wrong(("name",), wrong, "Name it with letters, digits, . _ and -")
        weight = own.number(("weight",), 1.0, float, low=0, high=1e6)
        yield LoadEntry(name=name, weight=weight, fields=Fields(_as_study(fields.document, below)))


def _as_study(study: Document, entry: Document) -> Document:
    """Return an entry as a study file of one load would have it, with the lines where it stands."""
    data: Mapping[str, object] = {
        **{key: study.data[key] for key in SHARED if key in study.data},
        "load": {key: value for key, value in entry.data.items() if key not in OWN},
    }
    lines = {keys: line for keys, line in study.lines.items() if keys[:1] != ("load",)}
    return Document(
        source=entry.source,
        data=data,
        lines=lines | {("load", *keys): line for keys, line in entry.lines.items()},
    )
