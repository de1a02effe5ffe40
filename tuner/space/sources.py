"""Finds what a study's `space:` list names: names, files, and entries written out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner import plugins
from tuner.space.problems import problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, from_mapping, read_yaml

Source = str | Path | Mapping[str, object] | Document
"""Name, path, or an entry written out; as a Document it keeps the lines of the study file."""


BUILT_IN = Path(__file__).parents[1] / "search_spaces"


def available_spaces() -> tuple[str, ...]:
    """Return the names of all spaces: the built-in ones, and those that other distributions register."""
    return tuple(sorted({*_built_in(), *(point.name for point in plugins.foreign_spaces())}))


def _built_in() -> dict[str, Path]:
    return {path.stem: path for path in BUILT_IN.glob("*.yaml")}


def read_space(name: str) -> Document:
    """Read a space by its name. Raises UsageError for an unknown name, or one that two packages give."""
    built_in = _built_in().get(name)
    points = [point for point in plugins.foreign_spaces() if point.name == name]
    claims = [f"{point.value} ({plugins.origin(point)})" for point in points]
    if built_in:
        claims.insert(0, "tuner itself")
    if len(claims) > 1:
        raise problem(
            f"space {quote(name)}", f"the name is given by {' and by '.join(claims)}", "Uninstall one of them"
        )
    if built_in:
        return read_yaml(built_in.read_bytes(), f"search_spaces/{built_in.name}")
    if points:
        content = plugins.read_foreign_space(points[0], most_bytes=LARGEST_FILE_BYTES + 1)
        return read_yaml(content, f"{points[0].value}/{name}.yaml")
    raise problem(
        f"space {quote(name)}",
        "there is no such space",
        f"{suggest(name, available_spaces())} A file is given by its path, as ./{name or 'name'}.yaml",
    )


def read_sources(sources: Sequence[Source], base: Path) -> list[Document]:
    """Read all sources of a space, paths relative to `base`. Raises UsageError."""
    if isinstance(sources, (str, Path)) or not sources:
        raise problem("space", f"{quote(sources)} is not a list with entries", "Write `space: [nginx]`")
    return [_read(source, number, base) for number, source in enumerate(sources, start=1)]


def _read(source: object, number: int, base: Path) -> Document:
    where = f"space entry {number}"
    if isinstance(source, Document):
        return source
    if isinstance(source, Mapping):
        return from_mapping(source, where)
    if isinstance(source, Path) or (isinstance(source, str) and _is_path(source)):
        return _read_file(Path(source), base)
    if isinstance(source, str):
        return read_space(source)
    raise problem(where, f"{quote(source)} is no name, path or mapping", "Write the name or path of a space")


def _is_path(source: str) -> bool:
    return "/" in source or source.endswith((".yaml", ".yml"))


def _read_file(path: Path, base: Path) -> Document:
    full = base / path
    try:
        if not full.is_file():  # a pipe or device would be read without end
            raise problem(
                str(path), f"there is no file {full}", "Correct the path; it is relative to the study file"
            )
        with full.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise problem(
            str(path), f"{full} cannot be read: {error}", "Check the path and its permissions"
        ) from error
    return read_yaml(content, str(path))
