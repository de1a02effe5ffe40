"""Reads the sources of a space and merges them: later ones refine earlier ones."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner import plugins
from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.denylist import refuse_denied
from tuner.space.problems import Place, problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, read_yaml
from tuner.space.yaml_text import Path as KeyPath

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tuner.space.schema import SpaceFile

Source = str | Path | Mapping[str, object] | Document
"""Name, path, or an entry written out; as a Document it keeps the lines of the study file."""
_PATH = re.compile(r"/|\.ya?ml\Z")
BUILT_IN = Path(__file__).parents[1] / "search_spaces"
NAME_FIRST = "Name a search space before this entry; `tuner spaces` lists them"
WITHOUT = "named by `without:`"
PARTS = BUILT_IN / "parts"
"""What several of tuner's spaces have in common."""


def available_spaces() -> tuple[str, ...]:
    """Return the names of all spaces: the built-in ones, and those that other distributions register."""
    return tuple(sorted({*_built_in(), *(point.name for point in plugins.foreign_spaces())}))


def _built_in() -> dict[str, Path]:
    return {path.stem: path for path in BUILT_IN.glob("*.yaml")}


def read_space(name: str) -> Document:
    """Read a space by its name. Raises UsageError for an unknown name, or one that two packages give."""
    where = f"search space {quote(name)}"
    built_in = _built_in().get(name)
    points = [point for point in plugins.foreign_spaces() if point.name == name]
    claims = ["tuner itself"] if built_in else []
    claims += [f"{point.value} ({plugins.origin(point)})" for point in points]
    if len(claims) > 1:
        raise problem(
            where,
            f"several packages define this name: {' and '.join(claims)}",
            "Uninstall one of the packages",
        )
    if built_in:
        return read_yaml(built_in.read_bytes(), f"search_spaces/{built_in.name}")
    if points:
        content = plugins.read_foreign_space(points[0], most_bytes=LARGEST_FILE_BYTES + 1)
        return read_yaml(content, f"{points[0].value}/{name}.yaml")
    raise problem(where, "no search space has this name", suggest_space(name))


def is_path(source: str) -> bool:
    """Return whether a source is the path of a file, not the name of a space."""
    return _PATH.search(source) is not None


def suggest_space(name: str) -> str:
    """Return what to write in place of the name of a space that does not exist."""
    shown = name if name and name.isprintable() else "name"
    return f"{suggest(name, available_spaces())} For a file, write its path: ./{shown}.yaml"


def _read_part(name: str, place: Place) -> Document:
    """Read what several spaces have in common. Raises UsageError for an unknown name."""
    there = {path.stem: path for path in PARTS.glob("*.yaml")}
    if name not in there:
        raise problem(place, f"there is no shared part {quote(name)}", suggest(name, there))
    return read_yaml(there[name].read_bytes(), f"search_spaces/{PARTS.name}/{there[name].name}")


def read_sources(sources: Sequence[Source], base: Path) -> list[Document]:
    """Read all sources of a space, paths relative to `base`. Raises UsageError."""
    if isinstance(sources, (str, Path)) or not sources:
        raise problem(
            "space",
            f"{quote(sources)} is not a list with entries",
            "Write `space: [NAME]`; `tuner spaces` lists the names",
        )
    return [_read(source, number, base) for number, source in enumerate(sources, start=1)]


def _read(source: object, number: int, base: Path) -> Document:
    where = f"space entry {number}"
    if isinstance(source, Document):
        return source
    if isinstance(source, Mapping):
        return Document(source=where, data=dict(source), lines={})
    if isinstance(source, Path) or (isinstance(source, str) and is_path(source)):
        return _read_file(Path(source), base)
    if isinstance(source, str):
        return read_space(source)
    raise problem(
        where, f"{quote(source)} is no name, path or mapping", "Write the name or path of a search space"
    )


def _read_file(path: Path, base: Path) -> Document:
    full = base / path
    try:
        if not full.is_file():  # a pipe or device would be read without end
            remedy = "Correct the path; it is relative to the study file"
            raise problem(str(path), f"there is no file {full}", remedy)
        with full.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        wrong = f"{full} cannot be read: {error}"
        raise problem(str(path), wrong, "Check the path and its permissions") from error
    if full.resolve().is_relative_to(base.resolve()):
        return read_yaml(content, str(path))
    return _read_elsewhere(content, path)


def _read_elsewhere(content: bytes, path: Path) -> Document:
    """Read a file outside the study's folder, and quote nothing of one that is no space: it may be a key."""
    try:
        document = read_yaml(content, str(path))
    except UsageError:
        document = None
    if document is None or "space" not in document.data:
        wrong = (
            "this file is no search space. tuner does not show its content, because the file is outside the "
            "folder of the study"
        )
        raise problem(str(path), wrong, "Name a file that begins with `space: NAME`")
    return document


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
    elsewhere: dict[str, Scalar] = field(default_factory=dict)
    """Parameter of another server that expressions use → its value where no space of the study has it."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Derived setting → why it is not written."""
    pinned: dict[str, str] = field(default_factory=dict)
    """Parameter → why it is not tuned."""
    named: set[str] = field(default_factory=set)
    """Parameters that a refinement names in order to have them tuned."""
    held: dict[str, tuple[Scalar, Place]] = field(default_factory=dict)
    """Parameter → value or expression that it is held at."""
    hints: bool = True
    """Whether the search may begin with what is known beforehand."""
    told: dict[str, Draft] = field(default_factory=dict)
    """Parameter → its hint, in place of what its space says."""
    allowed: set[str] = field(default_factory=lambda: {"safe"})


