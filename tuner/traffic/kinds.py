"""Counts the requests of a log by kind: the form of their path, their status, and the size of the response.

Memory is bounded whatever a log has: when there are too many cells, rare ones are merged. Totals stay exact,
and frequent kinds stay apart. Queries, parameters and fragments are cut off before anything is kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import NamedTuple
from urllib.parse import quote

from tuner.ports import LogField
from tuner.study.loads.mix import LEAST_SHARE, METHODS
from tuner.traffic.reading import Columns

MOST_KINDS = 50
MOST_CELLS = 4096
"""Kept apart while a log is read; up to twice as many and those of one block in between."""
MOST_KNOWN = 32_768
MOST_PATHS = 8
"""Of a cell, to know its most frequent one."""
MOST_LETTERS = 500
"""Of a path; a longer one is no path of a site."""
GET, HEAD = "GET", "HEAD"
OK, PARTIAL, NOT_MODIFIED = 200, 206, 304
"""As numbers: a member of HTTPStatus takes as long to look up as the rest of a comparison."""
CUT = re.compile(r"[?;#]|%3[bBfF]")
"""Queries, parameters such as session identifiers, fragments."""
PLAIN = re.compile(r"[A-Za-z0-9/%._~-]*")
"""Paths of which nothing has to be escaped: nearly all."""
ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")
SAFE = "/%!$&'()*+,:=@~"
"""What stands for itself in a path (RFC 3986, section 3.3), and escapes."""
VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?<=/)(?=[^/]*\d)[\w-]{20,}"
    r"|(?<![0-9a-z])(?=[a-f]*\d)[0-9a-f]{8,}(?![0-9a-z])"
    r"|\d+",
    re.IGNORECASE,
)
"""UUIDs, tokens, hashes and numbers."""
DIGIT = re.compile(r"\d")
ANY = "*"
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")
OTHER = "a method that cannot be sent"
UNREADABLE = "no request line"
BROKEN_OFF = "failures of server or client (status 400, 408, 444, 499, 5xx) and upgrades"
RARE = f"requests rarer than {LEAST_SHARE:.1%}"
FAILED = frozenset({400, 408, 444, 499})
"""No server answers so by intention; nginx logs 444 and 499 for connections that were closed."""
LEAST_FAILED = 500
STATUS_DIGITS, MOST_DIGITS = 3, 15


@dataclass(slots=True)
class Cell:
    """Requests that are alike so far."""

    count: int = 0
    sized: int = 0
    """Those with a whole response."""
    bytes: int = 0
    """Of their responses."""
    paths: dict[str, int] = field(default_factory=dict)
    """The most frequent ones, with their counts."""

    def add(self, path: str, count: int, size: int | None) -> None:
        """Count requests for a path; those without a size had no whole response."""
        self.count += count
        if size is not None:
            self.sized += count
            self.bytes += count * size
        self.paths[path] = self.paths.get(path, 0) + count
        if len(self.paths) > 4 * MOST_PATHS:
            self._forget()

    def merge(self, other: "Cell") -> None:
        """Take in another one."""
        self.count += other.count
        self.sized += other.sized
        self.bytes += other.bytes
        for path, count in other.paths.items():
            self.paths[path] = self.paths.get(path, 0) + count
        self._forget()

    def _forget(self) -> None:
        self.paths = dict(sorted(self.paths.items(), key=lambda each: -each[1])[:MOST_PATHS])


class Key(NamedTuple):
    """What the requests of a cell have in common."""

    method: str
    template: str
    """Path with `*` for what varies; without its directories, or `*` alone, for rare ones."""
    status: int
    size: int
    """Bits of the response's length, so that the longest is less than twice the shortest."""

    def coarsen(self, level: int) -> "Key":
        """Return what it has in common with more: 1 the directory, 2 the suffix, 3 the size alone."""
        if self.template == ANY or level > LEVELS - 1:
            return self._replace(template=ANY)
        found = SUFFIX.search(self.template)
        suffix = found.group() if found else ""
        if level > 1 or not self.template.startswith("/"):
            return self._replace(template=f"{ANY}{suffix or '/'}")
        return self._replace(template=f"{self.template.rpartition('/')[0]}/{ANY}{suffix}")


LEVELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of request that stands for many."""

    method: str
    path: str
    """The most frequent one."""
    template: str
    status: int
    count: int
    mean_bytes: int
    """Of the response."""

    @property
    def is_tail(self) -> bool:
        """Return whether it stands for all that is too rare for a kind of its own."""
        return self.template == ANY


class Asked(NamedTuple):
    """What a request line asks for."""

    method: str
    path: str
    template: str


class _Judged(NamedTuple):
    """What a request means that was answered with a status."""

    reason: str
    """Why it is no part of the load; empty where it is."""
    method: str = ""
    path: str = ""
    template: str = ""
    status: int = 0
    is_whole: bool = False
    """Whether the response is a whole one, whose length says something."""


@dataclass(slots=True, kw_only=True)
class KindCounter:
    """Counts what is asked for."""

    takes_unsafe: bool = False
    """Whether methods that may change something are kept, too."""
    requests: int = 0
    with_query: int = 0
    conditional: int = 0
    """Answered with 304."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason → requests that are not part of the load."""
    cells: dict[tuple[str, str, int, int], Cell] = field(default_factory=dict)
    """By the values of a Key, of which making one takes as long as all the rest."""
    _known: dict[tuple[str, str], "_Judged"] = field(default_factory=dict)
    """Request without its query, and status: most logs repeat themselves."""

    def add(self, columns: Columns) -> None:
        """Count the requests of some lines."""
        sizes = columns.get(LogField.BYTES) or repeat("-")
        alike = Counter(zip(_list_requests(columns), columns[LogField.STATUS], sizes, strict=False))
        self.requests += alike.total()
        for (request, status, size), count in alike.items():
            asked_for, query, _ = request.partition("?")
            judged = self._known.get((asked_for, status)) or self._judge(asked_for, status)
            reason, method, path, template, code, is_whole = judged
            if reason:
                self.left_out[reason] += count
                continue
            if query:
                self.with_query += count
            length = _read_length(size) if is_whole else None
            key = (method, template, code, length.bit_length() if length and code == OK else 0)
            cell = self.cells.get(key)
            if cell is None:
                cell = self.cells[key] = Cell()
            cell.add(path, count, length)
            if code == NOT_MODIFIED:
                self.conditional += count
        if len(self.cells) > 2 * MOST_CELLS:
            self._merge_rare()

    def _judge(self, asked_for: str, status: str) -> "_Judged":
        """Return what requests mean that were answered with a status, and remember it."""
        asked = read_request(asked_for)
        reason = self._leave_out(asked, status)
        if asked is None or reason:
            judged = _Judged(reason)
        else:
            code = int(status)
            is_whole = code not in {NOT_MODIFIED, PARTIAL}
            judged = _Judged("", *asked, OK if code == PARTIAL else code, is_whole)
        # A memory for long lines would be as large as a log wants it to be.
        if len(asked_for) <= MOST_LETTERS:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[asked_for, status] = judged
        return judged

    def _leave_out(self, asked: Asked | None, status: str) -> str:
        """Return why requests are no part of the load; empty where they are."""
        if asked is None or len(status) != STATUS_DIGITS or not status.isdecimal():
            return UNREADABLE
        if asked.method != GET and not (self.takes_unsafe and asked.method in METHODS):
            return asked.method if asked.method in {*METHODS, HEAD} else OTHER
        code = int(status)
        has_failed = code in FAILED or not OK <= code < LEAST_FAILED
        return BROKEN_OFF if has_failed else ""

    def _merge_rare(self) -> None:
        """Merge the rarest cells into coarser ones: what was rare so far may be frequent from now on."""
        for level in (2, LEVELS):
            ranked = sorted(self.cells.items(), key=lambda each: -each[1].count)
            self.cells = dict(ranked[:MOST_CELLS])
            for key, cell in ranked[MOST_CELLS:]:
                self.cells.setdefault(Key(*key).coarsen(level), Cell()).merge(cell)
            if len(self.cells) <= 2 * MOST_CELLS:
                break

    def kinds(self, most: int = MOST_KINDS) -> tuple[Kind, ...]:
        """Return at most so many kinds, the most frequent first; what is too rare even then is left out."""
        cells = _cluster(_join_conditional({Key(*key): each for key, each in self.cells.items()}), most)
        total = sum(each.count for each in cells.values())
        kinds = _name(cells)
        rare = [each for each in kinds if each.count < LEAST_SHARE * total]
        self.left_out[RARE] = sum(each.count for each in rare)
        return tuple(each for each in kinds if each not in rare)


