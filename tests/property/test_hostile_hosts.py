"""Whatever the other end of an SSH connection says is a result or an error of ours, in bounded memory."""

import contextlib
import itertools
import socket
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

import paramiko
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tuner.adapters.hosts.ssh import SshHost, sandbox, shell, transport
from tuner.adapters.hosts.ssh.machine import RemoteMachine
from tuner.adapters.hosts.ssh.shell import MOST_LINE_BYTES, RemoteShell
from tuner.adapters.hosts.ssh.sudo import Sudo
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Command, FileState

MOST_BYTES = 2 * shell.MOST_OUTPUT_BYTES + 8 * MOST_LINE_BYTES
PATH = PurePosixPath("/etc/hostname")
RAN = "ran 0 0 1.5 2.5 0m0.1s 0m0.1s 0m0.2s 0m0.2s"
WORDS = st.one_of(
    st.sampled_from(
        [
            "ran",
            "tree",
            "started",
            "end",
            "locked",
            "missing",
            "full",
            "0",
            "1",
            "-1",
            "3",
            "1_0",
            "nan",
            "inf",
            "1e999",
        ]
    ),
    st.sampled_from(
        ["0m1.5s", "0m-1s", "0mnans", "٣", "9" * 5000, "2147483648", "18446744073709551616", "/"]
    ),
    st.text(max_size=5),
)
LINES = st.one_of(
    st.lists(WORDS, max_size=14).map(" ".join),
    st.lists(WORDS, min_size=4, max_size=4).map(lambda counts: " ".join((RAN, *counts))),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda sizes: f"{RAN} {sizes[0]} 0 {sizes[1]} 0"),
    st.lists(WORDS, min_size=3, max_size=3).map(lambda told: " ".join(("started", *told))),
    st.sampled_from(["end", "tree 1 2", "started 7", "started 7 0 999999999", f"{RAN} 0 0 0 0"]),
)
ANSWERS = st.lists(
    st.one_of(LINES.map(lambda line: f"{line}\n".encode()), st.binary(max_size=40)), max_size=8
)


class Endless(Exception):
    """More was read than any answer may have."""


class OtherEnd:
    """What stands for a channel; it gives what it has, whatever it is asked."""

    closed = eof_received = False

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.read_bytes = 0

    def recv(self, most: int) -> bytes:
        chunk = next(self._chunks, b"")
        assert len(chunk) <= most
        self.read_bytes += len(chunk)
        if self.read_bytes > 2 * MOST_BYTES:
            raise Endless
        return chunk

    def sendall(self, data: bytes) -> None:
        pass

    def settimeout(self, timeout_s: float) -> None:
        pass

    def recv_stderr_ready(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class OneShell:
    """Where a machine gets its shells: each talks to the same other end."""

    requests = 0

    def __init__(self, other_end: OtherEnd) -> None:
        self._shell = RemoteShell(other_end, "ssh://web", lambda: None)

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        yield self._shell

    def hire(self) -> RemoteShell:
        return self._shell

    def dismiss(self) -> None:
        pass

    def signal(self, pid: int, *, with_descendants: bool) -> None:
        pass


def ask_in_every_way(chunks: Callable[[], Iterable[bytes]]) -> list[OtherEnd]:
    """Do everything that a host does; what is no result and no error of ours fails the test."""
    sudo = Sudo("ssh://web", lambda _: "secret")
    both = (Command(argv=("true",)), Command(argv=("id",), as_root=True, may_fail=True))
    ways: tuple[Callable[[RemoteMachine], object], ...] = (
        lambda machine: machine.run(["true"], timeout_s=5).stdout,
        lambda machine: machine.run(["true"], timeout_s=5, as_root=True).duration_s,
        lambda machine: [machine.run_all(both)[index] for index in range(2)],
        lambda machine: machine.read(PATH).content,
        lambda machine: machine.look([PATH], trees=[1]).read(PATH).content,
        lambda machine: machine.write(PATH, FileState(content=b"x")),
        lambda machine: machine.start(["sleep", "1"]).pid,
        lambda machine: sudo.unlock(machine._shells.hire()),
        lambda machine: sandbox._ask_inside(machine._shells.hire(), "ssh://web"),
    )
    ends = []
    for way in ways:
        ends.append(OtherEnd(chunks()))
        machine = RemoteMachine("ssh://web", OneShell(ends[-1]), unlock=sudo.unlock)
        with contextlib.suppress(TargetError, ConfigRejected):
            way(machine)
    return ends


@given(answers=ANSWERS)
@example(answers=[b"started 7 0 999999999\nend\n"])
@example(answers=[b"started 7 0 nan\nend\n"])
def test_what_a_shell_answers_is_a_result_or_an_error_of_ours(answers):
    ask_in_every_way(lambda: answers)


@pytest.mark.parametrize(
    "chunk",
    [
        b"x" * 2**16,
        b"end " * 64,
        b"tree 1\n" * 1000,
        b"tree " + b"1 " * 1000,
        f"{RAN} 60000000 0 60000000 0\n".encode() + b"y" * 60_000,
        f"{RAN} 99999999999 0 0 0\n".encode() + b"y" * 60_000,
        b"missing 99999999999\n" + b"z" * 60_000,
        *(
            pytest.param(each, marks=pytest.mark.more)
            for each in (f"{RAN} 0 0 0 0\n".encode() * 500, b"locked\n" * 1000)
        ),
    ],
    ids=lambda chunk: chunk[:20].decode(),
)
def test_an_answer_without_an_end_is_given_up_before_it_fills_the_memory(chunk: bytes, caplog):
    caplog.set_level("INFO")  # which keeps what is logged until the test ends
    tracemalloc.start()
    try:
        ask_in_every_way(lambda: itertools.repeat(chunk))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 2 * MOST_BYTES


@contextlib.contextmanager
def listening(say: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on a port for one connection, and say something there until nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                connection.settimeout(20)
                say(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            with contextlib.suppress(OSError):
                socket.create_connection(server.getsockname(), timeout=1).close()
            thread.join()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "the banner of the host does not end"),
        (b"SSH-2.0-other\r\n" + struct.pack(">I", 2**31 - 4), "the host announced a packet of"),
    ],
    ids=["banner", "packet"],
)
def test_what_comes_before_the_host_key_is_bounded(tmp_path, monkeypatch, first: bytes, reason: str):
    monkeypatch.setenv("HOME", str(tmp_path))
    sent = [0]

    def say(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            sent[0] += connection.send(b"x" * 2**16)

    with listening(say) as port, pytest.raises(TargetError, match=reason):
        SshHost(f"ssh://root@127.0.0.1:{port}").run(["true"], timeout_s=5)

    # What the kernel keeps on the way included.
    assert sent[0] < 2**25


def test_a_packet_that_unpacks_into_too_much_is_refused():
    unpack = transport.BoundedDecompressor()

    assert unpack(zlib.compress(b"x" * 1000)) == b"x" * 1000
    with pytest.raises(paramiko.SSHException, match="packed more than"):
        transport.BoundedDecompressor()(zlib.compress(b"\0" * 2**24))
    with pytest.raises(paramiko.SSHException, match="cannot be unpacked"):
        transport.BoundedDecompressor()(b"nonsense")
