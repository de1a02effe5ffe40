"""Who works on a study: as a table, for scripts, and for Prometheus."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import SimulatedClock, open_in_memory
from tests.unit.study.test_storage import DISTRIBUTIONS, windows
from tests.unit.trials import DEFAULT
from tuner.records import Failure, Role, State, Timing
from tuner.report.fleet import read_fleet
from tuner.report.fleet.prometheus import METRICS, RUNNING, prometheus_text
from tuner.report.fleet.screen import fleet_text
from tuner.study.facts import FINGERPRINT as FINGERPRINT_FACT
from tuner.study.facts import OTHER_HOSTS, VERDICT
from tuner.study.storage import Opening

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
SAMPLE = re.compile(r'^tuner_\w+\{study="(?:[^"\\]|\\.)*"(?:,host="(?:[^"\\]|\\.)*")?\} -?[0-9.e+]+$')


@pytest.fixture
def clock():
    return SimulatedClock()


@pytest.fixture
def storage(clock):
    opened = open_in_memory(clock)
    opened.remember(FINGERPRINT_FACT, FINGERPRINT)
    return opened


def begin(storage, host=""):
    opening = Opening(role=Role.SEARCH, config=DEFAULT)
    return storage.begin(opening, distributions=DISTRIBUTIONS, session="s", host=host)


def make(storage, clock, host="", *, state=State.COMPLETE, took_s=18.0):
    trial = begin(storage, host)
    trial = storage.keep_window(trial, windows(1)[0])
    clock.sleep(took_s)
    failure = None if state is State.COMPLETE else Failure(kind="crashed", reason="it crashed")
    ended = replace(trial, state=state, failure=failure, timing=Timing(load_s=took_s))
    storage.end(ended, log_ratio=0.0, slacks={})


def look(storage, clock, *, is_running=True, silences=None):
    return read_fleet("shop", storage, is_running=is_running, now_s=clock.time(), silences=silences or {})


def test_each_host_has_its_trials_its_failures_and_its_rate(storage, clock):
    storage.remember(OTHER_HOSTS, {"web2": replace(FINGERPRINT, host="web2")})
    for state in (State.COMPLETE, State.FAILED, State.INVALID):
        make(storage, clock, "web1", state=state)
    make(storage, clock, "web2", took_s=36.0)
    running = begin(storage, "web2")
    clock.sleep(5.0)
    fleet = look(storage, clock, silences={"web2": 3.0})
    first, second = fleet.hosts
    assert (first.host, first.trials, first.failed, first.lost) == ("web1", 3, 1, 1)
    assert first.per_hour == pytest.approx(200.0)
    assert second.per_hour == pytest.approx(100.0)
    assert (second.doing, second.since_s, second.silent_s) == (f"search #{running.number}", 5.0, 3.0)
    assert fleet.per_hour == pytest.approx(300.0)
    assert json.loads(json.dumps(fleet.as_json()))["hosts"][1]["silent_s"] == 3.0


def test_a_study_of_one_worker_is_that_of_its_host(storage, clock):
    make(storage, clock)
    (row,) = look(storage, clock, is_running=False).hosts
    assert (row.host, row.trials, row.silent_s) == ("web1", 1, None)


def test_a_host_that_has_not_begun_is_shown(storage, clock):
    storage.remember(OTHER_HOSTS, {"web2": replace(FINGERPRINT, host="web2")})
    assert [row.host for row in look(storage, clock).hosts] == ["web1", "web2"]


def test_the_state_is_that_of_the_study(storage, clock):
    assert look(storage, clock, is_running=False).state == "stopped"
    assert look(storage, clock).state == "running"
    storage.remember(VERDICT, "confirmed")
    assert look(storage, clock).state == "finished"


def test_nothing_is_measured_where_all_workers_were_killed(storage, clock):
    begin(storage, "web1")
    running, stopped = look(storage, clock), look(storage, clock, is_running=False)

    assert running.hosts[0].doing
    assert (stopped.hosts[0].doing, stopped.hosts[0].since_s) == ("", None)
    assert 'tuner_running{study="shop"} 1\n' in prometheus_text(running)
    told = prometheus_text(stopped)
    assert 'tuner_running{study="shop"} 0\n' in told
    assert 'tuner_measuring{study="shop",host="web1"} 0\n' in told
    assert "tuner_trial_age_seconds{" not in told


def test_what_a_host_measures_is_what_it_began_last(storage, clock):
    begin(storage, "web1")
    clock.sleep(100.0)
    last = begin(storage, "web1")
    clock.sleep(5.0)
    (row,) = look(storage, clock).hosts
    assert (row.doing, row.since_s) == (f"search #{last.number}", 5.0)


def test_the_table_fits_a_terminal_and_cannot_be_steered(storage, clock):
    name = "ssh://root@a-rather-long-name.example.org:2222\x1b[2J"
    storage.remember(OTHER_HOSTS, {name: replace(FINGERPRINT, host=name)})
    make(storage, clock, "web1", took_s=0.01)
    text = fleet_text(look(storage, clock))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text
    assert len(text.splitlines()) == 5


def test_prometheus_reads_every_line(storage, clock):
    storage.remember(OTHER_HOSTS, {'we"b\\2': replace(FINGERPRINT, host="web2")})
    make(storage, clock, "web1")
    text = prometheus_text(look(storage, clock))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples
    assert all(SAMPLE.match(line) for line in samples)
    assert text.count("# TYPE") == 1 + len(METRICS)
    assert 'tuner_trials_total{study="shop",host="web1"} 1' in samples
    assert text.endswith("\n")


def test_the_grafana_dashboard_asks_for_metrics_that_are_written():
    dashboard = json.loads((EXAMPLES / "fleet/grafana.json").read_text())
    panels = dashboard["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    asked += [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    known = {RUNNING, *(name for name, *_ in METRICS)}
    assert {name for query in asked for name in re.findall(r"\btuner_\w+", query)} <= known
    assert {each["name"] for each in dashboard["templating"]["list"]} == {"datasource", "study"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
