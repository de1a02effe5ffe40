"""Where the load generator is the limit, a study compares what the server's CPUs give."""

import math

import pytest

from tests.unit.simulation import (
    BASE_RPS,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.campaign.confirm import read_gain
from tuner.errors import TargetError
from tuner.records import Metric, Role
from tuner.study.facts import CONFIRMATION, METRIC

LIMITED_RPS = 0.8 * BASE_RPS
"""The server is 80 % busy when the generator is at its limit."""
TRUE_RATIO = math.exp(0.18)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def campaign_on(settings, host, storage=None, **given):
    return make_campaign(settings, host, storage or open_in_memory(host.clock), **given)


def gain_of(campaign):
    return read_gain(campaign.storage, campaign.starts, campaign.default, campaign.setup.settings.constraints)


def test_a_gain_that_goodput_cannot_show_is_found_by_what_the_server_costs(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS))

    verdict = run_campaign(campaign)

    gain = gain_of(campaign)
    assert campaign.storage.recall(METRIC) is Metric.PER_CPU
    assert verdict == "confirmed"
    assert gain.low < TRUE_RATIO < gain.high
    assert campaign.storage.recall(CONFIRMATION).config["open_file_cache"]
    confirmed = [start for start in campaign.starts if start.role is Role.CONFIRM]
    assert all(start.log_goodput == pytest.approx(math.log(LIMITED_RPS), abs=0.02) for start in confirmed)


def test_it_is_said_before_the_search_with_both_shares_and_what_to_do(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS))

    calibrate(campaign)

    (note,) = campaign.progress.notes
    assert note.startswith("the load generator used 100 % of its CPUs, the server 80 % of its own")
    assert "requests per CPU second of the server are compared" in note
    assert "load.threads" in note


@pytest.mark.parametrize("host", [SimulatedHost(), SimulatedHost(most_rps=3 * BASE_RPS)])
def test_where_the_server_is_the_limit_goodput_is_maximized(settings, host):
    campaign = campaign_on(settings, host)

    calibrate(campaign)

    assert campaign.storage.recall(METRIC) is Metric.GOODPUT
    assert campaign.progress.notes == []


def test_a_gain_is_found_too_where_generator_and_server_are_at_their_limit_together(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=1.03 * BASE_RPS))

    assert run_campaign(campaign) == "confirmed"

    gain = gain_of(campaign)
    assert campaign.storage.recall(METRIC) is Metric.PER_CPU
    assert gain.low < TRUE_RATIO < gain.high


def test_without_the_servers_cpu_time_the_study_ends_before_the_search(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS, reports_cpu=False))

    with pytest.raises(TargetError, match=r"used 100 % of its CPUs.*cannot be read.*load.threads"):
        run_campaign(campaign)
    assert {start.role for start in campaign.starts} == {Role.CONTROL}


def test_the_metric_stays_when_the_study_goes_on(settings):
    host = SimulatedHost(most_rps=LIMITED_RPS)
    storage = open_in_memory(host.clock)
    calibrate(campaign_on(settings, host, storage))
    host.most_rps = None

    again = campaign_on(settings, host, storage, session="second")
    calibrate(again)

    assert again.storage.metric is Metric.PER_CPU
    values = [start.log_value for start in again.starts]
    assert values == pytest.approx([math.log(BASE_RPS)] * len(values), abs=0.05)


def test_a_configuration_that_only_waits_is_not_cheap(settings):
    """A server that sleeps serves less and uses as much CPU for each request."""
    host = SimulatedHost(
        most_rps=LIMITED_RPS,
        worth=lambda config: cached_files_win(config) - (0.7 if config["multi_accept"] else 0),
    )
    campaign = campaign_on(settings, host)
    calibrate(campaign)

    window = host.window(campaign.default, -0.7, 1.0)
    asleep = {**window.counters, "server_cpu_s": window.correct / BASE_RPS / 1.3}
    waiting = type(window)(
        started_s=0.0, duration_s=1.0, correct=window.correct, failures=window.failures,
        generator_cpu=window.generator_cpu, counters=asleep, metric=Metric.PER_CPU,
    )  # fmt: skip

    assert waiting.log_value < math.log(BASE_RPS)
    assert waiting.log_value >= waiting.log_goodput
