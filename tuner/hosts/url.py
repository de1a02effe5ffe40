"""URLs that every load generator understands in the same way."""

import ipaddress
import re
from dataclasses import dataclass

from tuner.errors import UsageError

MOST_URL_LETTERS = 2000
MOST_SHOWN = 100
DEFAULT_PORTS = {"http": 80, "https": 443}
REST = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?")
"""Path and query (RFC 3986): all that goes into a request line as it is."""
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[^\]]*\]|[^/?#\[\]:]*)(?::(?P<port>[0-9]{1,5}))?(?=[/?#]|$)"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """What the load requests, taken apart."""

    text: str
    scheme: str
    host: str
    """A name, or an address without brackets."""
    port: int
    rest: str
    """Path and query, beginning with /."""

    @property
    def origin(self) -> str:
        """Return what comes before the path."""
        return self.text.removesuffix(self.rest)

    @property
    def authority(self) -> str:
        """Return host and port as a client names them in its header (RFC 9110, section 7.2)."""
        return self.origin.partition("://")[2]

    @property
    def address(self) -> Address | None:
        """Return the address, unless the host is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def parse_url(text: str, *, where: str = "load.path") -> Url:
    """Parse a URL that every load generator understands in the same way.

    What some programs read otherwise than others (users, zones, numbers for addresses, letters beyond ASCII)
    is refused: then nobody can say where the load goes.

    Raises:
        UsageError: what is wrong, and what to write instead.
    """
    try:
        return _parse_url(text)
    except ValueError as error:
        raise UsageError(f"{where}: {text[:MOST_SHOWN]!r} cannot be requested: {error}.") from None


def _parse_url(text: str) -> Url:
    if len(text) > MOST_URL_LETTERS:
        raise ValueError(f"the URL is longer than {MOST_URL_LETTERS} characters. Use a shorter one")
    if not text.isascii() or any(letter <= " " or letter in "\x7f\\" for letter in text):
        raise ValueError(
            "the URL contains a forbidden character. Write %XX in a path, and a host's name in ASCII (xn--…)"
        )
    if "@" in re.split(r"[/?#]", text.partition("://")[2], maxsplit=1)[0]:
        raise ValueError("the URL contains a user name. Leave out the part before the @")
    found = ORIGIN.match(text)
    if found is None:
        raise ValueError("the text is no URL of a web server. Write http://host:port/path")
    rest = text[found.end() :]
    if not REST.fullmatch(rest) or re.search(r"%(?:[01][0-9A-Fa-f]|7[Ff])", rest):
        raise ValueError(
            f"{rest[:40]!r} is no path. Begin with /, without # and with %XX for special characters"
        )
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    if not 1 <= port <= 65_535:  # noqa: PLR2004 - 16 bits
        raise ValueError(f"the port {port} does not exist. Give 1 to 65535")
    whole = text if rest else f"{text}/"
    return Url(
        text=whole, scheme=found["scheme"], host=_parse_host(found["host"]), port=port, rest=rest or "/"
    )


def _parse_host(host: str) -> str:
    """Read a name, a whole IPv4 address, or an IPv6 address in brackets. Raises ValueError."""
    if host.startswith("["):
        return str(_usable(_parse_six(host[1:-1])))
    labels = host.removesuffix(".").split(".")
    if labels[-1].isdigit() or re.fullmatch(r"0[xX][0-9a-fA-F]*", labels[-1]):
        # Resolvers take `2130706433` and `0x7f.1` for addresses (inet_aton(3)), and so do some generators.
        try:
            return str(_usable(ipaddress.IPv4Address(host)))
        except ipaddress.AddressValueError:
            raise ValueError(
                f"{host!r} is not a complete address. Write four numbers, like 192.0.2.7"
            ) from None
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):  # noqa: PLR2004 - RFC 1035
        raise ValueError(f"{host[:60]!r} is no name of a host. Use letters, digits, dots and hyphens")
    return host


def _parse_six(host: str) -> ipaddress.IPv6Address:
    if "%" in host:
        raise ValueError(f"{host!r} contains a zone. Use an address that is valid on every network interface")
    try:
        return ipaddress.IPv6Address(host)
    except ipaddress.AddressValueError:
        raise ValueError(f"[{host}] is no IPv6 address. Write an address like [2001:db8::7]") from None


def _usable(address: Address) -> Address:
    if address.is_unspecified or address.is_multicast or address.is_link_local:
        raise ValueError(f"{address} is not the address of one host. Write the address of the target")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"{address} is another form of {address.ipv4_mapped}. Write that address")
    return address
