"""WebSocket messages: the load that compares every echo, alone, through real servers, and before bad ones."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.more import leave_to_more
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.websocket import WebSocket
from tuner.campaign.prepare import prepare
from tuner.errors import UsageError
from tuner.plugins import make_private_server
from tuner.ports import WEBSOCKET, Completed, LoadResult, Site, Upstream, Workload
from tuner.study import load_study

CONNECTIONS = 4


def send(
    port: int, *, connections: int = CONNECTIONS, duration_s: float = 0.5, **changes: object
) -> LoadResult:
    workload = Workload(
        url=f"http://127.0.0.1:{port}/", connections=connections, duration_s=duration_s,
        **{"keepalive": True, **changes},
    )  # fmt: skip
    open_files = changes.get("open_files")
    completed = LocalHost().run(
        WebSocket().command(workload), timeout_s=duration_s + 10, open_files=open_files
    )
    return WebSocket().parse(completed, {}, workload)


@contextmanager
def serving(answer: Callable[[ServerConnection], object], **options: object) -> Iterator[int]:
    """Serve WebSockets in a thread on a free port."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    ports: list[int] = []

    async def run() -> None:
        async with serve(answer, "127.0.0.1", 0, compression=None, **options) as server:
            ports.append(next(iter(server.sockets)).getsockname()[1])
            ready.set()
            await ended.wait()

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def alter(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(bytes(reversed(message)))


async def shorten(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message[1:])


async def repeat_first(connection: ServerConnection) -> None:
    first = await anext(aiter(connection))
    await connection.send(first)
    async for _ in connection:
        await connection.send(first)


async def fragment(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.ping()
        await connection.send([message[:10], message[10:]])


async def hang_up(connection: ServerConnection) -> None:
    await connection.recv()


async def say_nothing(connection: ServerConnection) -> None:
    await connection.wait_closed()


def refuse(connection: ServerConnection, _request: object) -> object:
    return connection.respond(HTTPStatus.FORBIDDEN, "no\n")


class TestLoad:
    @pytest.mark.parametrize("keepalive", [True, False])
    def test_every_echo_counts_once(self, keepalive):
        with serving(echo) as port:
            result = send(port, keepalive=keepalive)

        assert result.correct > CONNECTIONS
        assert result.failures.total == 0
        assert result.bytes == 64 * result.correct
        assert result.latency is not None
        assert result.latency.samples == result.correct
        assert result.connect_time is not None

    def test_several_processes_add_up(self):
        with serving(echo) as port:
            result = send(port, threads=2)

        assert result.correct > CONNECTIONS
        assert result.failures.total == 0

    def test_an_echo_in_pieces_between_pings_is_read_all_the_same(self):
        with serving(fragment) as port:
            result = send(port)

        assert result.correct > CONNECTIONS
        assert result.failures.total == 0

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [(alter, "other"), (shorten, "length"), (hang_up, "read"), (say_nothing, "timeout")],
    )
    def test_what_is_not_the_echo_is_a_failure_of_its_kind(self, answer, kind):
        with serving(answer) as port:
            result = send(port)

        assert result.correct == 0
        assert getattr(result.failures, kind) > 0
        assert result.failures.total == getattr(result.failures, kind)
        assert result.latency is None

    def test_the_echo_of_an_earlier_message_is_none(self):
        with serving(repeat_first) as port:
            result = send(port)

        assert result.failures.other > 0
        # The first echo of a connection is right, the next one is not.
        assert result.correct <= result.failures.other + CONNECTIONS

    def test_a_refused_handshake_is_a_wrong_status(self):
        with serving(echo, process_request=refuse) as port:
            result = send(port)

        assert (result.correct, result.failures.status > 0) == (0, True)

    def test_nobody_there_is_a_failed_connection(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            result = send(taken.getsockname()[1])

        assert (result.correct, result.failures.connect > 0, result.generator_fault) == (0, True, None)

    def test_output_that_was_cut_is_no_result(self):
        from tuner.errors import LoadFailed

        cut = Completed(argv=(), returncode=0, stdout=b'{"correct": 3', stderr=b"", duration_s=1)
        workload = Workload(url="http://127.0.0.1/", connections=1, keepalive=True, duration_s=1)

        with pytest.raises(LoadFailed, match="its result cannot be read"):
            WebSocket().parse(cut, {}, workload)


STUDY = "study: echo\nservers: [{server}]\nspace: [{space}]\nbackend: websocket-echo\nload: {load}\n"
LOAD = "{generator: websocket, path: /, connections: 4}"


@pytest.fixture
def study(tmp_path: Path):
    def write(server: str, space: str, load: str = LOAD):
        path = tmp_path / "study.yaml"
        path.write_text(STUDY.format(server=server, space=space, load=load))
        return load_study(path)

    return write


@pytest.mark.parametrize(
    ("server", "space"),
    leave_to_more([
        ("nginx", "nginx"), ("apache", "apache-event"), ("apache-worker", "apache-worker"),
        ("apache-prefork", "apache-prefork"),
    ]),
)  # fmt: skip
def test_messages_come_back_through_every_server(study, server, space):
    setup = prepare(study(server, space))

    with setup.target.deploy(setup.space.default()) as deployment:
        workload = Workload(url=deployment.load.url, connections=4, keepalive=True, duration_s=1.0)
        completed = deployment.host.run(WebSocket().command(workload), timeout_s=10)
        result = WebSocket().parse(completed, {}, workload)

    assert result.correct > 0
    assert result.failures.total == 0
    assert set(deployment.server_pids) == {server, "backend"}


def test_an_older_apache_is_given_the_module_for_tunnels():
    server = make_private_server("apache")
    facts = server.detect(LocalHost())
    older = type(facts)(version=(2, 4, 46), program=facts.program, modules=facts.modules)
    folder = Path("/site")
    site = Site(directory=folder, document_root=folder, backend=Upstream(protocol=WEBSOCKET, port=9000))

    (now,), (before,) = (server.render({}, site, each).values() for each in (facts, older))

    assert b"ProxyPass / http://127.0.0.1:9000/ upgrade=websocket\n" in now
    assert b"RewriteRule ^/(.*) ws://127.0.0.1:9000/$1 [P,L]\n" in before
    assert b"mod_proxy_wstunnel.so" in before


@pytest.mark.parametrize(
    ("server", "load", "said"),
    [
        (
            "nginx",
            "{generator: wrk, path: /}",
            r"wrk sends http, .* this study needs websocket\. Write one of websocket",
        ),
        ("h2o", LOAD, "h2o cannot pass requests to backend .websocket."),
    ],
)
def test_a_load_or_a_server_that_knows_no_messages_is_refused(study, server, load, said):
    with pytest.raises(UsageError, match=said):
        prepare(study(server, server, load))


def test_messages_for_a_server_of_pages_are_refused(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("study: s\nservers: [nginx]\nspace: [nginx]\nload: {generator: websocket}\n")

    with pytest.raises(
        UsageError, match=r"websocket sends websocket, .* this study needs http\. Write one of ab, "
    ):
        prepare(load_study(path))
