"""One SSH connection: opened when it is needed, opened again when it broke, with its errors in tuner's words.

Keys, agent, aliases, jump hosts and proxy commands are what ssh_config(5) says, as fabric reads it.
Only known host keys are accepted, those of jump hosts too; fabric alone would accept any.
"""

import contextlib
import inspect
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fabric
import invoke.exceptions
import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.hostkeys import InvalidHostKey
from paramiko.pkey import UnknownKeyType
from paramiko.ssh_exception import NoValidConnectionsError

from tuner.adapters.hosts.ssh.address import Address
from tuner.adapters.hosts.ssh.known_hosts import GLOBAL_FILES, USER_FILES, KnownHosts, read_known_hosts
from tuner.adapters.hosts.ssh.transport import BoundedTransport
from tuner.errors import TargetError, Unreachable

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 15
KEEPALIVE_S = 10
UNANSWERED_MS = 20_000
"""tcp(7), TCP_USER_TIMEOUT: when nothing was acknowledged for so long, the connection is given up."""
FOREIGN = (
    paramiko.SSHException,
    # They have no class of their own in common.
    *(
        each
        for _, each in inspect.getmembers(invoke.exceptions, inspect.isclass)
        if issubclass(each, Exception)
    ),
    UnknownKeyType,
    InvalidHostKey,
    UnsupportedAlgorithm,
    OSError,
    EOFError,
    ValueError,
)
"""What fabric, paramiko, invoke and sockets raise: keys that cannot be read are ValueErrors."""

