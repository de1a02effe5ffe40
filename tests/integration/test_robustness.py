"""Robustness checks on a real nginx: check loads are what they say, and an outage under one is found."""

from dataclasses import replace
from pathlib import Path

import pytest

from tuner.campaign.experiment import Experiment
from tuner.campaign.prepare import prepare
from tuner.campaign.progress import NullProgress
from tuner.campaign.stages.robustness import check_robustness
from tuner.measure import check_loads, window
from tuner.measure.check_loads import name_settling
from tuner.optimize.catalogue import make_optimizer
from tuner.records import Role
from tuner.study import load_study
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS

pytestmark = pytest.mark.more

STUDY = """\
study: other
servers: [nginx]
space: [nginx, {only: [worker_connections, worker_processes], allow: [capacity]}]
load: {generator: wrk, connections: 40}
"""
OF_THREADS = """\
study: other
servers: [apache-worker]
space: [apache-worker, {parameters: {MaxKeepAliveRequests: {low: 1, default: 1}}}]
load: {generator: wrk, connections: 20}
"""


def open_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str) -> Experiment:
    # An outage shows on a busy machine, too.
    monkeypatch.setattr(window, "judge", lambda _: ())
    path = tmp_path / "other.yaml"
    path.write_text(study)
    settings = load_study(path)
    setup = prepare(settings)
    settings.folder.mkdir()
    storage = open_storage(settings.storage_url, settings.name)
    optimizer = make_optimizer("random", setup.space.encode(setup.space.default()))
    plan = replace(PRESETS["quick"], robustness_s=20)
    return Experiment(setup, plan, storage, optimizer, NullProgress(), session="one")


@pytest.mark.alone
def test_a_candidate_without_room_for_more_connections_fails_where_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    experiment = open_experiment(tmp_path, monkeypatch, STUDY)
    default, space = experiment.default, experiment.setup.space
    # Enough for the 40 connections that it is tuned on, and by the bound of the space for 60 slow clients.
    monkeypatch.setattr(check_loads, "SLOW_CLIENTS", 120)
    small = space.open().complete({"worker_connections": 104, "worker_processes": 1})

    found = check_robustness(experiment, small)

    named = {each.check_load.name: each for each in found.checked}
    assert list(named) == ["10 connections", "160 connections", "Connection: close", "120 slow clients"]
    assert all(each.default.goodput_rps > 1000 for each in named.values())
    assert all(each.default.failed == 0 for each in named.values())
    assert named["10 connections"].candidate.failed == named["Connection: close"].candidate.failed == 0
    assert named["160 connections"].finding == "fails"
    assert named["120 slow clients"].finding == "fails"
    assert found.verdict == "fails"
    trials = [trial for trial in experiment.trials if trial.role is Role.ROBUSTNESS]
    opened = {
        each.check_load: each.counters["passive_opens"] / each.correct
        for trial in trials
        if trial.config == default
        for each in trial.valid_windows
    }
    assert opened["Connection: close"] > 0.9
    assert opened["160 connections"] < 0.1


@pytest.mark.alone
def test_a_server_that_starts_processes_when_slow_clients_come_is_judged_when_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One process of 25 threads has none left for a second or two, and then serves more than the default.

    The default connects anew for each request: the few per cent that more processes cost do not decide.
    """
    experiment = open_experiment(tmp_path, monkeypatch, OF_THREADS)
    few = {"StartServers": 1, "MinSpareThreads": 1, "MaxSpareThreads": 34, "MaxKeepAliveRequests": 0}

    found = check_robustness(experiment, experiment.setup.space.complete(few))

    (slow,) = (each for each in found.checked if each.check_load.slow_clients)
    assert found.verdict == "holds"
    assert slow.finding == "holds"
    assert slow.candidate.goodput_rps > slow.default.goodput_rps
    at_first_s = [
        sum(
            each.duration_s
            for each in trial.valid_windows
            if each.check_load == name_settling(slow.check_load)
        )
        for trial in experiment.trials
        if trial.role is Role.ROBUSTNESS and trial.config != experiment.default
    ]
    assert slow.candidate.settling_s <= max(at_first_s)
