import pytest

from tests.unit.simulation import (
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.errors import UsageError
from tuner.ports import Config
from tuner.records import Role
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
    assert "of its requests, above the bound of failure_rate <= 0.001. " in said
    assert "Write `failure_rate <= default`" in said
    assert [start.role for start in campaign.starts] == [Role.CONTROL] * 2


def test_with_the_bound_that_the_error_names_the_same_study_goes_on_and_ends_improved(tmp_path):
    host = SimulatedHost(failure_rate=fails_as_much)
    storage = open_in_memory(host.clock)
    with pytest.raises(UsageError):
        run_campaign(make_campaign(write_study(tmp_path, more=BOUNDED), host, storage))

    campaign = make_campaign(write_study(tmp_path, more=RELATIVE), host, storage, session="second")

    assert run_campaign(campaign) == "confirmed"
    assert campaign.starts[0].session == "first"


def test_what_fails_more_often_than_the_default_never_wins_however_fast_it_is(tmp_path):
    host = SimulatedHost(worth=without_sendfile_wins, failure_rate=fails_more_without_sendfile)
    campaign = make_campaign(write_study(tmp_path, more=RELATIVE), host, open_in_memory(host.clock))

    assert run_campaign(campaign) == "confirmed"
    assert campaign.storage.recall(CONFIRMATION).config["sendfile"]
    assert any(not start.config["sendfile"] for start in campaign.starts)


def test_a_bound_on_response_times_that_the_default_breaks_is_named_with_them(tmp_path):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= 0.001, latency_p99_ms <= 1]\n")
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(UsageError, match=r"has latency_p99_ms [\d.]+ \[.*latency_p99_ms <= default"):
        run_campaign(campaign)


def test_one_bad_start_of_the_default_ends_nothing(tmp_path):
    host = SimulatedHost()
    campaign = make_campaign(write_study(tmp_path), host, open_in_memory(host.clock))
    host.failure_rate = lambda _: 0.0 if campaign.starts else 0.05

    assert run_campaign(campaign) == "confirmed"
