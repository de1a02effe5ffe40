"""What the guard of capacity is for: a configuration that it lets through serves beside slow clients."""

from pathlib import Path
from statistics import median

import pytest

from benchmarks.slow_clients import BESIDE, measure_trial, open_setup
from tuner.study import load_study

pytestmark = pytest.mark.more

STUDY = """\
study: slow
servers: [apache]
space: [apache-event]
load: {generator: wrk, connections: 50, keepalive: false}
"""
SLOW = "beside 60 slow senders"
IDLE = "beside 500 idle connections"
WINDOW_S = 1.0
STARTS = 2
FEW_PROCESSES = {
    "ThreadsPerChild": 64, "Processes": 3, "StartServers": 1, "MinSpareThreads": 1, "MaxSpareThreads": 256,
    "EnableSendfile": True,
}  # fmt: skip
"""Few processes of many threads, with no fewer workers than by default: fast, and the guard lets it."""


@pytest.mark.alone
def test_what_the_guard_lets_through_serves_beside_slow_senders_and_what_it_refuses_does_not(tmp_path: Path):
    study = tmp_path / "slow.yaml"
    study.write_text(STUDY)
    setup = open_setup(load_study(study), tmp_path)
    space = setup.space
    outage = space.open().complete({"ThreadsPerChild": 25, "Processes": 1})
    assert space.violations(outage)
    sides = {"default": space.default(), "fast": space.complete(FEW_PROCESSES)}

    served = {side: [] for side in sides}
    for _ in range(STARTS):
        for side, config in sides.items():
            served[side].append(measure_trial(setup, config, WINDOW_S, {SLOW: BESIDE[SLOW]})[SLOW])

    assert median(served["fast"]) >= 0.8 * median(served["default"]) > 0
    assert measure_trial(setup, outage, WINDOW_S, {SLOW: BESIDE[SLOW]})[SLOW] < 0.1 * median(
        served["default"]
    )


@pytest.mark.alone
def test_a_second_listening_socket_leaves_no_client_waiting_beside_idle_connections(tmp_path: Path):
    study = tmp_path / "slow.yaml"
    study.write_text(STUDY)
    setup = open_setup(load_study(study), tmp_path)
    split = {"ListenCoresBucketsRatio": 1}
    assert setup.space.violations(setup.space.open().complete(split | {"Processes": 6}))

    served = [
        measure_trial(setup, setup.space.complete(split), WINDOW_S, {IDLE: BESIDE[IDLE]})[IDLE]
        for _ in range(STARTS)
    ]

    assert min(served) > 0
