"""Load generators against real servers, whose headers vary: no correct response is taken for a wrong one."""

from collections.abc import Iterator

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.readiness import Manner, await_listener, request
from tuner.ports import FileState, LoadGenerator, LoadResult, Process, Sandbox, Upstream, Workload

BODY = b"a page of this length\n" * 20
PORT = 8080
URL = f"http://127.0.0.1:{PORT}/page.html"
NGINX = """
daemon off; pid {directory}/pid; error_log stderr; worker_processes 1; user root;
events {{ worker_connections 64; }}
http {{
  access_log off; keepalive_requests {requests};
  client_body_temp_path {directory}/temporary; proxy_temp_path {directory}/temporary;
  fastcgi_temp_path {directory}/temporary; uwsgi_temp_path {directory}/temporary;
  scgi_temp_path {directory}/temporary;
  server {{ listen 127.0.0.1:{port}{option}; root {directory}/content; }}
}}
"""
APACHE = """
ServerRoot {directory}
ServerName localhost
PidFile {directory}/pid
ErrorLog /dev/stderr
DefaultRuntimeDir {directory}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen 127.0.0.1:{port}
DocumentRoot {directory}/content
MaxKeepAliveRequests {requests}
{option}
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        opened.write(opened.directory / "content" / "page.html", FileState(content=BODY, mode=0o644))
        yield opened


def serve_nginx(sandbox: Sandbox, *, requests: int = 1000, option: str = "") -> Process:
    return _serve(sandbox, NGINX, ("nginx", "-c"), requests, option)


def serve_apache(sandbox: Sandbox, *, requests: int = 100, option: str = "") -> Process:
    return _serve(sandbox, APACHE, ("apache2", "-D", "FOREGROUND", "-f"), requests, option)


def _serve(sandbox: Sandbox, template: str, program: tuple[str, ...], requests: int, option: str) -> Process:
    """Start a server in the sandbox, with which it ends."""
    path = sandbox.directory / "server.conf"
    text = template.format(directory=sandbox.directory, port=PORT, requests=requests, option=option)
    sandbox.write(path, FileState(content=text.encode()))
    process = sandbox.start((*program, str(path)))

    def check_alive() -> None:
        assert process.poll() is None, process.output().decode()

    await_listener(sandbox, Upstream(port=PORT), timeout_s=10, check_alive=check_alive)
    return process


def send(load: LoadGenerator, sandbox: Sandbox, *, keepalive: bool, protocol: str = "http/1.1") -> LoadResult:
    """Probe the page as the core does, and load it for a moment."""
    response_bytes = None
    if protocol == "http/1.1":
        response_bytes = request(sandbox, URL, manner=Manner(keepalive=keepalive), timeout_s=5).response_bytes
    workload = Workload(
        url=URL,
        connections=8,
        keepalive=keepalive,
        duration_s=1.0,
        protocol=protocol,
        body_bytes=len(BODY),
        response_bytes=response_bytes,
        directory=sandbox.directory,
    )
    for path, content in load.files(workload).items():
        sandbox.write(path, FileState(content=content))
    completed = sandbox.run(load.command(workload), timeout_s=10)
    outputs = {path: sandbox.read(path).content or b"" for path in load.outputs(workload)}
    return load.parse(completed, outputs, workload)


@pytest.mark.parametrize("serve", [serve_nginx, serve_apache])
@pytest.mark.parametrize("keepalive", [True, False])
@pytest.mark.parametrize("load", [Wrk(), Ab()], ids=lambda load: load.name)
def test_correct_pages_are_correct(load, serve, keepalive, sandbox):
    serve(sandbox)

    result = send(load, sandbox, keepalive=keepalive)

    assert result.failures.total == 0
    assert result.correct > 0


def test_keepalive_headers_with_long_numbers_are_no_wrong_bodies(sandbox):
    serve_apache(sandbox, requests=1000000, option="KeepAliveTimeout 1000")

    result = send(Wrk(), sandbox, keepalive=True)

    assert result.failures.total == 0
    assert result.correct > 0


def test_connections_that_the_server_closes_after_some_requests_are_opened_again(sandbox):
    serve_nginx(sandbox, requests=20)

    for load in (Wrk(), Ab()):
        result = send(load, sandbox, keepalive=True)

        assert result.failures.total == 0, load.name
        assert result.correct > 20 * 8, load.name


def test_h2load_speaks_http2_over_cleartext(sandbox):
    serve_nginx(sandbox, requests=100000, option=" http2")

    result = send(H2load(), sandbox, keepalive=True, protocol="h2c")

    assert result.failures.total == 0
    assert result.aborted is None
    assert result.correct > 0


def test_h2load_says_that_it_opens_no_http2_connection_again(sandbox):
    serve_nginx(sandbox, requests=20, option=" http2")

    result = send(H2load(), sandbox, keepalive=True, protocol="h2c")

    assert result.correct == 20 * 8
    assert result.aborted is not None
    assert "closed 8 of 8" in result.aborted


def test_h2load_is_stopped_when_it_goes_on_after_its_window(sandbox):
    serve_nginx(sandbox, requests=1)

    # Now and then it notices by itself that its time is over.
    results = (send(H2load(), sandbox, keepalive=True) for _ in range(5))
    result = next(result for result in results if result.aborted is not None)

    assert "did not stop by itself" in result.aborted
    assert result.correct > 0
