"""The server blocks that have a say in a request: by its address, and by the name that it asks for.

As ngx_http_find_virtual_server (src/http/ngx_http_request.c) and the hashes of ngx_http_server_names
(src/http/ngx_http.c) choose them: https://nginx.org/en/docs/http/server_names.html.
"""

from collections.abc import Iterator, Mapping, Sequence

from tuner.adapters.servers.nginx.listen import (
    Listener,
    default_of,
    find_plain,
    group_of,
    socket_of,
)
from tuner.adapters.servers.nginx.patterns import matches_pattern
from tuner.adapters.servers.nginx.settings import Scope
from tuner.adapters.servers.nginx.syntax import Directive
from tuner.kit.sites import write_site
from tuner.ports import SentRequest

NOT_ASKED = frozenset({"quic", "proxy_protocol"})
"""Options of a `listen` where no load generator can ask."""

Servers = Mapping[Scope, Directive]
"""The server block from which the settings of each scope are taken."""


def find_servers(listeners: Sequence[Listener], request: SentRequest) -> tuple[Servers, tuple[Listener, ...]]:
    """Return the server blocks that act on a request, and the listeners of its port.

    A request to an address where nothing listens comes from another server, or through a port that is passed
    on: it is answered by the first address where its name is known, or else by the usual one. Nothing is
    returned where no address speaks HTTP at all.
    """
    group = _find_group(listeners, request)
    if not group:
        return {}, ()
    servers = tuple(dict.fromkeys(each.server for each in group))
    default = default_of(group)
    # What is asked for in the handshake counts as soon as that is over (ngx_http_ssl_servername).
    first = (_choose(servers, request.server_name) if request.server_name else None) or default
    answering = _choose(servers, request.host) or first
    found = {
        Scope.SOCKET: default_of(socket_of(listeners, group)),
        Scope.ADDRESS: default,
        Scope.CONNECTION: first,
        Scope.REQUEST: answering,
    }
    return found, tuple(each for each in listeners if each.port == group[0].port)


def list_sites(listeners: Sequence[Listener]) -> tuple[str, ...]:
    """Return the URL of each server by its first plain name; those without one are left out."""
    found: dict[str, None] = {}
    for each in listeners:
        scheme = "http" if each.is_plain else "https"
        names = [name for given in each.server.inside("server_name") for name in given.arguments]
        sites = [url for name in names for url in write_site(scheme, name, each.port)]
        if NOT_ASKED.isdisjoint(each.words):
            found |= dict.fromkeys(sites[:1])
    return tuple(found)


def _find_group(listeners: Sequence[Listener], request: SentRequest) -> tuple[Listener, ...]:
    for address in request.addresses or ("",):
        if group := group_of(listeners, address, request.port, request.host):
            return group
    for each in listeners:
        if request.host and _choose([each.server], request.host):
            return group_of(listeners, each.host, each.port)
    plain = find_plain(listeners)
    return () if plain is None else group_of(listeners, plain.host, plain.port)


def _choose(servers: Sequence[Directive], host: str) -> Directive | None:
    """Return the server that has a name: exact, `*.name`, `name.*`, then regular expressions in order."""
    # An address of IPv6 is named in brackets.
    name = f"[{host}]" if ":" in host else host.removesuffix(".").lower()
    best: tuple[int, int] = (0, 0)
    chosen: Directive | None = None
    for server, written in _names(servers):
        fit = _fit(written, name)
        if fit > best:
            best, chosen = fit, server
    return chosen


def _names(servers: Sequence[Directive]) -> Iterator[tuple[Directive, str]]:
    """Yield the names in their order, without those that are ignored as conflicting (ngx_hash_add_key)."""
    taken: set[str] = set()
    for server in servers:
        given = server.inside("server_name")
        # Without one its name is the empty one, which a request without Host asks for.
        for name in [each for directive in given for each in directive.arguments] or [""]:
            written = name if name.startswith("~") else name.lower()
            # `.name` is `name` and `*.name` at once; where only the second is taken, nobody has the first.
            held = (written[1:], f"*{written}") if written.startswith(".") else (written,)
            if held[0] in taken:
                continue
            is_free = held[-1] not in taken
            taken |= {*held}
            if is_free:
                yield server, written


def _fit(written: str, name: str) -> tuple[int, int]:
    """Return how well a name of a server fits: its kind, and its length; nothing is (0, 0)."""
    if written.startswith("~"):
        return (1, 0) if matches_pattern(written[1:], name, is_caseless=True) else (0, 0)
    if written == name or (written.startswith(".") and written[1:] == name):
        return (4, 0)
    leading = written.removeprefix("*")
    if written[:1] in {"*", "."} and name.endswith(leading) and len(name) > len(leading):
        return (3, len(leading))
    trailing = written.removesuffix("*")
    if written.endswith(".*") and name.startswith(trailing) and len(name) > len(trailing):
        return (2, len(trailing))
    return (0, 0)
