"""Types of the keys of a study file: how each is read and refused, and what an editor is told of it."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tuner.space.file_format import Metadata, read_as
from tuner.space.problems import Refused, quote
from tuner.space.yaml_text import Plain

TEXT = {"type": ["string", "number"]}
"""Without quotes a year is a number to an editor, and a text to tuner."""


class Entry(BaseModel):
    """A mapping of a study file. A key without a value has its default; an unknown key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        plain = {key: str(value) if isinstance(value, Plain) else value for key, value in given.items()}
        return {key: value for key, value in plain.items() if not is_null(given[key])}

    def gives(self, key: str) -> bool:
        """Return whether the file has this key, whatever its value."""
        return key in self.model_fields_set


def is_null(value: object) -> bool:
    """Return whether a value is null, as YAML writes it."""
    return value is None or (isinstance(value, Plain) and value in {"", "~", "null"})


def key(told: str, example: object, default: object = ..., **bounds: Any) -> Any:  # noqa: ANN401 - as Field
    """Describe a key: one sentence, an example, its default and its bounds.

    A class stands for what it makes without arguments; a key without a default is needed.
    """
    given = {"default_factory": default} if isinstance(default, type) else {"default": default}
    return Field(**given, description=told, examples=[example], **bounds)


def read_text(value: object) -> str:
    """Return a text that is not blank."""
    if isinstance(value, str) and value.strip():
        return str(value)
    raise Refused(f"{quote(value)} is not a text", "Write one value that is not blank")


def _read_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(map(str, value))
    raise Refused(f"{quote(value)} is not a list", "Write [first, second]")


def _read_one_or_more(value: object) -> tuple[str, ...]:
    return _read_texts(value) if isinstance(value, list) else (read_text(value),)


def _read_command(value: object) -> tuple[str, ...]:
    command = _read_texts(value)
    if not command or not command[0].strip():
        raise Refused(f"{quote(command)} is no command", "Write [program, argument]")
    return command


def of_form(pattern: re.Pattern[str], wrong: str, remedy: str) -> Metadata:
    """Read a text of a form; `wrong` says what any other one is not."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise Refused(f"{quote(value)} {wrong}", remedy)
        return str(value)

    return read_as(read, {**TEXT, "pattern": f"^{pattern.pattern}$"})


def list_of(what: str, remedy: str, *, least: int = 1, most: int | None = None) -> Metadata:
    """Read a list with a length in bounds."""
    count = "" if most is None or least == 1 else f"{least} to {most} "

    def check(value: object) -> object:
        if not isinstance(value, list) or not least <= len(value) <= (most or len(value)):
            raise Refused(f"{quote(value)} is not a list of {count}{what}", remedy)
        return value

    return Field(min_length=least, max_length=most), BeforeValidator(check)


def one_or_more(one: Mapping[str, Any] = TEXT) -> dict[str, Any]:
    """Return the JSON Schema of one value or a list of them."""
    return {"anyOf": [dict(one), {"type": "array", "items": dict(one), "minItems": 1}]}


class Suggest:
    """Completes a text with words that are looked up when an editor asks; it may be another one."""

    def __init__(self, find_words: Callable[[], Collection[str]]) -> None:
        self.find_words = find_words

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema (docs.pydantic.dev/latest/concepts/json_schema)."""
        return {"anyOf": [{"enum": list(self.find_words())}, {"type": "string", "minLength": 1}]}


Text = Annotated[str, *read_as(read_text, TEXT)]
Texts = Annotated[tuple[str, ...], *read_as(_read_texts, {"type": "array", "items": TEXT})]
OneOrMore = Annotated[tuple[str, ...], *read_as(_read_one_or_more, one_or_more())]
Command = Annotated[tuple[str, ...], *read_as(_read_command, {"type": "array", "items": TEXT, "minItems": 1})]
