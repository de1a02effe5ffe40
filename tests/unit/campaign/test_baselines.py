from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    nothing_helps,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.campaign.stages.confirm import read_gain
from tuner.errors import UsageError
from tuner.ports import Config, Failures
from tuner.records import Failure, Role, State, Window
from tuner.study.facts import CONFIRMATION

BOUNDED = "constraints: [failure_rate <= 0.001]\n"
RELATIVE = "constraints: [failure_rate <= default]\n"


def fails_as_much(_config: Config) -> float:
    """The default 0.29 %, as much as any other configuration."""
    return 0.0029


def fails_more_without_sendfile(config: Config) -> float:
    return 0.0029 if config["sendfile"] else 0.0080


def without_sendfile_wins(config: Config) -> float:
    return cached_files_win(config) + (0.0 if config["sendfile"] else 0.4)


def test_a_default_that_breaks_the_bound_ends_the_study_before_anything_is_searched(tmp_path):
    host = SimulatedHost(failure_rate=fails_as_much)
    campaign = make_campaign(write_study(tmp_path, more=BOUNDED), host, open_in_memory(host.clock))

    with pytest.raises(UsageError) as refused:
        run_campaign(campaign)

    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/simulated.yaml: constraints: the default itself fails 0.29 % [")
    assert "of its requests, above the limit of failure_rate <= 0.001. " in said
    assert "write `failure_rate <= default`" in said
    assert [trial.role for trial in campaign.trials] == [Role.BASELINE] * 2


def test_with_the_bound_that_the_error_names_the_same_study_resumes_and_ends_improved(tmp_path):
    host = SimulatedHost(failure_rate=fails_as_much)
    storage = open_in_memory(host.clock)
    with pytest.raises(UsageError):
        run_campaign(make_campaign(write_study(tmp_path, more=BOUNDED), host, storage))

    campaign = make_campaign(write_study(tmp_path, more=RELATIVE), host, storage, session="second")

    assert run_campaign(campaign) == "confirmed"
    assert campaign.trials[0].session == "first"


def test_what_fails_more_often_than_the_default_never_wins_however_fast_it_is(tmp_path):
    host = SimulatedHost(worth=without_sendfile_wins, failure_rate=fails_more_without_sendfile)
    campaign = make_campaign(write_study(tmp_path, more=RELATIVE), host, open_in_memory(host.clock))

    assert run_campaign(campaign) == "confirmed"
    assert campaign.storage.recall(CONFIRMATION).config["sendfile"]
    assert any(not trial.config["sendfile"] for trial in campaign.trials)


def test_a_bound_on_response_times_that_the_default_breaks_is_named_with_them(tmp_path):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= 0.001, latency_p99_ms <= 1]\n")
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(UsageError, match=r"has latency_p99_ms [\d.]+ \[.*latency_p99_ms <= default"):
        run_campaign(campaign)


def fails_without_a_cache(config: Config) -> float:
    """A quarter of the default's requests, none of those with a cache."""
    return 0.0 if config["open_file_cache"] else 0.25


def a_cache_costs_speed(config: Config) -> float:
    return cached_files_win(config) - (0.8 if config["open_file_cache"] else 0.0)


def seek(tmp_path, host, **given):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= 0.001 unlike default]\n")
    return make_campaign(settings, host, open_in_memory(host.clock), **given)


def test_what_bears_the_load_is_found_where_the_default_fails_and_ships_though_it_serves_less(tmp_path):
    host = SimulatedHost(worth=a_cache_costs_speed, failure_rate=fails_without_a_cache)
    campaign = seek(tmp_path, host)

    assert run_campaign(campaign) == "confirmed"
    gain = read_gain(campaign.storage, campaign.trials, campaign.default, campaign.setup.settings.constraints)
    assert gain.verdict == "bears the load"
    assert gain.high < 1
    assert campaign.storage.recall(CONFIRMATION).config["open_file_cache"]
    assert any("the search looks for a configuration that meets" in note for note in campaign.progress.notes)


def test_what_serves_more_besides_is_improved(tmp_path):
    host = SimulatedHost(failure_rate=fails_without_a_cache)
    campaign = seek(tmp_path, host)

    assert run_campaign(campaign) == "confirmed"
    gain = read_gain(campaign.storage, campaign.trials, campaign.default, campaign.setup.settings.constraints)
    assert gain.verdict == "improved"


class DeafHost(SimulatedHost):
    """Without a cache its server answers nobody, or one in a thousand."""

    def window(self, config: Config, *given: Any) -> Window:
        made = super().window(config, *given)
        if config["open_file_cache"]:
            return made
        answered = self.rng.choice([0, 0, made.correct // 1000])
        failures = Failures(timeout=10_000)
        return replace(made, correct=answered, failures=failures, latency=made.latency if answered else None)


def test_against_a_default_that_serves_next_to_nothing_the_best_of_the_others_is_found(tmp_path):
    host = DeafHost(worth=lambda config: -0.3 if config["sendfile"] else 0.0)
    campaign = seek(tmp_path, host, plan=replace(SMALL_PLAN, trials=30))

    assert run_campaign(campaign) == "confirmed"
    winner = campaign.storage.recall(CONFIRMATION).config
    assert winner["open_file_cache"]
    assert not winner["sendfile"]
    gain = read_gain(campaign.storage, campaign.trials, campaign.default, campaign.setup.settings.constraints)
    assert gain.is_proven
    # How little the default serves by chance is no noise of the host.
    assert campaign.ranking().noise.sigma_trial < 0.05


def test_a_default_that_serves_nothing_now_and_then_ends_no_search(tmp_path):
    stalled = Failure(kind="stalled", reason="no correct response in 1.0 s of load")
    host = SimulatedHost(failure_rate=fails_without_a_cache)
    campaign = seek(tmp_path, host)
    made = count()
    # Every third trial of the default, never two in a row.
    host.fault = lambda config: (
        stalled if not config["open_file_cache"] and dict(config) == dict(campaign.default)
        and next(made) % 3 == 1 else None
    )  # fmt: skip

    assert run_campaign(campaign) == "confirmed"
    assert any(trial.state is State.FAILED for trial in campaign.trials if trial.arm == "default")


def test_where_everything_fails_nothing_is_shipped(tmp_path):
    campaign = seek(tmp_path, SimulatedHost(failure_rate=lambda _: 0.25))

    assert run_campaign(campaign) == "nothing beat the default in the search"


def test_a_default_that_keeps_what_is_sought_is_beaten_by_goodput_as_ever(tmp_path):
    host = SimulatedHost(worth=nothing_helps)

    assert run_campaign(seek(tmp_path, host)) == "nothing beat the default in the search"


def test_one_bad_trial_of_the_default_ends_nothing(tmp_path):
    host = SimulatedHost()
    campaign = make_campaign(write_study(tmp_path), host, open_in_memory(host.clock))
    host.failure_rate = lambda _: 0.0 if campaign.trials else 0.05

    assert run_campaign(campaign) == "confirmed"
