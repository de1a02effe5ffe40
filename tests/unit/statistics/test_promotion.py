import math

import pytest

from tuner.statistics.control_level import Speedup
from tuner.statistics.promotion import promising, shrunk, top


def found(*log_ratios, variance=0.001):
    return {f"#{n}": Speedup(log_ratio=ratio, variance=variance) for n, ratio in enumerate(log_ratios)}


def test_one_or_two_configurations_tell_nothing_of_the_others():
    assert shrunk(found(0.1, 0.3)) == found(0.1, 0.3)
    assert shrunk({}) == {}


def test_differences_that_are_only_noise_are_shrunk_away():
    posterior = shrunk(found(-0.02, -0.01, 0.0, 0.01, 0.02))

    assert max(abs(each.log_ratio) for each in posterior.values()) < 0.001


def test_configurations_that_are_all_alike_are_known_as_well_as_their_middle():
    posterior = shrunk(found(-0.02, -0.01, 0.0, 0.01, 0.02))

    for each in posterior.values():
        assert each.variance == pytest.approx(0.001 * math.pi / 2 / 5, rel=0.01)


def test_differences_far_beyond_the_noise_are_left_alone():
    posterior = shrunk(found(-1.0, -0.5, 0.0, 0.5, 1.0))

    assert posterior["#4"].log_ratio == pytest.approx(1.0, abs=0.01)
    assert posterior["#4"].variance == pytest.approx(0.001, rel=0.01)


def test_terrible_configurations_do_not_make_the_good_ones_look_apart():
    calm = shrunk(found(-0.02, -0.01, 0.0, 0.01, 0.02))
    with_terrible = shrunk(found(-2.0, -1.0, -0.02, -0.01, 0.0, 0.01, 0.02, 0.0, 0.01))

    assert with_terrible["#6"].log_ratio < 0.02
    assert with_terrible["#6"].variance == pytest.approx(calm["#4"].variance, rel=0.2)


def test_the_noisier_of_two_equal_numbers_is_pulled_further():
    configs = found(-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3)
    configs["noisy"] = Speedup(log_ratio=0.3, variance=0.05)
    posterior = shrunk(configs)

    assert posterior["noisy"].log_ratio < posterior["#6"].log_ratio


def test_the_top_are_the_best_by_posterior_mean_not_the_luckiest():
    configs = found(-0.3, -0.2, -0.1, 0.0, 0.1, 0.25, 0.3)
    configs["lucky"] = Speedup(log_ratio=0.32, variance=0.2)

    assert top(configs, 2) == ("#6", "#5")


def test_of_two_that_may_be_the_best_the_likelier_is_measured_again():
    configs = found(0.0, 0.1, 0.12, 0.3, 0.32)

    assert promising(configs, dict.fromkeys(configs, 1)) == "#4"


def test_a_configuration_with_three_starts_is_not_measured_again():
    configs = found(0.0, 0.1, 0.12, 0.3, 0.32)

    assert promising(configs, dict.fromkeys(configs, 1) | {"#4": 3}) == "#3"
    assert promising(configs, dict.fromkeys(configs, 3)) is None


def test_nothing_is_measured_again_for_a_chance_below_one_in_ten():
    configs = found(0.0, 0.1, 0.2, 1.0)

    assert promising(configs, {"#3": 3}) is None
    assert promising({}, {}) is None


def test_the_choice_depends_on_the_seed_alone():
    configs = found(*(0.3 + 0.001 * math.sin(n) for n in range(8)))
    starts_of = dict.fromkeys(configs, 1)

    assert {promising(configs, starts_of, seed=5) for _ in range(3)} == {
        promising(configs, starts_of, seed=5)
    }
