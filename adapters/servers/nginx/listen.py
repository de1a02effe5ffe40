"""The addresses where an installed nginx listens, the servers behind each, and the options of their sockets.

A socket's options may stand in one `listen` of its address only (ngx_http_add_addresses: "duplicate listen
options"). All sockets of the tested port are given the same.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tuner.adapters.servers.nginx.syntax import Directive
from tuner.adapters.servers.nginx.values import FLAG, Count, Size
from tuner.ports import Config, Scalar

PORT = 80
PORT_OF_USERS = 8000
NO_HTTP = frozenset({"ssl", "quic", "proxy_protocol"})
ANY, ANY_SIX = "0.0.0.0", "::"  # noqa: S104 - names that are read, not bound
_ANY_ADDRESS = frozenset({ANY, ANY_SIX})
_LOOPBACK = ("127.0.0.1", "::1")
# Options that ngx_http_core_listen takes for those of the socket itself.
_SOCKET_OPTION = re.compile(
    r"(?:setfib|fastopen|backlog|rcvbuf|sndbuf|accept_filter|ipv6only|so_keepalive)=.*|deferred|bind|reuseport"
)
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]*\]|[^:]*):)?(?P<first>\d+)(?:-(?P<last>\d+))?")

DEFAULTS: Mapping[str, Scalar] = {
    "listen_backlog": 511, "listen_reuseport": False, "listen_deferred": False, "listen_sndbuf": 0,
}  # fmt: skip

OPTIONS = ("listen_backlog", "listen_sndbuf", "listen_deferred", "listen_reuseport")
"""In the order in which new options are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address and port of one server."""

    server: Directive
    directive: Directive | None
    """Its `listen`; None where the server has none."""
    host: str
    """An address without brackets, or a name as it is written."""
    port: int

    @property
    def words(self) -> tuple[str, ...]:
        """Return what follows the address."""
        return () if self.directive is None else self.directive.arguments[1:]

    @property
    def has_options(self) -> bool:
        return any(_SOCKET_OPTION.fullmatch(word) for word in self.words)

    @property
    def is_plain(self) -> bool:
        """Return whether HTTP is spoken there in the clear."""
        is_old_tls = any(each.arguments[:1] == ("on",) for each in self.server.inside("ssl"))
        return not is_old_tls and NO_HTTP.isdisjoint(self.words)


def read_listeners(
    http: Directive, known: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> tuple[Listener, ...]:
    """Return every address and port of every server, in the order of the configuration.

    Args:
        http: the block.
        known: addresses of host names that a `listen` has.
    """
    found = [each for server in http.inside("server") for each in _read_listeners(server, known)]
    said = {each.port for each in found if each.directive is not None}
    # One port of root's and one of users' is only where nobody else has it.
    return tuple(
        each for each in found if each.directive or each.port != PORT_OF_USERS or each.port not in said
    )


def find_host_names(http: Directive) -> tuple[str, ...]:
    """Return the host names that stand in a `listen`; nginx resolves them when it reads its configuration."""
    hosts = dict.fromkeys(each.host for each in read_listeners(http) if each.directive is not None)
    return tuple(host for host in hosts if ":" not in host and any(map(str.isalpha, host)))


def group_of(listeners: Sequence[Listener], address: str, port: int, name: str = "") -> tuple[Listener, ...]:
    """Return the listeners that a connection to an address reaches; none where nothing listens there.

    The address itself comes before a wildcard (ngx_http_init_connection).

    Args:
        listeners: all of them.
        address: where the connection goes; empty when that is not known.
        port: where it goes.
        name: the host as the client calls it.
    """
    there = [each for each in listeners if each.port == port]
    wildcard = ANY_SIX if ":" in address else ANY
    is_name = _plain_address(name) == name and any(map(str.isalpha, name)) and ":" not in name
    for host in (address, name if is_name else "", wildcard):
        if host and (found := tuple(each for each in there if each.host == host)):
            return found
    takes_both = any("ipv6only=off" in each.words for each in there if each.host == ANY_SIX)
    if not address or (wildcard == ANY and takes_both):
        return tuple(each for each in there if each.host == ANY_SIX)
    return ()


def socket_of(listeners: Sequence[Listener], group: Sequence[Listener]) -> tuple[Listener, ...]:
    """Return the listeners of the socket that accepts for an address: a wildcard's, unless it has its own."""
    first = group[0]
    wildcard = ANY_SIX if ":" in first.host else ANY
    shared = tuple(each for each in listeners if (each.host, each.port) == (wildcard, first.port))
    return tuple(group) if any(each.has_options for each in group) or not shared else shared


def default_of(group: Sequence[Listener]) -> Directive:
    """Return the default server of an address: the one that says so, or else the first."""
    return min(group, key=lambda each: {"default_server", "default"}.isdisjoint(each.words)).server


def find_plain(listeners: Sequence[Listener]) -> Listener | None:
    """Return the default listener for plain HTTP, on port 80 if there is one; None where there is none."""
    plain = [each for each in listeners if each.is_plain]
    return min(
        plain,
        key=lambda each: (each.port != PORT, each.directive is None, "default_server" not in each.words),
        default=None,
    )


def find_carriers(listeners: Sequence[Listener]) -> tuple[Directive, ...]:
    """Return for each socket of a port the `listen` that has its options, or is to have them; may be none.

    An address without options of its own has no socket beside the wildcard's; one with options has, which
    is left to its owner, and so are then all.
    """
    bound = [each for each in listeners if each.host in _ANY_ADDRESS]
    if bound and any(each.has_options for each in listeners if each.host not in _ANY_ADDRESS):
        return ()
    carriers: dict[str, Directive] = {}
    for each in sorted(bound or listeners, key=lambda each: not each.has_options):
        if each.directive is None:  # there is no word to change
            return ()
        carriers.setdefault(each.host, each.directive)
    return tuple(carriers.values())


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


def _read_listeners(server: Directive, known: Mapping[str, tuple[str, ...]]) -> Iterator[Listener]:
    given = server.inside("listen")
    if not given:
        # As ngx_http_core_server has it, for root and for other users.
        for port in (PORT, PORT_OF_USERS):
            yield Listener(server=server, directive=None, host=ANY, port=port)
    for directive in given:
        address = directive.arguments[0] if directive.arguments else ""
        if not address.startswith("unix:"):
            for host, port in _read_address(address, known):
                yield Listener(server=server, directive=directive, host=host, port=port)


def _read_address(address: str, known: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    parts = _ADDRESS.fullmatch(address)
    written = (parts["host"] or "*") if parts else address
    first, last = (int(parts["first"]), int(parts["last"] or parts["first"])) if parts else (PORT, PORT)
    hosts = _LOOPBACK if written == "localhost" else known.get(written, (_plain_address(written),))
    for port in range(first, last + 1):
        yield from ((host, port) for host in hosts)


def _plain_address(written: str) -> str:
    """Return an address as Python writes it, the wildcard as its number, and names as they are."""
    try:
        return str(ipaddress.ip_address(written.strip("[]")))
    except ValueError:
        return ANY if written == "*" else written


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
