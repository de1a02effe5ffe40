"""Send WebSocket messages and compare every echo, in several processes; prints the counts as JSON.

Each connection has one message under way. The library websockets makes the handshake and the frames, and
reads whatever is not exactly the frame that is due; a frame that is, byte for byte, needs no parser.
"""

import argparse
import errno
import gc
import json
import multiprocessing
import os
import resource
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import fmean as mean
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

MESSAGE_BYTES = 64
MESSAGES = 4
"""Different ones of each connection, so that the echo of another, or of the last one, is noticed."""
PATIENCE_S = 5.0
"""An echo that is missing for so long, or for the whole window, is a timeout."""
LOOK_S = 0.05
"""How often missing echoes are looked for."""
PAUSE_S = 0.05
"""Between a connection that failed and the next: a server that refuses is not stormed."""
RECEIVE_BYTES = 65536
OWN_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOMEM, errno.ENOBUFS})
DATA = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})


@dataclass(slots=True)
class Tally:
    """What one process counts."""

    correct: int = 0
    latencies_us: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    connects_ms: list[float] = field(default_factory=list)
    fault: str = ""


@dataclass(slots=True)
class Client:
    """One of those that send, over one connection after the other."""

    frames: Sequence[bytes]
    echoes: Sequence[bytes]
    payloads: Sequence[bytes]
    connection: "Connection | None" = None
    turn: int = 0
    """Which of its messages is under way."""
    again_s: float = 0.0
    """When it may connect again."""
    is_told: bool = False
    """Whether anything came of it in this window."""


@dataclass(slots=True)
class Connection:
    """One connection of a client."""

    client: Client
    socket: socket.socket
    protocol: ClientProtocol
    since_s: float
    """When it was begun, or the message that is under way was sent."""
    state: str = "connecting"
    """connecting, upgrading, open, or read: open, and what comes is left to the library."""
    received: bytes = b""
    unsent: bytes = b""


def make_client() -> Client:
    """Make the frames of a client; RFC 6455 masks what clients send."""
    payloads = [os.urandom(MESSAGE_BYTES) for _ in range(MESSAGES)]
    frames = [Frame(Opcode.BINARY, payload) for payload in payloads]
    return Client(
        frames=[frame.serialize(mask=True) for frame in frames],
        echoes=[frame.serialize(mask=False) for frame in frames],
        payloads=payloads,
    )


class Sender:
    """Keeps the connections of one process busy until a window ends."""

    def __init__(self, url: str, *, is_kept: bool, headers: Sequence[str] = ()) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._uri = parse_uri(urlunsplit(parts._replace(scheme="ws", path=parts.path or "/")))
        self._is_kept = is_kept
        self._headers = [line.split(": ", 1) for line in headers]
        self._selector = selectors.DefaultSelector()
        self.tally = Tally()

    def run(self, connections: int, seconds: float) -> float:
        """Send for so long; return the seconds that it really took."""
        clients = [make_client() for _ in range(connections)]
        patience_s = min(seconds, PATIENCE_S)
        began_s = now_s = look_s = time.perf_counter()
        while now_s < began_s + seconds:
            if now_s >= look_s:
                self._look_after(clients, now_s, patience_s)
                look_s = now_s + LOOK_S
            for key, _ in self._selector.select(min(look_s, began_s + seconds) - now_s):
                self._handle(key.data)
            now_s = time.perf_counter()
        # Of a connection of which nothing was heard at all, nothing else would tell.
        self.tally.failures["timeout"] += sum(not client.is_told for client in clients)
        return now_s - began_s

    def _look_after(self, clients: Sequence[Client], now_s: float, patience_s: float) -> None:
        """Connect those that wait for it, and end what takes too long."""
        for client in clients:
            if client.connection is not None:
                if now_s - client.connection.since_s > patience_s:
                    self._fail(client, "timeout")
            elif now_s >= client.again_s:
                self._connect(client)

    def _connect(self, client: Client) -> None:
        began_s = time.perf_counter()
        try:
            opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.connect_ex(self._address)
        except OSError as error:
            self._fail(client, "connect", error)
            return
        client.connection = Connection(
            client=client, socket=opened, protocol=ClientProtocol(self._uri), since_s=began_s
        )
        self._selector.register(opened, selectors.EVENT_WRITE, client.connection)

    def _handle(self, connection: Connection) -> None:
        try:
            if connection.state == "connecting":
                self._upgrade(connection)
            elif connection.unsent:
                self._send(connection, b"")
            else:
                self._receive(connection)
        except OSError as error:
            kind = "connect" if connection.state == "connecting" else "read"
            self._fail(connection.client, kind, error)

    def _upgrade(self, connection: Connection) -> None:
        """Ask for a WebSocket as soon as the connection is there."""
        if failed := connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(failed, os.strerror(failed))
        self.tally.connects_ms.append((time.perf_counter() - connection.since_s) * 1000)
        protocol = connection.protocol
        handshake = protocol.connect()
        for name, value in self._headers:
            if name in handshake.headers:
                del handshake.headers[name]
            handshake.headers[name] = value
        protocol.send_request(handshake)
        connection.state = "upgrading"
        self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        self._send(connection, b"".join(protocol.data_to_send()))

    def _send(self, connection: Connection, data: bytes) -> None:
        """Send what there is; the rest waits until the socket takes it."""
        waiting = connection.unsent + data
        try:
            sent = connection.socket.send(waiting)
        except BlockingIOError:
            sent = 0
        had_waited, connection.unsent = bool(connection.unsent), waiting[sent:]
        if bool(connection.unsent) != had_waited:
            events = selectors.EVENT_WRITE if connection.unsent else selectors.EVENT_READ
            self._selector.modify(connection.socket, events, connection)

    def _send_message(self, connection: Connection) -> None:
        client = connection.client
        client.turn = (client.turn + 1) % MESSAGES
        connection.since_s = time.perf_counter()
        self._send(connection, client.frames[client.turn])

    def _receive(self, connection: Connection) -> None:
        data = connection.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the server closed the connection")
        if connection.state != "open":
            self._read(connection, data)
            return
        data, due = connection.received + data, connection.client.echoes[connection.client.turn]
        if data == due:
            connection.received = b""
            self._count(connection)
        elif due.startswith(data):
            connection.received = data
        else:
            connection.state, connection.received = "read", b""
            self._read(connection, data)

    def _read(self, connection: Connection, data: bytes) -> None:
        """Let the library read what came: the handshake, pings, frames of another form."""
        protocol = connection.protocol
        protocol.receive_data(data)
        if protocol.handshake_exc is not None:
            self._fail(connection.client, "status")
            return
        events = protocol.events_received()
        if connection.state == "upgrading":
            if protocol.state is State.OPEN:
                connection.state = "open"
                self._send_message(connection)
            return
        for event in events:
            if isinstance(event, Frame) and event.opcode in DATA:
                connection.received += event.data
                if event.fin and not self._compare(connection):
                    return
        if protocol.state is not State.OPEN:
            self._fail(connection.client, "read")
        elif answers := b"".join(protocol.data_to_send()):
            self._send(connection, answers)

    def _compare(self, connection: Connection) -> bool:
        """Count a message that came; return whether the connection lives on."""
        client = connection.client
        came, due, connection.received = connection.received, client.payloads[client.turn], b""
        if came == due:
            self._count(connection)
        else:
            self._fail(client, "length" if len(came) != len(due) else "other")
        return client.connection is connection

    def _count(self, connection: Connection) -> None:
        latency_us = int((time.perf_counter() - connection.since_s) * 1e6)
        # Three digits tell enough, and keep the table small.
        step = 1 if latency_us < 1000 else 10 if latency_us < 10_000 else 100  # noqa: PLR2004
        self.tally.latencies_us[latency_us - latency_us % step] += 1
        self.tally.correct += 1
        connection.client.is_told = True
        if self._is_kept:
            self._send_message(connection)
        else:
            self._close(connection.client)
            self._connect(connection.client)

    def _fail(self, client: Client, kind: str, error: OSError | None = None) -> None:
        if error is not None and error.errno in OWN_ERRORS:
            self.tally.fault = os.strerror(error.errno)
        self.tally.failures[kind] += 1
        client.is_told = True
        self._close(client)
        client.again_s = time.perf_counter() + PAUSE_S

    def _close(self, client: Client) -> None:
        if client.connection is not None:
            self._selector.unregister(client.connection.socket)
            client.connection.socket.close()
            client.connection = None


