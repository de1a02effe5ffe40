"""Slow clients on a socket of this process."""

import selectors
import socket
import ssl
import subprocess
import sys

import pytest

from tuner.measure.check_loads import TOOL
from tuner.measure.slow_clients import MOST_CLIENTS, MOST_S

CLIENTS = 5


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def command(port, *more, clients=CLIENTS, seconds=60.0):
    return [
        sys.executable, "-I", "-S", str(TOOL),
        "--port", str(port), "--clients", str(clients), "--seconds", str(seconds), *more,
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
    assert b"the limits are 600 seconds and 2000 clients" in completed.stderr


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Make two servers' contexts, each with the file of its certificate."""
    made = []
    for name in ("own", "other"):
        folder = tmp_path_factory.mktemp(name)
        key, file = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(file)),
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file, key)
        context.set_alpn_protocols(["h2", "http/1.1"])
        made.append((context, str(file)))
    return made


@pytest.mark.parametrize(
    ("more", "protocol", "beginning"),
    [((), None, b"GET / HTTP/1.1\r\n"), (("--http2",), "h2", b"PRI * HTTP/2.0\r\n")],
)
def test_over_tls_the_handshake_is_quick_and_what_follows_is_slow(
    listener, certificates, more, protocol, beginning
):
    context, file = certificates[0]
    with (
        subprocess.Popen(
            command(listener.getsockname()[1], "--certificate", file, *more, clients=1),
            stdout=subprocess.PIPE,
        ) as process,
        context.wrap_socket(listener.accept()[0], server_side=True) as connection,
    ):
        assert connection.selected_alpn_protocol() == protocol
        assert process.stdout.readline() == b"ready 1\n"
        received = connection.recv(100) + connection.recv(100)
        process.kill()

    assert beginning.startswith(received)


def test_with_a_server_of_another_certificate_they_do_not_speak(listener, certificates):
    (context, _), (_, file) = certificates
    with subprocess.Popen(
        command(listener.getsockname()[1], "--certificate", file, clients=1), stdout=subprocess.PIPE
    ) as process:
        with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca|certificate"):
            context.wrap_socket(listener.accept()[0], server_side=True).recv(100)
        assert process.stdout.readline() == b"ready 0\n"
        process.kill()


def test_http2_in_the_clear_begins_with_its_preface(listener):
    with subprocess.Popen(
        command(listener.getsockname()[1], "--http2", clients=1), stdout=subprocess.PIPE
    ) as process:
        connection = listener.accept()[0]
        received = read_some([connection], least=2)[0]
        process.kill()
        connection.close()

    assert b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".startswith(received)
