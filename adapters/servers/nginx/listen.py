"""The sockets of an installed nginx, and the options that its `listen` directives give them.

A socket's options may stand in one `listen` of its address only (ngx_http_add_addresses: "duplicate listen
options"). All sockets of the tested port are given the same.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuner.adapters.servers.nginx.syntax import Directive
from tuner.adapters.servers.nginx.values import FLAG, Count, Size
from tuner.ports import Config, Scalar

PORT = 80
NO_HTTP = frozenset({"ssl", "quic", "proxy_protocol"})
WILDCARDS = frozenset({"*", "0.0.0.0", "[::]"})  # noqa: S104 - names that are read, not bound
# Options that ngx_http_core_listen takes for those of the socket itself.
_SOCKET_OPTION = re.compile(
    r"(?:setfib|fastopen|backlog|rcvbuf|sndbuf|accept_filter|ipv6only|so_keepalive)=.*|deferred|bind|reuseport"
)
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]*\]|[^:]*):)?(?P<port>\d+)")

DEFAULTS: Mapping[str, Scalar] = {
    "listen_backlog": 511, "listen_reuseport": False, "listen_deferred": False, "listen_sndbuf": 0,
}  # fmt: skip

OPTIONS = ("listen_backlog", "listen_sndbuf", "listen_deferred", "listen_reuseport")
"""In the order in which new options are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One `listen` of one server."""

    server: Directive
    directive: Directive
    host: str
    port: int

    @property
    def has_options(self) -> bool:
        return any(_SOCKET_OPTION.fullmatch(word) for word in self.directive.arguments[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """What is known of the server that is tested: the default one of the plain HTTP port."""

    server: Directive
    port: int
    carriers: tuple[Directive, ...]
    """For each of the port's sockets the `listen` that has its options, or is to have them; may be none."""


def find_listening(http: Directive) -> Listening | None:
    """Find the default server of the plain HTTP port, 80 if there is such; None when all is TLS or UNIX."""
    servers = http.inside("server")
    listeners = [found for server in servers for found in _read_listeners(server)]
    plain = [each for each in listeners if not NO_HTTP & set(each.directive.arguments)]
    # Without a `listen` a server listens on port 80 (ngx_http_core_server); there is no word to change.
    silent = [server for server in servers if not server.inside("listen")]
    if not plain:
        return Listening(server=silent[0], port=PORT, carriers=()) if silent else None
    chosen = min(
        plain, key=lambda each: (each.port != PORT, "default_server" not in each.directive.arguments)
    )
    carriers = () if silent else _find_carriers([each for each in listeners if each.port == chosen.port])
    return Listening(server=chosen.server, port=chosen.port, carriers=carriers)


def read_options(carriers: Sequence[Directive]) -> dict[str, Scalar]:
    """Give those options that can be told and are the same for all sockets."""
    if not carriers:
        return {}
    each = [_read_options(carrier.arguments[1:]) for carrier in carriers]
    return {
        name: each[0][name]
        for name in DEFAULTS
        if all(found.get(name) == each[0].get(name) for found in each) and name in each[0]
    }


def write_options(words: Sequence[str], changed: Config) -> list[str]:
    """Give the arguments of a `listen` with these options changed; the others stay where they are."""
    written = {name.removeprefix("listen_"): _write_option(name, value) for name, value in changed.items()}
    kept: list[str] = []
    for word in words:
        key = word.partition("=")[0]
        option = written.pop(key) if key in written else word
        kept += [option] if option else []
    return [*kept, *(option for option in written.values() if option)]


def _read_listeners(server: Directive) -> list[Listener]:
    found: list[Listener] = []
    for directive in server.inside("listen"):
        address = directive.arguments[0] if directive.arguments else ""
        if address.startswith("unix:"):
            continue
        parts = _ADDRESS.fullmatch(address)
        host, port = (parts["host"] or "*", int(parts["port"])) if parts else (address, PORT)
        found.append(Listener(server=server, directive=directive, host=host, port=port))
    return found


def _find_carriers(listeners: Sequence[Listener]) -> tuple[Directive, ...]:
    """Pick one `listen` for each socket.

    An address without options of its own has no socket beside the wildcard's; one with options has, which
    is left to its owner, and so are then all.
    """
    bound = [each for each in listeners if each.host in WILDCARDS] or list(listeners)
    if any(each.has_options for each in listeners if each not in bound):
        return ()
    carriers: dict[str, Directive] = {}
    for each in sorted(bound, key=lambda each: not each.has_options):
        carriers.setdefault("*" if each.host == "0.0.0.0" else each.host, each.directive)  # noqa: S104
    return tuple(carriers.values())


def _read_options(words: Sequence[str]) -> dict[str, Scalar]:
    options = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    found: dict[str, Scalar | None] = {
        "listen_backlog": Count().read(options.get("backlog", str(DEFAULTS["listen_backlog"]))),
        "listen_reuseport": "reuseport" in options,
        "listen_deferred": "deferred" in options,
        "listen_sndbuf": Size(suffix="k").read(options.get("sndbuf", "0")),
    }
    return {name: value for name, value in found.items() if value is not None}


def _write_option(name: str, value: Scalar) -> str:
    """Give the word of an option; empty when it is not to be given."""
    if name == "listen_backlog":
        return f"backlog={Count(least=1).write(name, value)}"
    if name == "listen_sndbuf":
        size = Size(suffix="k").write(name, value)
        return "" if size == "0k" else f"sndbuf={size}"
    return name.removeprefix("listen_") if FLAG.write(name, value) == "on" else ""
