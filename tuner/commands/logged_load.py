"""Proposes the load of a study from access logs, with a comment that says where each number comes from."""

import glob
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from tuner import plugins
from tuner.errors import UsageError
from tuner.hosts.load_places import LOCAL
from tuner.ports import LineFormat, LoggingServer, RequestKind
from tuner.study.folder import write_file
from tuner.study.loads.load_bounds import MOST_CONNECTIONS
from tuner.traffic.arrivals import ArrivalCounter, Arrivals
from tuner.traffic.kinds import GET, Kind, KindCounter
from tuner.traffic.reading import STDIN, Columns, RowReader, Source, find_format, read_log
from tuner.traffic.stand_in import StandIn, plan_stand_ins

LEAST_CONNECTIONS, USUAL_CONNECTIONS = 10, 100
MOST_SHARE = 0.5
"""A load has one way to connect: that of most requests."""
KEPT = 1.5
"""Requests per connection from which on connections are kept."""
FOLDER = "stand-in"
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedLoad:
    """The load that some logs show."""

    sources: tuple[Source, ...]
    kinds: tuple[Kind, ...]
    """The first is answered with 200 where one is."""
    arrivals: Arrivals
    requests: int
    """All that the logs have."""
    with_query: int
    conditional: int
    left_out: Mapping[str, int]
    stand_ins: tuple[StandIn, ...] = ()
    """Files to make in place of the site; empty where the site is there."""

    @property
    def kept(self) -> int:
        """Return how many requests the kinds stand for."""
        return sum(each.count for each in self.kinds)

    @property
    def covered(self) -> float:
        """Return the share of these that have a kind of their own form."""
        return sum(each.count for each in self.kinds if not each.is_tail) / self.kept

    @property
    def mix(self) -> tuple[RequestKind, ...]:
        """Return the requests that are sent."""
        return tuple(
            RequestKind(path=each.path, method=each.method, status=each.status, weight=each.count)
            for each in self.kinds
        )

    @property
    def keepalive(self) -> bool | None:
        """Return whether connections are kept; None where the logs do not say."""
        per_connection = self.arrivals.per_connection
        return None if per_connection is None else per_connection >= KEPT

    def say_connections(self) -> str:
        """Return the number of connections as it stands in the study, with its reason."""
        under_way = self.arrivals.under_way
        if under_way is None:
            return f"{USUAL_CONNECTIONS}          # the log has no times that requests took"
        said = f"{under_way:.3g} requests were under way in the busiest minute (Little's law)"
        wanted = math.ceil(under_way)
        if wanted < LEAST_CONNECTIONS:
            return f"{LEAST_CONNECTIONS}          # {said}; fewer would leave the server idle"
        return f"{min(wanted, MOST_CONNECTIONS)}          # {said}"

    def say_tls(self) -> str:
        """Return how the load connects, where most requests came over TLS or HTTP/2; empty otherwise."""
        tls, http2 = self.arrivals.tls or 0.0, self.arrivals.http2 or 0.0
        lines = []
        if tls >= MOST_SHARE:
            lines.append(f"tls: true              # {tls:.0%} of the requests came over TLS")
        if http2 >= MOST_SHARE:
            lines.append(
                f"# protocol: h2           # {http2:.0%} of the requests came over HTTP/2; it takes another "
                "generator (`check` names it)"
            )
        return "\n  ".join(lines)

    def say_keepalive(self) -> str:
        """Return why connections are kept or not."""
        arrivals = self.arrivals
        if arrivals.per_connection is None:
            return "the log does not say which requests had the same connection"
        idle = "" if arrivals.idle_s is None else f", idle for {arrivals.idle_s:g} s in between (median)"
        return f"{arrivals.per_connection:.3g} requests per connection{idle}"

    def say_rate(self) -> str:
        """Return when most requests came, how many, and how evenly; empty where the log has no times."""
        found = self.arrivals
        if found.peak_rps is None:
            return ""
        bursts = "" if found.dispersion is None else f", index of dispersion {found.dispersion:.3g}"
        return f"{found.peak_at}, {found.peak_rps:,.3g} requests/s{bursts}"

    def mix_as_yaml(self) -> str:
        """Return the key `requests:` as it stands in a study."""
        lines = [f"# Busiest minute of the log: {self.say_rate() or 'unknown'}"]
        lines += ["requests:           # weight: requests in the log; then their share, mean size and form"]
        for each in self.kinds:
            method = "" if each.method == GET else f", method: {each.method}"
            status = "" if each.status == HTTPStatus.OK else f", status: {each.status}"
            form = "the rest, by its most frequent request" if each.is_tail else each.template
            entry = f"{{path: {json.dumps(each.path)}, weight: {each.count}{method}{status}}}"
            about = f"{each.count / self.kept:.1%}, {each.mean_bytes:,} bytes, {form}"
            lines.append(f"  - {entry}  # {about}")
        return "\n  ".join(lines)

    def describe(self) -> str:
        """Return what was found in the logs, and what of it is kept."""
        tails = sum(each.is_tail for each in self.kinds)
        lines = [each.describe() for each in self.sources]
        rest = "; one more stands for the rest" if tails else ""
        own = len(self.kinds) - tails
        lines.append(f"{own} kinds cover {self.covered:.1%} of {self.kept:,} requests{rest}")
        left_out = [f"{count:,} {reason}" for reason, count in self.left_out.items() if count]
        if left_out:
            lines.append(f"left out: {', '.join(left_out)}")
        if self.conditional:
            lines.append(
                f"{self.conditional / self.requests:.1%} were answered with 304 (not modified); the load "
                "asks for the whole response instead"
            )
        if self.with_query:
            lines.append(f"{self.with_query / self.requests:.1%} had a query, which is left out")
        lines += self._describe_arrivals()
        if self.stand_ins:
            size = sum(each.size for each in self.stand_ins) / MEBIBYTE
            cut = sum(each.is_cut for each in self.stand_ins)
            shorter = f"; {cut} are shorter than what was sent" if cut else ""
            lines.append(f"stand-in files: {len(self.stand_ins)}, {size:,.1f} MiB{shorter}")
        lines.append(
            "The study file has paths, statuses, sizes and counts of the log. No query, header, address or "
            "user name is in it."
        )
        return "\n".join(lines)

    def as_json(self) -> Mapping[str, object]:
        """Return the figures for scripts."""
        found = self.arrivals
        return {
            "requests": self.requests, "kept": self.kept, "kinds": len(self.kinds), "covered": self.covered,
            "broken_lines": sum(each.broken for each in self.sources),
            "left_out": {reason: count for reason, count in self.left_out.items() if count},
            "conditional": self.conditional, "with_query": self.with_query, "peak_rps": found.peak_rps,
            "peak_at": found.peak_at, "dispersion": found.dispersion, "under_way": found.under_way,
            "per_connection": found.per_connection, "idle_s": found.idle_s, "tls": found.tls,
            "http2": found.http2, "gzip": found.gzip,
        }  # fmt: skip

    def _describe_arrivals(self) -> list[str]:
        found = self.arrivals
        lines = []
        if rate := self.say_rate():
            lines.append(f"busiest minute: {rate}")
        lines.append(f"connections: {self.say_keepalive()}")
        shares = {"TLS": found.tls, "HTTP/2": found.http2, "compressed": found.gzip}
        said = (f"{name} {'unknown' if each is None else f'{each:.0%}'}" for name, each in shares.items())
        lines.append(f"shares: {', '.join(said)}")
        return lines


