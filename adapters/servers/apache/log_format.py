"""Apache's `LogFormat` (httpd.apache.org/docs/2.4/mod/mod_log_config.html)."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tuner.adapters.servers.apache.installation import tree_of
from tuner.adapters.servers.apache.syntax import read_directives
from tuner.kit.access_log import (
    ADDRESSES,
    EPOCH,
    LENGTH,
    LOCAL_TIME,
    REQUEST,
    STATUS,
    USER,
    Part,
    Variable,
    compile_format,
    split_format,
)
from tuner.ports import Installation, LineFormat, LogField

DIRECTIVE = re.compile(r"%[!\d,]*[<>]?(?:\{([^}]*)\})?(\^\w\w|[A-Za-z%])")
"""With its argument and its letter."""
ESCAPED = re.compile(r'\\(["\\])')
"""As the server's files have it, in quotes."""
MICROSECOND = 1e-6
UNITS_S = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": MICROSECOND}
DIRECTIVES: Mapping[str, Variable] = {
    "r": REQUEST,
    "m": Variable(field=LogField.METHOD),
    "U": Variable(field=LogField.TARGET),
    "H": Variable(field=LogField.PROTOCOL),
    "s": STATUS,
    "b": LENGTH,
    "B": LENGTH,
    "O": LENGTH,
    "u": USER,
    "D": Variable(field=LogField.DURATION, pattern=r"\d+|-", unit_s=MICROSECOND),
    "k": Variable(field=LogField.SERIAL, pattern=r"\d+|-", first=0),
}
WITH_ARGUMENT: Mapping[tuple[str, str], Variable] = {
    ("x", "SSL_PROTOCOL"): Variable(field=LogField.TLS),
    ("x", "HTTPS"): Variable(field=LogField.TLS),
    ("e", "HTTPS"): Variable(field=LogField.TLS),
    ("o", "Content-Encoding"): Variable(field=LogField.ENCODING),
    ("L", "c"): Variable(field=LogField.CONNECTION),
    ("i", "X-Forwarded-For"): ADDRESSES,
    ("t", "sec"): EPOCH,
    ("t", "msec"): EPOCH,
    ("t", "usec"): EPOCH,
}


def read_log_format(text: str) -> LineFormat | None:
    """Return how lines in a format are read; None where it has none of Apache's directives."""
    plain = ESCAPED.sub(r"\1", text)
    if not DIRECTIVE.search(plain):
        return None
    return compile_format(text, split_format(plain, DIRECTIVE, _find_variable))


def _find_variable(found: re.Match[str]) -> tuple[Part, ...]:
    argument, letter = found[1] or "", found[2]
    if letter == "%":
        return ("%",)
    if letter == "t" and not argument:
        return ("[", LOCAL_TIME, "]")
    if letter == "T" and argument in UNITS_S:
        return (Variable(field=LogField.DURATION, pattern=r"\d+|-", unit_s=UNITS_S[argument]),)
    if argument:
        return (WITH_ARGUMENT.get((letter, argument), Variable()),)
    return (DIRECTIVES.get(letter, Variable()),)


VHOST_COMBINED = compile_format(
    "vhost_combined",
    split_format('%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"', DIRECTIVE, _find_variable),
)
"""As Debian's apache2.conf has it, for sites without a log of their own."""


def find_logs(installation: Installation) -> dict[PurePosixPath, str]:
    """Return the logs that the files name by a whole path → the format of each."""
    formats: dict[str, str] = {}
    logs: dict[PurePosixPath, str] = {}
    for each in read_directives(tree_of(installation)):
        first, second, *_ = (*each.words, "", "")
        if each.name == "logformat" and second:
            formats[second] = first
        elif each.name in {"customlog", "globalcustomlog"} and first.startswith("/"):
            logs.setdefault(PurePosixPath(first), second)
    return {path: formats.get(name, name) for path, name in logs.items()}
