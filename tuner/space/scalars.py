"""Reads single values of a space file by what they are for; each refusal says what to write instead."""

import math
import re
from collections.abc import Callable

from tuner.ports import Scalar
from tuner.space.arithmetic import LARGEST_NUMBER
from tuner.space.problems import quote, suggest
from tuner.space.yaml_text import Plain


class Refused(ValueError):
    """A value is wrong: `wrong` says how, `remedy` what to write."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.remedy = remedy


_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]{1,40}\.[0-9]{0,40}|\.[0-9]{1,40}|[0-9]{1,40}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?"
)
FLAGS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
VERSION_PATTERN = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")
NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*(?:\[[0-9]{1,2}\])?")
LONGEST_NAME = 100
LONGEST_SCALAR = 1000


def as_flag(value: object) -> bool | None:
    """Read on/off, yes/no, true/false; None for anything else."""
    return value if isinstance(value, bool) else FLAGS.get(value.lower()) if isinstance(value, str) else None


def as_number(value: object) -> int | float | None:
    """Read a number in decimal notation; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if _INTEGER.fullmatch(text):
            value = int(text)
        elif _FLOAT.fullmatch(text):
            value = float(text)
    if isinstance(value, (int, float)) and math.isfinite(value) and abs(value) <= LARGEST_NUMBER:
        return value
    return None


def read_scalar(value: object) -> Scalar:
    """Read a number, text or boolean as it stands; an unquoted number is a number."""
    if isinstance(value, Plain):
        if value in {"", "~", "null"}:
            raise Refused("there is no value", "Write one, or leave the key out")
        number = as_number(value)
        return number if number is not None else _shortened(str(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        if as_number(value) is None:
            raise Refused(f"{value!r} is beyond ±1e18", "Write a smaller number")
        return value
    if isinstance(value, str):
        return _shortened(value)
    raise Refused(f"{type(value).__name__} is given where one value belongs", "Write a number or a text")


def _shortened(text: str) -> str:
    if len(text) > LONGEST_SCALAR:
        raise Refused(f"the text has {len(text)} characters", f"Use at most {LONGEST_SCALAR}")
    return text


def read_text(value: object) -> str:
    """Read words, with line breaks made spaces."""
    if isinstance(value, str) and value.strip():
        return _shortened(" ".join(value.split()))
    what = "there is no text" if value in (None, "") else f"{quote(value)} is not a text"
    raise Refused(what, "Write a text; quote it if it looks like a number")


def read_flag(value: object) -> bool:
    """Read true or false."""
    flag = as_flag(value)
    if flag is None:
        raise Refused(f"{quote(value)} is neither true nor false", "Write true or false")
    return flag


def read_version(value: object) -> str:
    """Read a version such as '1.21.6', as text."""
    if isinstance(value, str) and VERSION_PATTERN.fullmatch(value):
        return str(value)
    raise Refused(f"{quote(value)} is not a version in quotes", "Write it as '1.21.6'")


def read_expression(value: object) -> Scalar:
    """Read a number or the text of an expression."""
    scalar = read_scalar(value)
    if isinstance(scalar, str) and not scalar.strip():
        raise Refused("there is no value", "Write a number or an expression")
    return scalar


def read_step(value: object) -> int | float:
    """Read a distance above 0."""
    number = as_number(value)
    if number is None or number <= 0:
        raise Refused(f"step {quote(value)} is not a number above 0", "Write the distance between two values")
    return number


def read_name(value: object) -> str:
    """Read the name of a parameter."""
    if isinstance(value, str) and NAME_PATTERN.fullmatch(value) and len(value) <= LONGEST_NAME:
        return str(value)
    raise Refused(
        f"{quote(value)} is not a name",
        "Use letters, digits, _ . - and an index in brackets at the end, as a.b[1]",
    )


def one_of(*allowed: str) -> Callable[[object], str]:
    """Make a reader for one of a few words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return str(value)
        raise Refused(f"{quote(value)} is none of {', '.join(allowed)}", suggest(str(value), allowed))

    return read