def _list_requests(columns: Columns) -> Iterable[str]:
    if LogField.REQUEST in columns:
        return columns[LogField.REQUEST]
    methods = columns.get(LogField.METHOD) or repeat(GET)
    return map(" ".join, zip(methods, columns[LogField.TARGET], repeat("HTTP"), strict=False))


def read_request(request: str) -> Asked | None:
    """Return what a request line asks for, its query cut off or not; None for what asks for no path."""
    method, _, rest = request.partition(" ")
    target = rest.rpartition(" ")[0] or rest
    if not (method.isascii() and method.isalpha()) or not target:
        return None
    if "\\" in target:
        target = ESCAPED.sub(lambda found: chr(int(found[1], 16)), target)
    path = CUT.split(target, maxsplit=1)[0]
    if not path.startswith("/") and "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    if not path.startswith("/") or len(path) > MOST_LETTERS:
        return None
    plain = _escape(path)
    # Each of what varies has a digit, but for a UUID in a million.
    return Asked(method, plain, VARYING.sub(ANY, plain) if DIGIT.search(plain) else plain)


def _read_length(text: str) -> int:
    """Return the length of a response; 0 for none. HAProxy may log one that still grows, with a plus."""
    if not text.isdecimal():
        text = text.removeprefix("+")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0


def _escape(path: str) -> str:
    """Return a path as it stands in a request: what is no plain ASCII is escaped, whatever wrote the log."""
    if PLAIN.fullmatch(path):
        return path
    try:
        content = path.encode("latin-1")
    except UnicodeEncodeError:
        content = path.encode(errors="replace")
    return quote(content, safe=SAFE)


def _join_conditional(cells: Mapping[Key, Cell]) -> dict[Key, Cell]:
    """Return cells in which 304s are counted with the whole responses of the same form."""
    joined: dict[Key, Cell] = {}
    largest: dict[tuple[str, str], Key] = {}
    whole = (item for item in cells.items() if item[0].status == OK)
    for key, _ in sorted(whole, key=lambda each: each[1].count):
        largest[key.method, key.template] = key
    for key, cell in cells.items():
        target = key
        if key.status == NOT_MODIFIED:
            alone = key._replace(status=OK)
            target = largest.get((key.method, key.template), alone)
        joined.setdefault(target, Cell()).merge(cell)
    return joined


def _cluster(cells: Mapping[Key, Cell], most: int) -> dict[Key, Cell]:
    """Return at most so many cells: frequent ones stay, others are joined by what they have in common."""
    total = sum(each.count for each in cells.values())
    least = LEAST_SHARE * total
    found = dict(cells)
    for level, stay in ((1, most // 2), (2, most - most // 5), (LEVELS, most - 1)):
        if len(found) <= most and all(each.count >= least for each in found.values()):
            break
        ranked = sorted(found.items(), key=lambda each: -each[1].count)
        found = {}
        for place, (key, cell) in enumerate(ranked):
            stays = place < stay and cell.count >= least and key.template != ANY
            found.setdefault(key if stays else key.coarsen(level), Cell()).merge(cell)
    tails = [each for each in found if each.template == ANY]
    if not tails:
        return found
    # Its path has to be answered with its status, whatever the others in it are answered with.
    frequent = max(tails, key=lambda each: found[each].count)
    tail = Cell()
    for key in tails:
        cell = found.pop(key)
        tail.merge(cell if key[:3] == frequent[:3] else replace(cell, paths={}))
    return {**found, frequent._replace(size=0): tail}


def _name(cells: Mapping[Key, Cell]) -> list[Kind]:
    """Return a kind for each cell with a path of its own; a cell without one joins the one that has it."""
    by_path: dict[tuple[str, str], tuple[Key, Cell]] = {}
    tails_last = sorted(cells.items(), key=lambda each: (each[0].template == ANY, -each[1].count))
    for key, cell in tails_last:
        ranked = sorted(cell.paths, key=lambda path: (-cell.paths[path], path))
        path = next((each for each in ranked if (key.method, each) not in by_path), ranked[0])
        first, joined = by_path.setdefault((key.method, path), (key, Cell()))
        # Responses of another status say nothing about the size of those that are expected.
        joined.merge(cell if key.status == first.status else replace(cell, sized=0, bytes=0))
    kinds = [
        Kind(
            method=method, path=path, template=key.template, status=key.status, count=cell.count,
            mean_bytes=round(cell.bytes / cell.sized) if cell.sized else 0,
        )
        for (method, path), (key, cell) in by_path.items()
    ]  # fmt: skip
    return sorted(kinds, key=lambda each: -each.count)
