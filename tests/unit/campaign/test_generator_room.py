"""A load generator that is the limit gets more CPUs and threads, where there are some to give."""

from dataclasses import dataclass, field, replace

import pytest

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import BASE_RPS, SimulatedHost, make_campaign, open_in_memory, write_study
from tuner.adapters.loads.ab import Ab
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.records import Metric, Role
from tuner.report.summary import summarize
from tuner.study import facts
from tuner.study.facts import METRIC, MOVED_LOAD

EIGHT = range(8)
PER_THREAD_RPS = 0.6 * BASE_RPS
"""What one thread of the generator sends, where six CPUs of the server would serve BASE_RPS."""


@dataclass(kw_only=True)
class Machine(SimulatedHost):
    """A host on which the generator sends as much as its threads and CPUs let it."""

    campaigns: list = field(default_factory=list)

    def window(self, *given):
        setup = self.campaigns[-1].setup
        busy = min(setup.load.shape.threads, len(setup.placement.generator_cpus))
        self.most_rps = PER_THREAD_RPS * busy
        return super().window(*given)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def campaign_on(settings, *, cpus=EIGHT, host=None, storage=None, **given):
    host = host or Machine(cpus=cpus)
    made = make_campaign(settings, host, storage or open_in_memory(host.clock), **given)
    host.campaigns.append(made)
    return made


def test_threads_and_cpus_are_given_by_what_both_sides_used(settings):
    campaign = campaign_on(settings)
    assert (len(campaign.setup.placement.generator_cpus), campaign.setup.load.shape.threads) == (2, 1)

    calibrate(campaign)

    moved = campaign.storage.recall(MOVED_LOAD)
    placement = campaign.runner.setup.placement
    assert campaign.setup.placement == placement
    assert placement.server_cpus | placement.generator_cpus == set(EIGHT)
    assert not placement.server_cpus & placement.generator_cpus
    assert campaign.runner.setup.load.shape.threads == len(placement.generator_cpus) == moved.threads >= 2
    assert campaign.storage.recall(METRIC) is Metric.GOODPUT
    assert "The calibration starts again" in campaign.progress.notes[0]


def test_trials_before_the_move_say_nothing_after_it(settings):
    campaign = campaign_on(settings)

    calibrate(campaign)

    moved = campaign.storage.recall(MOVED_LOAD)
    assert moved.since == 1
    assert len(campaign.baselines()) == campaign.plan.calibration_trials
    assert min(trial.number for trial in campaign.storage.trials()) == 1
    assert campaign.trials == list(campaign.storage.trials())


def test_a_study_resumes_where_the_load_was_moved_to_and_reports_so(settings):
    campaign = campaign_on(settings)
    calibrate(campaign)
    placement = campaign.setup.placement
    host, storage = campaign.runner.host, campaign.storage
    storage.remember(facts.FINGERPRINT, FINGERPRINT)

    again = campaign_on(settings, host=host, storage=storage, session="second")

    assert again.setup.placement.generator_cpus == placement.generator_cpus
    assert again.runner.setup.load.shape.threads == campaign.setup.load.shape.threads
    assert run_campaign(again) == "confirmed"
    summary = summarize(settings, again.setup.space, storage, running=False, version="1")
    assert set(summary.fingerprint.generator_cpus) == placement.generator_cpus


@pytest.mark.parametrize("cpus", [(0, 1), EIGHT])
def test_where_nothing_can_be_moved_what_the_server_costs_is_compared(settings, cpus):
    campaign = campaign_on(settings, cpus=cpus)
    if cpus == EIGHT:  # a program of one thread, whatever is asked
        load = replace(campaign.setup.load, generator=Ab())
        campaign.setup = replace(campaign.setup, load=load)

    calibrate(campaign)

    assert campaign.storage.recall(MOVED_LOAD) is None
    assert campaign.storage.recall(METRIC) is Metric.PER_CPU
    assert len(campaign.trials) == campaign.plan.calibration_trials


def test_a_generator_with_room_keeps_its_place(settings):
    host = SimulatedHost(cpus=EIGHT)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    calibrate(campaign)

    assert campaign.storage.recall(MOVED_LOAD) is None
    assert {trial.role for trial in campaign.trials} == {Role.BASELINE}
