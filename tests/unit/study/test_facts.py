"""What a storage keeps beside the trials: typed, and readable whoever wrote it."""

import json
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from tests.unit.simulated_study import FINGERPRINT
from tuner.campaign.stages.confirm import read_gain
from tuner.campaign.stages.fixed_rate import read_latency
from tuner.campaign.stages.robustness import read_robustness
from tuner.errors import UsageError
from tuner.records import CheckLoad, Metric
from tuner.records.blend import Across, AcrossHosts, Blend, Hosts
from tuner.study import facts
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.facts import Confirmation, PlannedCheck, Rejection
from tuner.study.open_storage import open_storage

FIRST_FORMAT = json.loads(Path(__file__).with_name("first_format.json").read_text(encoding="utf-8"))
"""A whole study as it was written before facts had types and a version."""
LATER = (
    facts.BLEND, facts.DIFFERENCES, facts.FORMAT, facts.METRIC, facts.MOVED_LOAD, facts.REJECTED,
    facts.ROBUSTNESS, facts.SWEEP, facts.CONTEST, facts.CURVE, facts.OTHER_HOSTS, facts.HOSTS,
    facts.PLANNED, facts.BEGUN_AGAIN, facts.PACE,
)  # fmt: skip
"""What that tuner did not write."""
LEFT_ALONE = {"race", "simplify"}
"""What only that tuner wrote; nobody reads it, and it stays where it is."""
WINNER = FIRST_FORMAT["study"]["confirm"]["config"]


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "study.db")


