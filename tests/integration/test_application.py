"""Applications that a study starts, behind real web servers."""

import os
import sys
from dataclasses import replace

import pytest

from tuner.campaign.prepare import prepare
from tuner.deploy.sandbox import Deadlines, SandboxTarget
from tuner.errors import Crashed, NotReady, UsageError
from tuner.study import load_study

PROGRAM = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if self.path == "/never" else 200)
        self.send_header("Content-Length", "11")
        self.end_headers()
        self.wfile.write(b"from behind")

    def log_message(self, *_):
        pass


if sys.argv[2:] == ["ends"]:
    sys.exit("no database")
HTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)

    def prepare_target(
        more: str = "", *, server: str = "nginx", port: str = "{port}", fixed: str = ""
    ) -> SandboxTarget:
        path = tmp_path / "study.yaml"
        command = f"[{sys.executable}, '{{folder}}/shop.py', '{port}'{more}]"
        path.write_text(
            f"study: shop\nservers: [{server}, sysctl]\nspace: [sysctl-net]\n"
            f"backend: {{command: {command}, {fixed}ready: /health}}\nload: {{path: /cart}}\n"
        )
        found = prepare(load_study(path)).target
        assert isinstance(found, SandboxTarget)
        return replace(found, deadlines=Deadlines(listen_s=5.0))

    return prepare_target


@pytest.mark.parametrize("server", ["apache", "h2o", "nginx"])
def test_requests_come_to_the_application_behind_the_server(target, server):
    with target(server=server).deploy({}) as deployment:
        assert deployment.load.url == "http://127.0.0.1:8080/cart"
        assert deployment.load.body_bytes == 11
        assert set(deployment.server_pids) == {server, "backend"}


def test_an_application_that_has_a_port_of_its_own_is_found_there(target):
    with target(port="3000", fixed="port: 3000, ").deploy({}) as deployment:
        assert deployment.load.body_bytes == 11


def test_an_application_on_the_port_of_the_server_is_refused(target):
    with pytest.raises(
        UsageError,
        match=r"backend\.port: the server nginx already listens on port 8080\. Let the application",
    ):
        target(port="8080", fixed="port: 8080, ")


def test_an_application_that_dies_in_the_middle_has_crashed_by_its_name(target):
    with target().deploy({}) as deployment:
        os.kill(deployment.server_pids["backend"], 9)
        deployment.processes["backend"].stop(timeout_s=5)

        with pytest.raises(Crashed, match=r"^backend: it was killed by signal 9"):
            deployment.check_alive()


def test_an_application_that_ends_at_once_is_quoted(target):
    ending = target(", ends")

    with (
        pytest.raises(Crashed, match=r"^backend: it ended by itself with status 1: no database"),
        ending.deploy({}),
    ):
        pass


def test_an_application_that_is_never_ready_is_named_with_its_address(target):
    impatient = replace(target(), ready={"backend": "/never"}, deadlines=Deadlines(listen_s=0.5))

    with (
        pytest.raises(NotReady, match=r"http://127\.0\.0\.1:9000/never answered 503 with 11 bytes"),
        impatient.deploy({}),
    ):
        pass
