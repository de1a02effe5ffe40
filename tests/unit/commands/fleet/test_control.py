"""How a controller drives its hosts: who is tried again, who is given up, and what ends a study."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    Log,
    SimulatedClock,
    SimulatedExecutor,
    SimulatedHost,
    make_setup,
    open_in_memory,
    space_of,
    write_study,
)
from tests.unit.trials import trial as make_trial
from tuner.commands.fleet import control
from tuner.commands.fleet.control import LONG_S, MOST_BEGUN, Lane, Team, drive_all
from tuner.errors import HostLost, RestoreFailed, TargetError, Unreachable, UsageError
from tuner.optimize.catalogue import make_optimizer
from tuner.study.facts import HOSTS, VERDICT
from tuner.study.file import for_each_target

NAMES = ("ssh://web1", "ssh://web2")


class Waiting:
    """An event that notes how long it is waited for, and whom nobody lets wait."""

    def __init__(self):
        self.waits_s = []
        self.is_over = False

    def set(self):
        self.is_over = True

    def is_set(self):
        return self.is_over

    def wait(self, seconds):
        self.waits_s.append(seconds)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path, more=f"targets: [{', '.join(NAMES)}]\n")


@pytest.fixture
def team(settings):
    storage = open_in_memory(SimulatedClock())
    storage.remember(HOSTS, settings.hosts)
    space = space_of(*TUNED)
    optimizer = make_optimizer("tpe", space.encode(space.default()))
    plan = replace(SMALL_PLAN, trials=2, race_s=4, ablation_s=4, pairs=2, extend_to=2)
    return Team(plan=plan, storage=storage, optimizer=optimizer, progress=Log(), is_over=Waiting())


def lanes_of(team, settings, open_executor):
    setups = [make_setup(each, space_of(*TUNED)) for each in for_each_target(settings)]
    return [Lane(team=team, setup=each, open_executor=open_executor) for each in setups]


def failing(*errors):
    """Return what begins an executor: it raises one error after the other, and then works."""
    left = [*errors]

    def open_executor(_telling):
        if left:
            raise left.pop(0)
        return nullcontext(SimulatedExecutor(host=SimulatedHost()))

    return open_executor


def test_a_study_is_measured_on_every_host_to_its_verdict(team, settings):
    drive_all(team, lanes_of(team, settings, failing()))

    assert team.storage.recall(VERDICT) is not None
    assert {trial.host for trial in team.storage.known.ended} == set(NAMES)
    assert not team.storage.known.running


def test_a_host_that_boots_for_five_minutes_is_not_given_up(team, settings):
    lost = [Unreachable("It is gone.")] * (MOST_BEGUN - 1)
    lane = lanes_of(team, settings, failing(*lost, UsageError("there again")))[0]

    with pytest.raises(UsageError, match="there again"):
        lane.drive()

    waits_s = team.is_over.waits_s
    assert waits_s == sorted(waits_s)
    assert waits_s[0] == 10
    assert sum(waits_s) >= 10 * 60
    told = [
        float(re.search(r"web1: It is gone\. tuner tries again in (\d+) s", note)[1])
        for note in team.progress.notes
    ]
    assert told == waits_s


def test_a_host_that_gives_nothing_is_given_up_with_its_name(team, settings):
    lane = lanes_of(team, settings, failing(*[HostLost("It is gone.")] * MOST_BEGUN))[0]

    with pytest.raises(TargetError, match=r"^ssh://web1: It is gone\. Run .* again to resume\.$"):
        lane.drive()


@pytest.mark.parametrize(
    ("error", "measures", "lived_s", "is_new"),
    [
        (Unreachable("gone"), True, 0.0, True),
        (TargetError("it fails"), True, LONG_S, True),
        # What ends it is neither a host that reboots nor something new.
        (TargetError("it fails"), True, 0.0, False),
        (Unreachable("gone"), False, LONG_S, False),
    ],
)
def test_a_lost_host_that_was_there_again_is_tried_as_often_as_at_first(
    team, settings, monkeypatch, error, measures, lived_s, is_new
):
    now_s = [0.0]
    monkeypatch.setattr(control.time, "monotonic", lambda: now_s[0])
    tries = []

    def open_executor(_telling):
        tries.append(now_s[0])
        if len(tries) == MOST_BEGUN - 1:
            now_s[0] += lived_s
            if measures:
                team.storage.known.end(replace(make_trial(1, 1000.0), host=NAMES[0]))
        if len(tries) > 2 * MOST_BEGUN:
            raise UsageError("enough")
        raise error

    lane = lanes_of(team, settings, open_executor)[0]
    with pytest.raises((TargetError, UsageError)):
        lane.drive()

    assert len(tries) == (2 * MOST_BEGUN - 2 if is_new else MOST_BEGUN)


@pytest.mark.parametrize(
    "error", [UsageError("it is wrong"), RestoreFailed("not back"), ValueError("a fault")]
)
def test_what_is_wrong_with_the_study_or_not_put_back_ends_it_on_all_hosts(team, settings, error):
    first, second = lanes_of(team, settings, failing(error))

    with pytest.raises(type(error), match=str(error)):
        drive_all(team, [first, second])

    assert team.storage.recall(VERDICT) is None
    assert not team.storage.known.running


def test_a_pool_continues_without_a_host_that_is_given_up(team, settings):
    lanes = lanes_of(team, settings, failing(*[Unreachable("It is gone.")] * MOST_BEGUN))
    team.storage.remember(HOSTS, replace(settings.hosts, names=NAMES[1:]))

    more = lanes[1:]
    drive_all(team, lanes[:1], lambda: [more.pop()] if more else [], ends_with_host=False)

    assert team.storage.recall(VERDICT) is not None
    assert any("web1: It is gone." in note for note in team.progress.notes)
