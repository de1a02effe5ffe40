"""A mix of requests, sent by a real wrk to a real server."""

import os
from dataclasses import replace

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.readiness import Manner
from tuner.deploy.sandbox import SandboxTarget
from tuner.errors import NotReady
from tuner.hosts.placement import place
from tuner.measure.window import Load, run_window
from tuner.plugins import make_private_server
from tuner.ports import H2, HTTP1, LoadShape, RequestKind
from tuner.records import Window

PAGE = RequestKind(path="/index.html", body_bytes=615, weight=3)
MISSING = RequestKind(path="/none", status=404, headers={"X-A": 'b"c'})
POSTED = RequestKind(path="/index.html", method="POST", status=405)
SHAPE = LoadShape(connections=16, keepalive=True, threads=2, protocol="http/1.1")


def target(*kinds: RequestKind, protocol: str = HTTP1) -> SandboxTarget:
    host = LocalHost()
    servers = {"nginx": make_private_server("nginx")}
    facts = {"nginx": servers["nginx"].detect(host)}
    return SandboxTarget(
        host=host, servers=servers, facts=facts, chain=link(facts, {}), split=lambda *_: {},
        content=open_content("builtin", "/index.html", others=("/tiny.txt",)),
        has_tls=protocol == H2,
        placement=place(os.sched_getaffinity(0)),
        load=ExpectedLoad(manner=Manner(keepalive=True, protocol=protocol), requests=kinds),
    )  # fmt: skip


def run_mix(**second: object) -> Window:
    """Load a fresh server with a mix of which the second request is expected to be answered otherwise."""
    with target(PAGE, MISSING, POSTED).deploy({}) as deployment:
        first, learned, third = deployment.load.requests
        expected = replace(deployment.load, requests=(first, replace(learned, **second), third))
        return run_window(replace(deployment, load=expected), Load.prepare(Wrk(), SHAPE, LocalHost()), 1.0)


def test_every_response_of_a_mix_is_looked_at():
    # What the server gives for one fifth of the requests is wrong by its length, then by its status.
    window, wrong_length, wrong_status = run_mix(), run_mix(body_bytes=1), run_mix(status=410)

    assert window.correct > 0
    assert window.failures.total == 0
    share = wrong_length.failures.length / (wrong_length.correct + wrong_length.failures.total)
    assert share == pytest.approx(1 / 5, abs=0.01)
    share = wrong_status.failures.status / (wrong_status.correct + wrong_status.failures.total)
    assert share == pytest.approx(1 / 5, abs=0.01)


def test_a_mix_that_is_answered_otherwise_than_the_study_says_is_refused_before_any_load():
    with (
        pytest.raises(NotReady, match=r"load\.requests: GET /none gave 404 .* where 200 was expected"),
        target(replace(MISSING, status=200)).deploy({}),
    ):
        pass


def test_a_mix_goes_over_http_2_too():
    kinds = (replace(PAGE, body_bytes=None), RequestKind(path="/tiny.txt"))
    shape = replace(SHAPE, protocol=H2, connections=4, threads=1)
    with target(*kinds, protocol=H2).deploy({"keepalive_requests": 10**6}) as deployment:
        load = Load.prepare(H2load(), shape, LocalHost())
        window = run_window(deployment, load, 1.0)
        first, second = deployment.load.requests
        longer = replace(deployment.load, requests=(first, replace(second, body_bytes=4400)))
        wrong = run_window(replace(deployment, load=longer), load, 1.0)

    assert (first.body_bytes, second.body_bytes) == (615, 44)
    assert window.correct > 0
    assert window.failures.total == 0
    assert (wrong.correct, wrong.failures.length > 0) == (0, True)
