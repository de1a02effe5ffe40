"""A load curve from the plan to the verdict, on a simulated host."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from tests.unit.simulation import (
    TUNED,
    SimulatedHost,
    SimulatedRunner,
    make_setup,
    open_on_disk,
    space_of,
    write_study,
)
from tuner.adapters.loads.command import Command
from tuner.campaign import interleaved
from tuner.commands.contests import compare as compare_module
from tuner.commands.contests import curve as module
from tuner.errors import UsageError
from tuner.hosts.connection_room import ConnectionRoom, Limit
from tuner.measure.window import Load
from tuner.ports import Config, Failures
from tuner.records import Failure, Role, Window
from tuner.report.curve import curve_json, read_curves
from tuner.study.facts import CONFIRMATION, PACE, Confirmation, Pace
from tuner.study.settings import LoadSettings
from tuner.study.side_storages import CURVES

TUNED_CACHE = {"open_file_cache": 2000}


@dataclass(kw_only=True)
class CrowdedHost(SimulatedHost):
    """A host whose servers hold so many connections; the other clients hear nothing."""

    holds: int = 800
    tuned_holds: int = 20_000
    stalls_at: int | None = None
    """With its own settings it serves nobody from so many connections on."""
    connections: int = 0

    def window(self, config: Config, own: float, duration_s: float, rate_rps: float | None = None) -> Window:
        made = super().window(config, own, duration_s, rate_rps)
        holds = self.tuned_holds if config["open_file_cache"] else self.holds
        return replace(made, failures=Failures(timeout=max(0, self.connections - holds)))


@dataclass(kw_only=True)
class CrowdedRunner(SimulatedRunner):
    """Tells the host how many connections a trial meets."""

    asked: list[int] = field(default_factory=list)

    def make(self, opening, *, load: Load | None = None, **given):
        host = self.host
        assert load is not None
        host.connections = load.shape.connections
        self.asked.append(host.connections)
        stalls = host.stalls_at is not None and host.connections >= host.stalls_at
        host.fault = lambda config: (
            Failure(kind="stalled", reason="no correct response") if stalls and not config["open_file_cache"]
            else None
        )  # fmt: skip
        return super().make(opening, load=load, **given)


@pytest.fixture
def host():
    return CrowdedHost(worth=lambda config: 0.1 if config["open_file_cache"] else 0.0)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def setup(settings, host):
    setup = make_setup(settings, space_of(*TUNED), cpus=host.cpus)
    return replace(setup, target=SimpleNamespace(hold=lambda _: nullcontext()))


@pytest.fixture(autouse=True)
def started(monkeypatch, host, setup):
    """Let curves be measured on a simulated host; returns the runners that they used."""
    runners = []

    def make_runner(**given):
        runners.append(CrowdedRunner(host=host, **given))
        return runners[-1]

    monkeypatch.setattr(compare_module, "prepare", lambda _: setup)
    monkeypatch.setattr(interleaved, "TrialRunner", make_runner)
    monkeypatch.setattr(interleaved, "time", host.clock)
    return runners


def test_the_collapse_of_the_default_is_found_and_the_tuned_one_has_none(settings):
    found = module.curve(
        settings, {"default": "default", "tuned": TUNED_CACHE}, connections=[100, 700, 1000, 10_000]
    )

    default, tuned = curve_json(found)["configurations"]
    assert (default["bears_up_to"], default["fails_from"]) == (700, 1000)
    assert (tuned["bears_up_to"], tuned["fails_from"]) == (10_000, None)
    for spot in found.spots("tuned"):
        assert spot.ratio.low < 1.105 < spot.ratio.high


def test_windows_of_a_slow_application_grow_with_the_connections(settings, host, started):
    open_on_disk(settings, host.clock).remember(PACE, Pace(window_s=2.0, response_s=0.5, since=1))

    module.curve(settings, {"default": "default", "tuned": TUNED_CACHE}, connections=[50, 1000])

    (runner,) = started
    assert runner.plan.window_s == 20.0  # the study has 100 connections
    assert runner.setup.load.response_s == 5.0


def test_each_block_holds_every_cell_in_an_order_of_its_own(settings, started):
    module.curve(settings, {"default": "default", "tuned": TUNED_CACHE}, connections=[100, 1000])

    (runner,) = started
    blocks = [[each.arm for each in runner.openings if each.block == block] for block in range(3)]
    assert [sorted(block) for block in blocks] == [sorted(blocks[0])] * 3
    assert len(blocks[0]) == 4
    assert len({tuple(block) for block in blocks}) > 1
    assert {each.role for each in runner.openings} == {Role.CURVE}
    asked = dict(zip((each.arm for each in runner.openings), runner.asked, strict=True))
    assert asked["tuned at 1000"] == 1000


def test_what_stalls_is_recorded_as_such_and_measured_no_more(settings, host, started):
    host.stalls_at = 1000

    found = module.curve(settings, {"default": "default", "tuned": TUNED_CACHE}, connections=[100, 1000])

    assert found.verdict.startswith("default: serves nothing from 1,000 connections on")
    assert sum(each.arm == "default at 1000" for each in started[0].openings) == 2
    assert found.spots("tuned")[1].trials >= 3


def test_the_study_itself_learns_nothing_of_a_curve(settings, host):
    open_on_disk(settings, host.clock)

    module.curve(settings, connections=[100, 300])

    assert open_on_disk(settings, host.clock).trials() == ()
    assert len(list((settings.folder / CURVES).glob("*.db"))) == 1


def test_the_default_alone_is_measured_until_there_is_a_winner(settings, host):
    alone = module.curve(settings, connections=[100])
    winner = space_of(*TUNED).complete(TUNED_CACHE)
    confirmation = Confirmation(config=winner, pairs=4, windows=2, extend_to=4, looks=1)
    open_on_disk(settings, host.clock).remember(CONFIRMATION, confirmation)

    both = module.curve(settings, connections=[100])

    assert alone.names == ("default",)
    assert both.names == ("default", "winner")


def test_an_interrupted_curve_resumes_and_a_finished_one_is_read(settings, host, started):
    host.cut_at = 20
    with pytest.raises(KeyboardInterrupt):
        module.curve(settings, connections=[100, 1000])
    before = len(started[0].openings)
    host.cut_at = None

    found = module.curve(settings, connections=[100, 1000])
    made = sum(len(each.openings) for each in started)
    again = module.curve(settings, connections=[1000, 100])

    assert before > 1
    assert found.trials == made - 1
    assert sum(len(each.openings) for each in started) == made
    assert again.verdict == found.verdict


def test_a_curve_ends_within_its_minutes(settings, host):
    begun_s = host.clock.now_s

    module.curve(settings, connections=[100, 900], minutes=1)

    assert host.clock.now_s - begun_s <= 60


def test_curves_are_read_back_from_the_folder_alone(settings):
    module.curve(settings, connections=[100, 900])
    module.curve(settings, connections=[100])

    found = read_curves(settings)

    assert sorted(each.connections for each in found) == [(100,), (100, 900)]
    assert json.loads(json.dumps([curve_json(each) for each in found]))


@pytest.mark.parametrize(
    ("connections", "said"),
    [
        ([], "0 numbers"),
        ([0, 100], "0 to 100 connections are out of range. Give 1 to 20,000"),
        ([100, 20_001], "100 to 20,001 connections are out of range"),
        (range(1, 20), "19 numbers"),
    ],
)
def test_numbers_that_cannot_be_sent_are_refused_before_anything_runs(settings, started, connections, said):
    with pytest.raises(UsageError, match=said):
        module.curve(settings, connections=list(connections))

    assert not started


def test_more_connections_than_there_is_room_for_are_refused_with_the_limit(settings, setup, monkeypatch):
    limit = Limit(most=4032, reason="a process may open 4,096 files", remedy="Raise the hard limit")
    cramped = replace(setup, room=ConnectionRoom(limits=(limit,)))
    monkeypatch.setattr(compare_module, "prepare", lambda _: cramped)

    with pytest.raises(UsageError, match=r"10,000 connections are too many.*lower --connections to 4,032"):
        module.curve(settings, connections=[100, 10_000])


def test_a_generator_that_cannot_change_its_connections_has_no_curve(settings, setup, monkeypatch):
    fixed = Load(
        generator=Command(command=("load", "{url}", "{duration_s}"), result={"json": {"correct": "/n"}}),
        shape=LoadSettings(), interrupt_threads=(),
    )  # fmt: skip
    monkeypatch.setattr(compare_module, "prepare", lambda _: replace(setup, load=fixed))

    with pytest.raises(UsageError, match="sends the same load for every number of connections"):
        module.curve(settings, connections=[100, 300])


@pytest.mark.parametrize(
    ("configurations", "said"),
    [
        ({"winner": "winner"}, "this storage has no study yet"),
        ({"deflaut": "deflaut"}, "is no configuration. Did you mean default"),
        ({}, "0 configurations"),
        ({str(number): "default" for number in range(7)}, "7 configurations"),
    ],
)
def test_a_configuration_that_is_not_there_is_refused(settings, started, configurations, said):
    with pytest.raises(UsageError, match=said):
        module.curve(settings, configurations)

    assert not started


def test_too_little_time_is_refused_with_what_it_takes(settings):
    with pytest.raises(UsageError, match=r"minutes: 0.1 minutes are too few for 2 numbers of connections"):
        module.curve(settings, connections=[100, 300], minutes=0.1)
