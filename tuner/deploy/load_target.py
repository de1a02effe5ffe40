"""Checks that load reaches the study's target and nothing else."""

import ipaddress
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import RestoreFailed, TargetError
from tuner.hosts.url import Address, Url
from tuner.interrupts import uninterrupted
from tuner.ports import ABSENT, Command, Completed, FileState, Host
from tuner.restore.journal import Journal, find_state_directory, open_journal

TOKEN_MODE = 0o644
TOKENS = "tokens"
"""Directory of their journal in the state directory."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NETWORK_FILES = ("/proc/net/fib_trie", "/proc/net/if_inet6", "/proc/sys/kernel/random/boot_id")
ASK_NETWORK = (
    *(Command(argv=("cat", "--", path), may_fail=True) for path in NETWORK_FILES),
    Command(argv=("readlink", "--", "/proc/self/ns/net"), may_fail=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkView:
    """The addresses of a host in one of its network namespaces."""

    addresses: tuple[Network, ...]
    """Local addresses: single ones, 127.0.0.0/8, and those of local routes."""
    identity: tuple[str, str]
    """Boot and network namespace: equal for two names of the same place."""

    def has(self, address: Address) -> bool:
        return any(address.version == each.version and address in each for each in self.addresses)


def check_load_target(
    url: Url,
    target: Host,
    sources: Mapping[str, Host],
    *,
    token_directory: PurePosixPath | None = None,
) -> str:
    """Check that load from all sources arrives at the target. Returns one line on how that is known.

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
        raise TargetError(
            f"load.path: tuner sends no load to {url.origin}: seen from {name}, {doubt}. Write the target's "
            "own address. If the target is behind a load balancer or NAT, set `load.token_directory:` to its "
            "document root."
        )
    with _token(target, token_directory) as (file_name, content):
        for name in doubts:
            _expect_token(url, name, sources[name], file_name, content)
    return f"{url.origin} serves the test file that tuner put into {token_directory} on {target.name}"


def read_network(host: Host) -> NetworkView:
    """Read which addresses a host has. Raises TargetError when that cannot be told."""
    return _network(host.name, host.run_all(ASK_NETWORK))


def _network(name: str, done: tuple[Completed, ...]) -> NetworkView:
    texts = [each.stdout.decode(errors="replace") for each in done]
    if len(texts) != len(ASK_NETWORK) or "LOCAL" not in texts[0]:
        raise TargetError(
            f"{name}: /proc/net/fib_trie does not list the addresses of the host. tuner needs Linux with "
            "/proc."
        )
    try:
        addresses = (*_local_networks(texts[0]), *_interface_addresses(texts[1]))
    except ValueError as error:
        raise TargetError(
            f"{name}: tuner cannot read the addresses in /proc/net: {error}. Check that directory."
        ) from error
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


def resolve(source: Host, name: str) -> tuple[Address, ...]:
    """Return the addresses that a host knows for a name, in the order in which they are tried."""
    try:
        return tuple(_resolved(source.run_all((_ask_addresses(name),))[0]))
    except ValueError as error:
        raise _unreadable(source, name, error) from error


def _ask_addresses(name: str) -> Command:
    return Command(argv=("getent", "ahosts", name), may_fail=True)


def _unreadable(source: Host, name: str, error: ValueError) -> TargetError:
    return TargetError(
        f"{source.name}: tuner cannot read the output of `getent ahosts {name}`: {error}. Run this command "
        "on that host."
    )


def _doubt(url: Url, target: NetworkView, source: Host) -> str | None:
    """Return why load from one host may arrive elsewhere, or None when it arrives at the target."""
    asks = () if url.address else (_ask_addresses(url.host),)
    done = source.run_all((*asks, *ASK_NETWORK))
    try:
        addresses = [url.address] if url.address else _resolved(done[0])
    except ValueError as error:
        raise _unreadable(source, url.host, error) from error
    here = _network(source.name, done[len(asks) :])
    if not addresses:
        return f"the name {url.host} cannot be resolved"
    for address in addresses:
        if not target.has(address):
            return f"the URL leads to {address}, which is no address of the target"
        if here.has(address) and here.identity != target.identity:
            return f"the URL leads to {address}, which is an address of the load host itself"
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
                _remove_recorded(target, tokens)


def remove_tokens(target: Host) -> tuple[PurePosixPath, ...]:
    """Remove the tokens that killed runs and checks left in a document root. Returns their paths.

    The target is asked only when a token is recorded.

    Raises:
        RestoreFailed: a file cannot be removed.
        TargetError: the target cannot be reached, or another tuner is at work on it from here.
    """
    with _open_tokens() as tokens:
        return _remove_recorded(target, tokens)


def _remove_recorded(target: Host, tokens: Journal) -> tuple[PurePosixPath, ...]:
    if not tokens.path(target.name).exists():
        return ()
    tokens.claim(target.name)
    removed: list[PurePosixPath] = []
    for path in (each.path for each in tokens.originals(target.name)):
        try:
            if target.read(path) != ABSENT:
                target.write(path, ABSENT)
                removed.append(path)
        except TargetError as error:
            told = f"{path}, a test file of tuner, cannot be removed: {error}"
            raise RestoreFailed(f"{target.name}: {told} Remove the cause, then run: tuner restore") from error
    tokens.discard(target.name)
    return tuple(removed)


def _open_tokens() -> Journal:
    """Open a journal of its own, which no run holds and the target's keeper does not know."""
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
    raise TargetError(
        f"load.path: tuner sends no load to {url.origin}: requested from {name}, this site does not serve "
        "the test file that tuner put into `load.token_directory:` on the target. Write the document root of "
        "exactly this site."
    )
