"""Proposes the load of a study from access logs, with a comment that says where each number comes from."""

import glob
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath

from tuner import plugins
from tuner.errors import UsageError
from tuner.ports import Host, LineFormat, LoggingServer, RequestKind
from tuner.study.folder import write_file
from tuner.study.loads.load_bounds import MOST_CONNECTIONS
from tuner.traffic.arrivals import ArrivalCounter, Arrivals
from tuner.traffic.kinds import GET, Kind, KindCounter
from tuner.traffic.on_host import fetch_logs
from tuner.traffic.reading import STDIN, Columns, RowReader, Source, find_format, read_log
from tuner.traffic.stand_in import StandIn, plan_stand_ins

LEAST_CONNECTIONS, USUAL_CONNECTIONS = 10, 100
MOST_SHARE = 0.5
"""A load has one way to connect: that of most requests."""
KEPT = 1.5
"""Requests per connection from which on connections are kept."""
FOLDER = "stand-in"
ON_HOST = "host"
"""In place of a file: the log that the installed server's files name; `host:PATH` is a log on its host."""
MOST_NAME_LETTERS = 28
"""With a number, a name is as long as that of a load may be."""
OTHER_LETTERS = re.compile(r"[^A-Za-z0-9._-]+")
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
    name: str = ""
    """Of a load on which nothing is tuned."""
    check_loads: tuple["LoggedLoad", ...] = ()
    """Loads of other logs, for the robustness checks."""

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
            return f"{USUAL_CONNECTIONS}          # the log has no response times"
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
                f"# protocol: h2           # {http2:.0%} of the requests came over HTTP/2; HTTP/2 needs "
                "another generator (`check` names one)"
            )
        return "\n  ".join(lines)

    def say_keepalive(self) -> str:
        """Return why connections are kept or not."""
        arrivals = self.arrivals
        if arrivals.per_connection is None:
            return "the log does not say which requests shared a connection"
        idle = "" if arrivals.idle_s is None else f", idle for {arrivals.idle_s:g} s in between (median)"
        return f"{arrivals.per_connection:.3g} requests per connection{idle}"

    def say_rate(self) -> str:
        """Return when most requests came, how many, and how evenly; empty where the log has no times."""
        found = self.arrivals
        if found.peak_rps is None:
            return ""
        bursts = "" if found.dispersion is None else f", index of dispersion {found.dispersion:.3g}"
        return f"{found.peak_at}, {found.peak_rps:,.3g} requests/s{bursts}"

    def mix_as_yaml(self, *, is_at_rate: bool = False) -> str:
        """Return `peak_rps:`, `requests:` and, for twice the peak, `rate:` as they stand in a study."""
        peak_rps = self.arrivals.peak_rps
        lines = self._list_requests()
        if peak_rps is not None:
            at_peak = "to send twice this rate, write: rate: 2 × peak, and objective: minimize latency_p99_ms"
            told = "" if is_at_rate else f"     # {at_peak}"
            lines.insert(1, f"peak_rps: {peak_rps:.6g}{told}")
            if is_at_rate:
                lines.insert(
                    2,
                    "rate: 2 × peak     # requests per second, sent on time even if earlier ones still wait",
                )
        return "\n  ".join(lines)

    def check_loads_as_yaml(self) -> str:
        """Return the key `check_loads:` as it stands in a study; empty without such loads."""
        if not self.check_loads:
            return ""
        head = "\n# Robustness checks: nothing is tuned on these loads.\ncheck_loads:\n"
        return head + "".join(f"{each.as_check_load()}\n" for each in self.check_loads)

    def as_check_load(self) -> str:
        """Return one entry of `check_loads:`; what its log does not say is as in the load of the study."""
        lines = [f"  - name: {json.dumps(self.name)}"]
        if self.arrivals.under_way is not None:
            lines.append(f"connections: {self.say_connections()}")
        if self.keepalive is not None:
            lines.append(f"keepalive: {json.dumps(self.keepalive)}          # {self.say_keepalive()}")
        return "\n    ".join([*lines, *self._list_requests()])

    def _list_requests(self) -> list[str]:
        lines = [f"# Busiest minute of the log: {self.say_rate() or 'unknown'}"]
        lines += [
            ("requests:           # weight: number of requests in the log; comments: share, mean size, form")
        ]
        for each in self.kinds:
            method = "" if each.method == GET else f", method: {each.method}"
            status = "" if each.status == HTTPStatus.OK else f", status: {each.status}"
            form = (
                ("all other requests, represented by their most frequent one")
                if each.is_tail
                else each.template
            )
            entry = f"{{path: {json.dumps(each.path)}, weight: {each.count}{method}{status}}}"
            about = f"{each.count / self.kept:.1%}, {each.mean_bytes:,} bytes, {form}"
            lines.append(f"  - {entry}  # {about}")
        return lines

    def describe(self) -> str:
        """Return what was found in the logs, and what of it is kept."""
        lines = [*self.describe_requests(), *self._describe_arrivals()]
        for each in self.check_loads:
            lines += [f"check load {each.name}:", *each.describe_requests()]
        if self.stand_ins:
            size = sum(each.size for each in self.stand_ins) / MEBIBYTE
            cut = sum(each.is_cut for each in self.stand_ins)
            shorter = f"; {cut} are shorter than the logged responses" if cut else ""
            lines.append(f"stand-in files: {len(self.stand_ins)}, {size:,.1f} MiB{shorter}")
        lines.append(
            "The study file contains paths, statuses, sizes and counts from the log. It contains no query, "
            "header, address or user name."
        )
        return "\n".join(lines)

    def describe_requests(self) -> list[str]:
        """Return what was asked for, and which of it is no part of the load, as lines."""
        tails = sum(each.is_tail for each in self.kinds)
        lines = [each.describe() for each in self.sources]
        rest = "; one more kind represents all others" if tails else ""
        own = len(self.kinds) - tails
        lines.append(f"{own} kinds cover {self.covered:.1%} of {self.kept:,} requests{rest}")
        left_out = [f"{count:,} {reason}" for reason, count in self.left_out.items() if count]
        if left_out:
            lines.append(f"left out: {', '.join(left_out)}")
        if self.conditional:
            lines.append(
                f"{self.conditional / self.requests:.1%} of the requests got status 304 (not modified); the "
                "load requests the whole response instead"
            )
        if self.with_query:
            lines.append(
                f"{self.with_query / self.requests:.1%} of the requests had a query, which the load leaves "
                "out"
            )
        return lines

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
            "check_loads": {each.name: each.as_json() for each in self.check_loads},
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
    check_logs: Sequence[str] = (),
    own: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> LoggedLoad:
    """Read access logs and return the load that they show.

    Args:
        sources: files, patterns of files, `-` for the standard input, or ON_HOST.
        log_format: of their lines; None to find out.
        takes_unsafe: whether methods that may change something are part of the load, without their bodies.
        stands_in: whether files are made in place of the site.
        check_logs: each becomes a load of its own, on which nothing is tuned.
        own: logs of the installed server → their formats, as its files have them.
        host: where that server is; None where no log of it is asked for.

    Raises:
        UsageError: a log cannot be read, or has no request that could be sent.
        TargetError: a log on the host cannot be read.
    """
    if takes_unsafe and stands_in:
        raise UsageError(
            "--unsafe-methods: stand-in files answer only GET. Leave --unsafe-methods or --stand-in out."
        )
    reading = _Reading(log_format=log_format, takes_unsafe=takes_unsafe, own=own or {}, host=host)
    load = reading.read(sources)
    names = _name_apart(check_logs)
    checks = (replace(reading.read([log]), name=name) for log, name in zip(check_logs, names, strict=True))
    load = replace(load, check_loads=tuple(checks))
    return _stand_in(load) if stands_in else load


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How logs are read."""

    log_format: str | None
    takes_unsafe: bool
    own: Mapping[str, str] = field(default_factory=dict)
    host: Host | None = None

    def read(self, sources: Sequence[str]) -> LoggedLoad:
        """Read some logs as one load."""
        counted, arrived = KindCounter(takes_unsafe=self.takes_unsafe), ArrivalCounter()

        def take(columns: Columns, reader: RowReader) -> None:
            counted.add(columns)
            arrived.add(columns, reader)

        read = tuple(
            read_log(name, take, log_format=log_format, content=content)
            for name, log_format, content in self._open(sources)
        )
        kinds = counted.kinds()
        if not kinds:
            left_out = ", ".join(f"{count:,} {reason}" for reason, count in counted.left_out.items() if count)
            raise UsageError(
                f"{sources[0]}: tuner can send no request of this log (left out: {left_out}). Give a log "
                "with requests for pages, or add --unsafe-methods."
            )
        return LoggedLoad(
            sources=read, kinds=_put_first(kinds), arrivals=arrived.summary(), requests=counted.requests,
            with_query=counted.with_query, conditional=counted.conditional, left_out=counted.left_out,
        )  # fmt: skip

    def _open(self, sources: Sequence[str]) -> Iterator[tuple[str, LineFormat | None, bytes | None]]:
        """Yield name, format where that is known, and content where it is no file here, of each log."""
        there = [each for each in sources if _is_on_host(each)]
        here = [each for each in sources if each not in there]
        for file in _expand(here) if here else ():
            yield file, self._find_format(str(Path(file).absolute())), None
        for each in there:
            path = self._find_on_host(each)
            for log in fetch_logs(self.host, PurePosixPath(path)) if self.host else ():
                yield log.name, self._find_format(path), log.content

    def _find_format(self, path: str) -> LineFormat | None:
        # Older ones are beside it: access.log.1, access.log.2.gz.
        known = (text for log, text in self.own.items() if path == log or path.startswith(f"{log}."))
        text = self.log_format or next(known, None)
        return None if text is None else find_format(text)

    def _find_on_host(self, source: str) -> str:
        """Return the path of a log on the host. Raises UsageError where the server names none, or several."""
        path = source.removeprefix(ON_HOST).removeprefix(":") or next(iter(self.own), "")
        if not path.startswith("/"):
            raise UsageError(
                f"--from {source}: the configuration of the installed server names no access log. Name a "
                f"log: --from {ON_HOST}:/var/log/…"
            )
        if source == ON_HOST and len(self.own) > 1:
            raise UsageError(
                f"--from {source}: the configuration of the installed server names several access logs. "
                f"Choose one: {', '.join(f'--from {ON_HOST}:{log}' for log in self.own)}"
            )
        return path


def _is_on_host(source: str) -> bool:
    return source == ON_HOST or source.startswith(f"{ON_HOST}:")


def needs_host(sources: Sequence[str]) -> bool:
    """Return whether one of the logs is on the host of the installed server."""
    return any(map(_is_on_host, sources))


def find_own_logs(server: str, host: Host) -> Mapping[str, str]:
    """Return the access logs that the installed server's own files name → their formats.

    Raises TargetError where it is not installed.
    """
    adapter = plugins.make_installed_server(server)
    if not isinstance(adapter, LoggingServer):
        return {}
    found = adapter.find_logs(adapter.find(host))
    return {str(path): text for path, text in found.items()}


def _stand_in(load: LoggedLoad) -> LoggedLoad:
    """Return a load that asks for files in place of its site, its check loads for the same ones."""
    wanted: dict[tuple[str, str], Kind] = {}
    for each in (load, *load.check_loads):
        for kind in each.kinds:
            wanted.setdefault((kind.method, kind.path), kind)
    planned = dict(zip(wanted, plan_stand_ins(tuple(wanted.values())), strict=True))

    def ask(one: LoggedLoad) -> LoggedLoad:
        found = [(kind, planned[kind.method, kind.path].kind) for kind in one.kinds]
        kinds = [replace(kind, path=there.path, status=there.status) for kind, there in found]
        return replace(one, kinds=_put_first(kinds))

    checks = tuple(map(ask, load.check_loads))
    return replace(ask(load), check_loads=checks, stand_ins=tuple(planned.values()))


def _name_apart(logs: Sequence[str]) -> list[str]:
    """Return a name for each of some logs, after its file."""
    files = (OTHER_LETTERS.sub("-", Path(each).name.removesuffix(".gz")).lstrip("._-") for each in logs)
    names = [(each or "log")[:MOST_NAME_LETTERS] for each in files]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{count + 1}" if count else name for name, count in zip(names, before, strict=True)]


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
