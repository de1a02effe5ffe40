"""Pages that vary, need a header or lead elsewhere, behind a real nginx, under every load generator."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from tuner.campaign.prepare import Setup, prepare
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.deployment import Deployment
from tuner.deploy.readiness import Manner, request
from tuner.errors import NotReady
from tuner.measure.window import run_window
from tuner.plugins import make_load_generator
from tuner.ports import Body, RequestKind
from tuner.records import Blame, Check, Window
from tuner.study import load_study

PROGRAM = Path(__file__).with_name("varying_pages.py")
KEPT = Manner(keepalive=True)
VARYING = ("/random", "/chunked", "/cookie", "/token", "/visits", "/packed")
WINDOW_S = 0.3
LEAST_K6_S = 1.0
MEMBER = "{Authorization: Basic bWU6aXQ=}"


@pytest.fixture
def setup(tmp_path):
    def prepare_study(load: str) -> Setup:
        path = tmp_path / "study.yaml"
        path.write_text(
            f"study: pages\nservers: [nginx]\nspace: [nginx]\nload: {load}\n"
            f"backend: {{command: ['{sys.executable}', '{PROGRAM}', '{{port}}'], ready: /plain}}\n"
        )
        return prepare(load_study(path))

    return prepare_study


def send(deployment: Deployment, setup: Setup, generator: str) -> Window:
    load = replace(setup.load, generator=make_load_generator(generator))
    return run_window(deployment, load, LEAST_K6_S if generator == "k6" else WINDOW_S)


def installed(*generators: str) -> list[str]:
    return [name for name in generators if which(name)]


def test_a_page_that_varies_fails_under_no_load_generator(setup):
    prepared = setup("{path: /plain, connections: 8}")
    pages = {path: ExpectedLoad(page=RequestKind(path=path), manner=KEPT) for path in VARYING}
    target = replace(prepared.target, other_loads=pages)

    with target.deploy({}) as deployment:
        windows = {
            (path, name): send(deployment.under(path), prepared, name)
            for path in VARYING for name in installed("wrk", "ab", "h2load", "oha", "k6")
        }  # fmt: skip

    # A busy machine may leave requests of so short a window without an answer.
    judged = {key: (window.failures.status, window.failures.length) for key, window in windows.items()}
    assert set(judged.values()) == {(0, 0)}, judged
    assert all(window.correct for window in windows.values())


def test_headers_of_the_load_open_a_page_for_every_load_generator(setup):
    prepared = setup(f"{{path: /members, connections: 8, headers: {MEMBER}}}")

    with prepared.target.deploy({}) as deployment:
        windows = {
            name: send(deployment, prepared, name)
            for name in installed("wrk", "ab", "h2load", "oha", "k6")
        }  # fmt: skip

    assert not {name: each.failures.describe() for name, each in windows.items() if each.failures.status}


def test_a_mix_whose_first_request_is_answered_otherwise_than_by_200_is_ready(setup):
    prepared = setup(
        "{connections: 8, requests: [{path: /members, status: 401}, {path: /moved, status: 301}, "
        f"{{path: /nothing, status: 204}}, {{path: /members, headers: {MEMBER}, body: checksum}}, "
        "{path: /random, body: {contains: <p>random</p>}}]}"
    )

    with prepared.target.deploy({}) as deployment:
        window = send(deployment, prepared, "wrk")
        *known, last = deployment.load.requests
        other = replace(last, body=Body(varies=True, contains="another text"))
        load = replace(deployment.load, requests=(*known, other))
        wrong = send(replace(deployment, load=load), prepared, "wrk")

    assert window.correct
    assert (window.failures.status, window.failures.length) == (0, 0)
    share = wrong.failures.length / (wrong.correct + wrong.failures.total)
    assert share == pytest.approx(1 / 5, abs=0.03)


def test_a_page_that_is_replaced_during_a_trial_is_no_fault_of_the_configuration(setup):
    prepared = setup("{path: /replaced, connections: 8}")
    blames = []

    with prepared.target.deploy({}) as deployment:
        ask = partial(request, deployment.host, manner=KEPT, timeout_s=5)
        for path in ("/plain", "/replace", "/plain"):
            ask(deployment.load.url.replace("/replaced", path))
            window = send(deployment, prepared, "ab")
            blames.append([each.blame for each in window.verdicts if each.check is Check.BODY])

    assert blames == [[], [Blame.ENVIRONMENT], []]
    assert window.failures.length == 0


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "/moved",
            r"load\.path: /moved answers 301 to http://127\.0\.0\.1:8080/plain\. Set .* to /plain\.",
        ),
        ("/gone", r"answers 302 to https://shop\.test/start\. Set load\.path to https://shop\.test/start\."),
        ("/nothing", r"answered 204 .*accept this status: `requests: \[\{path: /nothing, status: 204\}\]`"),
        ("/members", r"answered 401 .*Write the credentials into `load\.headers:`"),
    ],
)
def test_a_page_that_is_not_there_says_what_to_write(setup, path, said):
    with pytest.raises(NotReady, match=said), setup(f"{{path: {path}}}").target.deploy({}):
        pass
