"""Slow clients on a socket of this process."""

import selectors
import socket
import subprocess
import sys

import pytest

from tuner.measure.situations import TOOL
from tuner.measure.slow_clients import MOST_CLIENTS, MOST_S

CLIENTS = 5


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def command(port, *, clients=CLIENTS, seconds=60.0):
    return [
        sys.executable, "-I", "-S", str(TOOL),
        "--port", str(port), "--clients", str(clients), "--seconds", str(seconds),
    ]  # fmt: skip


@pytest.fixture
def started(listener):
    with subprocess.Popen(command(listener.getsockname()[1]), stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def read_some(connections, least):
    """Read until so many bytes have come on each connection."""
    received = dict.fromkeys(connections, b"")
    with selectors.DefaultSelector() as selector:
        for each in connections:
            selector.register(each, selectors.EVENT_READ)
        while min(map(len, received.values())) < least:
            for key, _ in selector.select():
                received[key.fileobj] += key.fileobj.recv(100)
    return list(received.values())


def test_all_send_their_header_byte_by_byte_and_say_when_they_have_begun(listener, started):
    connections = [listener.accept()[0] for _ in range(CLIENTS)]

    assert started.stdout.readline() == b"ready 5\n"
    received = read_some(connections, least=2)

    assert all(b"GET / HTTP/1.1\r\n".startswith(each) for each in received)
    for each in connections:
        each.close()


def test_who_is_sent_away_comes_again(listener, started):
    first = [listener.accept()[0] for _ in range(CLIENTS)]
    assert started.stdout.readline() == b"ready 5\n"
    for each in first:
        each.close()

    again = [listener.accept()[0] for _ in range(CLIENTS)]

    assert len(again) == CLIENTS
    for each in again:
        each.close()


def test_they_end_by_themselves(listener):
    port = listener.getsockname()[1]
    completed = subprocess.run(command(port, seconds=0.2), capture_output=True, timeout=60, check=False)

    assert completed.returncode == 0


@pytest.mark.parametrize("asked", [{"clients": MOST_CLIENTS + 1}, {"seconds": MOST_S + 1}, {"clients": 0}])
def test_their_number_and_time_are_bounded(asked):
    completed = subprocess.run(command(1, **asked), capture_output=True, timeout=60, check=False)

    assert completed.returncode == 2
    assert b"at most 600 seconds and 2000 clients" in completed.stderr
