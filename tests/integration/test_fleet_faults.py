"""A few random faults on a study of several hosts, as `make bench-fleet-faults` makes hundreds of them."""

from random import Random

import pytest

from benchmarks.fleet.faults.faults import cut_link, freeze_worker, kill_controller
from benchmarks.fleet.faults.fleet import open_fleet
from benchmarks.fleet.faults.outcome import find_wrong, net_worth
from tests.integration.shared_study import PATIENCE_S
from tests.integration.waiting import wait_until
from tuner.records import State
from tuner.study.facts import VERDICT

pytestmark = pytest.mark.more


def test_a_study_whose_workers_freeze_and_whose_controller_dies_ends_as_it_should():
    rng = Random("few faults")  # noqa: S311 - no secret
    with open_fleet(1, hosts=2, trials=6) as fleet:
        for begun, fault in ((4, kill_controller), (8, freeze_worker), (12, cut_link)):

            def is_far(begun: int = begun) -> bool:
                assert fleet.tend(), "the study ended before it was broken"
                return fleet.count_trials() >= begun

            wait_until(is_far, patience_s=PATIENCE_S)
            fault(fleet, rng)
        wait_until(lambda: not fleet.tend(), patience_s=2 * PATIENCE_S)

        assert find_wrong(fleet) == []
        storage = fleet.open_study()
        assert any(trial.state is State.INVALID for trial in storage.trials())
        assert storage.recall(VERDICT) is not None
        assert net_worth(storage, 1)[0] >= 0.0
        assert len(fleet.controllers) > 1