# What went wrong is in our errors; the libraries would print it once more, with a traceback.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class RefuseUnknownKeys(paramiko.MissingHostKeyPolicy):  # type: ignore[misc] # paramiko has no types
    """Says which key it was, and how to accept it, unless it was revoked."""

    def __init__(self, where: str, known_hosts: str, known: KnownHosts) -> None:
        self._where = where
        self._known_hosts = known_hosts
        self._known = known

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Refuse it."""
        if said := self._known.revoked.get(key.asbytes()):
            raise TargetError(
                f"{self._where}: THE HOST KEY IS REVOKED ({said}): {key.get_name()} {key.fingerprint} of "
                f"{hostname}. Somebody else may have this key. Give the host a new key."
            )
        scan = f"ssh-keyscan {_scan_target(hostname)} >> {self._known_hosts}"
        raise TargetError(
            f"{self._where}: the key of this host is not known: {key.get_name()} {key.fingerprint} of "
            f"{hostname}. Compare this fingerprint with the host's own (run on the host: ssh-keygen -lf "
            f"/etc/ssh/ssh_host_{_kind(key)}_key.pub). If both are the same, accept the key with: {scan}"
        )


class Connection:
    """The way to one host, shared by all threads."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._open: fabric.Connection | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it is open and has not been found broken."""
        return self._open is not None and self._open.is_connected

    def open_channel(self, command: str) -> paramiko.Channel:
        """Run a command of the remote user's login shell; opens the connection when there is none.

        Raises Unreachable when the host cannot be reached or does not let us in, TargetError when its key is
        not the one that is known.
        """
        with self._lock:
            if self._open is None or not self._open.is_connected:
                self._close()
                self._open = self._connect()
                LOG.info("%s: connected", self._address)
            transport = self._open.transport
        with translated(str(self._address), "no command could be run"):
            channel = transport.open_session(timeout=CONNECT_TIMEOUT_S)
            channel.exec_command(command)
        return channel

    def close(self) -> None:
        """Close it; what runs over it ends."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            for hop in (self._open, *_gateways(self._open)):
                _close(hop)
            self._open = None

    def _connect(self) -> fabric.Connection:
        where = str(self._address)
        with translated(where, "the host cannot be reached"):
            made = fabric.Connection(
                self._address.host,
                user=self._address.user,
                port=self._address.port,
                # Of fabric's own files nothing is read: only ssh_config, which ssh reads, too.
                config=_read_ssh_config(),
            )
        hops = (*_gateways(made), made)
        for hop in hops:
            _make_strict(hop, where)
        try:
            with translated(where, "the host cannot be reached"):
                made.open()
        except BaseException:
            for hop in reversed(hops):
                _close(hop)
            raise
        for hop in hops:
            _keep_alive(hop.transport)
        return made


@contextlib.contextmanager
def translated(where: str, what: str) -> Iterator[None]:
    """Raise Unreachable, or TargetError for another key, with where and what went wrong."""
    try:
        yield
    except paramiko.BadHostKeyException as error:
        raise TargetError(_changed_key(where, error)) from error
    except paramiko.AuthenticationException as error:
        # As sshd does to whoever is not root while its host goes down and comes up (pam_nologin(8)).
        raise Unreachable(_not_let_in(where, error)) from error
    except socket.gaierror as error:
        raise Unreachable(
            f"{where}: no host has this name ({error.strerror}). Correct the name, or add the host to "
            "ssh_config."
        ) from error
    except FOREIGN as error:
        reason = _reason(error)
        raise Unreachable(f"{where}: {what}: {reason}. Check that `{_login(where)}` works.") from error


def _read_ssh_config() -> fabric.Config:
    config = fabric.Config(lazy=True)
    config.load_ssh_config()
    return config


def _make_strict(hop: fabric.Connection, where: str) -> None:
    """Accept only known host keys, offer only keys that exist, and bound every wait."""
    own = hop.ssh_config.get("userknownhostsfile", "").split() or USER_FILES
    shared = hop.ssh_config.get("globalknownhostsfile", "").split() or GLOBAL_FILES
    known = read_known_hosts([*own, *shared], hop.ssh_config.get("revokedhostkeys"), where=where)
    known.add_to(hop.client.get_host_keys())
    hop.client.set_missing_host_key_policy(RefuseUnknownKeys(where, own[0], known))
    # ssh passes over an IdentityFile that is not there (ssh_config(5)).
    keys = [str(Path(key).expanduser()) for key in hop.connect_kwargs.get("key_filename", [])]
    hop.connect_timeout = hop.connect_timeout or CONNECT_TIMEOUT_S
    hop.connect_kwargs = {
        "key_filename": [key for key in keys if Path(key).is_file()],
        "banner_timeout": CONNECT_TIMEOUT_S,
        "auth_timeout": CONNECT_TIMEOUT_S,
        "channel_timeout": CONNECT_TIMEOUT_S,
        # An answer that fits into ten packets is one round trip, even when it was idle (RFC 6928).
        "compress": True,
        "transport_factory": BoundedTransport,
        "look_for_keys": not keys,
        "allow_agent": hop.ssh_config.get("identitiesonly", "no") != "yes",
    }


def _gateways(connection: fabric.Connection) -> tuple[fabric.Connection, ...]:
    """List the jump hosts of a connection, the first to be reached first."""
    found: list[fabric.Connection] = []
    hop: Any = connection.gateway
    while isinstance(hop, fabric.Connection):
        found.insert(0, hop)
        hop = hop.gateway
    return tuple(found)


def _keep_alive(transport: paramiko.Transport) -> None:
    """Notice within half a minute that nobody is there; do not hold back small packets."""
    transport.set_keepalive(KEEPALIVE_S)
    if isinstance(transport.sock, socket.socket):
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)


def _close(hop: fabric.Connection) -> None:
    transport = hop.client.get_transport()
    with contextlib.suppress(*FOREIGN):
        hop.client.close()
    if transport is not None and isinstance(transport.sock, paramiko.ProxyCommand):
        # It was told to end; nobody else waits for it and closes its pipes, once they are not read any more.
        transport.join(CONNECT_TIMEOUT_S)
        with transport.sock.process:
            pass


def _changed_key(where: str, error: paramiko.BadHostKeyException) -> str:
    return (
        f"{where}: THE HOST KEY HAS CHANGED: {error.key.get_name()} {error.key.fingerprint} was offered, "
        f"{error.expected_key.get_name()} {error.expected_key.fingerprint} is known. Somebody may intercept "
        "the connection. Only if you know the reason of the change, remove the old key: ssh-keygen -R "
        f"{error.hostname}"
    )


def _not_let_in(where: str, error: paramiko.AuthenticationException) -> str:
    if isinstance(error, paramiko.PasswordRequiredException):
        return f"{where}: the private key has a passphrase. Add the key to the agent: ssh-add"
    return (
        f"{where}: the host refused the login: {error}. tuner uses only keys, from ssh_config's "
        f"IdentityFile, ~/.ssh and the agent; `{_login(where)}` must work without a question."
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, NoValidConnectionsError):
        # One error for each address of the host.
        return ", ".join(dict.fromkeys(_reason(each) for each in error.errors.values()))
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _login(where: str) -> str:
    return f"ssh -o BatchMode=yes {where} true"


def _scan_target(hostname: str) -> str:
    """Return a host as ssh-keyscan takes it; known_hosts has [host]:port where the port is not 22."""
    if not hostname.startswith("["):
        return hostname
    host, _, port = hostname[1:].partition("]:")
    return f"-p {port} {host}"


def _kind(key: paramiko.PKey) -> str:
    """Return the kind of a key as sshd's files do: ed25519, rsa, ecdsa."""
    return str(key.get_name()).removeprefix("ssh-").split("-")[0]
