"""Optuna's proxy before a PostgreSQL: many workers reach a storage through one process, over gRPC.

A worker behind it holds one connection to the proxy and none to the database.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import grpc
import optuna
from optuna.storages._grpc.auto_generated import api_pb2_grpc
from optuna.storages._grpc.client import GrpcClientCache
from optuna.storages._grpc.servicer import OptunaStorageProxyService

from tuner.errors import TargetError, UsageError
from tuner.study.databases.away import Away

MOST_S = 30.0
"""An answer that takes longer does not come any more."""
THREADS = 10
"""Requests that are answered at once: so many connections the database has to bear."""
CHANNEL = (("grpc.max_receive_message_length", -1), ("grpc.max_reconnect_backoff_ms", 2000))
"""A proxy that was started again is found again within seconds."""
SERVER = (("grpc.so_reuseport", 0),)
"""A second one at the same address is refused."""
UNDERSTOOD = {
    grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT,
}  # fmt: skip
"""Answers that Optuna's client takes as what they are."""
FAULTS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED}
"""Answers of one that is there."""
AWAY = ("psycopg.OperationalError", "psycopg.errors", "during the commit", "QueuePool")
"""What a proxy says of a database that it does not reach."""


class _Bounded(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """Bounds the time of each request, and says what is away."""

    def intercept_unary_unary(self, go_on: Callable[..., Any], details: Any, request: Any) -> Any:  # noqa: ANN401 - gRPC's own types are none
        call = go_on(details._replace(timeout=MOST_S), request)
        if call.code() in UNDERSTOOD:
            return call
        said = call.details() or call.code().name
        if call.code() not in FAULTS or any(text in said for text in AWAY):
            raise Away(said)
        raise ConnectionError(said)


class Proxy(optuna.storages.GrpcStorageProxy):
    """A storage behind a proxy, which waits for no answer for ever."""

    def _setup(self) -> None:
        self._channel = grpc.insecure_channel(f"{self._host}:{self._port}", options=CHANNEL)
        bounded = grpc.intercept_channel(self._channel, _Bounded())
        self._stub = api_pb2_grpc.StorageServiceStub(bounded)  # type: ignore[no-untyped-call]
        self._cache = GrpcClientCache(self._stub)


def connect_proxy(url: str, where: str) -> Proxy:
    """Return the storage behind a proxy. Raises UsageError where the address is none."""
    host, port = split_address(url.partition("://")[2].rstrip("/"), where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return Proxy(host=host, port=port)


def split_address(address: str, where: str) -> tuple[str, int]:
    """Return host and port; IPv6 in brackets. Raises UsageError."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = address.rpartition(":")[0], parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or parts.netloc != address or "@" in address:
        raise UsageError(f"{where}: this address cannot be understood. Write HOST:PORT.")
    return host, port


def open_proxy(storage: optuna.storages.RDBStorage, host: str, port: int) -> "grpc.Server":
    """Return a proxy that answers for a database. Raises TargetError where it cannot listen."""
    server = grpc.server(ThreadPoolExecutor(max_workers=THREADS), options=SERVER)
    # With Optuna's cache of finished trials: otherwise each request reads all of them.
    service = OptunaStorageProxyService(optuna.storages.get_storage(storage))
    api_pb2_grpc.add_StorageServiceServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    try:
        server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise TargetError(
            f"--listen: {host}:{port} cannot be listened on. Is it taken? Give another address."
        ) from error
    server.start()
    return server
