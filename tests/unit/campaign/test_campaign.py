import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import product, takewhile
from random import Random

import pytest

from tests.more import leave_to_more
from tests.unit.simulated_study import FINGERPRINT as THIS_MACHINE
from tests.unit.simulation import (
    BASE_RPS,
    SMALL_PLAN,
    TUNED,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    nothing_helps,
    nothing_matters,
    open_in_memory,
    space_of,
    write_study,
)
from tuner.campaign.baselines import measure_baseline
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.campaign.stages.confirm import read_gain
from tuner.campaign.stages.search import try_next
from tuner.cli.exit_codes import verdict_code
from tuner.commands.session import has_verdict
from tuner.errors import TargetError, TooNoisy, UsageError
from tuner.optimize.optimizer import Suggestion
from tuner.optimize.optuna_samplers import STARTUP_TRIALS
from tuner.records import Failure, Role, State
from tuner.report.summary import summarize
from tuner.report.terminal import headline
from tuner.space import SpaceFacts, load_space
from tuner.statistics.noise import baseline_interval
from tuner.statistics.ranking import DEFAULT_ARM, LIKELY, WINNER_ARM, config_key
from tuner.study.facts import CONFIRMATION, FINALIST, FINGERPRINT, IS_SEARCHED, REJECTED, VERDICT
from tuner.study.presets import PRESETS

DEFAULT = space_of(*TUNED).default()
CRASH = Failure(kind="crashed", reason="nginx: it was killed by signal -11")
SHORT_PLAN = replace(SMALL_PLAN, minutes=4)
"""So that there is no time for many next best ones."""
NOTHING_BEAT = "nothing beat the default in the search"
NOISES = leave_to_more(product((0, 100, 230, 270), (0.4, 1.0)), (0, 1.0), (100, 0.4), (270, 1.0))
"""From which second on, and in which share of the windows."""


