"""The least data of every kind of sentence: with it something is said, with less nothing is."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.report.test_sweep import make_sweep
from tests.unit.simulated_study import make_summary, make_trials, small_space
from tuner.explain.effects import LEAST_APART
from tuner.explain.explanation import Explanation, Finding
from tuner.explain.responses import LEAST_TRIED
from tuner.explain.study import explain
from tuner.records import Role
from tuner.report.conclusions import conclude
from tuner.report.page import render_report
from tuner.report.sweep import advise, name_best
from tuner.report.terminal import final_screen
from tuner.statistics.confirmation.paired_gain import judge_pairs
from tuner.statistics.curves.sweep import WHOLE_BLOCKS

WINNING = {"sendfile": False, "open_file_cache": 2000, "keepalive_timeout": 30}
KNOWN = {Finding.HELPS, Finding.HARMFUL, Finding.NO_EFFECT}
GAIN = judge_pairs([(0.0, 0.27), (0.0, 0.28), (0.0, 0.26)])
SPACE = small_space()
WINNER = SPACE.complete(WINNING)


def study(searches=40, pairs=6):
    return make_trials(SPACE, searches=searches, pairs=pairs, winner=WINNER)


def say(trials, gain=GAIN) -> Explanation:
    return conclude(SPACE, explain(SPACE, trials, WINNER, metric="goodput_rps", gain=gain))


def is_apart(trial):
    """Tell whether a trial has some of the winner's settings and not all of them."""
    return trial.role is Role.SEARCH and 1 <= len(SPACE.changes(trial.config).keys() & WINNING.keys()) < 3


def keep_apart(trials, count):
    """Leave out all trials of the search but so many that tell the winner's settings apart."""
    kept = [trial.number for trial in trials if trial.counts and is_apart(trial)][:count]
    return [trial for trial in trials if trial.role is not Role.SEARCH or trial.number in kept]


@pytest.mark.parametrize("count", range(LEAST_APART))
def test_settings_that_were_tried_together_alone_are_not_told_apart(count):
    found = say(keep_apart(study(), count))

    assert {setting.finding for setting in found.settings} == {Finding.UNKNOWN}
    assert found.interactions == ()
    assert any(each.startswith("Too little data to attribute the gain") for each in found.conclusions)
    assert not any(each.startswith("Keep ") for each in found.conclusions)


def test_settings_that_were_tried_apart_are_named():
    found = say(study())

    assert {setting.parameter for setting in found.settings if setting.finding is Finding.HELPS} >= {
        "sendfile"
    }
    assert any(each.startswith("Keep ") for each in found.conclusions)


def test_of_other_settings_nothing_is_said_before_they_were_tried():
    few, many = say(study(searches=LEAST_TRIED - 1)), say(study())

    assert not [each for each in few.others if each.finding in KNOWN]
    assert [each for each in many.others if each.finding in KNOWN]


def test_nothing_is_attributed_to_what_gains_nothing():
    worse = judge_pairs([(0.0, -0.07), (0.0, -0.08), (0.0, -0.07)])

    found = say(keep_apart(study(), 0), worse)

    assert not any("gain" in each for each in found.conclusions)


@pytest.mark.parametrize(
    ("baselines", "is_measured", "is_planned"), [(3, True, True), (2, True, False), (3, False, False)]
)
def test_what_would_prove_a_gain_needs_trials_of_both_sides(baselines, is_measured, is_planned):
    trials = study(pairs=1)
    of_default = [trial for trial in trials if trial.role is Role.BASELINE][:baselines]
    of_winner = [trial for trial in trials if trial.arm == "winner" and is_measured]
    search = [trial for trial in trials if trial.role is Role.SEARCH]

    found = say([*of_default, *search, *of_winner], gain=None)

    assert (found.proof is not None) is is_planned


def test_what_won_nothing_is_called_no_winner():
    improved = make_summary(searches=6)
    worse = replace(improved, gain=replace(improved.gain, verdict="worse"))

    for summary, side, other in ((improved, "winner", "candidate"), (worse, "candidate", "winner")):
        console = Console(record=True, width=200, force_terminal=False, file=StringIO())
        console.print(final_screen(summary))
        printed = console.export_text()
        assert f"of {side} against default" in printed
        assert other not in printed
        assert f'<th scope="col" class="number">{side}</th>' in render_report(summary)


def test_a_sweep_names_no_value_before_every_one_was_measured_as_often_as_it_takes():
    rates = {768: 10_000, 1500: 12_000, 3000: 15_000, 6000: 14_750, 12000: 9_000}
    few, enough = make_sweep(rates, blocks=WHOLE_BLOCKS - 1), make_sweep(rates, blocks=WHOLE_BLOCKS)

    assert few.best is None
    assert name_best(few).endswith("no value can be named best: 2 of at least 3 blocks were measured")
    assert advise(few).startswith("Keep worker_connections at 768: 2 of at least 3 blocks were measured. Run")
    assert enough.best == 3000
