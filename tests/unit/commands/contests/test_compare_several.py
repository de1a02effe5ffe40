"""Several configurations of one study against each other, on a simulated host."""

import math

import pytest

from tests.unit.commands.simulated import simulate
from tests.unit.simulation import (
    TUNED,
    SimulatedHost,
    open_on_disk,
    space_of,
    write_study,
)
from tuner.commands.contests.contest import compare_several
from tuner.errors import UsageError
from tuner.study.facts import CONFIRMATION, Confirmation

SPACE = space_of(*TUNED)
FASTER, SLOWER = {"open_file_cache": 2000}, {"sendfile": False}


@pytest.fixture
def host():
    return SimulatedHost()


@pytest.fixture
def settings(tmp_path, monkeypatch, host):
    simulate(monkeypatch, host)
    return write_study(tmp_path)


def test_every_two_of_them_are_compared(settings):
    found = compare_several(settings, {"default": "default", "cached": FASTER, "copied": SLOWER})

    assert found.labels == ("default", "cached", "copied")
    assert found.leaders == (1,)
    ratio = found.ratio("cached", "copied")
    assert ratio.low < math.exp(0.28) < ratio.high
    assert found.changes(1) == {"open_file_cache": (0, 2000)}


def test_names_stand_for_default_winner_and_presets(settings, host):
    planned = Confirmation(config=SPACE.complete(FASTER), pairs=4, windows=2, extend_to=4, looks=1)
    open_on_disk(settings, host.clock).remember(CONFIRMATION, planned)

    found = compare_several(settings, ["default", "winner", "cached"], blocks=3)

    assert found.labels == ("default", "winner", "cached")
    assert found.changes(1) == {"open_file_cache": (0, 2000)}
    assert found.changes(2)["open_file_cache"] == (0, 1000)


def test_what_holds_less_than_the_default_says_so(settings):
    found = compare_several(settings, {"default": "default", "few": {"worker_connections": 200}}, blocks=3)

    assert found.plan.entrants[0].notes == ()
    assert all("has less capacity than the default" in note for note in found.plan.entrants[1].notes)
    assert found.plan.entrants[1].notes


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(["default"], "Name two or more"), (["default", "cachd"], "Did you mean cached")],
)
def test_what_cannot_be_compared_is_refused(settings, chosen, said):
    with pytest.raises(UsageError, match=said):
        compare_several(settings, chosen)
