"""Where the load generator is the limit, a study compares what the server's CPUs give."""

import math
import re
from dataclasses import dataclass, replace

import pytest

from tests.unit.simulated_study import FINGERPRINT as WHERE
from tests.unit.simulation import (
    BASE_RPS,
    SMALL_PLAN,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.campaign.stages.confirm import read_gain
from tuner.errors import TargetError, UsageError
from tuner.records import Metric, Role
from tuner.report.summary import summarize
from tuner.study.facts import CONFIRMATION, FINGERPRINT, METRIC, REJECTED
from tuner.study.objective import SERVER_CPU, Objective

LIMITED_RPS = 0.8 * BASE_RPS
"""The server is 80 % busy when the generator is at its limit."""
TRUE_RATIO = math.exp(0.18)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def campaign_on(settings, host, storage=None, **given):
    return make_campaign(settings, host, storage or open_in_memory(host.clock), **given)


def gain_of(campaign):
    return read_gain(campaign.storage, campaign.trials, campaign.default, campaign.setup.settings.constraints)


def test_a_gain_that_goodput_cannot_show_is_found_by_what_the_server_costs(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS))

    verdict = run_campaign(campaign)

    gain = gain_of(campaign)
    assert campaign.storage.recall(METRIC) is Metric.PER_CPU
    assert verdict == "confirmed"
    assert gain.low < TRUE_RATIO < gain.high
    assert campaign.storage.recall(CONFIRMATION).config["open_file_cache"]
    confirmed = [trial for trial in campaign.trials if trial.role is Role.CONFIRM]
    assert all(trial.log_goodput == pytest.approx(math.log(LIMITED_RPS), abs=0.02) for trial in confirmed)


def test_it_is_said_before_the_search_with_both_shares_and_what_to_do(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS))

    calibrate(campaign)

    (note,) = campaign.progress.notes
    assert note.startswith("the load generator used 100 % of its CPUs, the server 80 % of its own")
    assert "tuner compares requests per CPU second of the server" in note
    assert "load.threads" in note


@pytest.mark.parametrize("host", [SimulatedHost(), SimulatedHost(most_rps=3 * BASE_RPS)])
def test_where_the_server_is_the_limit_goodput_is_maximized(settings, host):
    campaign = campaign_on(settings, host)

    calibrate(campaign)

    assert campaign.storage.recall(METRIC) is Metric.GOODPUT
    assert campaign.progress.notes == []


@pytest.mark.parametrize("seed", range(5))
def test_a_generator_that_is_busy_beside_a_full_server_leaves_goodput_to_be_maximized(settings, seed):
    """About 93 % of its CPUs: what it has left shows gains, and it needs less of them under more load."""
    campaign = campaign_on(settings, SimulatedHost(most_rps=1.08 * BASE_RPS, sigma_window=0.03, seed=seed))

    calibrate(campaign)

    assert campaign.storage.recall(METRIC) is Metric.GOODPUT


def test_a_gain_is_found_too_where_generator_and_server_are_at_their_limit_together(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=0.99 * BASE_RPS))

    assert run_campaign(campaign) == "confirmed"

    gain = gain_of(campaign)
    assert campaign.storage.recall(METRIC) is Metric.PER_CPU
    assert gain.low < TRUE_RATIO < gain.high


def test_without_the_servers_cpu_time_the_study_ends_before_the_search(settings):
    campaign = campaign_on(settings, SimulatedHost(most_rps=LIMITED_RPS, reports_cpu=False))

    with pytest.raises(TargetError, match=r"used 100 % of its CPUs.*cannot be read.*load.threads"):
        run_campaign(campaign)
    assert {trial.role for trial in campaign.trials} == {Role.BASELINE}


def test_the_metric_stays_when_the_study_resumes(settings):
    host = SimulatedHost(most_rps=LIMITED_RPS)
    storage = open_in_memory(host.clock)
    calibrate(campaign_on(settings, host, storage))
    host.most_rps = None

    again = campaign_on(settings, host, storage, session="second")
    calibrate(again)

    assert again.storage.metric is Metric.PER_CPU
    values = [trial.log_value for trial in again.trials]
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


