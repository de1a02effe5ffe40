"""The claims of `make bench-measure` on fewer simulated hosts, with bounds that leave room for chance."""

import pytest

from benchmarks.measure import (
    measure_coverage,
    measure_false_claims,
    measure_interleaving,
    measure_pruning,
    measure_regret,
)

pytestmark = pytest.mark.statistical


def test_the_default_confirmed_against_itself_is_hardly_ever_called_an_improvement():
    for figure in measure_false_claims(150):
        assert figure.seen <= 5, figure


def test_the_interval_holds_the_true_gain_about_as_often_as_it_says():
    for figure in measure_coverage(300):
        assert figure.seen >= 90, figure


def test_many_short_pairs_tell_more_than_few_long_ones_when_the_host_has_slow_phases():
    few, many = measure_interleaving(40)

    assert many.seen < 0.8 * few.seen


def test_equals_of_the_incumbent_are_kept_and_clear_losers_cost_two_windows():
    # All of scipy.stats, which nothing else here needs
    from scipy.stats import binom

    hosts, equals_per_host = 24, 8
    equals = hosts * equals_per_host
    for figure in measure_pruning(hosts):
        if figure.unit == "%":
            # What a rate that is just right exceeds in one of a hundred samples of this size.
            most = 100 * binom.ppf(0.99, equals, figure.most / 100) / equals
            assert figure.seen <= most, figure
        else:
            assert figure.is_met, figure


def test_a_campaign_chooses_better_and_promises_less_than_the_best_observed():
    figures = {figure.name: figure.seen for figure in measure_regret(3)}
    theirs = [seen for name, seen in figures.items() if name.startswith("best observed overstates")]
    ours = [abs(seen) for name, seen in figures.items() if name.startswith("campaign overstates")]

    assert sum(ours) < 0.5 * sum(theirs)
    assert figures["regret of the campaign relative to the best observed, all hosts"] < 0.8
