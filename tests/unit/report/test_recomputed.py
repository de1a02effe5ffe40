"""Everything that is shown comes from the storage alone."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    SimulatedHost,
    make_campaign,
    nothing_helps,
    open_in_memory,
    open_on_disk,
    space_of,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.campaign.stages.fixed_rate import RATE_SHARE, capacity_rps, read_latency
from tuner.errors import UsageError
from tuner.measure.window import Load
from tuner.records import Role
from tuner.report.page import describe_verdict, render_report
from tuner.report.rows import constraint_rows, side_rows
from tuner.report.summary import summarize
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study.facts import CONFIRMATION, PRESET, VERDICT
from tuner.study.open_storage import open_storage

SPACE = space_of(*TUNED)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def fixed_rate_load():
    nothing = object()
    return Load(generator=nothing, shape=nothing, interrupt_threads=())


def finish(settings, host, storage, **given):
    """Run a campaign as `tuner run` does; returns it."""
    storage.claim(FINGERPRINT, definition={"study": "test"})
    storage.remember(PRESET, "quick")
    campaign = make_campaign(settings, host, storage, **given)
    storage.remember(VERDICT, run_campaign(campaign))
    return campaign


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory):
    """A finished study with its winner: settings, storage and campaign; not to be changed."""
    settings, host = write_study(tmp_path_factory.mktemp("confirmed")), SimulatedHost()
    storage = open_on_disk(settings, host.clock)
    return settings, storage, finish(settings, host, storage)


@pytest.fixture(scope="module")
def unimproved(tmp_path_factory):
    """A finished study in which nothing beat the default: settings and storage; not to be changed."""
    settings, host = write_study(tmp_path_factory.mktemp("unimproved")), SimulatedHost(worth=nothing_helps)
    storage = open_in_memory(host.clock)
    finish(settings, host, storage)
    return settings, storage


@pytest.fixture(scope="module")
def at_one_rate(tmp_path_factory):
    """A finished study with response times at one rate: settings, storage and campaign; not to be changed."""
    settings, host = write_study(tmp_path_factory.mktemp("rate")), SimulatedHost()
    storage = open_in_memory(host.clock)
    plan = replace(SMALL_PLAN, rate_pairs=3, rate_window_s=20)
    return settings, storage, finish(settings, host, storage, plan=plan, fixed_rate=fixed_rate_load())


def summary_of(settings, storage, *, running=False):
    return summarize(settings, SPACE, storage, running=running, version="1")


def test_a_summary_is_the_same_from_a_storage_that_was_opened_anew(confirmed):
    settings, storage, campaign = confirmed

    here = summary_of(settings, storage)
    anew = summary_of(settings, open_storage(settings.storage_url, settings.name, create=False))

    assert summary_json(anew) == summary_json(here)
    assert anew.trials == tuple(campaign.trials)
    assert anew.noise == campaign.ranking().noise
    assert anew.speedups == campaign.ranking().speedups
    assert anew.incumbent == (campaign.ranking().incumbent.config, campaign.ranking().incumbent.posterior)


def test_a_summary_of_a_confirmed_study_tells_winner_and_gain(confirmed):
    settings, storage, _ = confirmed

    summary = summary_of(settings, storage)
    shown = summary_json(summary)

    assert (summary.state, summary.stop_reason) == ("finished", "confirmed")
    assert shown["gain"]["verdict"] == "improved"
    assert shown["gain"]["low"] < 1.197 < shown["gain"]["high"]
    assert shown["gain"]["age_s"] == pytest.approx([1.0, 3.0])
    assert not shown["gain"]["trend"]["certain"]
    assert shown["winner"]["config"]["open_file_cache"] > 0
    assert "open_file_cache" in shown["winner"]["changes"]
    assert shown["winner"]["goodput_rps"] / shown["default"]["goodput_rps"] == pytest.approx(1.2, rel=0.03)
    assert shown["fingerprint"]["host"] == "web1"
    assert [trial["number"] for trial in shown["trials"]] == list(range(len(summary.trials)))
    assert shown["timing"]["load_s"] > 0.7 * shown["timing"]["total_s"]


def test_a_summary_before_the_confirmation_has_an_incumbent_and_no_winner(settings):
    host = SimulatedHost(cut_at=100)
    storage = open_in_memory(host.clock)
    with pytest.raises(KeyboardInterrupt):
        finish(settings, host, storage)

    summary = summary_of(settings, storage)

    assert summary.state == "stopped"
    assert summary_of(settings, storage, running=True).state == "running"
    assert summary.winner is None
    assert summary.gain is None
    assert summary.incumbent is not None
    assert summary_json(summary)["winner"] is None
    assert summary_json(summary)["gain"] is None
    assert "open_file_cache" in summary.changes


def test_a_study_in_which_nothing_beat_the_default_has_no_winner(unimproved):
    settings, storage = unimproved

    summary = summary_of(settings, storage)

    assert summary.state == "finished"
    assert summary.winner is None
    assert summary.default.trials >= SMALL_PLAN.calibration_trials


def test_a_verdict_other_than_improved_has_its_reason_wherever_it_is_shown(settings):
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    host.failure_rate = lambda config: 0.05 if storage.recall(CONFIRMATION) and SPACE.changes(config) else 0.0
    # So that there is no time for many next best ones.
    finish(settings, host, storage, plan=replace(SMALL_PLAN, minutes=4))

    summary = summary_of(settings, storage)
    shown = summary_json(summary)

    assert (shown["verdict"], shown["gain"]["verdict"]) == ("infeasible", "infeasible")
    assert shown["reason"] == shown["gain"]["reason"] == summary.reason
    assert "it breaks failure_rate <= default." in summary.reason
    _, failures = shown["feasibility"]
    assert failures["constraint"] == "failure_rate <= default"
    assert failures["default"]["value"] == 0.0
    assert failures["winner"]["low"] < failures["winner"]["value"] <= failures["winner"]["high"]
    assert failures["probability"] < 0.05
    assert summary.reason in describe_verdict(summary).text
    rejected = shown["rejected"]
    assert rejected
    assert {each["reason"] for each in rejected} == {
        "not confirmed: the winner breaks failure_rate <= default"
    }
    console = Console(record=True, width=80, file=StringIO())
    console.print(final_screen(summary))
    assert "rejected" in console.export_text()
    assert [row[0] for row in constraint_rows(summary)] == ["every trial works", "failure_rate <= default"]
    # The figures are of the pairs of this candidate alone: others were rejected after pairs of their own.
    gain = summary.gain
    assert sum(each.role is Role.CONFIRM for each in summary.trials) > 2 * gain.pairs
    assert summary.winner.trials == summary.default.trials == len(summary.pair_ratios) == gain.pairs
    assert summary.winner.goodput_rps / summary.default.goodput_rps == pytest.approx(gain.ratio)
    # Every place has the counts of the verdict.
    (_, broken) = summary.assessments
    title, default, candidate = side_rows(summary)[-1]
    assert title == "failure_rate, all trials"
    assert broken.finding_of_default.startswith(f"fails {default} [")
    assert broken.finding.startswith(f"fails {candidate} [")
    assert "No request failed" not in render_report(summary)


def test_why_nothing_was_better_is_said_by_what_became_of_those_that_were_tried(unimproved):
    settings, storage = unimproved

    shown = summary_json(summary_of(settings, storage))

    assert (shown["state"], shown["verdict"], shown["gain"]) == ("finished", "nothing better", None)
    assert " configurations tried, the best is 0.9" in shown["reason"]


def test_a_study_that_was_never_begun_is_refused(settings):
    with pytest.raises(UsageError, match="simulated: this study was never begun"):
        summary_of(settings, open_in_memory(SimulatedHost().clock))


def test_a_claim_does_not_depend_on_the_budget_that_it_is_read_with(settings):
    """A study with a planned second look keeps it, and one without gets none."""
    host = SimulatedHost(sigma_trial=0.03)
    gains = {}
    for extend_to in (4, 8):
        storage = open_in_memory(host.clock)
        plan = replace(SMALL_PLAN, extend_to=extend_to)
        campaign = make_campaign(settings, host, storage, plan=plan)
        storage.claim(FINGERPRINT, definition={"study": "test"})
        run_campaign(campaign)
        record = storage.recall(CONFIRMATION)
        gains[extend_to] = summary_of(settings, storage).gain
        assert record.looks == (2 if extend_to > 4 else 1)
        assert record.extend_to == extend_to

    assert gains[4].alpha == 0.05
    assert gains[8].alpha == 0.025


def test_pairs_that_do_not_decide_are_extended_once_as_planned(settings):
    for seed in range(20):
        host = SimulatedHost(
            worth=lambda config: 0.03 if config["open_file_cache"] else -0.02, sigma_trial=0.02, seed=seed
        )
        storage = open_in_memory(host.clock)
        campaign = make_campaign(settings, host, storage, plan=replace(SMALL_PLAN, extend_to=12))
        run_campaign(campaign)
        if (
            "the pairs so far do not decide; tuner measures the planned further pairs"
            in campaign.progress.notes
        ):
            break

    assert storage.recall(CONFIRMATION).pairs == 12
    confirmed = [trial for trial in campaign.trials if trial.role is Role.CONFIRM]
    assert len({trial.block for trial in confirmed}) == 12


def test_response_times_are_compared_at_one_rate_well_below_what_the_default_can_take(at_one_rate):
    settings, storage, campaign = at_one_rate

    at_rate = [trial for trial in campaign.trials if trial.role is Role.LATENCY]
    rates = {round(window.goodput_rps) for trial in at_rate for window in trial.windows}
    latency = summary_of(settings, storage).latency
    assert len(at_rate) == 6
    assert rates == {round(RATE_SHARE * capacity_rps(campaign.trials))}
    assert latency.rate_rps == pytest.approx(14_000, rel=0.03)
    # Twice 20 % quicker: response times of this host go with the square of the speed, at one rate.
    assert latency.ratio.ratio == pytest.approx(1 / 1.2**2, rel=0.05)
    assert latency.winner_p99.value_ms < latency.default_p99.value_ms
    assert summary_json(summary_of(settings, storage))["latency"]["pairs"] == 3


def test_trials_at_a_fixed_rate_change_nothing_else(at_one_rate):
    settings, storage, campaign = at_one_rate
    summary = summary_of(settings, storage)

    at_rate = {trial.number for trial in campaign.trials if trial.role is Role.LATENCY}
    assert at_rate
    assert not at_rate & summary.speedups.keys()
    assert summary.default.goodput_rps == pytest.approx(20_000, rel=0.02)


def test_half_a_comparison_of_response_times_claims_nothing(settings):
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    plan = replace(SMALL_PLAN, rate_pairs=3, rate_window_s=5)
    campaign = make_campaign(settings, host, storage, plan=plan, fixed_rate=fixed_rate_load())
    host.fault = lambda _: cut_off_in_the_second_pair(campaign)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)

    assert read_latency(storage, storage.trials(), SPACE.default()) is None

    host.fault = lambda _: None
    host.clock.sleep(3600)
    again = make_campaign(settings, host, storage, plan=plan, fixed_rate=fixed_rate_load(), session="second")
    run_campaign(again)
    claimed = read_latency(storage, storage.trials(), SPACE.default())
    assert claimed.pairs == 3


def cut_off_in_the_second_pair(campaign):
    if sum(trial.role is Role.LATENCY for trial in campaign.trials) == 3:
        raise KeyboardInterrupt


def test_without_a_generator_that_keeps_a_rate_this_is_said(settings):
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    campaign = finish(settings, host, storage, plan=replace(SMALL_PLAN, rate_pairs=3))

    assert any(
        "tuner does not compare response times at a fixed rate: this comparison needs h2load" in note
        for note in campaign.progress.notes
    )
    assert storage.recall(VERDICT) == "confirmed"
    assert summary_of(settings, storage).latency is None


def test_without_a_confirmation_the_default_has_no_capacity():
    assert capacity_rps([]) == 0.0


def test_the_default_of_a_confirmed_study_is_the_one_of_its_pairs(confirmed):
    settings, storage, campaign = confirmed

    of_pairs = [s for s in campaign.trials if s.role is Role.CONFIRM and s.arm == DEFAULT_ARM]
    assert summary_of(settings, storage).default.trials == len(of_pairs) == SMALL_PLAN.pairs
