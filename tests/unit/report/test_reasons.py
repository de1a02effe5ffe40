"""Why a study has no proven gain."""

import math
import re
from dataclasses import replace

from tests.unit.trials import DEFAULT, SPACE, baseline, config_of, failed, trial, window
from tuner.report.reasons import explain_gain, explain_no_winner
from tuner.report.wording import say_speedup
from tuner.statistics.confirmation.paired_gain import judge_pairs
from tuner.statistics.feasibility import Feasibility
from tuner.statistics.ranking import rank
from tuner.study.objective import Constraint

FEW_FAILURES = Constraint(metric="failure_rate", limit=0.001)
CACHED = config_of(open_file_cache=1000)
EAGER = config_of(multi_accept=True)
COPIED = config_of(sendfile=False)


def gain_of(*ratios):
    return judge_pairs([(0.0, math.log(ratio)) for ratio in ratios])


IMPROVED = gain_of(1.40, 1.48, 1.44, 1.45)
INFEASIBLE = replace(IMPROVED, verdict="infeasible")
OPEN = gain_of(1.00, 1.12, 0.97, 1.06, 1.02, 1.04)
WORSE = gain_of(0.86, 0.88, 0.87, 0.85)
ALIKE = gain_of(1.001, 0.999, 1.002, 0.998, 1.0, 1.001)


def measured(number, config, *failures):
    windows = tuple(window(8000 - each, failed=each) for each in failures)
    return trial(number, config=config, windows=windows)


def doubts_of(*trials):
    return Feasibility(trials, (FEW_FAILURES,), DEFAULT).doubts(CACHED)


def test_a_proven_gain_needs_no_reason():
    assert explain_gain(IMPROVED) == ""


def test_what_the_winner_keeps_and_the_default_breaks_is_said_beside_the_gain():
    sought = (replace(FEW_FAILURES, default_may_fail=True),)
    trials = (
        *(baseline(number, windows=(window(6000, failed=2000),)) for number in range(3)),
        *(measured(number, CACHED, 0, 0) for number in range(3, 6)),
    )
    known = Feasibility(trials, sought, DEFAULT)

    assert known.default_fails
    assert known.may_ship(CACHED)
    for verdict in ("improved", "bears the load"):
        said = explain_gain(replace(WORSE, verdict=verdict), kept=known.assess_sought(CACHED))
        assert said.startswith("The default fails 25 % [")
        assert re.search(r"of its requests, the winner 0 % \[0 %, 0\.0\d+ %\]\.$", said)


def test_a_loss_is_called_one():
    assert WORSE.verdict == "worse"
    assert explain_gain(WORSE) == "The whole interval lies below 1: 0.86× [0.84, 0.89]."


def test_pairs_that_do_not_decide_say_how_many_fresh_ones_would():
    said = explain_gain(OPEN, pair_s=10.0)

    assert OPEN.verdict == "not proven"
    assert said.startswith("No difference is proven: 1.03× [0.98, 1.09], 95 % CI. If this ratio is real, ")
    assert said.endswith("12 fresh pairs (2 min 00 s) would prove it.")
    assert explain_gain(OPEN).endswith("12 fresh pairs would prove it.")


def test_near_to_one_no_number_of_pairs_is_promised():
    undecided = gain_of(1.10, 0.92, 1.05, 0.95)

    assert explain_gain(undecided).endswith("The ratio is so near to 1 that more pairs would hardly decide.")


def test_no_loss_and_no_gain_is_said():
    assert ALIKE.verdict == "no worse"
    assert explain_gain(ALIKE) == "A loss of 1 % is ruled out, but no gain is shown: 1.00× [1.00, 1.00]."


def test_a_broken_constraint_is_named_with_both_rates_and_the_bound():
    trials = [measured(n, DEFAULT, 24, 22) for n in range(6)]
    trials += [measured(10 + n, CACHED, 23, 22) for n in range(6)]

    said = explain_gain(INFEASIBLE, doubts_of(*trials))

    assert said.startswith("Over all trials the default fails 0.29 % [0.2")
    assert " of its requests, the candidate 0.28 % [0.2" in said
    assert said.endswith("]: it breaks failure_rate <= 0.001.")


def test_a_doubtful_constraint_is_named_with_its_probability():
    said = explain_gain(
        INFEASIBLE, doubts_of(measured(0, DEFAULT, 0), measured(1, CACHED, 7, 6), measured(2, CACHED, 8, 9))
    )

    assert ": it meets failure_rate <= 0.001 with a probability of " in said
    assert said.endswith(" %, and 90 % is required.")


def test_trials_that_failed_are_counted_for_both_sides():
    trials = [measured(0, DEFAULT, 0), measured(1, CACHED, 0), *(failed(n, config=CACHED) for n in (2, 3))]

    assert explain_gain(INFEASIBLE, doubts_of(*trials)) == (
        "The default fails to start or to serve the load 0 times in 1, the candidate 2 times in 3."
    )


def test_doubts_and_pairs_that_do_not_decide_are_both_said():
    said = explain_gain(
        OPEN, doubts_of(measured(0, DEFAULT, 0), *(measured(n, CACHED, 80) for n in (1, 2, 3)))
    )

    assert "it breaks failure_rate <= 0.001." in said
    assert "No difference is proven: " in said


def test_without_a_winner_it_is_counted_what_became_of_those_that_were_tried():
    trials = [baseline(0, 1000, 1000), baseline(1, 1000, 1000), baseline(9, 1000, 1000)]
    trials += [
        measured(2, EAGER, 400),
        measured(3, EAGER, 300),
        failed(4, config=COPIED),
        trial(5, 950, 950, config=CACHED),
    ]

    known = Feasibility(trials, (FEW_FAILURES,), DEFAULT)
    said = explain_no_winner(trials, rank(SPACE, trials, (FEW_FAILURES,)), known)

    assert said.startswith(
        "3 configurations tried, 1 broke failure_rate <= 0.001, 1 failed to start or to serve "
    )
    assert "the best of the rest is 0.9" in said


def test_what_was_rejected_is_not_the_best_of_the_rest():
    trials = [baseline(0, 1000, 1000), baseline(1, 1000, 1000), baseline(9, 1000, 1000)]
    trials += [trial(2, 1500, 1500, config=CACHED), trial(3, 1300, 1300, config=EAGER)]
    known, ranking = Feasibility(trials, (), DEFAULT), rank(SPACE, trials, ())
    best, other = ranking.entries

    said = explain_no_winner(trials, ranking, known, [best.config])

    assert said == (
        f"2 configurations tried, the best of the rest is {say_speedup(other.posterior)} of the default, not "
        "confirmed either."
    )
    assert "the best of the rest" not in explain_no_winner(trials, ranking, known, [CACHED, EAGER])


def test_where_nothing_was_tried_that_is_the_reason():
    known = Feasibility([baseline(0, 1000)], (), DEFAULT)

    assert explain_no_winner([baseline(0, 1000)], rank(SPACE, [baseline(0, 1000)], ()), known) == (
        "No configuration was tried."
    )
