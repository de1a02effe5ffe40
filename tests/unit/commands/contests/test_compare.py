"""A comparison measures as its study does."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.commands.simulated import simulate
from tests.unit.simulation import (
    BASE_RPS,
    SimulatedHost,
    open_on_disk,
    write_study,
)
from tests.unit.space.samples import facts
from tuner.commands.contests import compare as module
from tuner.records import Metric
from tuner.space import load_space
from tuner.study.facts import METRIC, MOVED_LOAD, PACE, MovedLoad, Pace

FASTER = {"open_file_cache": 2000}
TRUE_RATIO = math.exp(0.18)


@pytest.fixture
def host():
    return SimulatedHost(most_rps=BASE_RPS, cpus=range(4))


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def started(monkeypatch, host):
    """Let comparisons be measured on a simulated host; returns the runners that they used."""
    return simulate(monkeypatch, host)


@pytest.mark.usefixtures("started")
def test_without_a_study_goodput_is_compared(settings):
    gain = module.compare(settings, "default", FASTER, pairs=4).gain

    assert gain.metric is Metric.GOODPUT
    assert gain.ratio == pytest.approx(1.0, abs=0.03)


@pytest.mark.usefixtures("started")
def test_a_study_that_compares_what_the_server_costs_has_comparisons_that_do(settings, host):
    open_on_disk(settings, host.clock).remember(METRIC, Metric.PER_CPU)

    comparison = module.compare(settings, "default", FASTER, pairs=4)

    assert comparison.gain.metric is Metric.PER_CPU
    assert comparison.gain.ratio == pytest.approx(TRUE_RATIO, abs=0.05)
    assert comparison.second.requests_per_cpu_s > comparison.first.requests_per_cpu_s


def test_the_load_comes_from_where_the_study_moved_it(settings, host, started):
    moved = MovedLoad(server_cpus=(0, 1), generator_cpus=(2, 3), threads=2, since=1)
    open_on_disk(settings, host.clock).remember(MOVED_LOAD, moved)

    module.compare(settings, "default", FASTER, pairs=2)

    (runner,) = started
    assert runner.setup.placement.generator_cpus == {2, 3}
    assert runner.setup.load.shape.threads == 2


def test_a_slow_application_has_the_windows_that_its_study_settled(settings, host, started):
    open_on_disk(settings, host.clock).remember(PACE, Pace(window_s=8.0, response_s=0.6, since=1))

    module.compare(settings, "default", FASTER, pairs=2)

    (runner,) = started
    assert runner.plan.window_s == 8.0
    assert runner.setup.load.response_s == 0.6


def test_the_lines_of_a_winner_give_the_winner_and_less_than_the_default_can_be_compared(settings):
    space = load_space(["apache-event"], facts=facts(), base=Path("/"))
    setup = SimpleNamespace(space=space)
    lines = {"ThreadsPerChild": 143, "MaxSpareThreads": 325}

    assert module.resolve(settings, setup, lines) == space.complete(lines)
    assert module.resolve(settings, setup, {"ThreadsPerChild": 2, "Processes": 1})["MaxRequestWorkers"] == 2
