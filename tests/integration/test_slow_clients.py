"""What the guard of capacity is for: a configuration that it lets through serves beside slow clients."""

from pathlib import Path
from statistics import median

import pytest

from benchmarks.slow_clients import BESIDE, measure_start, open_rig
from tuner.study import load_study

STUDY = """\
study: slow
servers: [apache]
space: [apache-event]
load: {generator: wrk, connections: 50, keepalive: false}
"""
SLOW = "beside 60 slow senders"
SITUATION = {SLOW: BESIDE[SLOW]}
WINDOW_S = 1.0
STARTS = 2


@pytest.mark.alone
def test_what_the_guard_lets_through_serves_beside_slow_senders_and_what_it_refuses_does_not(tmp_path: Path):
    study = tmp_path / "slow.yaml"
    study.write_text(STUDY)
    rig = open_rig(load_study(study), tmp_path)
    space = rig.space
    outage = space.open().complete({"ThreadsPerChild": 25, "Processes": 1})
    assert space.violations(outage)
    (preset,) = (each for each in space.presets if each.name == "few-processes")
    sides = {"default": space.default(), "fast": space.complete(preset.values)}

    served = {side: [] for side in sides}
    for _ in range(STARTS):
        for side, config in sides.items():
            served[side].append(measure_start(rig, config, WINDOW_S, SITUATION)[SLOW])

    assert median(served["fast"]) >= 0.8 * median(served["default"]) > 0
    assert measure_start(rig, outage, WINDOW_S, SITUATION)[SLOW] < 0.1 * median(served["default"])
