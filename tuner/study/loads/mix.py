"""Reads `load.requests:`, the kinds of requests that a load mixes, each with its correct response."""

import re
from collections.abc import Mapping

from tuner.ports import RequestKind
from tuner.space.problems import quote
from tuner.study.fields import Fields, Keys

KEYS = ("path", "method", "headers", "status", "bytes", "sha256", "weight")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""HEAD is none: wrk waits for the body that its header announces."""
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
"""RFC 9110, section 5.6.2."""
SET_BY_TUNER = frozenset({"connection", "host", "content-length", "transfer-encoding"})
SHA256 = re.compile(r"[0-9a-f]{64}")
MOST_KINDS = 100
MOST_BYTES = 2**40
LEAST_SHARE = 0.001
"""Of a mix: what is rarer comes too seldom in a window to be counted."""


def read_path(fields: Fields, keys: Keys, default: str) -> str:
    """Read a path on the server. Raises UsageError for what could not stand in a request line."""
    path = fields.text(keys, default)
    if not path.startswith("/") or not path.isprintable() or " " in path:
        raise fields.wrong(keys, f"{quote(path)} is not a path on the server", "Begin with /, without spaces")
    return path


def read_mix(fields: Fields) -> tuple[RequestKind, ...]:
    """Read the kinds of requests that are sent; those of weight 0 are not.

    Raises UsageError naming file, line, value and remedy.
    """
    keys: Keys = ("load", "requests")
    given = fields.value(keys)
    if given is None:
        return ()
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_KINDS:
        raise fields.wrong(
            keys,
            f"{quote(given)} is not a list of requests",
            "Write `- {path: /index.html, weight: 1}` lines",
        )
    kinds = [_read_kind(Fields(fields.document.below((*keys, index)))) for index in range(len(given))]
    total = sum(each.weight for each in kinds)
    if total <= 0:
        raise fields.wrong(
            keys, "the weights sum to zero, so that nothing is sent", "Give one a weight above 0"
        )
    for index, each in enumerate(kinds):
        if 0 < each.weight < LEAST_SHARE * total:
            raise fields.wrong(
                (*keys, index),
                f"weight {each.weight:g} of {total:g} is less than {LEAST_SHARE:.1%} of the mix",
                "Give it more, or leave it out",
            )
    return tuple(each for each in kinds if each.weight > 0)


def describe_mix(kinds: tuple[RequestKind, ...]) -> str:
    """Return a mix in one line, with shares that add up to 100 %."""
    total = sum(each.weight for each in kinds)
    return ", ".join(f"{each.weight / total:.1%} {each.method} {each.path}" for each in kinds)


def define_mix(kinds: tuple[RequestKind, ...]) -> str:
    """Return all that makes two mixes comparable."""
    return "; ".join(
        f"{each.weight:g} {each.method} {each.path} {dict(sorted(each.headers.items()))} "
        f"{each.status} {each.body_bytes} {each.sha256}"
        for each in kinds
    )


def _read_kind(own: Fields) -> RequestKind:
    own.refuse_unknown((), KEYS)
    if own.value(("path",)) is None:
        raise own.wrong((), "a request without `path:`", "Write the path that it asks for")
    sha256 = own.text(("sha256",), "")
    if sha256 and not SHA256.fullmatch(sha256):
        raise own.wrong(("sha256",), f"{quote(sha256)} is no SHA-256", "Write what sha256sum prints")
    return RequestKind(
        path=read_path(own, ("path",), "/"),
        method=own.choice(("method",), "GET", METHODS),
        headers=_read_headers(own),
        status=own.number(("status",), 200, int, low=200, high=599),
        body_bytes=own.number(("bytes",), None, int, low=0, high=MOST_BYTES),
        sha256=sha256,
        weight=own.number(("weight",), 1.0, float, low=0, high=1e9),
    )


def _read_headers(own: Fields) -> Mapping[str, str]:
    headers = own.mapping(("headers",)) or {}
    for name, value in headers.items():
        keys: Keys = ("headers", name)
        if not TOKEN.fullmatch(name):
            raise own.wrong(keys, f"{quote(name)} is no name of a header", "Use letters, digits and -")
        if name.lower() in SET_BY_TUNER:
            raise own.wrong(keys, f"{name} is set by the load generator", "Leave it out")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise own.wrong(keys, f"{quote(value)} is no value of a header", "Write one line of ASCII text")
    return {str(name): str(value) for name, value in headers.items()}
