"""One sweep of a drawn server: the same again, and held against the truth."""

from dataclasses import replace

import pytest

from benchmarks.campaign.servers import draw_server
from benchmarks.campaign.spaces import load_family
from benchmarks.sweeps.simulated import choose_parameter, play, report
from tuner.campaign import interleaved
from tuner.campaign.trial_runner import TrialRunner


@pytest.fixture(scope="module")
def played():
    return play(1, 1.5)


def test_the_same_server_gives_the_same_sweep(played):
    first, again = played, play(1, 1.5)

    assert first == again
    assert interleaved.TrialRunner is TrialRunner, "what is measured for real after it is not simulated"
    assert first.seconds <= 90
    assert first.regret >= 0
    assert first.covered <= first.intervals == first.values - 1


def test_the_parameter_is_a_number_that_moves_the_server():
    server = draw_server(1)
    space = load_family(server.family)

    name = choose_parameter(server, space)

    (effect,) = [each for each in server.effects if each.setting.name == name]
    assert effect.size > 0
    assert name in space.default()


def test_what_was_missed_makes_the_exit_status(capsys, played):
    good = replace(played, regret=0.0, worst_tolerated=0.0, covered=19, intervals=20, half_widths=(0.03,))

    assert report([good] * 20) == 0
    assert report([replace(good, regret=0.04)] * 2 + [good] * 18) == 1
    assert "MISSED   names a value within 3 % of the best in 90.0% of 20" in capsys.readouterr().out
