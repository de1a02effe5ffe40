"""Where an SSH host is: `ssh://[user@]host[:port]`, read strictly: it may come from anybody's file."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from tuner.errors import UsageError

_URL = re.compile(r"ssh://(?:(?P<user>[^@]*)@)?(?P<host>\[[^\]]*\]|[^:@\[\]/]*)(?::(?P<port>[^:]*))?/?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\$?")
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LAST_PORT = 65535
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host's name, or its alias in ssh_config; what is None is taken from there."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"ssh://{user}{host}{port}"


def read_address(url: str) -> Address:
    """Read an address. Raises UsageError for whatever could mean more than a name, a host and a port."""
    found = _URL.fullmatch(url)
    if found is None:
        raise _refused(url, "the address has another form")
    user, host, port = found["user"], found["host"], found["port"]
    if user is not None and not _USER.fullmatch(user):
        reason = "an address cannot contain a password" if ":" in user else f"{user!r} is no user name"
        raise _refused(url if ":" not in user else "ssh://…", reason)
    if port is not None and (not _PORT.fullmatch(port) or int(port) > _LAST_PORT):
        raise _refused(url, f"{port!r} is no port between 1 and {_LAST_PORT}")
    return Address(host=_read_host(url, host), user=user, port=None if port is None else int(port))


def _read_host(url: str, host: str) -> str:
    if not host.startswith("["):
        if not _HOST.fullmatch(host):
            raise _refused(url, f"{host!r} is no host name")
        return host
    try:
        address = IPv6Address(host[1:-1])
    except AddressValueError as error:
        raise _refused(url, f"{host!r} is no IPv6 address") from error
    if address.scope_id is not None:
        raise _refused(url, f"{host!r} names an interface")
    return str(address)


def _refused(url: str, reason: str) -> UsageError:
    shown = url if len(url) <= _SHOWN_CHARACTERS else url[:_SHOWN_CHARACTERS] + "…"
    return UsageError(f"host: {shown!r} is refused: {reason}. Write ssh://user@host:port.")
