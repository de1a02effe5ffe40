"""Fill the connection table of this network namespace, so that no IPv6 connection can be made any more.

python -m tests.integration.track_connections PORT

Only a rule that asks for a connection's state makes the kernel track: one is added over netlink, without a
program for it. IPv4, over which a test looks at its host, stays untracked. The largest number is one for all
namespaces, and only the machine's own may change it. So the table is filled with as many connections
that nobody has, which are gone with the namespace. Run it in one of a test.
"""

import contextlib
import socket
import struct
import sys
from pathlib import Path

SETTINGS = Path("/proc/sys/net/netfilter")
ROUNDS, PATIENCE_S = 600, 0.05
"""Attempts to connect, and seconds for each: at most half a minute."""
MOST, TOGETHER = 2**19, 256
"""Connections that are made at most, about 160 MB of the kernel's memory; and in one message."""
SENDER, RECEIVER = b"\xfd" + b"\x01" * 15, b"\xfd" + b"\x02" * 15
"""Private addresses (RFC 4193); each connection has another sender."""
NETFILTER = 12
"""Netlink family (linux/netlink.h)."""
TABLES = 10 << 8
"""Subsystem nf_tables (linux/netfilter/nfnetlink.h)."""
BATCH_BEGIN, BATCH_END, NEW_TABLE, NEW_CHAIN, NEW_RULE = 0x10, 0x11, TABLES, TABLES | 3, TABLES | 6
REQUEST, ACKNOWLEDGE, CREATE, APPEND, NESTED = 0x1, 0x4, 0x400, 0x800, 0x8000
INPUT = 1
"""Hook NF_INET_LOCAL_IN."""
REGISTER = 1
NEW_CONNECTION = 1 << 8
"""Of the subsystem ctnetlink (linux/netfilter/nfnetlink_conntrack.h)."""
PORT, LIFE_S = struct.pack(">H", 9), 600
SEEN_REPLY, ASSURED, CONFIRMED = 2, 4, 8
"""States in which the kernel drops none early (linux/netfilter/nf_conntrack_common.h)."""


def attribute(kind: int, *contents: bytes) -> bytes:
    """Return an attribute of netlink: padded to four bytes."""
    content = b"".join(contents)
    return struct.pack("=HH", len(content) + 4, kind) + content + bytes(-len(content) % 4)


def number(kind: int, value: int) -> bytes:
    """Return an attribute with a number in network byte order."""
    return attribute(kind, struct.pack(">i", value))


def text(kind: int, value: str) -> bytes:
    """Return an attribute with a text."""
    return attribute(kind, value.encode() + b"\0")


def message(kind: int, sequence: int, *attributes: bytes, flags: int = 0) -> bytes:
    """Return a message of netfilter; one of a batch's ends names the subsystem."""
    is_end = kind in {BATCH_BEGIN, BATCH_END}
    head = struct.pack(">BBH", 0 if is_end else socket.AF_INET6, 0, TABLES >> 8 if is_end else 0)
    body = head + b"".join(attributes)
    return struct.pack("=IHHII", len(body) + 16, kind, REQUEST | flags, sequence, 0) + body


def track() -> None:
    """Add a table with a rule that asks for the state of each connection (linux/netfilter/nf_tables.h)."""
    name, chain = "tests", "input"
    state = attribute(2 | NESTED, number(1, REGISTER), number(2, 0))
    rule = attribute(1 | NESTED, text(1, "ct"), state)
    batch = [
        message(BATCH_BEGIN, 1),
        message(NEW_TABLE, 2, text(1, name), flags=CREATE | ACKNOWLEDGE),
        message(
            NEW_CHAIN, 3, text(1, name), text(3, chain), text(7, "filter"),
            attribute(4 | NESTED, number(1, INPUT), number(2, 0)), flags=CREATE | ACKNOWLEDGE,
        ),
        message(
            NEW_RULE, 4, text(1, name), text(2, chain), attribute(4 | NESTED, rule),
            flags=CREATE | APPEND | ACKNOWLEDGE,
        ),
        message(BATCH_END, 5),
    ]  # fmt: skip
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as link:
        link.bind((0, 0))
        link.settimeout(2)
        link.send(b"".join(batch))
        answered = 0
        while answered < 3:
            answer = link.recv(65536)
            while len(answer) >= 20:
                length, _, _, sequence, _, error = struct.unpack("=IHHIIi", answer[:20])
                if error:
                    raise OSError(-error, f"netfilter refuses message {sequence}")
                answered += 1
                answer = answer[length + (-length % 4) :]


def fill(most: int) -> None:
    """Make connections over UDP that nobody has, one more than the table holds."""
    ends = [
        attribute(1 | NESTED, attribute(3, one), attribute(4, other))
        + attribute(
            2 | NESTED, attribute(1, bytes([socket.IPPROTO_UDP])), attribute(2, PORT), attribute(3, PORT)
        )
        for one, other in ((SENDER, RECEIVER), (RECEIVER, SENDER))
    ]
    made = message(
        NEW_CONNECTION, 0, attribute(1 | NESTED, ends[0]), attribute(2 | NESTED, ends[1]),
        number(3, SEEN_REPLY | ASSURED | CONFIRMED), number(7, LIFE_S), flags=CREATE,
    )  # fmt: skip
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as link:
        for first in range(0, most + 1, TOGETHER):
            senders = (SENDER[:12] + struct.pack(">I", each) for each in range(first, first + TOGETHER))
            link.send(b"".join(made.replace(SENDER, sender) for sender in senders))


def main() -> None:
    """Fill the table, and go on trying to connect."""
    port, most = int(sys.argv[1]), int((SETTINGS / "nf_conntrack_max").read_text())
    assert most <= MOST, f"the table holds {most:,} connections, too many to fill"
    track()
    fill(most)
    with contextlib.ExitStack() as held:
        for _ in range(ROUNDS):
            client = held.enter_context(socket.socket(socket.AF_INET6))
            client.settimeout(PATIENCE_S)
            with contextlib.suppress(OSError):
                client.connect(("::1", port))


if __name__ == "__main__":
    main()
