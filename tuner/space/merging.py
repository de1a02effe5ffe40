"""Lays the sources of a space over each other: later ones refine earlier ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tuner.ports import Scalar
from tuner.space.denylist import refuse_denied
from tuner.space.problems import Place, problem, suggest
from tuner.space.validation import validate
from tuner.space.yaml_text import Document

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tuner.space.schema import SpaceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One entry of a space as written, each field with its place."""

    name: str
    server: str
    place: Place
    fields: Mapping[str, Any]
    places: Mapping[tuple[str, ...], Place]
    """Field, or field and key in it → place."""

    def at(self, *keys: str) -> Place:
        """Return where a field stands, or what is in it; the entry when it is not given."""
        return self.places.get(keys, self.place)


@dataclass(slots=True, kw_only=True)
class Merged:
    """All sources as one. It grows while they are read, and is not changed afterwards."""

    title: str = ""
    """Of the first."""
    names: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)
    parameters: dict[str, Draft] = field(default_factory=dict)
    derived: dict[str, Draft] = field(default_factory=dict)
    capacity: dict[tuple[str, str], Draft] = field(default_factory=dict)
    """By server and figure."""
    constraints: dict[tuple[str, str], Draft] = field(default_factory=dict)
    """By server and rule, so that a space named twice has them once."""
    presets: dict[tuple[str, str], Draft] = field(default_factory=dict)
    """By space and name."""
    dead: dict[str, str] = field(default_factory=dict)
    pinned: dict[str, str] = field(default_factory=dict)
    """Parameter → why it is not tuned."""
    held: dict[str, tuple[Scalar, Place]] = field(default_factory=dict)
    """Parameter → value or expression that it is held at."""
    allowed: set[str] = field(default_factory=lambda: {"safe"})


def merge(documents: Sequence[Document]) -> Merged:
    """Return all documents as one. Raises UsageError."""
    merged = Merged()
    for document in documents:
        _add(merged, document, validate(document))
    if not merged.parameters:
        raise problem("space", "there are no parameters", "Name a built-in space, as `space: [nginx]`")
    return merged


def _add(merged: Merged, document: Document, file: "SpaceFile") -> None:
    server = file.server or ""
    merged.title = merged.title or file.title or ""
    if server and server not in merged.servers:
        merged.servers.append(server)
    if file.space or server:
        merged.names.append(file.space or server)
    for name, entry in file.parameters.items():
        refuse_denied(name, server or _server_of(merged, name), document.place(("parameters", name)))
        merged.parameters[name] = _refine(
            merged.parameters.get(name), entry, document, ("parameters", name), server
        )
    sole = server or (merged.servers[0] if len(merged.servers) == 1 else "")
    for name, follows in file.derived.items():
        refuse_denied(name, sole, document.place(("derived", name)))
        merged.derived[name] = _refine(merged.derived.get(name), follows, document, ("derived", name), sole)
    for name, figure in file.capacity.items():
        merged.capacity[sole, name] = _refine(
            merged.capacity.get((sole, name)), figure, document, ("capacity", name), sole
        )
    for number, rule in enumerate(file.constraints):
        merged.constraints[sole, str(rule.rule)] = _draft(
            "rule", rule, document, ("constraints", number), sole
        )
    for name, preset in file.presets.items():
        merged.presets[file.space or "", name] = _draft(name, preset, document, ("presets", name), sole)
    merged.dead.update(file.dead)
    _narrow(merged, document, file)


def _server_of(merged: Merged, name: str) -> str:
    return merged.parameters[name].server if name in merged.parameters else ""


def _draft(
    name: str, entry: "BaseModel", document: Document, path: tuple[str | int, ...], server: str
) -> Draft:
    given = {key: value for key in entry.model_fields_set if (value := getattr(entry, key)) is not None}
    places: dict[tuple[str, ...], Place] = {(key,): document.place((*path, key)) for key in given}
    for key, value in given.items():
        if isinstance(value, dict):
            places |= {(key, inner): document.place((*path, key, inner)) for inner in value}
    return Draft(name=name, server=server, place=document.place(path), fields=given, places=places)


def _refine(
    earlier: Draft | None, entry: "BaseModel", document: Document, path: tuple[str | int, ...], server: str
) -> Draft:
    name = str(path[-1])
    later = _draft(name, entry, document, path, server)
    if earlier is None:
        if not server:
            raise problem(
                later.place,
                f"{name} is new, and this entry has no `server:`",
                "Add `server:`, or correct the name",
            )
        return later
    if server and server != earlier.server:
        raise problem(
            later.place, f"{name} belongs to {earlier.server} already, not to {server}", "Rename one"
        )
    fields = {**earlier.fields, **later.fields}
    return replace(earlier, fields=fields, places={**earlier.places, **later.places})


def _narrow(merged: Merged, document: Document, file: "SpaceFile") -> None:
    """Apply only, without, set and allow to what has been named so far."""
    if file.only is not None:
        _require_parameters(merged, document, "only", file.only)
        for name in merged.parameters.keys() - set(file.only):
            merged.pinned[name] = "not among those of `only:`"
    if file.without is not None:
        _require_parameters(merged, document, "without", file.without)
        merged.pinned.update(dict.fromkeys(file.without, "named by `without:`"))
    if file.set is not None:
        _require_parameters(merged, document, "set", file.set)
        for name, value in file.set.items():
            merged.held[name] = (value, document.place(("set", name)))
            merged.pinned[name] = "held by `set:`"
    merged.allowed.update(file.allow or ())


def _require_parameters(merged: Merged, document: Document, key: str, names: Iterable[str]) -> None:
    for number, name in enumerate(names):
        if name in merged.parameters:
            continue
        place = document.place((key, name) if key == "set" else (key, number))
        if name in merged.derived:
            value = merged.derived[name].fields["value"]
            raise problem(place, f"{name} is not tuned, it follows as `{value}`", "Name what it follows from")
        if name in merged.dead:
            raise problem(place, f"{name} is dead: {merged.dead[name]}", "Remove it")
        raise problem(place, f"there is no parameter {name}", suggest(name, merged.parameters))
