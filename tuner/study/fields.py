"""Reads typed values from a YAML document by their keys."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tuner.errors import UsageError
from tuner.space.problems import problem, quote, suggest
from tuner.space.values import format_number
from tuner.space.yaml_text import Document, Plain

Keys = tuple[str | int, ...]
"""The way to a value: names of mappings, indices of lists."""


class Fields:
    """Takes values out of a document; whatever is refused is a UsageError with place and remedy.

    What is absent, or written as null, is the default.
    """

    def __init__(self, document: Document) -> None:
        self.document = document

    def text(self, keys: Keys, default: str) -> str:
        value = self.value(keys)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(keys, f"{quote(value)} is not a text", "Write one value")
        return str(value)

    def texts(self, keys: Keys, default: Sequence[str] = ()) -> tuple[str, ...]:
        value = self.value(keys)
        if value is None:
            return tuple(default)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(keys, f"{quote(value)} is not a list", "Write [first, second]")
        return tuple(str(each) for each in value)

    def truth(self, keys: Keys, *, default: bool) -> bool:
        value = self.value(keys)
        if value is None:
            return default
        truths = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if str(value).lower() not in truths:
            raise self.wrong(keys, f"{quote(value)} is neither true nor false", "Write true or false")
        return truths[str(value).lower()]

    def choice(self, keys: Keys, default: str, choices: Collection[str]) -> str:
        value = self.text(keys, default)
        if value not in choices:
            raise self.wrong(keys, f"there is no {quote(value)}", suggest(value, choices))
        return value

    def number(
        self,
        keys: Keys,
        default: Any,  # noqa: ANN401 - a number, or None
        kind: Callable[[str], Any],
        *,
        low: float,
        high: float,
    ) -> Any:  # noqa: ANN401 - int, float or the default
        value = self.value(keys)
        if value is None:
            return default
        remedy = f"Give {format_number(low)} to {format_number(high)}"
        try:
            number = kind(str(value))
        except ValueError:
            what = "whole number" if kind is int else "number"
            raise self.wrong(keys, f"{quote(value)} is not a {what}", remedy) from None
        if not low <= number <= high:
            raise self.wrong(keys, f"{format_number(number)} is out of range", remedy)
        return number

    def mapping(self, keys: Keys) -> Mapping[str, Any] | None:
        value = self.value(keys)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(keys, f"{quote(value)} is not a mapping", "Write `key: value` lines")
        return value

    def value(self, keys: Keys) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return what the document has there; None for what is absent or null."""
        here: Any = self.document.data
        for depth, key in enumerate(keys):
            if not isinstance(here, Mapping):
                raise self.wrong(keys[:depth], f"{quote(here)} is not a mapping", "Write `key: value` lines")
            here = here.get(str(key))
            if here is None or (isinstance(here, Plain) and here in {"", "~", "null"}):
                return None
        return here

    def refuse_unknown(self, keys: Keys, known: Collection[str]) -> None:
        """Raise UsageError for a mapping that has other keys than these."""
        here = self.mapping(keys) if keys else self.document.data
        for key in here or ():
            if key not in known:
                raise self.wrong((*keys, key), "this key is not known", suggest(key, known))

    def where(self, keys: Keys) -> str:
        """Return file and line of a value."""
        return str(self.document.place(keys))

    def wrong(self, keys: Keys, wrong: str, remedy: str) -> UsageError:
        """Return the error that names the place of a value."""
        return problem(self.document.place(keys), wrong, remedy)
