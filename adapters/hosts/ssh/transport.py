"""SSH packets within bounds: paramiko takes any length that the other end announces."""

import zlib
from typing import Any

import paramiko
from paramiko.packet import Packetizer

MOST_PACKET_BYTES = 2**18
"""What OpenSSH takes, packed or not; RFC 4253, 6.1, asks for 35,000."""
MOST_BANNER_BYTES = 2**15
"""Before and with the line that names the protocol, which has at the most 255 (RFC 4253, 4.2)."""


class BoundedPacketizer(Packetizer):  # type: ignore[misc] # paramiko has no types
    """Refuses what is too long before it is read."""

    def __init__(self, socket: Any) -> None:  # noqa: ANN401 - a socket, a channel or a proxy command
        super().__init__(socket)
        self._banner_bytes = 0

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT001, FBT002 - paramiko's own
        """Read so many bytes. Raises SSHException when no packet is that long."""
        if not 0 <= n <= MOST_PACKET_BYTES:
            raise paramiko.SSHException(f"the host announced a packet of {n} bytes")
        return bytes(super().read_all(n, check_rekey))

    def _read_timeout(self, timeout: float) -> bytes:
        """Read a part of the banner. Raises SSHException when that does not end."""
        some = bytes(super()._read_timeout(timeout))
        self._banner_bytes += len(some)
        if self._banner_bytes > MOST_BANNER_BYTES:
            raise paramiko.SSHException("the banner of the host does not end")
        return some


class BoundedDecompressor:
    """Unpacks packets; one that would become too long is refused."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()

    def __call__(self, data: bytes) -> bytes:
        """Unpack a packet. Raises SSHException."""
        try:
            unpacked = self._stream.decompress(data, MOST_PACKET_BYTES)
        except zlib.error as error:
            raise paramiko.SSHException(f"the host sent data that cannot be unpacked ({error})") from error
        if self._stream.unconsumed_tail:
            raise paramiko.SSHException(f"the host packed more than {MOST_PACKET_BYTES} bytes into a packet")
        return unpacked


class BoundedTransport(paramiko.Transport):  # type: ignore[misc]
    """A connection whose packets are bounded."""

    _compression_info = {  # noqa: RUF012 - as paramiko has it
        name: (pack, unpack and BoundedDecompressor)
        for name, (pack, unpack) in paramiko.Transport._compression_info.items()  # noqa: SLF001
    }

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - paramiko's own
        super().__init__(*arguments, **options)
        self.packetizer = BoundedPacketizer(self.sock)
