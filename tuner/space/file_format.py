"""What the formats of files have in common: types of values, messages on the first fault, JSON Schema.

What a message offers (known keys, words, bounds) comes from the model's JSON Schema, as an editor has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, PlainValidator, ValidationError, WithJsonSchema

from tuner.errors import UsageError
from tuner.space.problems import Refused, problem, quote, suggest
from tuner.space.values import as_flag, format_number
from tuner.space.yaml_text import Document, Path

Model = TypeVar("Model", bound=BaseModel)
Metadata = tuple[Any, ...]
"""Of a type, for `Annotated`."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FLAG = {"enum": [True, False, "on", "off", "yes", "no"]}
OUT_OF_RANGE = ("greater_than_equal", "less_than_equal", "finite_number")
KINDS = {
    "int": ("whole number", ""),
    "float": ("number", ""),
    "list": ("list", "Write [first, second]"),
    "tuple": ("list", "Write [first, second]"),
    "dict": ("mapping", "Write `key: value` lines"),
    "mapping": ("mapping", "Write `key: value` lines"),
    "model": ("mapping", "Write `key: value` lines"),
    "string": ("text", "Write one value"),
}
"""First word of pydantic's name of a fault → what belongs there, and what to write; a number has bounds."""


def read_as(read: Callable[[Any], object], schema: Mapping[str, Any]) -> Metadata:
    """Read a value by a function that raises Refused, and show it to an editor by a JSON Schema."""
    return PlainValidator(read), WithJsonSchema(dict(schema))


def one_of(*words: str) -> Metadata:
    """Read one of a few words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in words:
            return str(value)
        raise _none_of(value, words)

    return read_as(read, {"enum": list(words)})


def _none_of(value: object, words: Iterable[str]) -> Refused:
    return Refused(f"{quote(value)} is no known value", suggest(str(value), words))


def _read_flag(value: object) -> bool:
    flag = as_flag(value)
    if flag is None:
        raise Refused(f"{quote(value)} is neither true nor false", "Write true or false")
    return flag


Flag = Annotated[bool, *read_as(_read_flag, FLAG)]


def validate(model: type[Model], document: Document) -> Model:
    """Return a document as a model of its format. Raises UsageError for the first fault in the file."""
    try:
        return model.model_validate(dict(document.data))
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A list is also too short where items of it are wrong.
        faults = [fault for fault in found if fault["type"] != "too_short"] or found
        # A key that is missing may be one that is misspelt.
        first = min(
            faults, key=lambda fault: (fault["type"] == "missing", document.place(_path(fault)).line or 0)
        )
        raise _explain(document, first, model.model_json_schema) from error


def _path(fault: Any) -> Path:  # noqa: ANN401 - pydantic's ErrorDetails
    """Return the keys that lead to a fault: pydantic names branches of a choice as well, in brackets."""
    return tuple(part for part in fault["loc"] if not str(part).startswith("["))


def _explain(document: Document, fault: Any, make_schema: Callable[[], Any]) -> UsageError:  # noqa: ANN401
    path, value, kind = _path(fault), fault["input"], fault["type"]
    reason = fault.get("ctx", {}).get("error")
    if isinstance(reason, Refused):
        return problem(document.place((*path, *reason.at)), reason.wrong, reason.remedy)
    if kind == "missing":
        return problem(document.place(path[:-1]), f"the key {path[-1]} is missing", f"Add `{path[-1]}: …`")
    place, schema = document.place(path), make_schema()
    if kind in {"extra_forbidden", "invalid_key"}:
        return problem(place, "this key is not known", _suggest_key(path, schema))
    nodes = list(find_nodes(schema, path))
    if kind in {"enum", "literal_error"}:
        words = [word for node in nodes for word in node.get("enum", ())]
        refused = _none_of(value, words)
        return problem(place, refused.wrong, refused.remedy)
    if kind in OUT_OF_RANGE:
        return problem(place, f"{str(value).strip()} is out of range", _suggest_bounds(nodes))
    what, remedy = KINDS.get(kind.partition("_")[0], ("valid value of this key", "Correct the value"))
    return problem(place, f"{quote(value)} is not a {what}", remedy or _suggest_bounds(nodes))


def _suggest_key(path: Path, schema: Any) -> str:  # noqa: ANN401 - JSON
    key = str(path[-1])
    if "(" in key or ")" in key:
        return "Quote an expression that holds a comma: { high: 'max(1, cores)' }"
    return suggest(
        key, {name for node in find_nodes(schema, path[:-1]) for name in node.get("properties", ())}
    )


def _suggest_bounds(nodes: list[Any]) -> str:
    low, high = (next(node[key] for node in nodes if key in node) for key in ("minimum", "maximum"))
    return f"Give {format_number(low)} to {format_number(high)}"


def find_nodes(schema: Any, path: Path) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield what a JSON Schema says of the value at a path of keys: a part for each form that it may have."""
    if not path:
        yield from _branches(schema, schema)
        return
    *above, key = path
    for node in find_nodes(schema, tuple(above)):
        below = node.get("items") if isinstance(key, int) else _value_of(node, key)
        if isinstance(below, dict):
            yield from _branches(schema, below)


def _value_of(node: Any, key: str) -> Any:  # noqa: ANN401 - JSON
    patterns = node.get("patternProperties", {}).values()
    return node.get("properties", {}).get(key) or next(iter(patterns), node.get("additionalProperties"))


def _branches(schema: Any, node: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    choices = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    yield node
    for choice in choices:
        yield from _branches(schema, choice)


def make_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a format, for editors."""
    return {"$schema": DIALECT, "title": title, **_tidy(model.model_json_schema())}


def _tidy(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop what says nothing to an editor: titles made of names, and defaults that are empty."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _tidy(item) for key, item in node.items() if not _is_noise(key, item)}
    branches = [branch for branch in kept.get("anyOf", []) if branch != {"type": "null"}]
    if "patternProperties" in kept:  # else a key of any other form would pass
        kept["additionalProperties"] = False
    if len(branches) == 1:
        del kept["anyOf"]
        kept = {**branches[0], **kept}
    return kept


def _is_noise(key: str, item: object) -> bool:
    return (key == "title" and isinstance(item, str)) or (key == "default" and item in (None, "", [], {}))