@dataclass(kw_only=True)
class Miser(SimulatedHost):
    """A host on which one setting makes a request much cheaper, and serves fewer of them."""

    served: float = 0.95

    def window(self, config, *given):
        made = super().window(config, *given)
        if not config["multi_accept"]:
            return made
        cost = {**made.counters, SERVER_CPU: 0.6 * made.counters[SERVER_CPU]}
        return replace(made, correct=round(self.served * made.correct), counters=cost)


def test_what_is_cheap_because_it_serves_less_is_refused_and_the_next_best_ships(settings):
    host = Miser(most_rps=LIMITED_RPS)
    campaign = campaign_on(settings, host, plan=replace(SMALL_PLAN, trials=16))

    assert run_campaign(campaign) == "confirmed"

    winner = campaign.storage.recall(CONFIRMATION).config
    tried = [trial for trial in campaign.trials if trial.config["multi_accept"]]
    best = max(trial.log_value for trial in tried)
    assert best > max(trial.log_value for trial in campaign.trials if trial not in tried)
    assert winner["open_file_cache"]
    assert not winner["multi_accept"]


def test_the_verdict_says_what_both_serve_where_the_last_one_serves_less(settings):
    """It seems as good until it is confirmed: then its goodput falls."""
    host = Miser(most_rps=LIMITED_RPS, served=1.0)
    campaign = campaign_on(settings, host, plan=replace(SMALL_PLAN, trials=16, minutes=5))
    campaign.storage.remember(FINGERPRINT, WHERE)
    fault = host.fault

    def serve_less(config):
        host.served = 0.93 if campaign.storage.recall(CONFIRMATION) else 1.0
        return fault(config)

    host.fault = serve_less
    run_campaign(campaign)

    rejected = campaign.storage.recall(REJECTED)[0]
    assert rejected.config["multi_accept"]
    assert re.search(
        r"breaks goodput_rps >= 0\.98 × default \(it serves 15,[0-6]\d\d \[1[45],.*\] requests/s, "
        r"the default serves 1[56],\d{3} \[.*\] requests/s\)$",
        rejected.reason,
    )
    summary = summarize(settings, campaign.setup.space, campaign.storage, running=False, version="1")
    assert [each.constraint for each in summary.assessments][-1] == "goodput_rps >= 0.98 × default"


def test_at_a_rate_a_study_minimizes_what_its_file_says(settings):
    rate_rps = 0.6 * BASE_RPS
    at_rate = replace(
        settings,
        load=replace(settings.load, rate_rps=rate_rps), objective=Objective(metric=Metric.LATENCY_P99),
    )  # fmt: skip
    campaign = campaign_on(at_rate, SimulatedHost())

    assert run_campaign(campaign) == "confirmed"

    gain = gain_of(campaign)
    assert campaign.storage.recall(METRIC) is Metric.LATENCY_P99
    # In the simulation a p99 falls with the square of what a configuration can serve.
    assert gain.low < TRUE_RATIO**2 < gain.high
    assert all(each.log_goodput == pytest.approx(math.log(rate_rps), abs=0.01) for each in campaign.trials)


def test_at_a_rate_a_study_finds_the_server_that_takes_less_memory(settings):
    at_rate = replace(
        settings,
        load=replace(settings.load, rate_rps=0.6 * BASE_RPS), objective=Objective(metric=Metric.MEMORY),
    )  # fmt: skip
    campaign = campaign_on(at_rate, SimulatedHost(memory_mib=lambda config: 20 if config["sendfile"] else 10))

    assert run_campaign(campaign) == "confirmed"

    gain = gain_of(campaign)
    assert gain.low < 2.0 < gain.high
    campaign.storage.remember(FINGERPRINT, WHERE)
    summary = summarize(at_rate, campaign.setup.space, campaign.storage, running=False, version="1")
    assert summary.default.memory_mib == pytest.approx(20, rel=0.02)
    assert not summary.winner.config["sendfile"]
    assert summary.winner.memory_mib == pytest.approx(10, rel=0.02)


def test_an_objective_that_nobody_measures_is_refused_with_what_was_looked_for(settings):
    at_rate = replace(
        settings,
        load=replace(settings.load, rate_rps=0.6 * BASE_RPS), objective=Objective(metric=Metric.MEMORY),
    )  # fmt: skip

    with pytest.raises(UsageError, match="the memory of the server's processes could not be read, which"):
        run_campaign(campaign_on(at_rate, SimulatedHost()))
