"""A small HTTP server that misbehaves on purpose, for the contract tests of the load generators."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

BODY = b"x" * 1000
SLOW_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server does with one request."""

    status: str = "200 OK"
    body: bytes = BODY
    sent: int | None = None
    """Bytes of the body that are really sent; None for all."""
    delay_s: float = 0.0
    then: str = "as asked"
    """`as asked` by the request's Connection header, `close`, or `reset`."""
    silent: bool = False


CORRECT = Answer()
BUSY = Answer(status="503 Service Unavailable", body=b"busy")
RESET = Answer(silent=True, then="reset")

BEHAVIOURS: Mapping[str, Callable[[int], Answer]] = {
    "correct": lambda _: CORRECT,
    "slow": lambda _: Answer(delay_s=SLOW_S),
    "resetting": lambda _: RESET,
    "busy": lambda _: BUSY,
    "missing": lambda _: Answer(status="404 Not Found", body=b"missing"),
    "moved": lambda _: Answer(status="302 Found", body=b"moved"),
    "short": lambda _: Answer(body=b"x" * 900),
    "closing_early": lambda _: Answer(sent=400, then="close"),
    "silent": lambda _: Answer(silent=True),
    "busy_first": lambda number: CORRECT if number % 2 else BUSY,
    "half_busy": lambda number: BUSY if number % 2 else CORRECT,
    "half_resetting": lambda number: RESET if number % 2 else CORRECT,
    "half_short": lambda number: Answer(body=b"x" * 500) if number % 2 else CORRECT,
    "stalling": lambda number: Answer(silent=True) if number > 40 else CORRECT,
    "resetting_late": lambda number: RESET if number > 40 else CORRECT,
}


@dataclass(slots=True)
class Running:
    """A server that runs in a thread, and what it has done so far."""

    port: int
    location: str = ""
    """Where those that it answers with `302 Found` are sent."""
    requests: int = 0
    correct: int = 0
    """Correct responses that were handed to the kernel whole."""
    open_connections: set[asyncio.Transport] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/page"


class _Connection(asyncio.Protocol):
    """One connection: HTTP/1.0 and 1.1 without request bodies, one request at a time."""

    def __init__(self, running: Running, behave: Callable[[int], Answer]) -> None:
        self._running = running
        self._behave = behave
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(transport)
        self._transport = transport
        self._running.open_connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._running.open_connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        self._received = rest
        answer = self._behave(self._running.requests)
        self._running.requests += 1
        if answer.delay_s:
            asyncio.get_running_loop().call_later(answer.delay_s, self._answer, answer, head.lower())
        else:
            self._answer(answer, head.lower())

    def _answer(self, answer: Answer, head: bytes) -> None:
        if self._transport.is_closing():
            return
        keeps = b"http/1.1" in head or b"connection: keep-alive" in head
        keeps = keeps and b"connection: close" not in head and answer.then == "as asked"
        if not answer.silent:
            connection = "Keep-Alive" if keeps else "close"
            location = f"Location: {self._running.location}\r\n" if "302" in answer.status else ""
            header = (
                f"HTTP/1.1 {answer.status}\r\nServer: misbehaving\r\n{location}"
                f"Content-Length: {len(answer.body)}\r\nConnection: {connection}\r\n\r\n"
            )
            self._transport.write(header.encode() + answer.body[: answer.sent])
            self._running.correct += answer is CORRECT or answer == Answer(delay_s=SLOW_S)
        if answer.then == "reset":
            # Without lingering, close() sends RST (socket(7), SO_LINGER).
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        elif not keeps and not (answer.silent and answer.then == "as asked"):
            self._transport.close()


@contextmanager
def serving(behaviour: str, *, location: str = "") -> Iterator[Running]:
    """Serve on a free port of 127.0.0.1 until the block ends; `moved` names a location."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    running = Running(port=listener.getsockname()[1], location=location)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=f"server that is {behaviour}")
    thread.start()

    async def start() -> asyncio.Server:
        return await loop.create_server(lambda: _Connection(running, BEHAVIOURS[behaviour]), sock=listener)

    async def stop(server: asyncio.Server) -> None:
        # Connections that are being accepted are tasks, and fail when the server is closed under their hands.
        loop.remove_reader(listener)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        server.close()
        while running.open_connections:
            for transport in tuple(running.open_connections):
                transport.abort()
            await asyncio.sleep(0.001)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def refusing() -> Iterator[Running]:
    """Hold a port on which nobody listens, so that every connection to it is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield Running(port=held.getsockname()[1])


def response_bytes(*, keepalive: bool) -> int:
    """Bytes of one whole correct response over HTTP/1.1."""
    connection = "Keep-Alive" if keepalive else "close"
    header = (
        f"HTTP/1.1 200 OK\r\nServer: misbehaving\r\nContent-Length: {len(BODY)}\r\n"
        f"Connection: {connection}\r\n\r\n"
    )
    return len(header) + len(BODY)
