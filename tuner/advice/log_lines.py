"""Reads the end of a log: each line with its time, and nothing of it is taken for more than text."""

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone

TAIL_BYTES = 2**19
LONGEST_QUOTE = 200
WRITTEN_MEANWHILE_S = 60.0
"""A line may be written after the clock was read, by at most this time."""
JOURNAL = "journal"
"""Source of lines that systemd's journal gives, each after time, host and process."""
_OF_JOURNAL = re.compile(r"\S+ \S+ [^\s\[\]]+\[\d+\]: ")
_MONTHS = {
    name: at
    for at, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}
_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)"
_TIMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<y>\d{{4}})[/-](?P<m>\d\d)[/-](?P<d>\d\d)[ T]{_CLOCK}(?:[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?",
        rf"\[\w{{3}} (?P<m>\w{{3}}) (?P<d>\d\d) {_CLOCK}(?:\.\d+)? (?P<y>\d{{4}})\]",
        rf"\[(?P<d>\d\d)-(?P<m>\w{{3}})-(?P<y>\d{{4}}) {_CLOCK}",
        rf"(?P<m>[A-Z][a-z]{{2}}) +(?P<d>\d{{1,2}}) {_CLOCK}",
        r'.{0,40}?"ts":(?P<epoch>\d{9,11}(?:\.\d+)?)',
    )
)
"""How lines begin: nginx and ISO 8601, Apache, php-fpm, syslog (RFC 3164), Caddy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a log."""

    text: str
    source: str
    """File that it stands in."""
    at_s: float | None
    """Seconds since the epoch; None where the line does not tell."""
    message: str = ""
    """What the program itself says in it; empty where the line has another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What tells lines of the kernel's log about this host from those about containers on the same kernel."""

    network: int | None = None
    """Inode of its network namespace."""
    ports: frozenset[int] = frozenset()
    """TCP ports at which something listens."""

    def has(self, told: Mapping[str, str | None]) -> bool:
        """Return whether a line is about this host, by its groups `network` and `port`."""
        network, port = told.get("network"), told.get("port")
        return (network is None or int(network) == self.network) and (port is None or int(port) in self.ports)


def read_lines(tail: bytes, source: str, *, now: datetime) -> Iterator[LogLine]:
    """Yield the whole lines of a log's end. `now` has the zone of the host's clock.

    A time that is yet to come is of another clock or zone, and counts as unknown.
    """
    lines = tail.decode(errors="replace").split("\n")
    is_cut = len(tail) >= TAIL_BYTES
    for text in lines[1 if is_cut else 0 :]:
        if text.strip():
            at_s = read_time(text, now)
            is_known = at_s is not None and at_s <= now.timestamp() + WRITTEN_MEANWHILE_S
            yield LogLine(text=text, source=source, at_s=at_s if is_known else None)


def cut_messages(lines: Iterable[LogLine], form: str | None, pids: Container[int] = ()) -> Iterator[LogLine]:
    """Yield lines with the messages of the program itself.

    A client or an application may write any text, but neither decides where a message begins.

    Args:
        lines: of a log.
        form: regular expression for a line, with the group `message`; without it, the whole line is one.
        pids: processes whose lines count where the form has the group `pid`. nginx writes the line breaks
            of a requested path as they are, so that a client may write a whole line.
    """
    for line in lines:
        if form is None:
            yield replace(line, message=_drop_prefix(line))
        # HAProxy's form has the prefix of syslog, which the journal writes as well.
        elif found := re.match(form, _drop_prefix(line)) or re.match(form, line.text):
            told = found.groupdict()
            is_own = told.get("pid") is None or int(told["pid"]) in pids
            yield replace(line, message=told["message"] if is_own else "")


def _drop_prefix(line: LogLine) -> str:
    """Return a line as its program wrote it."""
    prefix = _OF_JOURNAL.match(line.text) if line.source == JOURNAL else None
    return line.text[prefix.end() :] if prefix else line.text


def read_time(text: str, now: datetime) -> float | None:
    """Return when a line was written, in seconds since the epoch; None where it does not say."""
    for pattern in _TIMES:
        if found := pattern.match(text):
            told = found.groupdict()
            if "epoch" in told:
                return float(told["epoch"])
            try:
                return _as_epoch(told, now)
            except (ValueError, KeyError, OverflowError):
                return None
    return None


def _as_epoch(told: dict[str, str], now: datetime) -> float:
    month = int(told["m"]) if told["m"].isdigit() else _MONTHS[told["m"]]
    year = int(told["y"]) if told.get("y") else now.year
    zone = told.get("zone") or ""
    day, hour, minute, second = (int(told[key]) for key in ("d", "H", "M", "S"))
    local = datetime(year, month, day, hour, minute, second, tzinfo=read_zone(zone) if zone else now.tzinfo)
    if not told.get("y") and local > now + timedelta(days=1):  # written before the last new year
        local = local.replace(year=year - 1)
    return local.timestamp()


def read_clock(printed: bytes) -> datetime:
    """Read what `date +%s%z` printed: the host's time in its own zone."""
    found = re.fullmatch(rb"(\d{1,12})([+-]\d{4})\s*", printed)
    return (
        datetime.fromtimestamp(int(found[1]), tz=read_zone(found[2].decode()))
        if found
        else datetime.now(tz=UTC)
    )


def read_zone(text: str) -> timezone:
    """Return the time zone of `+0200`, `+02:00` or `Z`."""
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def quote_line(text: str) -> str:
    """Return a line as it may be shown: no control or format characters, and not too long."""
    plain = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text[:2000])
    plain = " ".join(plain.split())
    return plain if len(plain) <= LONGEST_QUOTE else f"{plain[:LONGEST_QUOTE]}…"
