from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.readiness import (
    Answer,
    Manner,
    await_answer,
    await_listener,
    is_listening,
    read_answer,
    request,
    waiting_request,
)
from tuner.errors import NotReady, TargetError
from tuner.ports import H2, H2C, HTTP1, FileState, RequestKind, Upstream
from tuner.testing.fakes import SANDBOX_PID, MemorySandbox, completed, curl_gets

URL = "http://127.0.0.1:8080/index.html"
KEPT = Manner(keepalive=True)
ANY_PAGE = RequestKind(path="/index.html")
PAGE = replace(ANY_PAGE, body_bytes=5)


def answering(*answers: Answer) -> Callable[[], Answer]:
    """Give one answer after the other, and the last again and again."""

    def sequence() -> Iterator[Answer]:
        yield from answers
        while True:
            yield answers[-1]

    following = sequence()
    return lambda: next(following)


def test_a_target_without_curl_is_told_what_is_missing():
    command = waiting_request(URL, manner=KEPT, timeout_s=5, kind=ANY_PAGE)
    argv = ["no-such-program" if word == "curl" else word for word in command.argv]
    ended = LocalHost().run(argv, timeout_s=5)

    with pytest.raises(TargetError, match=r"this host has no curl.*apt-get install curl"):
        read_answer(ended, LocalHost())


UNIX_TABLE = b"""\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/a page.sock
0000000000000000: 00000003 00000000 00000000 0001 03 4712 /run/connected.sock
0000000000000000: 00000003 00000000 00000000 0001 03 4713
"""


def answer(status: int, body_bytes: int = 5, said: str = "hello") -> Answer:
    return Answer(
        status=status, body_bytes=body_bytes, response_bytes=body_bytes + 100, said=said, body=said.encode()
    )


def test_only_a_listener_on_the_very_port_counts():
    sandbox = MemorySandbox(listening={80, 18080})

    assert not is_listening(sandbox, Upstream(port=8080))
    sandbox.listening.add(8080)
    assert is_listening(sandbox, Upstream(port=8080))


def test_waiting_for_a_listener_ends_at_the_deadline():
    with pytest.raises(NotReady, match=r"nothing listens on port 8080 after 0\.01 s"):
        await_listener(MemorySandbox(), Upstream(port=8080), timeout_s=0.01, check_alive=lambda: None)


def test_waiting_for_a_listener_ends_at_once_when_the_server_is_gone():
    def gone():
        raise TargetError

    with pytest.raises(TargetError):
        await_listener(MemorySandbox(), Upstream(port=8080), timeout_s=3600, check_alive=gone)


def test_the_right_answer_is_given_back():
    assert await_answer(answering(answer(200)), PAGE, url=URL, retry_s=0) == answer(200)
    assert await_answer(answering(answer(200)), ANY_PAGE, url=URL, retry_s=0) == answer(200)


def test_a_page_that_is_404_names_both_what_came_and_what_was_expected():
    with pytest.raises(NotReady) as raised:
        await_answer(answering(answer(404, 9, "Not found")), PAGE, url=URL, retry_s=3600)

    assert f"{URL} answered 404 with 9 bytes, where 200 with 5 bytes was expected: 'Not found'" in str(
        raised.value
    )


def test_a_body_of_another_length_is_not_ready():
    with pytest.raises(NotReady, match="answered 200 with 4 bytes, where 200 with 5 bytes"):
        await_answer(answering(answer(200, 4)), PAGE, url=URL, retry_s=3600)


@pytest.mark.parametrize("status", [0, 502, 503, 504])
def test_a_backend_that_is_still_starting_is_asked_again(status: int):
    ask = answering(answer(status), answer(status), answer(200))

    assert await_answer(ask, PAGE, url=URL, retry_s=3600).status == 200


def test_a_server_that_keeps_answering_503_is_not_ready():
    with pytest.raises(NotReady, match="answered 503"):
        await_answer(answering(answer(503)), ANY_PAGE, url=URL, retry_s=0)


def test_a_server_that_never_answers_is_not_ready():
    silent = Answer(status=0, body_bytes=0, response_bytes=0, said="curl: (28) Operation timed out")

    with pytest.raises(NotReady, match=r"gave no answer \(curl: \(28\) Operation timed out\)"):
        await_answer(answering(silent), PAGE, url=URL, retry_s=0)


def test_a_request_counts_header_and_body():
    sandbox = MemorySandbox(commands={"curl": curl_gets(200, b"hello", header_bytes=231)})

    assert request(sandbox, URL, manner=KEPT, timeout_s=5) == Answer(
        status=200, body_bytes=5, response_bytes=236, said="hello", body=b"hello"
    )