def merge(documents: Sequence[Document]) -> Merged:
    """Return all documents as one. Raises UsageError."""
    from tuner.space.file_format import validate  # pydantic is slow to import
    from tuner.space.schema import SpaceFile

    merged = Merged()
    for document in documents:
        _add(merged, document, validate(SpaceFile, document))
    if not merged.parameters:
        sources = ", ".join(document.source for document in documents)
        raise problem(
            sources, "the search space has no parameters", "Name a search space that `tuner spaces` lists"
        )
    return merged


def _add(merged: Merged, document: Document, file: "SpaceFile") -> None:
    from tuner.space.file_format import validate  # pydantic is slow to import
    from tuner.space.schema import SpaceFile

    server = file.server or ""
    merged.title = merged.title or file.title or ""
    if server and server not in merged.servers:
        merged.servers.append(server)
    if file.space or server:
        merged.names.append(file.space or server)
    for name, entry in file.parameters.items():
        earlier = merged.parameters.get(name)
        draft = _draft(name, entry, document, ("parameters", name), server)
        refuse_denied(name, server or (earlier.server if earlier else ""), draft.place)
        if earlier and not file.space and not server:
            merged.named.add(name)
        merged.parameters[name] = _refine(earlier, draft)
    sole = server or (merged.servers[0] if len(merged.servers) == 1 else "")
    for name, follows in file.derived.items():
        draft = _draft(name, follows, document, ("derived", name), sole)
        refuse_denied(name, sole, draft.place)
        merged.derived[name] = _refine(merged.derived.get(name), draft)
    for name, figure in file.capacity.items():
        draft = _draft(name, figure, document, ("capacity", name), sole)
        merged.capacity[sole, name] = _refine(merged.capacity.get((sole, name)), draft)
    for number, rule in enumerate(file.constraints):
        draft = _draft("rule", rule, document, ("constraints", number), sole)
        merged.constraints[sole, str(rule.rule)] = draft
    for name, preset in file.presets.items():
        merged.presets[file.space or "", name] = _draft(name, preset, document, ("presets", name), sole)
    merged.dead.update(file.dead)
    merged.elsewhere.update(file.elsewhere)
    for number, name in enumerate(file.parts):
        part = _read_part(name, document.place(("parts", number)))
        own = {"server": server or None, "space": file.space}
        _add(merged, part, validate(SpaceFile, part).model_copy(update=own))
    _narrow(merged, document, file)


def _draft(name: str, entry: "BaseModel", document: Document, path: KeyPath, server: str) -> Draft:
    given = {key: value for key in entry.model_fields_set if (value := getattr(entry, key)) is not None}
    places: dict[tuple[str, ...], Place] = {(key,): document.place((*path, key)) for key in given}
    for key, value in given.items():
        if isinstance(value, dict):
            places |= {(key, inner): document.place((*path, key, inner)) for inner in value}
    return Draft(name=name, server=server, place=document.place(path), fields=given, places=places)


def _refine(earlier: Draft | None, later: Draft) -> Draft:
    name, server = later.name, later.server
    if earlier is None and not server:
        wrong = f"{name} is not in an earlier entry, and this entry has no `server:`"
        raise problem(later.place, wrong, "Add `server:`, or correct the name")
    if earlier is None:
        return later
    if server and server != earlier.server:
        wrong = f"{name} already belongs to {earlier.server}, not to {server}"
        raise problem(later.place, wrong, "Rename one of the two")
    fields = {**earlier.fields, **later.fields}
    return replace(earlier, fields=fields, places={**earlier.places, **later.places})


def _narrow(merged: Merged, document: Document, file: "SpaceFile") -> None:
    """Apply only, without, set and allow to what has been named so far."""
    if file.only is not None:
        _require_parameters(merged, document, "only", file.only)
        for name in merged.parameters.keys() - set(file.only):
            merged.pinned[name] = "not named by `only:`"
        merged.named.update(file.only)
    if file.without is not None:
        derived = [name for name in file.without if name in merged.derived]
        merged.left_out.update(dict.fromkeys(derived, WITHOUT))
        tuned = [name for name in file.without if name not in merged.derived]
        _require_parameters(merged, document, "without", file.without, also=merged.derived)
        merged.pinned.update(dict.fromkeys(tuned, WITHOUT))
    if file.set is not None:
        _require_parameters(merged, document, "set", file.set)
        for name, value in file.set.items():
            merged.held[name] = (value, document.place(("set", name)))
            merged.pinned[name] = "held by `set:`"
    _tell_hints(merged, document, file)
    merged.allowed.update(file.allow or ())


def _tell_hints(merged: Merged, document: Document, file: "SpaceFile") -> None:
    """Apply what a source says of hints: that there are none, or some in place of those so far."""
    if not isinstance(file.hints, Mapping):
        merged.hints = merged.hints if file.hints is None else file.hints
        merged.told = {} if file.hints is False else merged.told
        return
    _require_parameters(merged, document, "hints", file.hints)
    for name, entry in file.hints.items():
        place = document.place(("hints", name))
        merged.told[name] = replace(
            merged.parameters[name], fields={"hint": entry}, places={("hint",): place}, place=place
        )


def _require_parameters(
    merged: Merged, document: Document, key: str, names: Iterable[str], *, also: Container[str] = ()
) -> None:
    for number, name in enumerate(names):
        if name in merged.parameters or name in also:
            continue
        place = document.place((key, name) if key in {"set", "hints"} else (key, number))
        if name in merged.derived:
            value = merged.derived[name].fields["value"]
            raise problem(
                place,
                f"tuner does not tune {name}, but derives it as `{value}`",
                "Name the parameters of this formula",
            )
        if name in merged.dead:
            raise problem(place, f"{name} is obsolete: {merged.dead[name]}", "Remove this entry")
        remedy = suggest(name, merged.parameters) if merged.parameters else NAME_FIRST
        raise problem(place, f"no parameter has the name {name}", remedy)
