"""Reads which requests a load sends, and which responses are correct: `requests:`, `headers:`, `body:`."""

import re
from collections.abc import Mapping, Sequence

from tuner.ports import Body, BodyCheck, RequestKind
from tuner.space.problems import Refused, quote, suggest
from tuner.study.keys import read_text

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""HEAD is none: wrk waits for the body that its header announces."""
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
"""RFC 9110, section 5.6.2."""
SET_BY_TUNER = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "transfer-encoding", "upgrade"}
)
MOST_HEADER_LETTERS = 4000
"""Of one value: ab has 8 KiB for a whole request (support/ab.c)."""
HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "cache-control", "host", "user-agent"})
"""Headers whose values are shown; any other may hold a secret."""
CONTAINS = "contains"
BODIES = tuple(each.value for each in BodyCheck if each not in {BodyCheck.LEARNED, BodyCheck.CONTAINS})
"""What `body:` says in one word."""
MOST_TEXT_LETTERS = 1000
SHA256 = re.compile(r"[0-9a-f]{64}")
MOST_KINDS = 100
MOST_SHOWN, FEW_SHOWN = 12, 8
"""Of a mix in one line."""
MOST_BYTES = 2**40
LEAST_SHARE = 0.001
"""Of a mix: what is rarer comes too seldom in a window to be counted."""


def read_path(given: object) -> str:
    """Return a path on the server. Raises Refused for what could not stand in a request line."""
    path = read_text(given)
    if not path.startswith("/") or not path.isprintable() or " " in path:
        raise Refused(f"{quote(path)} is not written as a URL path", "Begin with /, without spaces")
    return path


def weigh(kinds: Sequence[RequestKind]) -> tuple[RequestKind, ...]:
    """Return the kinds of requests that are sent: those of weight 0 are not. Raises Refused."""
    total = sum(each.weight for each in kinds)
    if kinds and total <= 0:
        raise Refused(
            "all requests have weight 0, so tuner would send none",
            ("Give at least one request a weight above 0"),
        )
    for index, each in enumerate(kinds):
        if 0 < each.weight < LEAST_SHARE * total:
            raise Refused(
                f"the weight {each.weight:g} is less than {LEAST_SHARE:.1%} of the sum of weights "
                f"({total:g})",
                "Raise the weight, or leave this request out",
                at=(index,),
            )
    return tuple(each for each in kinds if each.weight > 0)


def describe_mix(kinds: tuple[RequestKind, ...]) -> str:
    """Return a mix in one line, with shares that add up to 100 %; of many kinds, the first ones."""
    total = sum(each.weight for each in kinds)
    shown = kinds if len(kinds) <= MOST_SHOWN else kinds[:FEW_SHOWN]
    parts = [f"{each.weight / total:.1%} {each.method} {_show_host(each)}{each.path}" for each in shown]
    if others := kinds[len(shown) :]:
        share = sum(each.weight for each in others) / total
        parts.append(f"{share:.1%} {len(others)} other kinds")
    return ", ".join(parts)


def _show_host(kind: RequestKind) -> str:
    """Return the virtual host that a request names; empty for that of the load's URL."""
    return next((value for name, value in kind.headers.items() if name.lower() == "host"), "")


def define_mix(kinds: tuple[RequestKind, ...]) -> str:
    """Return all that makes two mixes comparable."""
    return "; ".join(
        f"{each.weight:g} {each.method} {each.path} {hide_secrets(each.headers)} "
        f"{each.status} {each.body_bytes} {each.sha256}{define_body(each.body)}"
        for each in kinds
    )


def list_secrets(headers: Mapping[str, str]) -> list[str]:
    """Return the values of headers that may be secrets."""
    return [value for name, value in headers.items() if name.lower() not in HARMLESS]


def hide_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by name, without the values that may be secrets."""
    return {
        name: value if name.lower() in HARMLESS else "(hidden)" for name, value in sorted(headers.items())
    }


def describe_headers(headers: Mapping[str, str]) -> str:
    """Return headers in one line, by name alone where the value may be a secret."""
    shown = (f"{name}: {value}" if name.lower() in HARMLESS else name for name, value in headers.items())
    return ", ".join(shown)


def define_body(body: Body) -> str:
    """Return how a study wants bodies to be judged; empty where it says nothing."""
    if body.check is BodyCheck.LEARNED:
        return ""
    return f" body {body.check}" + (f" {quote(body.contains)}" if body.contains else "")


def read_headers(given: object) -> Mapping[str, str]:
    """Read headers by name. Raises Refused for what could not stand in a request, or would break it."""
    if not isinstance(given, Mapping):
        raise Refused(f"{quote(given)} is not a mapping", "Write `key: value` lines")
    for name, value in given.items():
        if not TOKEN.fullmatch(name):
            raise Refused(f"{quote(name)} is no name of a header", "Use letters, digits and -", at=(name,))
        if name.lower() in SET_BY_TUNER:
            raise Refused(f"{name} is set by the load generator", "Leave this header out", at=(name,))
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            wrong = "the value of this header is not one line of ASCII text"
            raise Refused(wrong, "Write one line of ASCII text, in quotes", at=(name,))
        if len(value) > MOST_HEADER_LETTERS:
            wrong = f"{len(value)} characters are too many for a header"
            raise Refused(wrong, f"Use {MOST_HEADER_LETTERS} or fewer", at=(name,))
    if len({name.lower() for name in given}) < len(given):
        raise Refused(
            f"{', '.join(given)}: one header is given twice", "Write each header once; case does not count"
        )
    return {str(name): str(value) for name, value in given.items()}


def read_load_headers(given: object) -> Mapping[str, str]:
    """Read headers that every request of a load has."""
    headers = read_headers(given)
    for name, value in headers.items():
        if name.lower() == "accept-encoding":
            wrong = f"{name} has a key of its own"
            raise Refused(wrong, "Write `load.accept_encoding: gzip`", at=(name,))
        if not value.strip():
            raise Refused("this header has no value", "Write a value, or leave the header out", at=(name,))
    return headers


def read_body(given: object) -> Body:
    """Read how bodies are judged: one word, or `contains:` with a text."""
    if not isinstance(given, Mapping):
        if given not in BODIES:
            raise Refused(
                f"{quote(given)} is no way to judge a body",
                f"Write {', '.join(BODIES)}, or {{contains: TEXT}}",
            )
        return Body(check=BodyCheck(str(given)))
    for name in given:
        if name != CONTAINS:
            raise Refused("this key is not known", suggest(name, [CONTAINS]), at=(name,))
    text = given.get(CONTAINS)
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= len(text) <= MOST_TEXT_LETTERS:
        wrong = f"{quote(text)} is no text to look for"
        right = f"Write 1 to {MOST_TEXT_LETTERS} characters, without blanks at the ends"
        raise Refused(wrong, right, at=(CONTAINS,))
    return Body(check=BodyCheck.CONTAINS, contains=str(text))


def refuse_packed(body: Body, accepted: str) -> None:
    """Raise Refused where a body is to be looked into, and may come compressed."""
    if accepted and body.check in {BodyCheck.CONTAINS, BodyCheck.CHECKSUM}:
        raise Refused(
            f"`{body.check}` cannot be judged in a compressed body",
            "Leave accept_encoding out, or write `body: any`",
            at=("body",),
        )


def join_headers(shared: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of the load with those of one request, which take their place."""
    names = {name.lower() for name in own}
    return {**{name: value for name, value in shared.items() if name.lower() not in names}, **own}
