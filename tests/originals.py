"""Puts back what a journal holds, as whoever reads it may."""

from tuner.ports import Host
from tuner.restore.journal import Journal


def put_back(journal: Journal, host: Host) -> None:
    """Write the originals of a host, the last change first."""
    for original in reversed(journal.originals(host.name)):
        if host.read(original.path) != original.state:
            host.write(original.path, original.state)