def is_default(config):
    return dict(config) == DEFAULT


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def run(settings, host, **given):
    """Run a whole campaign; returns it and why it stopped."""
    campaign = make_campaign(settings, host, open_in_memory(host.clock), **given)
    return campaign, run_campaign(campaign)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A whole campaign on the usual host, and why it stopped; not to be changed."""
    return run(write_study(tmp_path_factory.mktemp("usual")), SimulatedHost())


def of_role(campaign, role):
    return [trial for trial in campaign.trials if trial.role is role]


def gain_of(campaign):
    constraints = campaign.setup.settings.constraints
    return read_gain(campaign.storage, campaign.trials, campaign.default, constraints)


def test_a_configuration_that_is_really_better_is_found_reduced_and_confirmed(usual):
    campaign, verdict = usual

    gain = gain_of(campaign)
    winner = campaign.storage.recall(CONFIRMATION).config
    assert verdict == "confirmed"
    assert gain.verdict == "improved"
    assert gain.low < 1.197 < gain.high
    assert winner["open_file_cache"]
    assert winner["sendfile"]
    assert campaign.progress.stages == ["calibrate", "search", "race", "ablation", "confirm"]
    assert campaign.progress.ended == campaign.trials


def test_the_last_incumbent_told_is_the_best_of_the_standing(usual):
    campaign, _ = usual

    best = campaign.ranking().incumbent
    assert campaign.progress.incumbents[-1] == campaign.setup.space.changes(best.config)


def test_when_every_change_costs_something_nothing_beats_the_default(settings):
    campaign, verdict = run(settings, SimulatedHost(worth=nothing_helps))

    assert verdict == NOTHING_BEAT
    assert not of_role(campaign, Role.CONFIRM)
    assert gain_of(campaign) is None


@pytest.mark.statistical
def test_when_nothing_matters_an_improvement_is_hardly_ever_claimed(tmp_path):
    verdicts = Counter()
    for seed in range(20):
        host = SimulatedHost(worth=nothing_matters, seed=seed)
        _, verdict = run(write_study(tmp_path, seed=seed), host)
        verdicts[verdict] += 1

    # The claim's error rate is 5 %: three of 20 or more happen with a probability of 0.08, four of 0.02.
    assert verdicts["confirmed"] <= 2
    assert verdicts.keys() <= {"confirmed", "not proven", "no worse", "worse", NOTHING_BEAT}


def test_when_every_candidate_crashes_the_study_ends_without_a_winner(settings):
    host = SimulatedHost(fault=lambda config: None if is_default(config) else CRASH)

    campaign, verdict = run(settings, host)

    assert verdict == NOTHING_BEAT
    assert Counter(trial.state for trial in of_role(campaign, Role.SEARCH)) == {State.FAILED: 10}
    assert campaign.ranking().entries == ()


def test_a_default_that_fails_three_times_in_a_row_is_the_targets_fault(settings):
    host = SimulatedHost(fault=lambda config: CRASH if is_default(config) else None)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(TargetError, match=r"default configuration failed 3 times in a row. nginx: it was"):
        run_campaign(campaign)
    assert len(campaign.trials) == 3


def test_a_default_that_fails_twice_is_tolerated(settings):
    host = SimulatedHost()
    host.fault = lambda _: CRASH if host.steps < 6 else None

    campaign, verdict = run(settings, host)

    assert verdict == "confirmed"
    assert [trial.state for trial in campaign.trials[:3]] == [State.FAILED, State.FAILED, State.COMPLETE]


def test_every_few_trials_the_default_is_measured_again(usual):
    campaign, _ = usual

    since, most = 0, 0
    for trial in campaign.trials:
        if trial.role in {Role.SEARCH, Role.REPEAT}:
            since += 1
            most = max(most, since)
        elif trial.role is Role.BASELINE:
            since = 0
    cost_s = campaign.schedule.mean_cost_s()
    interval = baseline_interval(campaign.ranking().noise, cost_s, SMALL_PLAN.windows[1])
    assert 4 <= interval <= 8
    assert 4 <= most <= 8


def test_the_search_ends_with_the_default(usual):
    campaign, _ = usual

    last = max(n for n, trial in enumerate(campaign.trials) if trial.role in {Role.SEARCH, Role.REPEAT})
    assert campaign.trials[last + 1].role is Role.BASELINE


def test_presets_are_tried_first_in_their_order_and_recipes_are_not(usual):
    campaign, _ = usual

    space = campaign.setup.space
    tried = [trial.config for trial in of_role(campaign, Role.SEARCH)]
    first = [preset for preset in space.presets if preset.is_tried]
    recipes = [preset for preset in space.presets if not preset.is_tried]
    assert tried[: len(first)] == [space.complete(preset.values) for preset in first]
    assert [preset.name for preset in recipes] == ["article-2015"]
    assert space.complete(recipes[0].values) not in tried


def test_no_configuration_is_searched_twice_while_there_are_others(settings):
    campaign, _ = run(settings, SimulatedHost(), plan=replace(SMALL_PLAN, trials=25))

    keys = [config_key(trial.config) for trial in of_role(campaign, Role.SEARCH)]
    assert len(keys) > STARTUP_TRIALS
    assert len(set(keys)) == len(keys)
    assert config_key(DEFAULT) not in keys


def test_a_space_with_two_configurations_is_searched_without_end_or_error(settings):
    host = SimulatedHost(worth=lambda config: 0.0 if config["multi_accept"] else -0.2)
    space = space_of("multi_accept")
    plan = replace(SMALL_PLAN, trials=14)

    campaign, verdict = run(settings, host, space=space, plan=plan)

    assert verdict == "confirmed"
    assert len([s for s in campaign.trials if s.role in {Role.SEARCH, Role.REPEAT}]) == 14


class Stubborn:
    """Suggests what cannot be built, whatever it is told."""

    def suggest(self, dimensions, observations, *, seed, refused=0):
        moment = seed + len(observations) + refused
        return Suggestion(point={each.name: each.high if moment % 3 else each.low for each in dimensions})


def test_what_breaks_a_constraint_is_never_deployed(settings):
    parameter = {"kind": "int", "low": 1, "high": 10, "default": 2, "why": "x", "source": "y"}
    source = {
        "space": "two", "server": "nginx", "parameters": {"a": parameter, "b": parameter},
        "constraints": [{"rule": "a + b <= 15", "why": "there is no more"}],
    }  # fmt: skip
    space = load_space([source], facts=SpaceFacts(names={}), base=settings.path.parent)
    host = SimulatedHost(worth=lambda config: 0.05 * config["a"])
    campaign = make_campaign(settings, host, open_in_memory(host.clock), space=space)
    campaign.optimizer = Stubborn()

    run_campaign(campaign)

    assert not any(space.violations(trial.config) for trial in campaign.trials)
    assert len(of_role(campaign, Role.SEARCH)) == SMALL_PLAN.trials


def test_a_server_that_answers_503_quickly_never_wins(settings):
    """It answers three times as fast, and nearly everything that it answers is an error."""
    host = SimulatedHost(
        worth=lambda config: 1.1 if config["multi_accept"] else cached_files_win(config),
        failure_rate=lambda config: 0.2 if config["multi_accept"] else 0.0,
    )

    campaign, verdict = run(settings, host, plan=replace(SMALL_PLAN, trials=16))

    errant = [trial for trial in campaign.trials if trial.config["multi_accept"]]
    assert any(trial.log_goodput > max(s.log_goodput for s in campaign.baselines()) for trial in errant)
    assert verdict == "confirmed"
    assert not campaign.storage.recall(CONFIRMATION).config["multi_accept"]
    assert not any(
        entry.config["multi_accept"] and entry.p_feasible >= LIKELY for entry in campaign.ranking().entries
    )
    assert not any("multi_accept" in changes for changes in campaign.progress.incumbents)


@pytest.mark.parametrize(
    ("minutes", "rate", "said", "judged"),
    [(4, 0.05, "breaks", "infeasible"), (1, 0.002, "may break", "not proven")],
)
def test_a_winner_that_fails_too_many_requests_in_the_confirmation_is_not_confirmed(
    settings, minutes, rate, said, judged
):
    """It failed none before: how sure that is depends on how many it fails now, and on the time to see it."""
    host = SimulatedHost()
    plan = replace(SMALL_PLAN, minutes=minutes)
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=plan)
    host.failure_rate = lambda config: (
        rate if campaign.storage.recall(CONFIRMATION) and not is_default(config) else 0.0
    )

    verdict = run_campaign(campaign)

    assert verdict == f"not confirmed: the winner {said} failure_rate <= default"
    assert gain_of(campaign).verdict == judged


def test_a_proven_winner_that_may_fail_too_much_is_started_until_that_is_known(settings):
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=SHORT_PLAN)
    host.failure_rate = lambda config: (
        0.002 if campaign.storage.recall(CONFIRMATION) and not is_default(config) else 0.0
    )

    run_campaign(campaign)

    first, *_ = campaign.storage.recall(REJECTED)
    pairs = of_role(campaign, Role.CONFIRM)[: 2 * SHORT_PLAN.pairs]
    after = campaign.trials[campaign.trials.index(pairs[-1]) + 1 :]
    more = [*takewhile(lambda trial: trial.role in {Role.REPEAT, Role.BASELINE}, after)]
    again = [trial.config for trial in more if trial.role is Role.REPEAT]
    assert 0 < len(more) <= 2 * SHORT_PLAN.pairs
    assert "breaks failure_rate" in first.reason or len(more) == 2 * SHORT_PLAN.pairs
    assert again == [first.config] * len(again)
    assert len(again) >= len(more) / 2


def test_one_failed_trial_of_the_winner_is_counted_and_is_no_verdict(settings):
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock))
    host.fault = lambda config: (
        CRASH
        if campaign.storage.recall(CONFIRMATION)
        and not is_default(config)
        and not any(trial.state is State.FAILED for trial in campaign.trials)
        else None
    )

    assert run_campaign(campaign) == "confirmed"
    assert Counter(trial.state for trial in of_role(campaign, Role.CONFIRM)) == {
        State.COMPLETE: 2 * SMALL_PLAN.pairs, State.FAILED: 1,
    }  # fmt: skip


def test_an_ablation_that_fails_requests_is_not_taken(tmp_path):
    """Without `multi_accept` the cached configuration fails requests, though it is as fast."""
    host = SimulatedHost(
        failure_rate=lambda config: 0.01 if config["open_file_cache"] and not config["multi_accept"] else 0.0
    )

    # A seed whose search finds both.
    settings = write_study(tmp_path, seed=2)
    campaign, verdict = run(settings, host, plan=replace(SMALL_PLAN, trials=16))

    winner = campaign.storage.recall(CONFIRMATION).config
    assert verdict == "confirmed"
    assert winner["open_file_cache"]
    assert winner["multi_accept"]


def test_a_winner_that_crashes_twice_in_the_confirmation_ends_it_with_the_reason(settings):
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=SHORT_PLAN)
    host.fault = lambda config: (
        CRASH if campaign.storage.recall(CONFIRMATION) and not is_default(config) else None
    )

    verdict = run_campaign(campaign)

    assert verdict == "not confirmed: winner: nginx: it was killed by signal -11"
    assert gain_of(campaign) is None


def test_one_spoiled_trial_does_not_end_the_race(settings):
    host = SimulatedHost()
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    def spoils(_time_s):
        is_racing = campaign.storage.recall(IS_SEARCHED) and campaign.storage.recall(FINALIST) is None
        return is_racing and not of_role(campaign, Role.RACE)

    host.is_spoiled = spoils

    verdict = run_campaign(campaign)

    assert [trial.state for trial in of_role(campaign, Role.RACE)][:2] == [State.INVALID, State.COMPLETE]
    assert verdict == "confirmed"


def test_a_configuration_that_crashes_in_the_race_leaves_it_and_another_one_is_confirmed(settings):
    host = SimulatedHost(sigma_trial=0.03)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))
    crashing = []

    def crash(config):
        if campaign.storage.recall(IS_SEARCHED) and not is_default(config) and not crashing:
            crashing.append(config_key(config))
        return CRASH if config_key(config) in crashing else None

    host.fault = crash

    verdict = run_campaign(campaign)

    later = [trial for trial in campaign.trials if trial.state is State.FAILED]
    assert 1 <= len(later) <= 3
    assert {config_key(trial.config) for trial in later} == {*crashing}
    assert config_key(campaign.storage.recall(CONFIRMATION).config) not in crashing
    assert verdict == "confirmed"


def test_a_host_that_changes_its_speed_has_the_doubtful_trials_measured_again(settings):
    host = SimulatedHost()
    jump_s = host.clock.now_s + 50
    host.level = lambda time_s: 0.0 if time_s < jump_s else -0.4

    campaign, verdict = run(settings, host, plan=replace(SMALL_PLAN, trials=16))

    notes = " ".join(campaign.progress.notes)
    assert "the baseline has changed much since its last trials" in notes
    assert "the machine has changed" in notes
    repeated = [config_key(trial.config) for trial in of_role(campaign, Role.REPEAT)]
    first = [config_key(trial.config) for trial in of_role(campaign, Role.SEARCH)]
    assert repeated
    assert set(repeated) <= set(first)
    assert verdict == "confirmed"


def test_a_configuration_after_which_the_default_is_slower_twice_never_wins(settings):
    host = SimulatedHost()
    damage = []

    def level(_time_s):
        return -0.4 * len(damage)

    host.level = level
    worth = host.worth
    seen = []

    def leave_something_behind(config):
        if not config["sendfile"]:
            seen.append(config_key(config))
            if seen.count(seen[-1]) in {1, 2} and seen[0] == seen[-1]:
                damage.append(seen[-1])
        return worth(config) + (0.5 if seen and config_key(config) == seen[0] else 0.0)

    host.worth = leave_something_behind

    campaign, _ = run(settings, host, plan=replace(SMALL_PLAN, trials=20))

    assert seen.count(seen[0]) >= 2
    assert seen[0] not in {entry.key for entry in campaign.ranking().entries}


def test_where_the_default_failed_a_generator_that_fails_blames_no_configuration(settings):
    host = SimulatedHost()
    asked = []
    campaign = make_campaign(settings, host, open_in_memory(host.clock))
    make = campaign.runner.make

    def note(opening, **given):
        asked.append((opening.role, given["judges"].baseline.is_healthy))
        return make(opening, **given)

    campaign.runner.make = note
    calibrate(campaign)
    host.fault = lambda config: CRASH if is_default(config) else None
    measure_baseline(campaign)
    try_next(campaign, [])

    assert asked[-2:] == [(Role.BASELINE, True), (Role.SEARCH, False)]


def test_a_bound_on_response_times_that_nobody_reports_is_refused(tmp_path):
    settings = write_study(tmp_path, more="constraints: [latency_p99_ms <= 20]\n")
    host = SimulatedHost(reports_latency=False)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(
        UsageError,
        match=r"tuner cannot judge constraint latency_p99_ms <= 20: wrk reported no response times",
    ):
        run_campaign(campaign)


def test_a_host_that_does_not_calm_down_is_given_up_with_the_figures(settings):
    host = SimulatedHost(is_spoiled=lambda _: True)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))
    campaign.runner.wait_until_quiet = lambda _: False

    with pytest.raises(TargetError, match=r"20 of the last 20 windows \(100 %\).* lasted longer than 120 s"):
        run_campaign(campaign)


@pytest.mark.statistical
def test_the_standard_preset_keeps_to_its_minutes(settings):
    host = SimulatedHost()
    began_s = host.clock.monotonic()

    campaign, verdict = run(settings, host, plan=PRESETS["standard"])

    assert verdict == "confirmed"
    assert host.clock.monotonic() - began_s <= 75 * 60
    assert len(of_role(campaign, Role.SEARCH)) + len(of_role(campaign, Role.REPEAT)) >= 60


def test_a_promising_configuration_gets_more_trials(settings):
    host = SimulatedHost(sigma_trial=0.04, sigma_window=0.04)
    campaign, _ = run(settings, host, plan=replace(SMALL_PLAN, trials=30))

    repeats = of_role(campaign, Role.REPEAT)
    assert repeats
    assert all(trial.config["open_file_cache"] for trial in repeats)


def test_what_is_clearly_worse_is_ended_early_and_still_counts(settings):
    host = SimulatedHost(worth=lambda config: cached_files_win(config) - (not config["sendfile"]))

    campaign, _ = run(settings, host)

    hopeless = [trial for trial in campaign.trials if not trial.config["sendfile"]]
    assert hopeless
    assert all(trial.state is State.PRUNED for trial in hopeless)
    assert all("less than half of the default's" in trial.failure.reason for trial in hopeless)
    assert all(trial.number in campaign.ranking().speedups for trial in hopeless)


@pytest.mark.parametrize("minutes", leave_to_more([0.5, 1, 3, 5], 0.5, 1))
def test_the_whole_campaign_keeps_to_its_minutes(settings, minutes):
    plan = PRESETS["quick"].fit(minutes=minutes, trials=1000)
    host = SimulatedHost(sigma_trial=0.02, sigma_window=0.04)

    campaign, _ = run(settings, host, plan=plan)

    begun_s = campaign.trials[0].started_s
    # A stage is finished once it has begun, and the smallest study still calibrates and ends its search.
    assert host.clock.time() - begun_s <= 60 * minutes * 1.15 + 15


def test_more_minutes_try_more_configurations(settings):
    tried = []
    for minutes in (0.5, 1, 2):
        plan = PRESETS["quick"].fit(minutes=minutes, trials=1000)
        campaign, _ = run(settings, SimulatedHost(), plan=plan)
        tried.append(len(of_role(campaign, Role.SEARCH)))

    assert tried[0] < tried[1] < tried[2]


def test_a_host_that_spoils_nearly_every_window_is_given_up_after_one_pause(settings):
    host = SimulatedHost(is_spoiled=lambda time_s: int(time_s) % 10 > 0)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(TargetError, match=r"too noisy, .* windows .* were spoiled by foreign CPU"):
        run_campaign(campaign)
    assert len(campaign.progress.notes) == 1
    assert "tuner waits up to 120 s" in campaign.progress.notes[0]


@pytest.mark.parametrize(("from_s", "spoiled"), NOISES)
def test_however_noisy_a_host_becomes_a_quick_study_ends_within_a_minute_of_its_time(
    settings, from_s, spoiled
):
    host = SimulatedHost(sigma_trial=0.02, sigma_window=0.04)
    begun_s, luck = host.clock.time(), Random(1)  # noqa: S311 - no secret
    host.is_spoiled = lambda time_s: time_s - begun_s > from_s and luck.random() < spoiled
    plan = PRESETS["quick"]
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=plan)
    campaign.runner.wait_until_quiet = lambda most_s: host.clock.sleep(most_s) or False

    verdict = ""
    with suppress(TooNoisy):
        verdict = run_campaign(campaign)

    assert host.clock.time() - begun_s <= 60 * plan.minutes + 60
    has_tried = any(trial.counts and not is_default(trial.config) for trial in campaign.trials)
    assert bool(verdict) is has_tried


@pytest.mark.parametrize(
    ("from_s", "pairs", "state", "verdict"),
    [
        (5, 0, "stopped", None),  # nothing but the default was measured
        (100, 0, "finished", "not proven"),
        (0, 3, "finished", "improved"),  # by the pairs that were measured until then
    ],
)
def test_a_study_that_noise_ends_early_says_what_it_found(settings, from_s, pairs, state, verdict):
    host = SimulatedHost()
    begun_s = host.clock.time()
    storage = open_in_memory(host.clock)
    storage.remember(FINGERPRINT, THIS_MACHINE)
    campaign = make_campaign(settings, host, storage, plan=PRESETS["quick"])
    campaign.runner.wait_until_quiet = lambda most_s: host.clock.sleep(most_s) or False

    def is_spoiled(time_s: float) -> bool:
        confirming = sum(trial.role is Role.CONFIRM for trial in campaign.trials)
        return time_s - begun_s > from_s and confirming >= 2 * pairs

    host.is_spoiled = is_spoiled

    with suppress(TooNoisy):
        storage.remember(VERDICT, run_campaign(campaign))
    ended = summarize(settings, campaign.setup.space, storage, running=False, version="1")

    assert (ended.state, ended.verdict) == (state, verdict)
    assert verdict_code(ended) == (0 if verdict == "improved" else 1)
    assert ended.gain is None or ended.gain.pairs < PRESETS["quick"].pairs
    if verdict == "not proven":
        assert ended.found.config == campaign.ranking().incumbent.config
        assert re.search(
            r"found 1\.\d\d× .* not shipped: the host was too noisy to confirm it", str(headline(ended))
        )
        assert "spoiled" in ended.reason
        assert not has_verdict(storage)  # run again, it resumes


def test_all_goodputs_are_on_the_scale_of_the_host(usual):
    campaign, _ = usual

    rates = [window.goodput_rps for trial in campaign.trials for window in trial.windows]
    assert all(0.7 * BASE_RPS < rate < 1.5 * BASE_RPS for rate in rates)


def test_every_pair_of_the_confirmation_is_default_and_winner(usual):
    campaign, _ = usual

    pairs: dict[int, list[str]] = {}
    for trial in of_role(campaign, Role.CONFIRM):
        pairs.setdefault(trial.block, []).append(trial.arm)
    assert len(pairs) == SMALL_PLAN.pairs
    assert all(sorted(arms) == [DEFAULT_ARM, WINNER_ARM] for arms in pairs.values())
    assert sum(arms[0] == DEFAULT_ARM for arms in pairs.values()) == SMALL_PLAN.pairs / 2