def send(
    url: str, connections: int, seconds: float, *, is_kept: bool, headers: Sequence[str] = ()
) -> dict[str, Any]:
    """Run one process's part of a window; return its counts as JSON values."""
    gc.disable()
    sender = Sender(url, is_kept=is_kept, headers=headers)
    took_s = sender.run(connections, seconds)
    tally = sender.tally
    return {
        "duration_s": took_s,
        "correct": tally.correct,
        "failures": dict(tally.failures),
        "latencies_us": dict(tally.latencies_us),
        "connects_ms": tally.connects_ms,
        "fault": tally.fault,
    }


def add_up(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts of all processes together."""
    failures, latencies_us = Counter[str](), Counter[int]()
    for part in parts:
        failures.update(part["failures"])
        latencies_us.update(part["latencies_us"])
    connects_ms = [each for part in parts for each in part["connects_ms"]]
    correct = sum(part["correct"] for part in parts)
    return {
        "duration_s": max(part["duration_s"] for part in parts),
        "correct": correct,
        "bytes": correct * MESSAGE_BYTES,
        "failures": dict(failures),
        "latencies_us": dict(latencies_us),
        "connect_ms": {"min": min(connects_ms), "mean": mean(connects_ms), "max": max(connects_ms)}
        if connects_ms
        else None,
        "fault": next((part["fault"] for part in parts if part["fault"]), None),
    }


def main() -> None:
    """Read the arguments, send, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="version", version=f"websockets {version('websockets')}")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--close", action="store_true", help="a new connection for each message")
    parser.add_argument("--header", action="append", default=[], help="of each handshake, as `Name: value`")
    parser.add_argument("url")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    shares = [
        options.connections // options.processes + (number < options.connections % options.processes)
        for number in range(options.processes)
    ]
    arguments = [
        (options.url, share, options.seconds, options.close, tuple(options.header)) for share in shares
    ]
    if len(arguments) == 1:
        parts = [_send(*arguments[0])]
    else:
        with multiprocessing.get_context("fork").Pool(len(arguments)) as pool:
            parts = pool.starmap(_send, arguments)
    sys.stdout.write(json.dumps(add_up(parts)) + "\n")


def _send(
    url: str,
    connections: int,
    seconds: float,
    is_closed: bool,  # noqa: FBT001
    headers: Sequence[str],
) -> dict[str, Any]:
    return send(url, connections, seconds, is_kept=not is_closed, headers=headers)


if __name__ == "__main__":
    main()
