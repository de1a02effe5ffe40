"""Finds what a study's `space:` list names: built-in spaces, files, and entries written out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner.space.problems import problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, from_mapping, read_yaml

Source = str | Path | Mapping[str, object] | Document
"""Name, path, or an entry written out; as a Document it keeps the lines of the study file."""


def available_spaces() -> tuple[str, ...]:
    """Return the names of the built-in spaces."""
    return tuple(sorted(_built_in()))


def _built_in() -> dict[str, Path]:
    folder = Path(__file__).parents[1] / "search_spaces"
    return {path.stem: path for path in folder.glob("*.yaml")}


def read_built_in(name: str) -> Document:
    """Read a built-in space. Raises UsageError that names the nearest one."""
    spaces = _built_in()
    if name not in spaces:
        raise problem(
            f"space {quote(name)}",
            "there is no such built-in space",
            f"{suggest(name, spaces)} A file is given by its path, as ./{name or 'name'}.yaml",
        )
    return read_yaml(spaces[name].read_bytes(), f"search_spaces/{name}.yaml")


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
        return read_built_in(source)
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
