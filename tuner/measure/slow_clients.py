"""Clients that take their time: each sends the header of its request a byte a second.

    python -I -S slow_clients.py --port 8080 --clients 60 --seconds 5

Run inside a sandbox beside a load generator, so it needs nothing but Python and imports nothing of this
package. It connects to 127.0.0.1 only, connects again where the server closes, prints `ready` when all
clients have sent something (or after READY_S), and ends by itself. One round a second keeps it cheap.
"""

import argparse
import contextlib
import itertools
import socket
import sys
import time
from collections.abc import Iterator, Sequence

ROUND_S = 1.0
FIRST_ROUND_S = 0.05
"""Until all are connected: those who wait for `ready` wait for this."""
READY_S = 2.0
MOST_S = 600.0
MOST_CLIENTS = 2000
HEADER = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


class SlowClient:
    """One connection, made again when the server ends it."""

    def __init__(self, port: int) -> None:
        """Connect in the first round."""
        self.has_sent = False
        self._port = port
        self._connection: socket.socket | None = None
        self._letters: Iterator[int] = iter(())

    def act(self) -> None:
        """Send one more byte, or connect where there is no connection."""
        try:
            if self._connection is None:
                self._connect()
                return
            # What it was answered, if anything, does not matter; an end does.
            with contextlib.suppress(BlockingIOError):
                if not self._connection.recv(1 << 16):
                    self.close()
                    return
            self._connection.send(bytes([next(self._letters)]))
            self.has_sent = True
        except BlockingIOError:
            return  # still connecting, or the server reads even more slowly
        except OSError:
            self.close()

    def _connect(self) -> None:
        self._connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._connection.setblocking(False)  # noqa: FBT003 - socket's own signature
        # The header never ends: after its beginning, one more letter of a value in each round.
        self._letters = itertools.chain(HEADER, itertools.repeat(ord("x")))
        self._connection.connect_ex(("127.0.0.1", self._port))

    def close(self) -> None:
        """Let go; the next round connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and be slow."""
    parser = argparse.ArgumentParser(description="Slow clients of a server on this machine.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args(arguments)
    if not (0 < options.seconds <= MOST_S and 0 < options.clients <= MOST_CLIENTS):
        parser.error(f"at most {MOST_S:.0f} seconds and {MOST_CLIENTS} clients")
    clients = [SlowClient(options.port) for _ in range(options.clients)]
    try:
        serve_time(clients, options.seconds)
    finally:
        for client in clients:
            client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
