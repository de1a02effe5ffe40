"""Built-in contents, windows of so many requests and several loads, with real servers and generators."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.simulation import SMALL_PLAN
from tuner.campaign.prepare import prepare
from tuner.commands.check import measure_default
from tuner.errors import TargetError
from tuner.measure.rate import refuse_rate
from tuner.measure.trial import NO_JUDGES, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.measure.window import run_counted_window
from tuner.study import load_study
from tuner.study.loads.builtin_loads import IMAGE_BYTES

PLAN = replace(SMALL_PLAN, windows=(1, 1))
HEAD = "study: workloads\nservers: [nginx]\nspace: [nginx]\n"


@pytest.fixture
def setup(tmp_path: Path):
    def prepare_study(text: str):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + text)
        return prepare(load_study(path))

    return prepare_study


def deployed(setup):
    return setup.target.deploy(setup.space.default())


def test_a_page_and_its_images_are_served_whole_and_sent_alike_often(setup):
    prepared = setup("load: {content: images, connections: 16}\n")

    with deployed(prepared) as deployment:
        window = run_counted_window(deployment, prepared.load, 1.0)

    assert {each.path: each.body_bytes for each in deployment.load.requests[1:]} == IMAGE_BYTES
    assert window.failures.total == 0
    per_response = window.bytes / window.correct
    assert per_response == pytest.approx(sum(IMAGE_BYTES.values()) / (1 + len(IMAGE_BYTES)), rel=0.1)


@pytest.mark.parametrize("generator", ["ab", "h2load"])
def test_a_window_of_so_many_requests_has_them_all(setup, generator):
    prepared = setup(
        f"load: {{generator: {generator}, content: tiny, connections: 50, requests_total: 20000}}\n"
    )

    with deployed(prepared) as deployment:
        window = run_counted_window(deployment, prepared.load, 1.0)

    assert (window.correct, window.failures.total) == (20_000, 0)
    assert 0 < window.duration_s < prepared.load.time_limit_s
    assert window.goodput_rps == pytest.approx(20_000 / window.duration_s)


def test_a_start_is_measured_under_all_of_its_loads(setup):
    prepared = setup(
        "loads:\n"
        "  - {content: tiny, connections: 20}\n"
        "  - {content: html, generator: ab, keepalive: false, requests_total: 1000, connections: 10}\n"
        "  - {content: images, connections: 8}\n"
    )
    windows = []

    with deployed(prepared) as deployment:
        measure_trial(deployment, prepared.load, PLAN, NO_JUDGES, RetryBudget(), windows.append)
        checked = measure_default(deployment, prepared.load)

    parts = windows[-1].parts
    assert list(parts) == ["tiny", "html", "images"]
    assert parts["html"].correct == 1000
    assert all(part.correct > 0 and part.failures.total == 0 for part in parts.values())
    assert windows[-1].correct == sum(part.correct for part in parts.values())
    assert list(checked.parts) == list(parts)


def test_a_mix_is_sent_at_a_rate_and_a_rate_that_the_default_does_not_take_is_refused(setup):
    load = "generator: h2load, content: images, connections: 20"
    prepared = setup(f"load: {{{load}, rate: 400}}\nobjective: minimize latency_p99_ms\n")

    with deployed(prepared) as deployment:
        measured = run_counted_window(deployment, prepared.load, 1.0)
        window = replace(measured, verdicts=())  # whatever else runs on this machine
        refuse_rate(prepared.settings, prepared.load, [window], deployment)
        too_much = replace(prepared.load, rate_rps=1e6)
        with pytest.raises(TargetError, match="asks for 1,000,000 requests/s, and the default serves"):
            refuse_rate(prepared.settings, too_much, [window], deployment)

    assert window.failures.total == 0
    assert window.correct == pytest.approx(400, rel=0.05)
    assert window.latency is not None