@pytest.mark.parametrize(("keepalive", "header"), [(True, "keep-alive"), (False, "close")])
def test_a_request_asks_for_the_connection_that_the_load_will_use(keepalive: bool, header: str):  # noqa: FBT001
    sandbox = MemorySandbox(commands={"curl": curl_gets(200, b"hello")})

    request(sandbox, URL, manner=Manner(keepalive=keepalive), timeout_s=5)

    assert f"Connection: {header}" in sandbox.ran[0]


def test_a_request_that_fails_says_why():
    failed = completed(returncode=52, stderr=b"curl: (52) Empty reply from server\n\n000 0 0")
    sandbox = MemorySandbox(commands={"curl": lambda *_: failed})

    assert request(sandbox, URL, manner=KEPT, timeout_s=5).said == "curl: (52) Empty reply from server"


def test_a_request_that_was_killed_is_no_answer():
    sandbox = MemorySandbox(commands={"curl": lambda *_: completed(returncode=-9)})

    assert request(sandbox, URL, manner=KEPT, timeout_s=5).status == 0


@pytest.mark.parametrize(
    ("protocol", "option"), [(HTTP1, "--http1.1"), (H2, "--http2"), (H2C, "--http2-prior-knowledge")]
)
def test_a_request_speaks_what_the_load_will_speak(protocol: str, option: str):
    sandbox = MemorySandbox(commands={"curl": curl_gets(200, b"hello")})

    request(sandbox, URL, manner=Manner(keepalive=True, protocol=protocol), timeout_s=5)

    assert option in sandbox.ran[0]
    # A header of the connection makes a request over HTTP/2 malformed.
    assert ("Connection: keep-alive" in sandbox.ran[0]) is (protocol == HTTP1)


def test_an_answer_over_another_protocol_than_was_asked_for_is_none():
    sandbox = MemorySandbox(commands={"curl": curl_gets(200, b"hello")})

    found = request(sandbox, URL, manner=Manner(keepalive=True, protocol=H2), timeout_s=5)

    assert (found.status, found.said) == (0, "the server speaks HTTP/1.1 instead of h2")


def test_the_certificate_is_checked_by_its_file_and_another_one_is_named_as_the_reason():
    said = (
        b"curl: (60) SSL certificate problem: self-signed certificate\nMore details here: https://curl.se\n"
    )
    failed = completed(returncode=60, stderr=said + b"\n000 0 0 0")
    sandbox = MemorySandbox(commands={"curl": lambda *_: failed})
    manner = Manner(keepalive=True, certificate=PurePosixPath("/own/certificate.pem"))

    found = request(sandbox, "https://127.0.0.1:8080/", manner=manner, timeout_s=5)

    assert "--cacert" in sandbox.ran[0]
    assert "/own/certificate.pem" in sandbox.ran[0]
    assert found.said == (
        "the certificate of the server is not trusted: curl: (60) SSL certificate problem: self-signed "
        "certificate. Set `load.ca:` to the CA file of this certificate, or set `load.verify: false`"
    )


@pytest.mark.parametrize(
    ("manner", "kind"),
    [
        (Manner(keepalive=True, accept_encoding="gzip"), ANY_PAGE),
        (KEPT, RequestKind(path="/", headers={"Accept-encoding": "gzip"})),
    ],
)
def test_an_answer_that_may_be_compressed_is_unpacked_and_counted_as_it_came(
    manner: Manner, kind: RequestKind
):
    packed = completed(stdout=b"hello hello hello", stderr=b"\n200 9 100 1.1")
    sandbox = MemorySandbox(commands={"curl": lambda *_: packed})

    found = request(sandbox, URL, manner=manner, timeout_s=5, kind=kind)

    assert "--compressed" in sandbox.ran[0]
    assert (found.body, found.body_bytes, found.response_bytes) == (b"hello hello hello", 9, 109)


def test_a_request_that_accepts_nothing_special_says_nothing_of_it():
    sandbox = MemorySandbox(commands={"curl": curl_gets(200, b"hello")})

    request(sandbox, URL, manner=KEPT, timeout_s=5)

    assert "--compressed" not in sandbox.ran[0]
    assert "--cacert" not in sandbox.ran[0]


@pytest.mark.parametrize(
    ("path", "listens"),
    [("/run/a page.sock", True), ("/run/connected.sock", False), ("/run/a", False), ("/page.sock", False)],
)
def test_a_unix_socket_counts_when_it_accepts_connections_at_the_very_path(path: str, *, listens: bool):
    table = PurePosixPath(f"/proc/{SANDBOX_PID}/net/unix")
    sandbox = MemorySandbox(files={table: FileState(content=UNIX_TABLE)})

    assert is_listening(sandbox, Upstream(socket=PurePosixPath(path))) is listens
