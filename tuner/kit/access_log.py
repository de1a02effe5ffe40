"""Makes one regular expression of the format of an access log, and reads the times of logs.

The expression runs over a megabyte of lines at once, so that Python does nothing for a single line. A value
ends where the next literal text begins, and is never tried again: no line takes longer than its length.
"""

import re
from calendar import timegm
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tuner.errors import UsageError
from tuner.ports import LineFormat, LogField

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LAST_SECOND = 2**35
"""In the year 3058: numbers above that are milliseconds or microseconds."""
LAST_NUMBER = 1e18
QUOTED = r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+'
WORDS = r"[^ \n]*+ [^ \n]*+ [^ \n]*+"
"""A request line without quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A part of a format in whose place each line has a value."""

    field: LogField | None = None
    """None for what is passed over."""
    pattern: str = ""
    """What it matches; empty for all up to the next literal text."""
    rest: str = ""
    """What may follow and is passed over."""
    unit_s: float = 1.0
    """Of a duration."""
    first: int = 1
    """Number of the first request of a connection."""


Part = str | Variable
"""Literal text stands for itself."""

LOCAL_TIME = Variable(
    field=LogField.TIME,
    pattern=r"[0-9A-Za-z/:]{20}(?: [-+]\d{4})?",
    rest=r"(?:\.\d+)?",
)
ISO_TIME = Variable(
    field=LogField.TIME,
    pattern=r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d",
    rest=r"(?:[.,]\d+)?(?:Z|[-+]\d\d:?\d\d)?",
)
EPOCH = Variable(field=LogField.TIME, pattern=r"\d+", rest=r"(?:\.\d+)?")
STATUS = Variable(field=LogField.STATUS, pattern=r"-?\d{1,3}|-")
LENGTH = Variable(field=LogField.BYTES, pattern=r"[-+]?\d{1,15}|-")
REQUEST = Variable(field=LogField.REQUEST)
USER = Variable(pattern=r'[^\n\["]*')
"""May contain blanks."""
ADDRESSES = Variable(pattern=r'[^ ,"\n]*+(?:(?:,| :) [^ ,"\n]++)*+')
"""Values of several servers or proxies, which blanks separate."""


def compile_format(name: str, parts: Sequence[Part], *, before: str = "", after: str = "") -> LineFormat:
    """Return how lines of a format are read.

    Args:
        name: of the format, for messages.
        parts: of the format, in order.
        before: pattern of what may stand before a line.
        after: pattern of what may follow it.

    Raises UsageError for a format without request or status: no load can be made of it.
    """
    found: list[Variable] = []
    pattern = before
    for index, part in enumerate(parts):
        if isinstance(part, str):
            pattern += re.escape(part)
            continue
        last = parts[index - 1] if index else ""
        if isinstance(last, Variable) and not last.pattern:
            continue  # the one before it has taken its value, too
        end = next((each for each in parts[index + 1 :] if isinstance(each, str)), "")[:1]
        value = _match_value(part, end)
        is_found = part.field is not None and part.field not in {each.field for each in found}
        found += [part] if is_found else []
        pattern += (f"({value})" if is_found else f"(?:{value})") + part.rest
    fields = tuple(each.field for each in found if each.field is not None)
    if LogField.STATUS not in fields or not {LogField.REQUEST, LogField.TARGET} & {*fields}:
        missing = "status" if LogField.STATUS not in fields else "request"
        raise UsageError(
            f"--log-format: {name} logs no {missing}. Give the format of a log that contains request and "
            "status."
        )
    units = [each.unit_s for each in found if each.field is LogField.DURATION]
    first = [each.first for each in found if each.field is LogField.SERIAL]
    return LineFormat(
        name=name, pattern=re.compile(f"^{pattern}{after}\\r?$", re.MULTILINE), fields=fields,
        unit_s=next(iter(units), 1.0), first_serial=next(iter(first), 1),
    )  # fmt: skip


def _match_value(variable: Variable, end: str) -> str:
    """Return the pattern of a value before a literal text that begins with `end`."""
    if variable.pattern and (variable.field is not None or end != '"'):
        return variable.pattern
    if end == '"':
        return QUOTED
    if variable.field is LogField.REQUEST:
        return WORDS
    return rf"[^{re.escape(end)}\n]*+" if end else r"[^\r\n]*"


def split_format(
    text: str, variable: re.Pattern[str], make: Callable[[re.Match[str]], Iterable[Part]]
) -> tuple[Part, ...]:
    """Return the parts of a format: what `make` makes of each variable, and the literal text between them."""
    parts: list[Part] = []
    end = 0
    for found in variable.finditer(text):
        parts += [text[end : found.start()], *make(found)]
        end = found.end()
    joined: list[Part] = []
    for part in (*parts, text[end:]):
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        elif part:
            joined.append(part)
    return tuple(joined)


_COMMON: tuple[Part, ...] = (
    Variable(),
    " ",
    Variable(),
    " ",
    USER,
    " [",
    LOCAL_TIME,
    '] "',
    REQUEST,
    '" ',
    STATUS,
    " ",
    LENGTH,
)
_CLIENT: tuple[Part, ...] = (' "', Variable(), '" "', Variable(), '"')
COMMON = compile_format("common", _COMMON)
"""The Common Log Format of NCSA httpd, which every server can write."""
COMBINED = compile_format("combined", (*_COMMON, *_CLIENT), after=r"(?: [^\n]*)?")
"""The same with referrer and user agent; more may follow them."""


@lru_cache(maxsize=4096)
def read_second(text: str) -> int | None:
    """Return a time as the log's own clock shows it, in seconds since 1970; None for what is no time."""
    try:
        if text[2:3] == "/":
            month = MONTHS.index(text[3:6]) + 1
            day = (int(text[7:11]), month, int(text[:2]))
            return timegm((*day, int(text[12:14]), int(text[15:17]), int(text[18:20])))
        if text[4:5] == "-":
            day = (int(text[:4]), int(text[5:7]), int(text[8:10]))
            return timegm((*day, int(text[11:13]), int(text[14:16]), int(text[17:19])))
        number = float(text)
        if not 0 <= number < LAST_NUMBER:
            return None
        while number > LAST_SECOND:
            number /= 1000
        return int(number)
    except (ValueError, OverflowError):
        return None
