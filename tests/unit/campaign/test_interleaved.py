"""The engine of all experiments beside a campaign, on a simulated host."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.commands.simulated import simulate
from tests.unit.simulation import TUNED, SimulatedHost, make_setup, open_in_memory, space_of, write_study
from tuner.campaign.interleaved import Interleaved, Treatment
from tuner.campaign.progress import NullProgress
from tuner.records import Failure, Role
from tuner.statistics.arms.faults import count_whole_blocks
from tuner.study.presets import PRESETS

ARMS = ("default", "cached")
CRASHED = Failure(kind="crashed", reason="it crashed")


@pytest.fixture
def host():
    return SimulatedHost()


@pytest.fixture
def held():
    """What was held and given back, in order."""
    return []


@pytest.fixture
def make(tmp_path, monkeypatch, host, held):
    """Return what makes an experiment of two arms, which share the storage."""
    simulate(monkeypatch, host)

    @contextmanager
    def hold(_):
        held.append("held")
        try:
            yield
        finally:
            held.append("given back")

    setup = make_setup(write_study(tmp_path), space_of(*TUNED), cpus=host.cpus)
    setup = replace(setup, target=SimpleNamespace(hold=hold))
    storage, default = open_in_memory(host.clock), setup.space.default()

    def make(blocks, **given):
        def choose(trials, failed):
            return [] if failed or count_whole_blocks(trials, ARMS) >= blocks else ARMS

        return Interleaved(
            treatments={
                "default": Treatment(setup=setup, config=default),
                "cached": Treatment(setup=setup, config={**default, "open_file_cache": 2000}),
            },
            storage=storage, plan=PRESETS["quick"], progress=NullProgress(), role=Role.CONTEST, choose=choose,
            seed="seed", blocks=blocks, **given,
        )  # fmt: skip

    return make


def test_the_rule_ends_it_and_the_targets_are_given_back(make, held):
    experiment = make(2)

    assert experiment.measure() == {}
    assert (experiment.done, experiment.is_open) == (2, False)
    assert held == ["held", "given back"]


def test_what_was_measured_before_counts_and_blocks_go_on_counting(make):
    make(1).measure()
    resumed = make(3)

    assert (resumed.done, resumed.is_open) == (1, True)
    resumed.measure()
    assert [trial.block for trial in resumed.trials] == [0, 0, 1, 1, 2, 2]


def test_an_arm_that_fails_twice_is_told_with_its_reason(make, host):
    host.fault = lambda config: CRASHED if config["open_file_cache"] else None

    assert make(3).measure() == {"cached": "it crashed"}


def test_it_begins_no_block_that_is_unlikely_to_end_in_time(make, host):
    begun_s = host.clock.monotonic()
    experiment = make(100, minutes=1)
    experiment.measure()

    assert 0 < experiment.done < 100
    assert host.clock.monotonic() - begun_s <= 60
    assert not make(100, minutes=1).is_open


def test_a_given_order_is_that_of_each_block(make):
    experiment = make(3, order=lambda block, arms: arms[:: 1 if block else -1])
    experiment.measure()

    assert [trial.arm for trial in experiment.trials] == [*ARMS[::-1], *ARMS, *ARMS]
