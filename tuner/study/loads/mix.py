"""Reads which requests a load sends, and which responses are correct: `requests:`, `headers:`, `body:`."""

import re
from collections.abc import Iterator, Mapping

from tuner.hosts.url import Url, parse_url
from tuner.ports import ANY_BODY, Body, BodyCheck, RequestKind
from tuner.space.problems import quote
from tuner.study.fields import Fields, Keys

KEYS = ("path", "url", "method", "headers", "status", "bytes", "sha256", "body", "weight")
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
    shared = read_headers(fields, ("load", "headers"))
    kinds = [_read_kind(Fields(fields.document.below((*keys, index))), shared) for index in range(len(given))]
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
    return ", ".join(
        f"{each.weight / total:.1%} {each.method} {_show_host(each)}{each.path}" for each in kinds
    )


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


def read_headers(fields: Fields, keys: Keys) -> Mapping[str, str]:
    """Read headers by name. Raises UsageError for what could not stand in a request, or would break it."""
    headers = fields.mapping(keys) or {}
    for name, value in headers.items():
        own: Keys = (*keys, name)
        if not TOKEN.fullmatch(name):
            raise fields.wrong(own, f"{quote(name)} is no name of a header", "Use letters, digits and -")
        if name.lower() in SET_BY_TUNER:
            raise fields.wrong(own, f"{name} is set by the load generator", "Leave it out")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise fields.wrong(own, "the value of a header is one line of ASCII text", "Write it in quotes")
        if len(value) > MOST_HEADER_LETTERS:
            raise fields.wrong(
                own, f"{len(value)} letters are too many for a header", f"Use {MOST_HEADER_LETTERS} or fewer"
            )
    if len({name.lower() for name in headers}) < len(headers):
        raise fields.wrong(keys, f"{', '.join(headers)}: a header comes twice", "Write each once")
    return {str(name): str(value) for name, value in headers.items()}


def read_load_headers(fields: Fields) -> Mapping[str, str]:
    """Read `load.headers:`, which every request of the load has."""
    keys: Keys = ("load", "headers")
    headers = read_headers(fields, keys)
    for name, value in headers.items():
        if name.lower() == "accept-encoding":
            raise fields.wrong(
                (*keys, name), f"{name} has a key of its own", "Write `load.accept_encoding: gzip`"
            )
        if not value.strip():
            raise fields.wrong((*keys, name), "a header without a value", "Write one, or leave it out")
    return headers


def read_body(fields: Fields, keys: Keys) -> Body:
    """Read how bodies are judged: one word, or `contains:` with a text."""
    given = fields.value(keys)
    if given is None:
        return ANY_BODY
    if not isinstance(given, Mapping):
        if given not in BODIES:
            raise fields.wrong(
                keys,
                f"{quote(given)} is no way to judge a body",
                f"Write {', '.join(BODIES)}, or {{contains: TEXT}}",
            )
        return Body(check=BodyCheck(str(given)))
    fields.refuse_unknown(keys, (CONTAINS,))
    text = fields.text((*keys, CONTAINS), "")
    if not text or len(text) > MOST_TEXT_LETTERS:
        raise fields.wrong(
            keys, f"{quote(text)} is no text to look for", f"Write 1 to {MOST_TEXT_LETTERS} letters"
        )
    return Body(check=BodyCheck.CONTAINS, contains=text)


def refuse_packed(fields: Fields, keys: Keys, body: Body, accepted: str) -> None:
    """Raise UsageError where a body is to be looked into, and may come compressed."""
    if accepted and body.check in {BodyCheck.CONTAINS, BodyCheck.CHECKSUM}:
        raise fields.wrong(
            keys,
            f"`{body.check}` cannot be judged in a compressed body",
            "Leave accept_encoding out, or write `body: any`",
        )


def _read_kind(own: Fields, shared: Mapping[str, str]) -> RequestKind:
    own.refuse_unknown((), KEYS)
    url = _read_url(own)
    if url is None and own.value(("path",)) is None:
        raise own.wrong((), "a request without `path:`", "Write the path that it asks for, or its `url:`")
    sha256 = own.text(("sha256",), "")
    if sha256 and not SHA256.fullmatch(sha256):
        raise own.wrong(("sha256",), f"{quote(sha256)} is no SHA-256", "Write what sha256sum prints")
    body, body_bytes = read_body(own, ("body",)), own.number(("bytes",), None, int, low=0, high=MOST_BYTES)
    allowed = {
        "bytes": (BodyCheck.LENGTH, BodyCheck.CHECKSUM),
        "sha256": (BodyCheck.CHECKSUM, BodyCheck.LENGTH),
    }
    for key, checks in allowed.items():
        if own.value((key,)) is not None and body.check not in (BodyCheck.LEARNED, *checks):
            raise own.wrong((key,), f"`{key}:` beside `body: {body.check}`", "Leave one of them out")
    headers = _join_headers(shared, read_headers(own, ("headers",)))
    if url is not None:
        headers = _join_headers({"Host": url.authority}, headers)
    accepted = {name.lower(): value for name, value in headers.items()}.get("accept-encoding", "")
    refuse_packed(own, ("body",), body, accepted)
    return RequestKind(
        path=read_path(own, ("path",), "/") if url is None else url.rest,
        method=own.choice(("method",), "GET", METHODS),
        headers=headers,
        status=own.number(("status",), 200, int, low=200, high=599),
        body_bytes=body_bytes,
        sha256=sha256,
        body=body,
        weight=own.number(("weight",), 1.0, float, low=0, high=1e9),
    )


def _read_url(own: Fields) -> Url | None:
    """Read `url:`, which says path and virtual host at once; None where there is none."""
    keys: Keys = ("url",)
    if own.value(keys) is None:
        return None
    if own.value(("path",)) is not None:
        raise own.wrong(keys, "`url:` beside `path:`", "Leave one of them out")
    return parse_url(own.text(keys, ""), where=own.where(keys))


def read_first_url(fields: Fields) -> str | None:
    """Return the first `url:` of a mix, which is where its load goes; None where no request has one."""
    urls = [each for _, each in _read_urls(fields)]
    return urls[0].text if urls else None


def refuse_other_origins(fields: Fields, page: str) -> None:
    """Raise UsageError for a `url:` that another address than that of the load would have to answer.

    Every request goes over the same connections: its virtual host is named by its header.
    """
    for index, url in _read_urls(fields):
        keys: Keys = ("load", "requests", index, "url")
        if "://" not in page:
            raise fields.wrong(
                keys,
                f"a whole URL, and `load.path: {page}` has none",
                "Make that a whole URL, or leave it out",
            )
        first = parse_url(page)
        if (url.scheme, url.port) != (first.scheme, first.port):
            raise fields.wrong(
                keys,
                f"{url.text} is not on the port of {page}, to which all connections go",
                "Make it a load of its own: `loads:`",
            )


def _read_urls(fields: Fields) -> Iterator[tuple[int, Url]]:
    for index in range(len(fields.value(("load", "requests")) or ())):
        url = _read_url(Fields(fields.document.below(("load", "requests", index))))
        if url is not None:
            yield index, url


def _join_headers(shared: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of the load with those of one request, which take their place."""
    names = {name.lower() for name in own}
    return {**{name: value for name, value in shared.items() if name.lower() not in names}, **own}
