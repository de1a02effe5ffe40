"""The location that a path leads to, without what redirects it: ngx_http_core_find_location.

https://nginx.org/en/docs/http/ngx_http_core_module.html#location
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from tuner.adapters.servers.nginx.patterns import search_pattern
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive

Chain = tuple[Directive, ...]
"""Blocks from `http` or a server to the innermost one."""
_MODIFIER = re.compile(r"(=|\^~|~\*|~)?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """What a location's first line says."""

    modifier: str
    """`=`, `^~`, `~`, `~*`, or nothing; `@` for one that has a name."""
    text: str

    @property
    def is_pattern(self) -> bool:
        return self.modifier in {"~", "~*"}

    def search(self, path: str) -> re.Match[str] | bool:
        """Return what the regular expression matches; True where that cannot be told."""
        return search_pattern(self.text, path, is_caseless=self.modifier == "~*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One place where a path may lead to."""

    chain: Chain
    captures: tuple[str | None, ...] = field(default=())
    """What the parentheses of a regular expression matched."""
    is_settled: bool = False
    """Whether no regular expression further out is asked any more."""


def read_location(block: Directive) -> Location:
    """Read the modifier and the text of a location, written as one word or two."""
    arguments = block.arguments
    if len(arguments) > 1:
        return Location(modifier=arguments[0], text=arguments[1])
    written = arguments[0] if arguments else ""
    if written.startswith("@"):
        return Location(modifier="@", text=written)
    parts = _MODIFIER.fullmatch(written)
    return Location(modifier=(parts and parts[1]) or "", text=parts[2] if parts else written)


def find_locations(chain: Chain, path: str) -> list[Found]:
    """Return where a path leads to from a block on: one place, or several where a pattern cannot be told."""
    written = [(each, read_location(each)) for each in chain[-1].inside("location")]
    fixed = [
        (len(location.text), location.modifier == "=", each, location)
        for each, location in written
        if (location.modifier in {"", "^~"} and path.startswith(location.text))
        or (location.modifier == "=" and path == location.text)
    ]  # fmt: skip
    outcomes, is_final = [Found(chain=chain)], False
    if fixed:
        _, is_exact, best, location = max(fixed, key=lambda each: each[:2])
        if is_exact:
            return [Found(chain=(*chain, best), is_settled=True)]
        outcomes, is_final = find_locations((*chain, best), path), location.modifier == "^~"
    still_open = [each for each in outcomes if not each.is_settled]
    if is_final or not still_open:
        return outcomes
    settled = [each for each in outcomes if each.is_settled]
    for each, location in written:
        if location.is_pattern and (matched := location.search(path)):
            captures = () if isinstance(matched, bool) else (matched[0], *matched.groups())
            settled += [
                Found(chain=inner.chain, captures=inner.captures or captures, is_settled=True)
                for inner in find_locations((*chain, each), path)
            ]
            if not isinstance(matched, bool):
                return settled
    return settled + still_open


def find_named(chain: Chain, name: str) -> list[Found]:
    """Return the location of a server that has a name, as `@fallback`."""
    named = [each for each in chain[-1].inside("location") if each.arguments[:1] == (name,)]
    return [Found(chain=(*chain, each)) for each in named]


def list_locations(chain: Chain) -> Iterator[Chain]:
    """Yield a block and all locations in it, but for those that only their names lead to."""
    yield chain
    for each in chain[-1].inside("location"):
        if read_location(each).modifier != "@":
            yield from list_locations((*chain, each))


def normalize_path(path: str, *, merges_slashes: bool = True) -> str:
    """Return the path as nginx compares it: decoded, without dots and double slashes.

    As ngx_http_parse_complex_uri; letters are bytes, read as Latin-1.
    """
    text = unquote_to_bytes(path.partition("?")[0].partition("#")[0]).decode(ENCODING)
    if merges_slashes:
        text = re.sub(r"/{2,}", "/", text)
    parts: list[str] = []
    for part in text.split("/")[1:]:
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    if text.endswith(("/.", "/..")):
        parts.append("")
    return "/" + "/".join(parts)
