"""Read back what a running HAProxy has active: from its stats socket, and the sockets it listens on.

management.txt, 9.3. What the socket does not tell (sizes of socket buffers, reuse of connections, options)
is vouched for by `haproxy -c` alone.
"""

import csv
import re
from collections.abc import Mapping

from tuner.adapters.servers.haproxy.config import SOCKET
from tuner.errors import TargetError
from tuner.kit import programs, readback
from tuner.ports import Argv, Config, Host, Scalar, Site

NAMELESS = "unknown"
"""As which HAProxy 2.6 shows the algorithm `random`."""
_QUESTIONS = b"show info;show pools;show stat\n"
_INFO = re.compile(r"^(\w+): (.*)$", re.MULTILINE)
_BUFFERS = re.compile(r"Pool buffer \((\d+) bytes\)")
_STATISTICS = re.compile(r"^# (pxname,.*)\Z", re.MULTILINE | re.DOTALL)


def read_running(host: Host, config: Config, site: Site) -> Config:
    """Return what can be read back of a configuration. Raises TargetError when there is no curl."""
    told = _ask(host, site)
    info, rows = dict(_INFO.findall(told)), _read_statistics(told)
    found: dict[str, Scalar] = {}
    for name, text in (
        ("nbthread", info.get("Nbthread")),
        ("maxconn", info.get("Maxconn")),
        ("maxpipes", info.get("Maxpipes")),
        ("tune.bufsize", _first(_BUFFERS, told)),
        ("frontend.maxconn", _of(rows, "web", "FRONTEND", "slim")),
        ("server.maxconn", _of(rows, "behind", "behind", "slim") or "0"),
        ("server.pool-max-conn", _of(rows, "behind", "behind", "src_ilim") or "-1"),
    ):
        if text is not None and rows:
            found[name] = int(text)
    if info:
        found["busy-polling"] = info.get("BusyPolling") == "1"
        found |= _read_shards(host, site.port, threads=int(info.get("Nbthread", 1)))
    algorithm = _of(rows, "behind", "BACKEND", "algo")
    if algorithm not in {None, NAMELESS}:
        found["balance"] = str(algorithm)
    return {name: found[name] for name, asked in config.items() if name in found and _is_said(name, asked)}


def _read_shards(host: Host, port: int, *, threads: int) -> dict[str, Scalar]:
    """Tell by the listening sockets whether each thread has its own; with one thread that is the same."""
    count = len(readback.read_listening_sockets(host, port))
    return {} if threads == 1 or not count else {"bind.shards": "one" if count == 1 else "by-thread"}


def _is_said(name: str, asked: Scalar) -> bool:
    """Return whether a value says what has to be active; others leave it to the program."""
    return asked != "auto" and (name, asked) not in {("frontend.maxconn", 0), ("maxpipes", 0)}


def socket_command(site: Site) -> Argv:
    """Return the command that passes on to the stats socket what it reads, and prints the answer."""
    return (
        "curl",
        "-sS",
        "--max-time",
        "5",
        "--unix-socket",
        str(site.directory / SOCKET),
        "telnet://haproxy",
    )


def _ask(host: Host, site: Site) -> str:
    try:
        completed = host.run(socket_command(site), timeout_s=programs.COMMAND_TIMEOUT_S, stdin=_QUESTIONS)
    except TargetError as error:
        raise readback.lack_curl(host, "HAProxy", error) from error
    return completed.stdout.decode(errors="replace")


def _read_statistics(told: str) -> list[dict[str, str]]:
    table = _STATISTICS.search(told)
    return list(csv.DictReader(table[1].splitlines())) if table else []


def _of(rows: list[dict[str, str]], proxy: str, server: str, field: str) -> str | None:
    """Return a field of one row; None when it is empty."""
    row: Mapping[str, str] = next(
        (each for each in rows if (each["pxname"], each["svname"]) == (proxy, server)), {}
    )
    return row.get(field) or None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
