"""Write an HAProxy configuration: the packaged one of Debian 12, with the settings of a configuration in it.

What is fixed is what /etc/haproxy/haproxy.cfg (haproxy 2.6.12-1+deb12u4) has, without TLS, error pages and
the other user and root directory, which a sandbox stands for. Its log goes to a file in place of syslog.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.errors import ConfigRejected, UsageError
from tuner.kit.values import require_known, require_whole
from tuner.ports import Config, Scalar, Site

CONFIG_FILE = "haproxy.cfg"
SOCKET = "admin.sock"
NOBODY = "127.0.0.1:8081"
"""Stands for the server behind where there is none: in an export."""
GLOBAL, DEFAULTS, FRONTEND, BIND, SERVER = "global", "defaults", "frontend", "bind", "server"
"""Where a setting stands: a section, or words of a line."""
"""The program reads numbers with atol() into an int, and says nothing of what does not fit."""

LOGGED = "log stdout format raw local0"
HTTP_LOG = "    option httplog\n"

_SITE = """\
global
    stats socket {socket} mode 600 level operator
    stats timeout 30s
{sections[global]}
defaults
    log global
    mode http
{format}\
    option dontlognull
    timeout connect 5000
    timeout client 50000
    timeout server 50000
{sections[defaults]}
frontend web
    bind :{port}{words[bind]}
{sections[frontend]}\
    default_backend behind

backend behind
    server behind {address}{words[server]}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberLine:
    """A whole number behind the name of its directive."""

    place: str
    directive: str
    least: int = 0
    unit: str = ""
    by_itself: Scalar | None = None
    """Value that stands for what the program finds by itself: no line is written for it."""

    def write(self, name: str, value: Scalar) -> str:
        if self.by_itself is not None and value == self.by_itself:
            return ""
        return f"{self.directive} {require_whole('haproxy', name, value, least=self.least)}{self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceLine:
    """One of a few values, each with its line."""

    place: str
    lines: Mapping[Scalar, str]

    def write(self, name: str, value: Scalar) -> str:
        known = {(type(each), each): line for each, line in self.lines.items()}
        if (type(value), value) not in known:
            told = ", ".join(map(str, self.lines))
            raise ConfigRejected(f"haproxy: {name}: {str(value)[:80]!r} is none of {told}.")
        return known[type(value), value]


def _switch(place: str, *, on: str = "", off: str = "") -> ChoiceLine:
    return ChoiceLine(place=place, lines={True: on, False: off})


def _words(place: str, directive: str, *words: str) -> ChoiceLine:
    return ChoiceLine(place=place, lines={word: f"{directive} {word}" for word in words})


SETTINGS: Mapping[str, NumberLine | ChoiceLine] = {
    "nbthread": NumberLine(place=GLOBAL, directive="nbthread", least=1, by_itself="auto"),
    "maxconn": NumberLine(place=GLOBAL, directive="maxconn", least=1, by_itself="auto"),
    "maxpipes": NumberLine(place=GLOBAL, directive="maxpipes", by_itself=0),
    "tune.bufsize": NumberLine(place=GLOBAL, directive="tune.bufsize", least=1024),
    "tune.maxaccept": NumberLine(place=GLOBAL, directive="tune.maxaccept", least=-1),
    "tune.maxpollevents": NumberLine(place=GLOBAL, directive="tune.maxpollevents", least=1),
    "tune.runqueue-depth": NumberLine(
        place=GLOBAL, directive="tune.runqueue-depth", least=1, by_itself="auto"
    ),
    "tune.recv_enough": NumberLine(place=GLOBAL, directive="tune.recv_enough"),
    "tune.rcvbuf.client": NumberLine(place=GLOBAL, directive="tune.rcvbuf.client"),
    "tune.rcvbuf.server": NumberLine(place=GLOBAL, directive="tune.rcvbuf.server"),
    "tune.sndbuf.client": NumberLine(place=GLOBAL, directive="tune.sndbuf.client"),
    "tune.sndbuf.server": NumberLine(place=GLOBAL, directive="tune.sndbuf.server"),
    "tune.idle-pool.shared": _switch(GLOBAL, on="tune.idle-pool.shared on", off="tune.idle-pool.shared off"),
    "tune.listener.multi-queue": _switch(
        GLOBAL, on="tune.listener.multi-queue on", off="tune.listener.multi-queue off"
    ),
    "tune.sched.low-latency": _switch(
        GLOBAL, on="tune.sched.low-latency on", off="tune.sched.low-latency off"
    ),
    "busy-polling": _switch(GLOBAL, on="busy-polling"),
    "log": ChoiceLine(place=GLOBAL, lines={"on": LOGGED, "off": ""}),
    "option.dontlog-normal": _switch(DEFAULTS, on="option dontlog-normal"),
    "option.splice-auto": _switch(DEFAULTS, on="option splice-auto"),
    "option.tcp-smart-accept": _switch(
        DEFAULTS, on="option tcp-smart-accept", off="no option tcp-smart-accept"
    ),
    "option.tcp-smart-connect": _switch(DEFAULTS, on="option tcp-smart-connect"),
    "http-reuse": _words(DEFAULTS, "http-reuse", "never", "safe", "aggressive", "always"),
    "balance": _words(DEFAULTS, "balance", "roundrobin", "static-rr", "leastconn", "random"),
    "frontend.maxconn": NumberLine(place=FRONTEND, directive="maxconn"),
    "bind.shards": ChoiceLine(place=BIND, lines={"one": "", "by-thread": "shards by-thread"}),
    "server.maxconn": NumberLine(place=SERVER, directive="maxconn"),
    "server.pool-max-conn": NumberLine(place=SERVER, directive="pool-max-conn", least=-1),
    "server.pool-low-conn": NumberLine(place=SERVER, directive="pool-low-conn"),
    "server.pool-purge-delay": NumberLine(place=SERVER, directive="pool-purge-delay", unit="s"),
}  # fmt: skip


def write_configuration(config: Config, site: Site) -> str:
    """Write the whole configuration file.

    Raises:
        ConfigRejected: a setting is not one that tuner knows, or a value is none of its directive's.
        UsageError: a path would be read as syntax.
    """
    written: dict[str, list[str]] = {place: [] for place in (GLOBAL, DEFAULTS, FRONTEND, BIND, SERVER)}
    for name, value in {"log": "on", **config}.items():
        require_known("haproxy", name, SETTINGS)
        written[SETTINGS[name].place].append(SETTINGS[name].write(name, value))
    return _SITE.format(
        socket=_path(site),
        # Without a place for the log, its format would be refused.
        format=HTTP_LOG if LOGGED in written[GLOBAL] else "",
        port=site.port,
        address=site.backend.address.replace("unix:", "unix@") if site.backend else NOBODY,
        sections={place: _join("    {}\n", lines) for place, lines in written.items()},
        words={place: _join(" {}", lines) for place, lines in written.items()},
    )


def _join(form: str, lines: list[str]) -> str:
    return "".join(form.format(line) for line in lines if line)


def _path(site: Site) -> str:
    path = str(site.directory / SOCKET)
    if bad := [character for character in path if character in " \t\n\"'$\\#"]:
        raise UsageError(
            f"haproxy: the path {path!r} contains {bad[0]!r}. Use a folder without this character."
        )
    return path
