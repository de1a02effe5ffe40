"""A WebSocket server that sends every short text message back (RFC 6455)."""

import base64
import hashlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tuner.testing.misbehaving_server import Running

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE = 0x1, 0x8


@contextmanager
def echoing() -> Iterator[Running]:
    """Serve on a free port of 127.0.0.1 until the block ends; `correct` counts messages sent back."""
    with _Server(("127.0.0.1", 0), _Connection) as server:
        server.running = Running(port=server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.running
        finally:
            server.shutdown()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    running: Running


class _Connection(socketserver.StreamRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        try:
            self._shake_hands()
            while self._echo():
                pass
        except OSError:
            return

    def _shake_hands(self) -> None:
        key = b""
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            key = value.strip() if name.lower() == b"sec-websocket-key" else key
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())  # noqa: S324 - RFC 6455, 4.2.2
        self.request.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )

    def _echo(self) -> bool:
        """Read one masked frame of less than 126 bytes and send its like back (RFC 6455, 5.2)."""
        header = self.rfile.read(2)
        if len(header) < 2:
            return False
        opcode, length = header[0] & 0xF, header[1] & 0x7F
        mask = self.rfile.read(4)
        masked = self.rfile.read(length)
        message = bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))
        self.request.sendall(bytes((0x80 | opcode, length)) + message)
        if opcode == _TEXT:
            self.server.running.requests += 1
            self.server.running.correct += 1
        return opcode != _CLOSE
