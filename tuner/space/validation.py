"""Checks a document against the file format and words what pydantic finds."""

from typing import TYPE_CHECKING, Any

from tuner.errors import UsageError
from tuner.space.problems import problem, quote, suggest
from tuner.space.scalars import Refused
from tuner.space.yaml_text import Document, Path

if TYPE_CHECKING:
    from tuner.space.schema import SpaceFile

ENTRY_FIELDS = {
    "parameters": "ParameterEntry",
    "derived": "DerivedEntry",
    "capacity": "CapacityEntry",
    "constraints": "ConstraintEntry",
    "presets": "PresetEntry",
}


def validate(document: Document) -> "SpaceFile":
    """Return the document as a model of the file format. Raises UsageError for the first fault in it."""
    from pydantic import ValidationError

    from tuner.space.schema import SpaceFile

    try:
        return SpaceFile.model_validate(dict(document.data))
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise _word(document, min(faults, key=lambda fault: _order(document, fault))) from error


def _order(document: Document, fault: Any) -> int:  # noqa: ANN401 - pydantic's ErrorDetails
    return document.place(_path(fault)).line or 0


def _path(fault: Any) -> Path:  # noqa: ANN401
    return tuple(part for part in fault["loc"] if part != "[key]")


def _word(document: Document, fault: Any) -> UsageError:  # noqa: ANN401
    path = _path(fault)
    place = document.place(path)
    value = fault.get("input")
    reason = fault.get("ctx", {}).get("error")
    if isinstance(reason, Refused):
        return problem(place, reason.wrong, reason.remedy)
    if fault["type"] == "extra_forbidden":
        place = document.place(path)
        key = str(path[-1])
        remedy = (
            "Quote an expression that holds a comma: { high: 'max(1, cores)' }"
            if "(" in key or ")" in key
            else suggest(key, _fields(path[:-1]))
        )
        return problem(place, f"{quote(key)} is not a key that is known here", remedy)
    if fault["type"] == "invalid_key":
        return problem(place, f"the key {quote(path[-1])} is not a word", "Quote it, or use a known key")
    if fault["type"] == "missing":
        return problem(document.place(path[:-1]), f"the key {path[-1]} is missing", f"Add `{path[-1]}: …`")
    wanted = {
        "list_type": "a list: [a, b]",
        "dict_type": "keys with values",
        "model_type": "keys with values",
    }
    return problem(
        place,
        f"{quote(value) if isinstance(value, str) else type(value).__name__} stands where "
        f"{wanted.get(fault['type'], 'something else')} belongs",
        "Correct the value or the indentation",
    )


def _fields(path: Path) -> tuple[str, ...]:
    from tuner.space import schema

    name = ENTRY_FIELDS.get(str(path[0]), "SpaceFile") if path else "SpaceFile"
    model: Any = getattr(schema, name)
    return tuple(model.model_fields)
