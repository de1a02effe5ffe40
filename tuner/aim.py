"""Load goes to the study's target and to nothing else, within bounds."""

import ipaddress
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError, UsageError
from tuner.interrupts import uninterrupted
from tuner.journal import Journal, find_state_directory, open_journal
from tuner.ports import Command, Completed, FileState, Host, Workload

MOST_CONNECTIONS = 20_000
MOST_WINDOW_S = 3600.0
MOST_RATE_RPS = 10_000_000.0
MOST_URL_LETTERS = 2000
MOST_SHOWN = 100
DEFAULT_PORTS = {"http": 80, "https": 443}
REST = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?")
"""Path and query (RFC 3986): all that goes into a request line as it is."""
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[^\]]*\]|[^/?#\[\]:]*)(?::(?P<port>[0-9]{1,5}))?(?=[/?#]|$)"
)
TOKEN_MODE = 0o644
TOKENS = "tokens"
"""Directory of their journal, in that for what must outlive a run."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NETWORK_FILES = ("/proc/net/fib_trie", "/proc/net/if_inet6", "/proc/sys/kernel/random/boot_id")
ASK_NETWORK = (
    *(Command(argv=("cat", "--", path), may_fail=True) for path in NETWORK_FILES),
    Command(argv=("readlink", "--", "/proc/self/ns/net"), may_fail=True),
)


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
        """Give what comes before the path."""
        return self.text.removesuffix(self.rest)

    @property
    def address(self) -> Address | None:
        """Give the address, unless the host is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkView:
    """Which addresses a host has, and which of its networks that was."""

    addresses: tuple[Network, ...]
    """What it takes for itself: single addresses, 127.0.0.0/8, and what a local route adds."""
    identity: tuple[str, str]
    """Boot and network namespace: equal for two names of the same place."""

    def has(self, address: Address) -> bool:
        return any(address.version == each.version and address in each for each in self.addresses)


def refuse_excess(workload: Workload) -> None:
    """Refuse load beyond any bounds, whoever asks for it. Raises UsageError."""
    bounds = (
        ("connections", workload.connections, MOST_CONNECTIONS),
        ("seconds", workload.duration_s, MOST_WINDOW_S),
        ("requests/s", workload.rate_rps or 0.0, MOST_RATE_RPS),
    )
    for what, asked, most in bounds:
        if not 0 <= asked <= most:
            message = f"load: {asked:g} {what} in one window are out of bounds. Ask for {most:g} at the most."
            raise UsageError(message)


def parse_url(text: str, *, where: str = "load.path") -> Url:
    """Take a URL apart that every load generator understands in the same way.

    What some programs read otherwise than others (users, zones, numbers for addresses, letters beyond ASCII)
    is refused: then nobody can say where the load goes.

    Raises:
        UsageError: what is wrong, and what to write instead.
    """
    try:
        return _parse_url(text)
    except ValueError as error:
        message = f"{where}: {text[:MOST_SHOWN]!r} is not requested: {error}."
        raise UsageError(message) from None


def _parse_url(text: str) -> Url:
    if len(text) > MOST_URL_LETTERS:
        raise ValueError(f"it is longer than {MOST_URL_LETTERS} letters. Take a shorter one")
    if not text.isascii() or any(letter <= " " or letter in "\x7f\\" for letter in text):
        raise ValueError(
            "it has a letter that URLs do not have. Write %XX in a path, and a host's name in ASCII (xn--…)"
        )
    if "@" in re.split(r"[/?#]", text.partition("://")[2], maxsplit=1)[0]:
        raise ValueError("it has a user in it. Leave out what stands before the @")
    found = ORIGIN.match(text)
    if found is None:
        raise ValueError("it is no URL of a web server. Write http://host:port/path")
    rest = text[found.end() :]
    if not REST.fullmatch(rest) or re.search(r"%(?:[01][0-9A-Fa-f]|7[Ff])", rest):
        raise ValueError(f"{rest[:40]!r} is no path. Begin with /, without # and with %XX for odd letters")
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    if not 1 <= port <= 65_535:  # noqa: PLR2004 - 16 bits
        raise ValueError(f"there is no port {port}. Give 1 to 65535")
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
            raise ValueError(f"{host!r} is not a whole address. Write four numbers, like 192.0.2.7") from None
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):  # noqa: PLR2004 - RFC 1035
        raise ValueError(f"{host[:60]!r} is no name of a host. Use letters, digits, dots and hyphens")
    return host


def _parse_six(host: str) -> ipaddress.IPv6Address:
    if "%" in host:
        raise ValueError(f"{host!r} names a zone. Use an address that is valid on every network card")
    try:
        return ipaddress.IPv6Address(host)
    except ipaddress.AddressValueError:
        raise ValueError(f"[{host}] is no IPv6 address. Write one like [2001:db8::7]") from None


def _usable(address: Address) -> Address:
    if address.is_unspecified or address.is_multicast or address.is_link_local:
        raise ValueError(f"{address} is not the address of one host. Write the target's own")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"{address} is another way to write {address.ipv4_mapped}. Write that")
    return address


