"""Slow clients: they send their headers a byte a second, read a big page slowly, or keep a connection idle.

    python slow_load.py --port 8080 --senders 60 --readers 60 --idle 500 --big /big.bin --seconds 20

Needs nothing but Python, so that it runs inside a sandbox's namespaces beside a load generator. It connects
to 127.0.0.1 only, connects again where the server closes, prints `ready` when all have connected (or after
READY_S), and ends by itself. It does little: one round a second.
"""

import argparse
import contextlib
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

ROUND_S = 1.0
READY_S = 5.0
MOST_S = 120.0
MOST_CLIENTS = 2000
RECEIVE_BUFFER_BYTES = 4096
"""Set before the connection is made, so that the window stays as small."""
READ_BYTES = 2048
"""Of a slow reader, each round."""
HEADER = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@dataclass(slots=True, kw_only=True)
class Client:
    """One connection, made again when the server ends it."""

    kind: str
    request: bytes
    connection: socket.socket | None = None
    sent: int = 0
    was_ready: bool = False
    selector: selectors.BaseSelector = field(repr=False)

    def connect(self, port: int) -> None:
        """Begin to connect; the listen queue may be full for a while."""
        self.connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.connection.setblocking(False)  # noqa: FBT003 - socket's own signature
        if self.kind == "reader":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.sent = 0
        self.connection.connect_ex(("127.0.0.1", port))
        self.selector.register(self.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def close(self) -> None:
        """Let go; the next round connects again."""
        if self.connection is not None:
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None

    def act(self, ready: int) -> None:
        """Send or read as slowly as its kind does; every call is one round's worth."""
        if self.connection is None:
            return
        try:
            if ready & selectors.EVENT_WRITE:
                self._send()
            if ready & selectors.EVENT_READ:
                self._read()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _send(self) -> None:
        if self.connection is None:
            return
        if self.kind == "sender":
            # The header never ends: after its beginning, one more letter of a value each round.
            letter = self.request[self.sent : self.sent + 1] or b"x"
            self.sent += self.connection.send(letter)
        elif self.sent < len(self.request):
            self.sent += self.connection.send(self.request[self.sent :])
            if self.sent == len(self.request):
                self.selector.modify(self.connection, selectors.EVENT_READ, self)
        self.was_ready = self.was_ready or self.sent > 0

    def _read(self) -> None:
        if self.connection is None:
            return
        # An idle client takes its whole answer; a slow reader as much as it likes.
        data = self.connection.recv(READ_BYTES if self.kind == "reader" else 1 << 16)
        if not data:
            self.close()


def make_clients(options: argparse.Namespace, selector: selectors.BaseSelector) -> list[Client]:
    """Make the clients of all kinds, not yet connected."""
    get = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
    wanted = (
        ("sender", options.senders, HEADER),
        ("reader", options.readers, get.format(options.big).encode()),
        ("idle", options.idle, get.format(options.page).encode()),
    )
    return [
        Client(kind=kind, request=request, selector=selector)
        for kind, count, request in wanted
        for _ in range(count)
    ]


def serve_time(
    clients: Sequence[Client], selector: selectors.BaseSelector, port: int, seconds: float
) -> None:
    """Make rounds until the time is over."""
    began_s = time.monotonic()
    is_ready = False
    while time.monotonic() - began_s < seconds:
        for client in clients:
            if client.connection is None:
                client.connect(port)
        for key, ready in selector.select(0):
            key.data.act(ready)
        if not is_ready:
            everybody = all(client.was_ready for client in clients)
            is_ready = everybody or time.monotonic() - began_s > READY_S
            if is_ready:
                print("ready", sum(client.was_ready for client in clients), flush=True)
        time.sleep(ROUND_S if is_ready else ROUND_S / 10)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and be slow."""
    parser = argparse.ArgumentParser(description="Slow clients of a server on this machine.")
    parser.add_argument("--port", type=int, default=8080)
    for kind in ("senders", "readers", "idle"):
        parser.add_argument(f"--{kind}", type=int, default=0)
    parser.add_argument("--page", default="/index.html", help="What idle clients ask for once.")
    parser.add_argument("--big", default="/big.bin", help="What slow readers ask for.")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    if options.seconds > MOST_S or options.senders + options.readers + options.idle > MOST_CLIENTS:
        parser.error(f"at most {MOST_S:.0f} seconds and {MOST_CLIENTS} clients")
    with selectors.DefaultSelector() as selector:
        clients = make_clients(options, selector)
        try:
            serve_time(clients, selector, options.port, options.seconds)
        finally:
            for client in clients:
                client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
