"""Clients that take their time: each sends the header of its request a byte a second.

    python -I -S slow_clients.py --port 8080 --clients 60 --seconds 5 [--certificate FILE] [--http2]

With a certificate they speak TLS, and only with the server whose certificate that is; the handshake is quick,
what comes after it is slow. Over HTTP/2 the preface and empty SETTINGS come a byte a second (RFC 9113).

Run inside a sandbox beside a load generator, so it needs nothing but Python and imports nothing of this
package. It connects to 127.0.0.1 only, connects again where the server closes, prints `ready` when all
clients have sent something (or after READY_S), and ends by itself. One round a second keeps it cheap.
"""

import argparse
import contextlib
import itertools
import socket
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

ROUND_S = 1.0
FIRST_ROUND_S = 0.05
"""Until all are connected: those who wait for `ready` wait for this."""
READY_S = 2.0
MOST_S = 600.0
MOST_CLIENTS = 2000
ADDRESS = "127.0.0.1"
HEADER = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""A whole frame: its length, type, flags and stream (RFC 9113, sections 4.1 and 6.5)."""
UNFINISHED = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SlowClient:
    """One connection, made again when the server ends it."""

    def __init__(
        self, port: int, *, context: ssl.SSLContext | None = None, speaks_http2: bool = False
    ) -> None:
        """Connect in the first round."""
        self.has_sent = False
        self._port = port
        self._context = context
        self._speaks_http2 = speaks_http2
        self._connection: socket.socket | None = None
        self._is_secured = False
        self._letters: Iterator[int] = iter(())

    def act(self) -> None:
        """Send one more byte, or connect where there is no connection."""
        try:
            if self._connection is None:
                self._connect()
                return
            self._secure(self._connection)
            # What it was answered, if anything, does not matter; an end does.
            with contextlib.suppress(*UNFINISHED):
                if not self._connection.recv(1 << 16):
                    self.close()
                    return
            self._connection.send(bytes([next(self._letters)]))
            self.has_sent = True
        except UNFINISHED:
            return  # still connecting, or the server reads even more slowly
        except OSError:
            self.close()

    def _connect(self) -> None:
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.setblocking(False)  # noqa: FBT003 - socket's own signature
        self._connection, self._is_secured = plain, self._context is None
        # The request never ends: after its beginning, one more byte of the same in each round.
        rest: Iterable[int] = itertools.cycle(SETTINGS) if self._speaks_http2 else itertools.repeat(ord("x"))
        self._letters = itertools.chain(PREFACE if self._speaks_http2 else HEADER, rest)
        plain.connect_ex((ADDRESS, self._port))

    def _secure(self, connection: socket.socket) -> None:
        """Take the TLS handshake as far as it goes. Raises SSLError for another server's certificate."""
        if self._is_secured or self._context is None:
            return
        if not isinstance(connection, ssl.SSLSocket):
            _require_connected(connection)  # what is not connected yet cannot be wrapped
            connection = self._context.wrap_socket(
                connection, server_hostname=ADDRESS, do_handshake_on_connect=False
            )
            self._connection = connection
        connection.do_handshake()
        self._is_secured = True

    def close(self) -> None:
        """Let go; the next round connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _require_connected(connection: socket.socket) -> None:
    """Raise BlockingIOError while a connection is being made, and OSError when it was refused."""
    if number := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(number, "the connection was refused")
    try:
        connection.getpeername()
    except OSError as error:
        raise BlockingIOError from error


def serve_time(clients: Sequence[SlowClient], seconds: float) -> None:
    """Make rounds until the time is over."""
    began_s = time.monotonic()
    is_ready = False
    while (passed_s := time.monotonic() - began_s) < seconds:
        for client in clients:
            client.act()
        if not is_ready and (passed_s > READY_S or all(client.has_sent for client in clients)):
            is_ready = True
            print("ready", sum(client.has_sent for client in clients), flush=True)  # noqa: T201 - the report of a program of its own
        time.sleep(ROUND_S if is_ready else FIRST_ROUND_S)


def _trust(certificate: str, *, speaks_http2: bool) -> ssl.SSLContext:
    """Trust the one certificate in a file, and nothing else."""
    context = ssl.create_default_context(cafile=certificate)
    if speaks_http2:
        context.set_alpn_protocols(["h2"])
    return context


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and be slow."""
    parser = argparse.ArgumentParser(description="Slow clients of a server on this machine.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--http2", action="store_true")
    options = parser.parse_args(arguments)
    if not (0 < options.seconds <= MOST_S and 0 < options.clients <= MOST_CLIENTS):
        parser.error(f"the limits are {MOST_S:.0f} seconds and {MOST_CLIENTS} clients")
    context = _trust(options.certificate, speaks_http2=options.http2) if options.certificate else None
    clients = [
        SlowClient(options.port, context=context, speaks_http2=options.http2) for _ in range(options.clients)
    ]
    try:
        serve_time(clients, options.seconds)
    finally:
        for client in clients:
            client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
