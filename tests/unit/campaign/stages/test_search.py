"""What the search proposes, and when it finds that nothing is left."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedClock,
    SimulatedHost,
    make_campaign,
    nothing_matters,
    open_in_memory,
    space_of,
    write_study,
)
from tuner.campaign.baselines import measure_baseline
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.campaign.stages.search import try_next
from tuner.campaign.suggest import is_exhausted, left_to_gain, observe
from tuner.optimize.catalogue import DEFAULT_OPTIMIZER
from tuner.records import Role, State, Trial
from tuner.statistics.ranking import config_key
from tuner.study.facts import CONFIRMATION, EXPECTED_GAINS, PLANNED

SEARCHED = {Role.SEARCH, Role.REPEAT}


def run(tmp_path, host, *, trials, only=(), optimizer=DEFAULT_OPTIMIZER):
    """Run a campaign with the default optimizer; returns it, its verdict and what was searched."""
    campaign = make_campaign(
        write_study(tmp_path, optimizer=optimizer), host, open_in_memory(host.clock),
        plan=replace(SMALL_PLAN, trials=trials), space=space_of(*only) if only else None,
    )  # fmt: skip
    verdict = run_campaign(campaign)
    return campaign, verdict, [trial.config for trial in campaign.trials if trial.role in SEARCHED]


def test_the_default_optimizer_finds_what_is_better(tmp_path):
    campaign, verdict, searched = run(tmp_path, SimulatedHost(), trials=24)

    assert verdict == "confirmed"
    assert campaign.storage.recall(CONFIRMATION).config["open_file_cache"]
    assert len({config_key(config) for config in searched}) > 12


def test_what_is_searched_and_ships_has_numbers_that_a_person_would_write(tmp_path):
    campaign, verdict, searched = run(tmp_path, SimulatedHost(), trials=16)

    space, shipped = campaign.setup.space, campaign.storage.recall(CONFIRMATION).config
    assert verdict == "confirmed"
    assert all(dict(config) == space.round(config) for config in [*searched, shipped])
    assert any(config["open_file_cache"] not in {0, 1000} for config in searched)


def test_a_space_with_few_configurations_is_searched_and_then_left(tmp_path):
    """Without sendfile, tcp_nopush is off: its two points are one configuration."""
    host = SimulatedHost(worth=lambda config: 0.0 if config["sendfile"] else -0.1)
    campaign, _, searched = run(tmp_path, host, trials=80, only=("sendfile", "multi_accept", "tcp_nopush"))

    tried = Counter(config_key(config) for config in searched)
    slow = sum(count for key, count in tried.items() if '"sendfile": false' in key)
    assert len(tried) >= 5
    assert slow <= 6
    assert len(searched) < 50
    assert any("further trials would gain only about 0.0 % more" in note for note in campaign.progress.notes)


@pytest.mark.more
def test_a_search_that_promises_nothing_ends_before_its_budget(tmp_path):
    _, _, searched = run(tmp_path, SimulatedHost(worth=nothing_matters), trials=90, only=("multi_accept",))

    assert len(searched) < 50


@pytest.mark.parametrize(
    ("expected", "ends"),
    [
        ([None] * 40, False),
        ([0.001] * 29, False),
        ([0.001] * 30, True),
        ([0.2] * 25 + [0.001] * 5, True),
        ([0.2] * 26 + [0.001] * 4, False),
        ([0.2] * 25 + [0.001, None, 0.001, 0.001, None, 0.0, 0.0], True),
        ([0.001] * 30 + [0.006], False),
    ],
)
def test_the_search_ends_when_five_in_a_row_promise_less_than_it_costs(expected, ends):
    assert is_exhausted(expected) is ends


@pytest.mark.parametrize(
    ("expected", "ends"),
    [
        ([0.0] * 479, False),
        ([0.0] * 480, True),
        ([0.2] * 465 + [0.0] * 15, False),
        ([0.2] * 465 + [0.0] * 16, True),
        ([0.2] * 465 + [0.001] * 16, False),
        ([0.2] * 465 + [0.0001] * 16, True),
    ],
)
def test_with_many_workers_each_has_to_promise_little_and_little_is_a_share(expected, ends):
    assert is_exhausted(expected, workers=16) is ends


@pytest.mark.parametrize(
    ("expected", "ends", "left"),
    [
        ([None] * 30 + [0.0], False, 0.0),
        ([None] * 30 + [0.0] * 5, True, 0.0),
        ([None] * 30 + [0.0, None] * 5, False, None),
        ([0.2] * 29 + [0.0, 0.0, None], False, 0.2),
    ],
)
def test_that_nothing_is_left_holds_until_something_is_found(expected, ends, left):
    """An optimizer without a model tells no gain, and may meet ten known configurations by chance."""
    assert is_exhausted(expected) is ends
    assert left_to_gain(expected) == (None if left is None else pytest.approx(math.expm1(left)))


def test_where_constraints_refuse_everything_nobody_says_that_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tuner.space.Space.violations", lambda _space, config: ("no",) * (config["listen_backlog"] > 0)
    )
    campaign, _, searched = run(
        tmp_path, SimulatedHost(), trials=3, only=("listen_backlog",), optimizer="random"
    )

    assert len(searched) == 3
    assert left_to_gain(campaign.storage.recall(EXPECTED_GAINS)) is None


def test_what_is_left_to_gain_is_what_the_last_suggestion_promised():
    assert left_to_gain([0.3, 0.0953, None]) == pytest.approx(0.1, abs=1e-4)
    assert left_to_gain([None]) is None


class SlowClock(SimulatedClock):
    """A clock by which everything takes time, to look at it included."""

    def monotonic(self):
        self.now_s += 0.5
        return self.now_s


def at_work(campaign, count):
    """Return the trials that so many other workers are at: one tries something, the others the default."""
    config = {**campaign.default, "multi_accept": not campaign.default["multi_accept"]}
    search = Trial(number=0, role=Role.SEARCH, config=config, state=State.RUNNING, started_s=0.0)
    baseline = replace(search, role=Role.BASELINE, config=campaign.default, arm="default")
    return [replace(baseline if index else search, host=f"host {index}") for index in range(count)]


@pytest.fixture
def begin_search(tmp_path):
    """Take up a study whose default was measured, by a clock, while others are at work."""

    def begin(clock, others):
        host = SimulatedHost(clock=clock)
        campaign = make_campaign(write_study(tmp_path), host, open_in_memory(clock))
        calibrate(campaign)
        campaign.pending = at_work(campaign, others)
        campaign.enter("search", 0, 10)
        return campaign

    return begin


def test_what_other_workers_are_at_stands_in_the_model_with_what_is_expected_of_it(begin_search):
    campaign = begin_search(SimulatedClock(), others=3)
    *known, pending = observe(campaign)

    assert not any(seen.is_pending for seen in known)
    assert pending.is_pending
    assert dict(pending.point) == campaign.setup.space.encode(campaign.pending[0].config)
    gain = campaign.ranking().posterior.gain(campaign.pending[0].config)
    assert pending.log_ratio == gain.log_ratio


def test_where_deciding_takes_long_one_worker_decides_for_those_that_come_next(begin_search):
    campaign, expected = begin_search(SlowClock(), others=20), []
    try_next(campaign, expected)

    planned = campaign.storage.recall(PLANNED).configs
    first = campaign.trials[-1].config
    assert len(expected) == 1 + len(planned) > 3
    assert campaign.storage.recall(EXPECTED_GAINS) == tuple(expected)
    keys = {config_key(config) for config in (first, *planned, campaign.pending[0].config)}
    assert len(keys) == 2 + len(planned), "nothing is planned twice, or that somebody is at"


def test_each_worker_that_is_free_begins_the_next_of_the_plan(begin_search):
    campaign, expected = begin_search(SlowClock(), others=20), []
    try_next(campaign, expected)
    planned = campaign.storage.recall(PLANNED).configs
    taken = replace(campaign.pending[0], config=planned[0], number=campaign.trials[-1].number + 1)
    campaign.pending.append(taken)
    known = len(expected)
    try_next(campaign, expected)

    assert campaign.trials[-1].config == planned[1]
    assert len(expected) == known, "nothing new was chosen"


def test_after_the_last_of_the_plan_more_is_planned(begin_search):
    campaign, expected = begin_search(SlowClock(), others=12), []
    try_next(campaign, expected)
    before = campaign.storage.recall(PLANNED)
    for _ in before.configs:
        try_next(campaign, expected)
    assert campaign.storage.recall(PLANNED) == before
    while campaign.storage.recall(PLANNED) == before:
        try_next(campaign, expected)
    searched = [config_key(trial.config) for trial in campaign.trials if trial.role is Role.SEARCH]
    assert len(set(searched)) == len(searched)


@pytest.mark.parametrize(("clock", "others"), [(SlowClock(), 0), (SimulatedClock(), 20)])
def test_a_worker_that_is_alone_or_decides_at_once_plans_nothing(begin_search, clock, others):
    campaign, expected = begin_search(clock, others), []
    try_next(campaign, expected)

    assert campaign.storage.recall(PLANNED) is None
    assert len(expected) == 1


def test_workers_that_decide_slowly_do_not_rank_all_trials_after_each(begin_search):
    campaign = begin_search(SlowClock(), others=20)
    for _ in range(6):
        measure_baseline(campaign)
    try_next(campaign, [])
    known = campaign.ranking()
    try_next(campaign, [])
    assert campaign.ranking() is known
    campaign.enter("race", 0, 0)
    assert campaign.ranking() is not known