def take_aim(
    url: Url,
    target: Host,
    sources: Mapping[str, Host],
    *,
    token_directory: PurePosixPath | None = None,
) -> str:
    """Make sure that load from all sources arrives at the target; say in one line how that is known.

    The host of the URL must be, for each load host, an address that the target has and the load host has not,
    unless they are the same. Behind a load balancer or NAT the target's address is another one: there a file
    that is put into `token_directory` must be what the URL's origin serves.

    Raises:
        TargetError: it would arrive elsewhere, or that cannot be told.
    """
    remove_tokens(target)
    own = read_network(target)
    doubts = {name: doubt for name, host in sources.items() if (doubt := _doubt(url, own, host))}
    if not doubts:
        return f"{url.origin} is an address of {target.name}"
    if token_directory is None:
        name, doubt = next(iter(doubts.items()))
        message = (
            f"load.path: no load is sent to {url.origin}: seen from {name}, {doubt}. Write the target's own "
            "address, or, behind a load balancer or NAT, set `load.token_directory:` to its document root."
        )
        raise TargetError(message)
    with _token(target, token_directory) as (file_name, content):
        for name in doubts:
            _expect_token(url, name, sources[name], file_name, content)
    return f"{url.origin} serves what was put into {token_directory} on {target.name}"


def read_network(host: Host) -> NetworkView:
    """Read which addresses a host has. Raises TargetError when that cannot be told."""
    return _network(host.name, host.run_all(ASK_NETWORK))


def _network(name: str, done: tuple[Completed, ...]) -> NetworkView:
    texts = [each.stdout.decode(errors="replace") for each in done]
    if len(texts) != len(ASK_NETWORK) or "LOCAL" not in texts[0]:
        message = f"{name}: /proc/net/fib_trie does not tell its addresses. tuner needs Linux with /proc."
        raise TargetError(message)
    try:
        addresses = (*_local_networks(texts[0]), *_interface_addresses(texts[1]))
    except ValueError as error:
        message = f"{name}: what /proc/net tells of its addresses cannot be read: {error}. Look there."
        raise TargetError(message) from error
    return NetworkView(addresses=addresses, identity=(texts[2].strip(), texts[3].strip()))


def _local_networks(trie: str) -> tuple[Network, ...]:
    """Read what the kernel routes to itself: `|-- ADDRESS`, `/LENGTH host LOCAL` (net/ipv4/fib_trie.c)."""
    found: dict[Network, None] = {}
    address = ""
    for line in trie.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = "".join(words[1:2])
        elif words[1:] == ["host", "LOCAL"]:
            found[ipaddress.IPv4Network(f"{address}{words[0]}")] = None
    return tuple(found)


def _interface_addresses(listed: str) -> tuple[Network, ...]:
    """Read the first column of /proc/net/if_inet6: 32 hexadecimal digits."""
    columns = (line.split() for line in listed.splitlines())
    return tuple(ipaddress.IPv6Network(bytes.fromhex(words[0])) for words in columns if words)


def _doubt(url: Url, target: NetworkView, source: Host) -> str | None:
    """Say why load from one host may arrive elsewhere; None when it arrives at the target."""
    asks = () if url.address else (Command(argv=("getent", "ahosts", url.host), may_fail=True),)
    done = source.run_all((*asks, *ASK_NETWORK))
    try:
        addresses = [url.address] if url.address else _resolved(done[0])
    except ValueError as error:
        message = f"{source.name}: what getent tells of {url.host} cannot be read: {error}. Look there."
        raise TargetError(message) from error
    here = _network(source.name, done[len(asks) :])
    if not addresses:
        return f"the name {url.host} cannot be resolved"
    for address in addresses:
        if not target.has(address):
            return f"that is {address}, which the target does not have"
        if here.has(address) and here.identity != target.identity:
            return f"that is {address}, which is the load host's own"
    return None


def _resolved(printed: Completed) -> list[Address]:
    """Read `getent ahosts`: one line for each address and type of socket."""
    words = (line.split() for line in printed.stdout.decode(errors="replace").splitlines())
    texts = dict.fromkeys(each[0].partition("%")[0] for each in words if each)
    addresses = [ipaddress.ip_address(text) for text in texts]
    return [getattr(address, "ipv4_mapped", None) or address for address in addresses]


@contextmanager
def _token(target: Host, directory: PurePosixPath) -> Iterator[tuple[str, bytes]]:
    """Put a file with a secret name and content into the document root; remove it in any case."""
    name, content = f"tuner-{secrets.token_hex(16)}.txt", secrets.token_hex(32).encode()
    path = directory / name
    with _open_tokens() as tokens:
        # On this side's disk before it is on the target: after a crash, whoever comes next removes it.
        tokens.record(target, [path])
        try:
            target.write(path, FileState(content=content, mode=TOKEN_MODE))
            yield name, content
        finally:
            with uninterrupted():
                tokens.restore(target)


def remove_tokens(target: Host) -> tuple[PurePosixPath, ...]:
    """Remove from a document root what a run or a check that was killed has left there. Returns the paths.

    It asks the target only when something is known to be there.

    Raises:
        RestoreFailed: a file cannot be removed.
        TargetError: the target cannot be reached, or another tuner is at work on it from here.
    """
    with _open_tokens() as tokens:
        return tokens.restore(target)


def _open_tokens() -> Journal:
    """Open a journal of its own: no run holds it, and the target's keeper knows nothing of it."""
    return open_journal(find_state_directory() / TOKENS)


def _expect_token(url: Url, name: str, source: Host, file_name: str, content: bytes) -> None:
    asked = f"{url.origin}/{file_name}"
    served = source.run(
        (
            "curl", "--disable", "--silent", "--fail", "--globoff", "--insecure", "--noproxy", "*",
            "--proto", "=http,https", "--max-redirs", "0", "--max-filesize", "1000", "--max-time", "5",
            "--url", asked,
        ),
        timeout_s=10,
    )  # fmt: skip
    if served.returncode == 0 and served.stdout == content:
        return
    message = (
        f"load.path: no load is sent to {url.origin}: asked from {name}, it does not serve the file that was "
        "put into `load.token_directory:` on the target. Write the document root of that very site."
    )
    raise TargetError(message)
