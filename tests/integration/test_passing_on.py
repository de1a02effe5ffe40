"""Settings of passing requests on: what real nginx and Apache take of them, and what they do with them."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from random import Random

import pytest

from tests.more import leave_to_more
from tuner.adapters.hosts.local import LocalHost
from tuner.campaign.prepare import Setup, prepare
from tuner.deploy.deployment import Deployment
from tuner.deploy.readiness import Manner, request
from tuner.deploy.sandbox import SandboxTarget
from tuner.plugins import make_private_server
from tuner.ports import FASTCGI, HTTP, WEBSOCKET, Config, FileState, Host, Scalar, Site, Upstream
from tuner.space import Space, SpaceFacts, load_space
from tuner.space.parameters import Dimension
from tuner.study import load_study

SPACES = {"nginx": "nginx", "apache": "apache-event", "apache-prefork": "apache-prefork"}
OF_PASSING = ("upstream_", "proxy_", "fastcgi_", "Proxy")
BEHIND = {
    HTTP: Upstream(port=9000),
    FASTCGI: Upstream(protocol=FASTCGI, port=9000),
    WEBSOCKET: Upstream(protocol=WEBSOCKET, port=9000),
}
CHILDREN = 200
"""So many processes of php-fpm that connections to it can be kept."""


@cache
def space_of(server: str, protocol: str) -> Space:
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 16384,
        "connections": 100,
        "open_files_max": 8192,
        "somaxconn": 4096,
    }
    facts = SpaceFacts(names=names, backends={server: protocol}, versions={server: versions(server)})
    sources = [SPACES[server], {"allow": ["semantic"]}]
    if protocol == FASTCGI:
        sources += ["php-fpm", {"set": {"pm.max_children": CHILDREN}}]
    return load_space(sources, facts=facts, base=Path())


@cache
def versions(server: str) -> tuple[int, ...]:
    return make_private_server(server).detect(LocalHost()).version


def values_of(dimension: Dimension) -> list[Scalar]:
    """Return both ends and two values between, or all choices."""
    if dimension.choices:
        return list(dimension.choices)
    chance = Random(dimension.name)  # noqa: S311 - a fixed selection
    drawn = [chance.uniform(dimension.low, dimension.high) for _ in range(2)]
    between = [int(value) for value in drawn] if dimension.kind == "int" else drawn
    return [dimension.low, dimension.high, *between]


def points_of(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield the default, and every value of every setting, beside kept connections where it needs them."""
    kept = {"upstream_keepalive:special": "number", "ProxyPass.enablereuse": True}
    beside = {name: value for name, value in kept.items() if name in {each.name for each in space.dimensions}}
    yield {}
    for dimension in space.dimensions:
        if dimension.parameter.startswith(OF_PASSING):
            for value in values_of(dimension):
                special = f"{dimension.parameter}:special"
                apart = special in {each.name for each in space.dimensions} and dimension.name != special
                yield {**beside, **({special: "number"} if apart else {}), dimension.name: value}


@pytest.mark.parametrize("protocol", BEHIND)
@pytest.mark.parametrize("server", leave_to_more(SPACES, "nginx"))
def test_every_value_is_written_accepted_and_read_back(server: str, protocol: str, tmp_path: Path):
    host, adapter, space = LocalHost(), make_private_server(server), space_of(server, protocol)
    facts = adapter.detect(host)
    www = PurePosixPath(tmp_path / "www")
    site = Site(directory=PurePosixPath(tmp_path / "own"), document_root=www, backend=BEHIND[protocol])
    for folder in (site.directory, www):
        Path(folder).mkdir()
    seen: set[str] = set()
    for point in points_of(space):
        config = space.for_server(space.decode(point), server)

        found = _read_back(host, server, config, site)

        own = {name: value for name, value in config.items() if name.startswith(OF_PASSING)}
        assert found == own, point
        assert {name: type(value) for name, value in found.items()} == {
            name: type(own[name]) for name in found
        }
        seen |= own.keys()
    tuned = {each.parameter for each in space.dimensions if each.parameter.startswith(OF_PASSING)}
    assert facts.version
    assert tuned <= seen


