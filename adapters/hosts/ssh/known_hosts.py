"""Which host keys are known, and which are revoked (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

import base64
import binascii
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.pkey import UnknownKeyType

from tuner.errors import TargetError

USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
"""ssh_config(5), UserKnownHostsFile and GlobalKnownHostsFile."""
REVOKED = "@revoked"
BINARY_LIST = b"SSHKRL\n\0"
"""How a key revocation list begins (OpenSSH, PROTOCOL.krl)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHosts:
    """The host keys of some files; those of authorities are not among them, and vouch for none."""

    entries: Sequence[HostKeyEntry]
    revoked: Mapping[bytes, str]
    """Keys that are trusted nowhere, and where that is said.

    ssh asks for which hosts a key was revoked. Whoever stole it may offer it as any host's.
    """

    def add_to(self, known: paramiko.HostKeys) -> None:
        """Add what is known and not revoked."""
        for entry in self.entries:
            if entry.key.asbytes() not in self.revoked:
                for name in entry.hostnames:
                    known.add(name, entry.key.get_name(), entry.key)


def read_known_hosts(paths: Iterable[str], revoked_keys: str | None, *, where: str) -> KnownHosts:
    """Read host keys. Lines that cannot be read are passed over, as ssh does.

    Args:
        paths: files like known_hosts, whether they are there or not.
        revoked_keys: ssh_config's RevokedHostKeys, a file of keys, one a line.
        where: how errors call the host.

    Raises TargetError when it cannot be told which keys are revoked: then none is trusted.
    """
    entries: list[HostKeyEntry] = []
    revoked: dict[bytes, str] = {}
    for path in paths:
        for number, line in _lines(path):
            marker, _, rest = line.partition(" ")
            if marker == REVOKED:
                revoked |= _key(rest.split()[1:], f"{path}:{number}")
            elif not marker.startswith("@"):
                with contextlib.suppress(paramiko.SSHException, InvalidHostKey, UnknownKeyType, ValueError):
                    entry = HostKeyEntry.from_line(line, number)
                    entries += [] if entry is None else [entry]
    if revoked_keys is not None and revoked_keys.lower() != "none":
        revoked |= _read_revoked_keys(revoked_keys, where)
    return KnownHosts(entries=entries, revoked=revoked)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Read the lines that say something, their fields parted by single spaces."""
    with contextlib.suppress(OSError):
        lines = Path(path).expanduser().read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if (words := line.split()) and not words[0].startswith("#"):
                yield number, " ".join(words)


def _read_revoked_keys(path: str, where: str) -> dict[bytes, str]:
    try:
        is_binary = Path(path).expanduser().read_bytes().startswith(BINARY_LIST)
    except OSError as error:
        raise TargetError(
            f"{where}: RevokedHostKeys {path} cannot be read ({error.strerror}). Correct ssh_config."
        ) from error
    if is_binary:
        raise TargetError(
            f"{where}: RevokedHostKeys {path} is a binary list. Name a text file in ssh_config, with one key "
            "in each line."
        )
    revoked: dict[bytes, str] = {}
    for number, line in _lines(path):
        revoked |= _key(line.split(), f"{path}:{number}")
    return revoked


def _key(words: Sequence[str], said: str) -> dict[bytes, str]:
    """Read a kind of key and a key, whatever is known of that kind."""
    try:
        _, encoded, *_ = words
        return {base64.b64decode(encoded, validate=True): said}
    except (ValueError, binascii.Error):
        return {}
