"""Real servers over TLS and HTTP/2: their certificate, what they answer, what generators make of them."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.more import leave_to_more
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.wrk import Wrk
from tuner.adapters.servers.nginx import Nginx
from tuner.campaign.prepare import Setup, prepare
from tuner.deploy.certificate import make_certificate
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.sandbox import SandboxDeployment, SandboxTarget
from tuner.errors import NotReady, TargetError, UsageError
from tuner.hosts.placement import place
from tuner.measure.check_loads import slow_clients
from tuner.measure.window import Load, run_window
from tuner.ports import HTTP1, Config, Facts, Files, LoadShape, Scalar, Site
from tuner.study import load_study

STUDY = """\
study: spoken
servers: [{server}]
space: [{space}, {{allow: [semantic, risky]}}]
load: {{generator: {generator}, connections: 8, {load}}}
"""
SPACES = {
    "nginx": "nginx", "h2o": "h2o", "apache": "apache-event", "apache-worker": "apache-worker",
    "apache-prefork": "apache-prefork", "apache-mpm": "apache-mpm",
}  # fmt: skip
LOADS = {"tls": "tls: true", "h2": "protocol: h2", "h2c": "protocol: h2c"}
GENERATORS = {"tls": "wrk", "h2": "h2load", "h2c": "h2load"}
COMBINATIONS = [
    (server, spoken) for server in SPACES for spoken in LOADS if server != "apache-prefork" or spoken == "tls"
]


def open_setup(tmp_path: Path, server: str, spoken: str, generator: str = "") -> Setup:
    path = tmp_path / "study.yaml"
    generator = generator or GENERATORS.get(spoken, "h2load")
    path.write_text(
        STUDY.format(server=server, space=SPACES[server], generator=generator, load=LOADS.get(spoken, spoken))
    )
    return prepare(load_study(path))


@pytest.mark.parametrize(
    ("server", "spoken"), leave_to_more(COMBINATIONS, ("nginx", "h2"), ("h2o", "tls"), ("apache", "h2c"))
)
def test_the_default_answers_over_what_the_load_speaks_and_is_in_force(
    server: str, spoken: str, tmp_path: Path
):
    setup = open_setup(tmp_path, server, spoken)

    with setup.target.deploy(setup.space.default()) as deployment:
        assert deployment.load.url.startswith("http://" if spoken == "h2c" else "https://")
        assert deployment.load.body_bytes == 615
        assert deployment.effective.items() <= deployment.config.items()
        window = run_window(deployment, setup.load, 3.0)  # a pause of a quarter of it is a loss

    assert window.correct > 100
    assert window.failures.total == 0


@pytest.mark.parametrize("keepalive", [True, False])
@pytest.mark.parametrize("generator", ["wrk", "ab"])
def test_generators_of_http1_send_over_tls(generator: str, tmp_path: Path, *, keepalive: bool):
    setup = open_setup(tmp_path, "nginx", f"tls: true, keepalive: {keepalive}", generator)

    with setup.target.deploy(setup.space.default()) as deployment:
        window = run_window(deployment, setup.load, 1.0)
        longer = replace(deployment.load, body_bytes=600, response_bytes=700)
        wrong = run_window(replace(deployment, load=longer), setup.load, 1.0)

    assert window.correct > 100
    assert window.failures.total == 0
    assert wrong.correct == 0


@pytest.mark.parametrize("server", ["nginx", "h2o", "apache"])
def test_several_requests_at_once_on_a_connection_are_counted_each(server: str, tmp_path: Path):
    setup = open_setup(tmp_path, server, "protocol: h2, streams: 10")
    kept = {"keepalive_requests": 1000000} if server == "nginx" else {}

    with setup.target.deploy(setup.space.default() | kept) as deployment:
        window = run_window(deployment, setup.load, 1.0)

    assert window.correct > 100
    assert window.failures.total == 0
    assert window.verdicts == () or all(each.check != "generator" for each in window.verdicts)


def test_a_server_that_closes_connections_which_the_generator_does_not_open_again_is_no_failing_server(
    tmp_path: Path,
):
    setup = open_setup(tmp_path, "nginx", "protocol: h2, streams: 10")

    with setup.target.deploy(setup.space.default() | {"keepalive_requests": 100}) as deployment:
        window = run_window(deployment, setup.load, 3.0)  # on a busy machine, too

    (verdict,) = (each for each in window.verdicts if each.check == "generator")
    assert verdict.blame == "environment"
    assert "of 8 HTTP/2 connections" in verdict.reason


def test_a_fixed_rate_is_kept_over_tls(tmp_path: Path):
    setup = open_setup(tmp_path, "nginx", "tls: true", "wrk")
    assert setup.fixed_rate is not None

    with setup.target.deploy(setup.space.default()) as deployment:
        window = run_window(deployment, replace(setup.fixed_rate, rate_rps=200), 1.0)

    assert window.failures.total == 0
    assert window.correct == pytest.approx(200, rel=0.2)


@pytest.mark.more
@pytest.mark.alone  # a connection that waits for a CPU is counted as lost
@pytest.mark.parametrize("spoken", LOADS)
@pytest.mark.parametrize("server", ["nginx", "h2o", "apache"])
def test_slow_clients_take_their_time_over_what_the_load_speaks(server: str, spoken: str, tmp_path: Path):
    setup = open_setup(tmp_path, server, spoken)
    # The event MPM closes kept connections while all threads of a process are busy (server/mpm/event/event.c,
    # "All workers are busy"), so one has threads for all: with 25, 4 to 9 % of the requests failed.
    room = {"ThreadsPerChild": 64} if server == "apache" else {}
    ask = ("ss", "-tnH", "state", "established", "sport = :8080")

    with setup.target.deploy(setup.space.complete(room)) as deployment:
        assert isinstance(deployment, SandboxDeployment)
        with slow_clients(deployment, 20, seconds=1.0, protocol=setup.load.shape.protocol) as are_there:
            held = deployment.sandbox.run(ask, timeout_s=5).stdout.decode().splitlines()
            window = run_window(deployment, setup.load, 1.0)

    assert are_there
    assert len(held) == 20
    assert window.correct > 100
    assert window.failures.total == 0


class Other(Nginx):
    """An nginx that shows another certificate than the one that was made for it."""

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        with LocalHost().sandbox() as elsewhere:
            made = make_certificate(elsewhere)
            other = {
                site.directory / "other.pem": elsewhere.read(made.file).content or b"",
                site.directory / "other-key.pem": elsewhere.read(made.key).content or b"",
            }
        assert site.certificate is not None
        shown = replace(
            site.certificate, file=site.directory / "other.pem", key=site.directory / "other-key.pem"
        )
        return {**super().render(config, replace(site, certificate=shown), facts), **other}


def test_a_server_with_another_certificate_is_refused():
    host, server = LocalHost(), Other()
    facts = {"nginx": server.detect(host)}
    target = SandboxTarget(
        host=host, servers={"nginx": server}, facts=facts, chain=link(facts, {}), split=lambda *_: {},
        content=open_content("builtin", "/index.html"), placement=place(os.sched_getaffinity(0)),
        has_tls=True,
    )  # fmt: skip

    with (
        pytest.raises(
            NotReady,
            match=r"the certificate of the server is not trusted: curl: \(60\) SSL certificate problem",
        ),
        target.deploy({}),
    ):
        pass


@pytest.mark.parametrize("spoken", ["h2", "h2c"])
def test_prefork_serves_no_http2_and_the_module_is_named(spoken: str, tmp_path: Path):
    with pytest.raises(TargetError, match="mod_http2 serves no HTTP/2 under prefork"):
        open_setup(tmp_path, "apache-prefork", spoken)


@pytest.mark.parametrize(
    ("generator", "load", "said"),
    [
        ("wrk", "protocol: h2", r"load generator wrk: it speaks http/1\.1, not 'h2'.*h2load speaks HTTP/2"),
        ("ab", "protocol: h2c", r"load generator ab: it speaks http/1\.1, not 'h2c'"),
        ("h2load", "protocol: h2, keepalive: false", "h2 with `keepalive: false` cannot be sent"),
    ],
)
def test_what_a_generator_cannot_send_is_refused_before_anything_runs(
    generator: str, load: str, said: str, tmp_path: Path
):
    with pytest.raises(UsageError, match=said):
        open_setup(tmp_path, "nginx", load, generator)


def announced(deployment: SandboxDeployment) -> Mapping[str, int]:
    """Read the SETTINGS with which a server greets an HTTP/2 client."""
    asked = deployment.sandbox.run(("nghttp", "-nv", "--no-verify-peer", deployment.load.url), timeout_s=10)
    received = asked.stdout.decode().partition("recv SETTINGS frame")[2].partition("send SETTINGS")[0]
    return {name: int(value) for name, value in re.findall(r"SETTINGS_(\w+)\(0x\w+\):(\d+)", received)}


@pytest.mark.parametrize(
    ("server", "config", "wanted"),
    [
        ("nginx", {"http2_max_concurrent_streams": 512}, {"MAX_CONCURRENT_STREAMS": 512}),
        ("apache", {"H2MaxSessionStreams": 512}, {"MAX_CONCURRENT_STREAMS": 512}),
        ("apache", {"H2WindowSize": 1_000_000}, {"INITIAL_WINDOW_SIZE": 1_000_000}),
    ],
)
def test_what_a_server_announces_is_what_was_asked(
    server: str, config: Mapping[str, Scalar], wanted: Mapping[str, int], tmp_path: Path
):
    setup = open_setup(tmp_path, server, "h2")

    with setup.target.deploy({**setup.space.default(), **config}) as deployment:
        assert isinstance(deployment, SandboxDeployment)
        assert wanted.items() <= announced(deployment).items()


def resumed(deployment: SandboxDeployment, *, tickets: bool) -> bool:
    """Tell whether a client that comes again takes its session up; TLS 1.2 has caches and tickets apart."""
    kind = () if tickets else ("-no_ticket",)
    asked = deployment.sandbox.run(
        ("openssl", "s_client", "-connect", "127.0.0.1:8080", "-tls1_2", "-reconnect", *kind), timeout_s=20
    )
    return b"\nReused, TLSv1.2" in asked.stdout


@pytest.mark.parametrize(
    ("server", "config", "by_cache", "by_ticket"),
    [
        ("nginx", {"ssl_session_cache": 0, "ssl_session_tickets": False}, False, False),
        ("nginx", {"ssl_session_cache": 1024, "ssl_session_tickets": False}, True, True),
        ("nginx", {"ssl_session_cache": 0, "ssl_session_tickets": True}, False, True),
        ("apache", {"SSLSessionCache": 0, "SSLSessionTickets": False}, False, False),
        ("apache", {"SSLSessionCache": 65536, "SSLSessionTickets": False}, True, True),
        ("apache", {"SSLSessionCache": 0, "SSLSessionTickets": True}, False, True),
        ("h2o", {"ssl-session-resumption": "off"}, False, False),
        ("h2o", {"ssl-session-resumption": "cache"}, True, True),
        ("h2o", {"ssl-session-resumption": "ticket"}, False, True),
    ],
)
def test_sessions_are_taken_up_as_was_asked(
    server: str, config: Mapping[str, Scalar], tmp_path: Path, *, by_cache: bool, by_ticket: bool
):
    setup = open_setup(tmp_path, server, "tls")

    with setup.target.deploy({**setup.space.default(), **config}) as deployment:
        assert isinstance(deployment, SandboxDeployment)
        found = resumed(deployment, tickets=False), resumed(deployment, tickets=True)

    assert found == (by_cache, by_ticket)


@pytest.mark.parametrize(
    ("config", "least", "most"),
    [
        ({"gzip": False}, 615, 615),
        ({"gzip": True, "gzip_comp_level": 1}, 200, 500),
        ({"gzip": True, "gzip_min_length": 1000}, 615, 615),
        ({"gzip_static": True}, 200, 500),
    ],
)
@pytest.mark.parametrize("generator", ["wrk", "h2load"])
def test_a_compressed_page_is_the_page_and_counts_as_it_came(
    generator: str, config: Mapping[str, Scalar], least: int, most: int, tmp_path: Path
):
    setup = open_setup(tmp_path, "nginx", "accept_encoding: gzip", generator)

    with setup.target.deploy({**setup.space.default(), **config}) as deployment:
        assert least <= (deployment.load.body_bytes or 0) <= most
        window = run_window(deployment, setup.load, 1.0)

    assert window.correct > 100
    assert window.failures.total == 0


def test_h2o_sends_the_compressed_file_that_lies_beside_the_page(tmp_path: Path):
    setup = open_setup(tmp_path, "h2o", "accept_encoding: gzip", "wrk")

    with setup.target.deploy({**setup.space.default(), "file.send-compressed": True}) as deployment:
        assert 200 <= (deployment.load.body_bytes or 0) <= 500


def test_the_key_of_a_private_server_is_nobody_elses():
    host, server = LocalHost(), Nginx()
    facts = {"nginx": server.detect(host)}
    target = SandboxTarget(
        host=host, servers={"nginx": server}, facts=facts, chain=link(facts, {}), split=lambda *_: {},
        content=open_content("builtin", "/index.html"), placement=place(os.sched_getaffinity(0)),
        has_tls=True,
    )  # fmt: skip
    shape = LoadShape(connections=4, keepalive=True, threads=1, protocol=HTTP1)

    with target.deploy({}) as deployment:
        key = deployment.sandbox.run(
            ("stat", "-c", "%a", f"{deployment.certificate.parent}/key.pem"), timeout_s=5
        )
        window = run_window(deployment, Load.prepare(Wrk(), shape, host), 0.5)

    assert key.stdout == b"600\n"
    assert window.failures.total == 0
