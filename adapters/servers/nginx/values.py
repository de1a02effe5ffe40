"""How nginx writes numbers, sizes and times, and what of them can be one whole number of a unit.

Read from ngx_parse_size and ngx_parse_time (src/core/ngx_parse.c) and ngx_atoi, which takes digits alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tuner.errors import ConfigRejected
from tuner.ports import Scalar

LARGEST = 2**31 - 1
_SIZE = re.compile(r"(\d+)([kKmM]?)")
_SIZES = {"": 1, "k": 1024, "m": 1024 * 1024}
_TIME = re.compile(r"(?:\d+(?:ms|[smhdwMy])? *)+")
_TIME_PART = re.compile(r"(\d+)(ms|[smhdwMy])?")
_MILLISECONDS = {
    "ms": 1, "": 1000, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000,
    "M": 30 * 86_400_000, "y": 365 * 86_400_000,
}  # fmt: skip


class ValueKind(Protocol):
    """What one word of a directive may be."""

    def read(self, word: str) -> Scalar | None:
        """Give the value, or None when it cannot be told in this kind's unit."""

    def write(self, name: str, value: Scalar) -> str:
        """Give the word. Raises ConfigRejected for what is no such value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number."""

    least: int = 0

    def read(self, word: str) -> Scalar | None:
        return int(word) if _is_number(word) else None

    def write(self, name: str, value: Scalar) -> str:
        return str(check_number(name, value, self.least))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOrAuto:
    """A whole number from 1, or `auto`: 0 workers pass the check and then nobody accepts."""

    def read(self, word: str) -> Scalar | None:
        return word if word == "auto" else Count().read(word)

    def write(self, name: str, value: Scalar) -> str:
        return "auto" if value == "auto" else str(check_number(name, value, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes, or a multiple of them."""

    suffix: str = ""
    """`k` for a value in KiB."""
    least: int = 0

    def read(self, word: str) -> Scalar | None:
        found = _SIZE.fullmatch(word)
        if found is None or not word.isascii():
            return None
        return _divide(int(found[1]) * _SIZES[found[2].lower()], _SIZES[self.suffix])

    def write(self, name: str, value: Scalar) -> str:
        return f"{check_number(name, value, self.least)}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """A time."""

    suffix: str = "s"
    """`s` or `ms`."""

    def read(self, word: str) -> Scalar | None:
        if not word.isascii() or not _TIME.fullmatch(word):
            return None
        total_ms = sum(int(number) * _MILLISECONDS[unit] for number, unit in _TIME_PART.findall(word))
        return _divide(total_ms, _MILLISECONDS[self.suffix])

    def write(self, name: str, value: Scalar) -> str:
        return f"{check_number(name, value)}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of some words, each with the value that it stands for; nginx takes capitals as well."""

    words: Mapping[str, Scalar]

    def read(self, word: str) -> Scalar | None:
        return self.words.get(word.lower())

    def write(self, name: str, value: Scalar) -> str:
        for word, meant in self.words.items():
            if type(value) is type(meant) and value == meant:
                return word
        raise ConfigRejected(f"nginx: {name}: {show(value)} is none of {', '.join(self.words)}.")


FLAG = Choice(words={"on": True, "off": False})


def check_number(name: str, value: Scalar, least: int = 0) -> int:
    """Refuse what nginx could not read back as the same whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise ConfigRejected(f"nginx: {name}: {show(value)} is no whole number from {least} to {LARGEST}.")
    return value


def show(value: Scalar) -> str:
    """Show a value in an error, shortened and on one line."""
    return repr(value[:80] if isinstance(value, str) else value)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _divide(total: int, unit: int) -> int | None:
    return total // unit if total % unit == 0 else None
