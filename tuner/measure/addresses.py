"""Spreads many connections over several addresses of a private server, a generator for each.

Local ports are numbered for each destination apart (ip(7), ip_local_port_range), and in a network of its own
all of 127.0.0.0/8 is the server. So ports never run out there, whatever range the server is tuned with.
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from tuner.errors import TargetError
from tuner.hosts.connection_room import DEFAULT_PORTS, MOST_OF_ONE_ADDRESS, read_ports
from tuner.kit.readback import read_listening_sockets
from tuner.measure.sending import Share
from tuner.ports import Host, Workload

FIRST = "127.0.0.1"
EVERYWHERE = ("0.0.0.0:", "*:", "[::]:")
PORTS_PER_CLOSED_CONNECTION = 2
"""Where connections are not kept, as many ports again wait until they may be used."""


def spread(shares: Sequence[Share]) -> tuple[Share, ...]:
    """Divide each share for which one address has too few ports.

    Raises:
        TargetError: the server listens on one address alone.
    """
    return tuple(part for share in shares for part in _spread(share))


def _spread(share: Share) -> tuple[Share, ...]:
    workload, place = share.workload, share.place
    each_takes = 1 if workload.keepalive else PORTS_PER_CLOSED_CONNECTION
    wanted = each_takes * workload.connections
    if not place.has_private_network or wanted <= MOST_OF_ONE_ADDRESS // 2:
        return (share,)
    most = min((read_ports(place.host) or DEFAULT_PORTS) // 2, MOST_OF_ONE_ADDRESS)
    count = -(-wanted // most)
    if count == 1 or urlsplit(workload.url).hostname != FIRST:
        return (share,)
    _require_all_addresses(place.host, workload, most // each_takes)
    return tuple(replace(share, workload=_at(workload, number, count)) for number in range(count))


def _at(workload: Workload, number: int, count: int) -> Workload:
    """Return the part of a workload that one of `count` generators sends, each to an address of its own."""
    each, more = divmod(workload.connections, count)
    connections = each + (number < more)
    rate = workload.rate_rps
    return replace(
        workload,
        url=workload.url.replace(FIRST, f"127.0.0.{number + 1}", 1),
        connections=connections,
        threads=max(1, workload.threads // count),
        rate_rps=None if rate is None else rate * connections / workload.connections,
        directory=workload.directory / f"address-{number + 1}",
    )


def _require_all_addresses(host: Host, workload: Workload, most: int) -> None:
    port = urlsplit(workload.url).port or 80
    found = [each.address for each in read_listening_sockets(host, port)]
    if not any(address.startswith(EVERYWHERE) for address in found):
        raise TargetError(
            f"load: {workload.connections:,} connections need more local ports than one address has, and the "
            f"server listens on {', '.join(found) or 'none'} only. Let the server listen on every address, "
            f"or lower `connections:` to {most:,}."
        )