def _read_back(host: Host, server: str, config: Config, site: Site) -> Config:
    """Write a configuration, let the program check it, and read what it takes from it."""
    from tuner.adapters.servers.apache import read_back as of_apache
    from tuner.adapters.servers.nginx import read_back as of_nginx

    adapter = make_private_server(server)
    facts = adapter.detect(host)
    (file,) = adapter.render(config, site, facts)
    host.write(file, FileState(content=adapter.render(config, site, facts)[file], mode=0o644))
    checked = host.run(adapter.check(site, facts) or (), timeout_s=10)
    assert (checked.returncode, adapter.refusals(checked)) == (0, ())
    read_back = of_nginx if server == "nginx" else of_apache
    return read_back.read_printed(host, config, facts, site)


PROGRAM = """
import socket, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Who(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"%5d" % self.client_address[1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Who).serve_forever()
"""
"""Answers with the port of the connection that asked, so that a kept one is seen."""
ONE_PROCESS = {
    "nginx": {"worker_processes": 1},
    "apache": {"Processes": 1, "ThreadsPerChild": 25, "StartServers": 1, "MinSpareThreads": 1},
}


@pytest.fixture
def setup(tmp_path: Path) -> Callable[..., Setup]:
    tmp_path.chmod(0o755)
    (tmp_path / "who.py").write_text(PROGRAM)

    def make(server: str, more: str, path: str = "/", *spaces: str) -> Setup:
        study = tmp_path / "study.yaml"
        allow = "{allow: [capacity, semantic]}"
        servers, named = ", ".join((server, *spaces)), ", ".join((SPACES[server], *spaces))
        study.write_text(
            f"study: who\nservers: [{servers}]\nspace: [{named}, {allow}]\n{more}load: {{path: {path}}}\n"
        )
        return prepare(load_study(study))

    return make


APPLICATION = f"backend: {{command: [{sys.executable}, '{{folder}}/who.py', '{{port}}']}}\n"


def ask(deployment: Deployment) -> bytes:
    return request(deployment.host, deployment.load.url, manner=Manner(keepalive=False), timeout_s=5).body


@pytest.mark.parametrize(
    ("server", "kept", "made_anew"),
    [
        ("nginx", {"upstream_keepalive": 4}, {}),
        ("apache", {}, {"ProxyPass.enablereuse": False}),
        (
            "apache",
            {"ProxyPass.balancer": True},
            {"ProxyPass.balancer": True, "ProxyPass.enablereuse": False},
        ),
    ],
)
def test_a_connection_to_the_application_is_kept_where_it_is_asked_for(setup, server, kept, made_anew):
    made = setup(server, APPLICATION)

    for values, is_kept in ((kept, True), (made_anew, False)):
        config = made.space.complete({**ONE_PROCESS[server], **values}, fit=True)
        with made.target.deploy(config) as deployment:
            assert (ask(deployment) == ask(deployment)) is is_kept, values


@pytest.mark.parametrize(
    ("server", "kept"), [("nginx", {"upstream_keepalive": 2}), ("apache", {"ProxyPass.enablereuse": True})]
)
@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_a_connection_to_php_is_kept_where_it_is_asked_for(setup, server, kept, listen):
    made = setup(server, "", "/page.php", "php-fpm")
    php = {"pm.max_children": 64, "listen": listen}
    found = []

    for values in ({}, kept):
        config = made.space.complete({**ONE_PROCESS[server], **php, **values}, fit=True)
        with made.target.deploy(config) as deployment:
            ask(deployment)
            found.append(count_established(deployment, listen))

    assert found == [0, 1]


def count_established(deployment: Deployment, listen: str) -> int:
    """Count what php-fpm has open: its side of the connections."""
    kind, mark = ("-tnH", "127.0.0.1:9000 ") if listen == "tcp" else ("-xH", "php-fpm.sock")
    listed = deployment.host.run(("ss", kind, "state", "established"), timeout_s=5).stdout.decode()
    if listen == "tcp":
        return sum(line.split()[2] == mark.strip() for line in listed.splitlines())
    return listed.count(mark)


def test_a_target_of_an_untuned_front_has_its_packaged_defaults(setup):
    made = setup("nginx", "", "/page.php", "php-fpm")
    target = made.target
    assert isinstance(target, SandboxTarget)

    with replace(target).deploy(made.space.default()) as deployment:
        assert deployment.effective["fastcgi_keep_conn"] is False