@pytest.fixture
def old(url):
    """Open a study that an earlier tuner has written."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=url, study_name="old", direction="maximize")
    for key, value in FIRST_FORMAT["study"].items():
        study.set_user_attr(key, value)
    for trial in FIRST_FORMAT["trials"]:
        state = TrialState[trial["state"]]
        study.add_trial(create_trial(state=state, value=0.0, user_attrs=trial["user_attrs"]))
    return open_storage(url, "old", create=False)


def test_a_study_of_an_earlier_tuner_is_read(old):
    assert old.recall(facts.FORMAT) is None
    assert old.recall(facts.DEFINITION) == {"study": "test"}
    assert old.recall(facts.FINGERPRINT) == FINGERPRINT
    assert old.recall(facts.PRESET) == "quick"
    assert old.recall(facts.SPACE_FACTS)["versions"] == {"nginx": [1, 22, 1]}
    assert old.recall(facts.EXPECTED_GAINS) == (None,) * 5
    assert old.recall(facts.IS_SEARCHED) is True
    assert old.recall(facts.FINALIST) == (FIRST_FORMAT["study"]["race"]["#2"],)
    assert old.recall(facts.CONFIRMATION) == Confirmation(
        config=WINNER, pairs=4, windows=2, extend_to=4, looks=1, first_block=0
    )
    assert old.recall(facts.FIXED_RATE).rate_rps == FIRST_FORMAT["latency"]["rate_rps"]
    assert old.recall(facts.VERDICT) == "confirmed"
    assert all(old.recall(fact) is None for fact in LATER)
    assert read_robustness(old, old.trials(), WINNER) == ()


def test_the_claims_of_an_earlier_tuners_study_stay_what_they_were(old):
    trials = old.trials()
    default = trials[0].config

    gain = read_gain(old, trials, default, ())
    latency = read_latency(old, trials, default)

    assert {key: getattr(gain, key) for key in FIRST_FORMAT["gain"]} == FIRST_FORMAT["gain"]
    assert (latency.ratio.ratio, latency.pairs) == (FIRST_FORMAT["latency"]["ratio"], 2)


def test_facts_are_written_as_an_earlier_tuner_wrote_them(old, url):
    """Keys and forms are a contract: what is written again is the same, but for what came later."""
    every = [each for each in vars(facts).values() if isinstance(each, facts.Fact) and each not in LATER]
    for fact in every:
        old.remember(fact, old.recall(fact))

    (study,) = optuna.get_all_study_summaries(url)
    expected = json.loads(json.dumps(FIRST_FORMAT["study"]))
    expected["confirm"]["first_block"] = 0
    expected["fingerprint"]["limits"] = ""
    assert json.dumps(study.user_attrs, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert {fact.key for fact in every} | LEFT_ALONE == FIRST_FORMAT["study"].keys()


def test_what_was_refused_is_read_back_with_its_reasons(old):
    rejected = (Rejection(config=WINNER, reason="it breaks"), Rejection(config={}, reason="it crashed"))
    old.remember(facts.REJECTED, rejected)

    assert old.recall(facts.REJECTED) == rejected


def test_the_hosts_of_a_winner_are_read_back(old):
    hosts = Hosts(names=("a", "b"), across=AcrossHosts.MEAN)
    assert old.hosts is None

    old.remember(facts.HOSTS, hosts)

    assert old.hosts == hosts


def test_what_the_search_of_many_workers_tries_next_is_read_back(old):
    plan = facts.SearchPlan(configs=({"sendfile": True, "worker_connections": 512},), since=7)
    assert old.recall(facts.PLANNED) is None

    old.remember(facts.PLANNED, plan)

    assert old.recall(facts.PLANNED) == plan


def test_what_counts_of_several_loads_is_read_back_and_is_what_trials_are_read_by(old):
    blend = Blend(across=Across.WORST, weights={"a": 0.5, "b": 0.5}, levels={"a": 9.2, "b": 4.6})
    assert old.blend is None

    old.remember(facts.BLEND, blend)

    assert old.recall(facts.BLEND) == old.blend == blend
    assert all(window.blend == blend for trial in old.trials() for window in trial.windows)


def test_a_planned_check_is_read_back_as_it_was_planned(old):
    check_load = CheckLoad(
        name="60 slow clients", changes="clients", connections=100, keepalive=True, slow_clients=60
    )
    check = PlannedCheck(
        config=WINNER, check_loads=(check_load,), left_out={"400 connections": "no ports"}, pairs=2,
        first_block=4, window_s=1.0, pair_sd=0.1, failure_limit=0.001,
    )  # fmt: skip
    old.remember(facts.ROBUSTNESS, (check, check))

    assert old.recall(facts.ROBUSTNESS) == (check, check)
    assert old.plans()["other_loads"][0].keys() >= {"situations", "pair_sd"}


def test_a_study_of_an_earlier_tuner_maximizes_goodput(old):
    assert old.metric is Metric.GOODPUT


def test_what_a_study_maximizes_is_what_its_trials_are_read_by(old, url):
    of_goodput = [trial.log_value for trial in old.trials()]
    old.remember(facts.METRIC, Metric.PER_CPU)

    again = open_storage(url, "old", create=False)

    assert again.metric is Metric.PER_CPU
    assert again.recall(facts.METRIC) is Metric.PER_CPU
    assert {window.metric for trial in again.trials() for window in trial.windows} == {Metric.PER_CPU}
    assert [trial.log_goodput for trial in again.trials()] == of_goodput


def test_a_resumed_study_has_the_format_of_what_is_written_from_now_on(old, url):
    assert old.recall(facts.FORMAT) is None

    old.claim(FINGERPRINT, definition={"study": "test"})

    assert open_storage(url, "old").recall(facts.FORMAT) == facts.VERSION


def test_a_study_of_a_newer_tuner_is_refused(old, url):
    old.claim(FINGERPRINT, definition={"study": "test"})
    old.remember(facts.FORMAT, facts.VERSION + 1)

    with pytest.raises(
        UsageError, match=r"a newer tuner wrote this study \(format 3; your tuner reads formats up to 2\)"
    ):
        open_storage(url, "old")


def test_a_new_study_says_which_format_it_has(url):
    storage = open_storage(url, "new")
    storage.claim(FINGERPRINT, definition={"study": "test"})

    assert open_storage(url, "new").recall(facts.FORMAT) == facts.VERSION