def read_logs(
    sources: Sequence[str],
    *,
    log_format: str | None,
    takes_unsafe: bool,
    stands_in: bool,
    own: Mapping[str, str] | None = None,
) -> LoggedLoad:
    """Read access logs and return the load that they show.

    Args:
        sources: files, patterns of files, or `-` for the standard input.
        log_format: of their lines; None to find out.
        takes_unsafe: whether methods that may change something are part of the load, without their bodies.
        stands_in: whether files are made in place of the site.
        own: logs of the installed server → their formats, as its files have them.

    Raises UsageError for logs that cannot be read, or have no request that could be sent.
    """
    if takes_unsafe and stands_in:
        raise UsageError("--unsafe-methods: files only answer GET. Leave it out, or leave --stand-in out.")

    def choose_format(source: str) -> LineFormat | None:
        path = str(Path(source).absolute())
        # Older ones are beside it: access.log.1, access.log.2.gz.
        known = (text for log, text in (own or {}).items() if path == log or path.startswith(f"{log}."))
        text = log_format or next(known, None)
        return None if text is None else find_format(text)

    counted, arrived = KindCounter(takes_unsafe=takes_unsafe), ArrivalCounter()

    def take(columns: Columns, reader: RowReader) -> None:
        counted.add(columns)
        arrived.add(columns, reader)

    read = tuple(read_log(each, take, log_format=choose_format(each)) for each in _expand(sources))
    kinds = counted.kinds()
    if not kinds:
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in counted.left_out.items() if count)
        raise UsageError(
            f"{sources[0]}: no request of it can be sent (left out: {left_out}). Give a log with requests "
            "for pages, or --unsafe-methods."
        )
    stand_ins = plan_stand_ins(kinds) if stands_in else ()
    shown = tuple(each.kind for each in stand_ins) or kinds
    return LoggedLoad(
        sources=read, kinds=_put_first(shown), arrivals=arrived.summary(), requests=counted.requests,
        with_query=counted.with_query, conditional=counted.conditional, left_out=counted.left_out,
        stand_ins=stand_ins,
    )  # fmt: skip


def find_own_logs(server: str) -> Mapping[str, str]:
    """Return the access logs that the installed server's own files name → their formats.

    Raises TargetError where it is not installed.
    """
    adapter = plugins.make_installed_server(server)
    if not isinstance(adapter, LoggingServer):
        return {}
    found = adapter.find_logs(adapter.find(plugins.make_host(LOCAL)))
    return {str(path): text for path, text in found.items()}


def _put_first(kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Return the kinds with one first that shows whether the server is ready."""
    return tuple(sorted(kinds, key=lambda each: (each.method, each.status) != (GET, HTTPStatus.OK)))


def _expand(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the files that are meant: a pattern stands for those that match."""
    files: list[str] = []
    for each in sources:
        is_pattern = each != STDIN and not Path(each).exists()
        files += sorted(glob.glob(each)) if is_pattern and glob.has_magic(each) else [each]  # noqa: PTH207
    if not files:
        raise UsageError(f"--from: no file matches {', '.join(sources)}. Give the path of an access log.")
    return tuple(dict.fromkeys(files))


def write_stand_ins(load: LoggedLoad, study_folder: Path) -> None:
    """Write the files of a stand-in into a study's folder. Raises UsageError or TargetError."""
    for each in load.stand_ins:
        if each.file is not None:
            path = study_folder / FOLDER / each.file
            write_file(path, each.content(), study_folder=study_folder)
