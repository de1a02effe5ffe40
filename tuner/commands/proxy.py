"""The proxy before the PostgreSQL of a study: very many workers reach it without a connection each."""

import ipaddress
from typing import TYPE_CHECKING

from tuner.errors import TargetError, UsageError
from tuner.study import Study
from tuner.study.databases.storage_url import POSTGRESQL
from tuner.study.open_storage import open_server

if TYPE_CHECKING:
    import grpc


def open_proxy(settings: Study, address: str) -> "grpc.Server":
    """Return a proxy that answers at an address; it ends when it is stopped.

    Raises:
        UsageError: the study is not stored in a PostgreSQL, or the address is none.
        TargetError: the database is not reached, gRPC is not installed, or the port is taken.
    """
    if not settings.storage.startswith(POSTGRESQL):
        raise UsageError(
            f"{settings.path}: storage: a proxy stands before a PostgreSQL. Write postgresql://… in the file "
            "that the proxy reads, and grpc://HOST:PORT in those of the workers."
        )
    try:
        from tuner.study.databases import proxy
    except ImportError as error:
        raise TargetError("gRPC is not installed. Install it: pip install 'servertuner[grpc]'") from error
    host, port = proxy.split_address(address, "--listen")
    return proxy.open_proxy(open_server(settings.storage_url), host, port)


def is_for_all(address: str) -> bool:
    """Return whether others than this machine's own processes may reach an address."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"
