"""A pool of connections before a PostgreSQL, as far as a client can tell: it names a session of its own.

So does PgBouncer: it gives each client a key of its own, with which that one may cancel what it asks.
"""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from threading import Thread

from tests.testbed.database import Postgres

SOCKET = ".s.PGSQL.5432"
KEY, READY = b"K\x00\x00\x00\x0c", b"Z\x00\x00\x00\x05I"
"""Messages of the database: the process that answers follows; it is ready (protocol, 53.7)."""
NOBODY = (2**31 - 1).to_bytes(4, "big")
"""A process that there is not."""
SIZE = 65536


class _Pool(ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path, behind: Path) -> None:
        self.behind = behind
        super().__init__(str(path), _Client)


class _Client(BaseRequestHandler):
    server: _Pool

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as session:
            session.connect(str(self.server.behind))
            Thread(target=_pass_on, args=(self.request, session), daemon=True).start()
            greeting = b""
            while not greeting.endswith(READY):
                if not (part := session.recv(SIZE)):
                    return
                greeting += part
            before, key, after = greeting.partition(KEY)
            self.request.sendall(before + key + NOBODY + after[len(NOBODY) :])
            _pass_on(session, self.request)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes, and that nothing comes any more."""
    try:
        while part := source.recv(SIZE):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side is gone


@contextmanager
def open_pool(postgres: Postgres) -> Iterator[str]:
    """Yield the address at which a database is reached through a pool."""
    with (
        tempfile.TemporaryDirectory(prefix="tuner-pool-") as folder,
        _Pool(Path(folder) / SOCKET, postgres.folder / SOCKET) as pool,
    ):
        Thread(target=pool.serve_forever).start()
        try:
            yield f"postgresql://tuner@/postgres?host={folder}"
        finally:
            pool.shutdown()
