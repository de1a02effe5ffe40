"""Send connection requests that nobody completes to an address of this network namespace; bounded.

python -m tests.integration.syn_flood ADDRESS PORT

The senders are addresses of its network that no host has. Run it in a network namespace of a test.
"""

import ipaddress
import socket
import struct
import sys
import time

BURST, PAUSE_S, MOST = 20, 0.02, 20_000
"""Requests at once, seconds after them, and requests of all together: at most 20 s of 1,000/s."""
SENDERS = range(100, 200)
"""Last number of the senders' addresses."""
SYN = 0x02


def main() -> None:
    """Send requests until there were enough of them, or until killed."""
    address, port = ipaddress.IPv4Address(sys.argv[1]), int(sys.argv[2])
    network = ipaddress.IPv4Network((int(address) & 0xFFFFFF00, 24))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as flood:
        for number in range(MOST):
            packet = make_request(network[SENDERS[number % len(SENDERS)]], address, number, port)
            flood.sendto(packet, (str(address), 0))
            if number % BURST == BURST - 1:
                time.sleep(PAUSE_S)


def make_request(
    sender: ipaddress.IPv4Address, address: ipaddress.IPv4Address, number: int, port: int
) -> bytes:
    """Return a packet with a SYN (RFC 791, section 3.1; RFC 9293, section 3.1)."""
    own_port, sequence = 1024 + number, number << 16 & 0xFFFFFFFF
    segment = struct.pack(">HHIIBBHHH", own_port, port, sequence, 0, 5 << 4, SYN, 65535, 0, 0)
    pseudo = sender.packed + address.packed + struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(segment))
    segment = segment[:16] + struct.pack(">H", add_up(pseudo + segment)) + segment[18:]
    # The kernel fills in length, identification and checksum (raw(7)).
    head = struct.pack(">BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0)
    return head + sender.packed + address.packed + segment


def add_up(data: bytes) -> int:
    """Return the checksum of the internet protocols (RFC 1071)."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


if __name__ == "__main__":
    main()
