"""The seconds under load that a gain holds for, and whether it moves with them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.unit.statistics.made_trials import make_window
from tuner.records import Metric, Role, State, Timing, Trial, Window
from tuner.statistics.age import Age, find_age

DEPLOY_S = 0.4
WARMUP_S = 1.0


def make_aged(
    logs: Sequence[float], *, warmup_s: float = WARMUP_S, spoiled: Sequence[int] = (), at_s: float = 1000.0
) -> Trial:
    """Make a trial that was warmed up for so long, with windows of one second, one after the other."""
    begun_s = at_s + DEPLOY_S + warmup_s
    windows = tuple(
        make_window(log, started_s=begun_s + index, valid=index not in spoiled)
        for index, log in enumerate(logs)
    )
    return Trial(
        number=0, role=Role.CONFIRM, config={}, state=State.COMPLETE, started_s=at_s, windows=windows,
        timing=Timing(deploy_s=DEPLOY_S, load_s=warmup_s + len(logs)),
    )  # fmt: skip


Noise = Callable[[Random], float]
"""Draws what is added to the logarithm of one window."""


def make_side(
    rng: Random, noise: Noise, *, trials: int = 5, windows: int = 3, decline: float = 0.0
) -> list[Trial]:
    """Make the trials of a side, which loses so much of its goodput from the first window to the last."""
    middles = [WARMUP_S + index + 0.5 for index in range(windows)]
    whole = math.log(middles[-1] / middles[0])
    lost = [math.log1p(-decline) * math.log(middle / middles[0]) / whole for middle in middles]
    luck = [rng.gauss(0, 0.05) for _ in range(trials)]
    return [make_aged([own + each + noise(rng) for each in lost]) for own in luck]


def quiet(rng: Random) -> float:
    return rng.gauss(0, 0.03)


def loud(rng: Random) -> float:
    return rng.gauss(0, 0.15)


def bursts(rng: Random) -> float:
    return rng.gauss(0, 0.03) - (0.4 if rng.random() < 0.08 else 0.0)


def find_exact(default: Sequence[Trial], winner: Sequence[Trial]) -> Age:
    age = find_age(default, winner)
    assert age is not None
    return age


def test_the_age_begins_with_the_first_load_and_ends_with_the_last_window() -> None:
    age = find_exact([make_aged([0.0] * 3)], [make_aged([0.0] * 3)])

    assert (age.from_s, age.to_s) == pytest.approx((1.0, 4.0))


def test_a_warm_up_that_went_on_counts_as_long_as_it_went() -> None:
    trials = [make_aged([0.0], warmup_s=9.0), make_aged([0.0], warmup_s=5.0)]

    age = find_exact(trials, trials)

    assert (age.from_s, age.to_s) == pytest.approx((5.0, 10.0))


def test_a_spoiled_window_is_load_as_well_and_says_nothing() -> None:
    sides = [make_aged([0.0, -2.0, 0.0, 0.0], spoiled=[1]) for _ in range(2)]

    age = find_exact(sides, sides)

    assert age.to_s == pytest.approx(5.0)
    assert age.ratio is not None
    assert age.default is not None
    assert age.default.change == pytest.approx(0.0)


def test_pauses_between_windows_are_no_load() -> None:
    trial = make_aged([0.0, 0.0])
    first, second = trial.windows
    later = replace(trial, windows=(first, replace(second, started_s=second.started_s + 0.3)))

    assert find_exact([later], [later]).to_s == pytest.approx(3.0)


@pytest.mark.parametrize(
    "trial",
    [
        replace(make_aged([0.0, 0.0]), timing=Timing()),
        replace(make_aged([0.0, 0.0]), started_s=5000.0),
        replace(make_aged([0.0, 0.0]), started_s=0.0),
        replace(make_aged([0.0, 0.0]), windows=()),
    ],
    ids=["cut off", "clock set back", "clock set forward", "without windows"],
)
def test_a_trial_of_unknown_age_is_left_out(trial: Trial) -> None:
    known = make_aged([0.0, 0.0], warmup_s=2.0)

    assert find_age([trial], [trial]) is None
    assert find_exact([trial, known], [known]).from_s == pytest.approx(2.0)


def test_one_window_per_trial_has_an_age_and_no_trend() -> None:
    age = find_exact([make_aged([0.0])] * 4, [make_aged([0.1])] * 4)

    assert (age.default, age.winner, age.ratio) == (None, None, None)


def test_a_single_trial_of_a_side_has_no_trend() -> None:
    age = find_exact([make_aged([0.0, 0.1])], [make_aged([0.1, 0.1])] * 2)

    assert age.default is None
    assert age.winner is not None
    assert age.ratio is None


def test_a_trend_without_noise_is_found_as_it_is() -> None:
    rng = Random(1)  # noqa: S311 - no secret
    age = find_exact(make_side(rng, lambda _: 0.0), make_side(rng, lambda _: 0.0, decline=0.1))

    assert age.default is not None
    assert age.winner is not None
    assert age.ratio is not None
    assert age.default.change == pytest.approx(0.0, abs=1e-6)
    assert age.winner.change == pytest.approx(-0.1, abs=1e-6)
    assert (age.ratio.change, age.ratio.low, age.ratio.high) == pytest.approx((-0.1,) * 3, abs=1e-6)
    assert age.ratio.is_certain


def test_what_changes_on_both_sides_alike_does_not_change_the_gain() -> None:
    rng = Random(1)  # noqa: S311 - no secret
    age = find_exact(make_side(rng, lambda _: 0.0, decline=0.2), make_side(rng, lambda _: 0.0, decline=0.2))

    assert age.default is not None
    assert age.ratio is not None
    assert age.default.change == pytest.approx(-0.2, abs=1e-6)
    assert not age.ratio.is_certain


def test_a_certain_change_below_one_percent_is_no_warning() -> None:
    rng = Random(1)  # noqa: S311 - no secret
    age = find_exact(make_side(rng, lambda _: 0.0), make_side(rng, lambda _: 0.0, decline=0.009))

    assert age.ratio is not None
    assert not age.ratio.is_certain


def test_what_a_study_maximizes_is_followed_and_not_always_goodput() -> None:
    def by_cpu(trial: Trial, costs_s: Sequence[float]) -> Trial:
        windows = (
            replace(window, metric=Metric.PER_CPU, generator_cpu=0.95, counters={"server_cpu_s": cost_s})
            for window, cost_s in zip(trial.windows, costs_s, strict=True)
        )
        return replace(trial, windows=tuple(windows))

    same = [by_cpu(make_aged([0.0, 0.0]), [0.5, 0.5])] * 2
    dearer = [by_cpu(make_aged([0.0, 0.0]), [0.5, 0.625])] * 2

    age = find_exact(same, dearer)

    assert age.ratio is not None
    assert age.ratio.change == pytest.approx(-0.2)


@pytest.mark.parametrize(("noise", "trials", "windows"), [(quiet, 5, 2), (loud, 5, 2), (bursts, 8, 3)])
def test_noise_alone_warns_in_at_most_one_of_twenty_confirmations(
    noise: Noise, trials: int, windows: int
) -> None:
    rng = Random(7)  # noqa: S311 - no secret
    warnings = sum(
        is_certain(make_side(rng, noise, trials=trials, windows=windows),
                   make_side(rng, noise, trials=trials, windows=windows))
        for _ in range(400)
    )  # fmt: skip

    assert warnings <= 20


@pytest.mark.parametrize(("trials", "windows", "least"), [(5, 3, 60), (8, 3, 90), (5, 6, 80)])
def test_a_side_that_loses_a_tenth_is_found_in_windows_that_spread_by_three_percent(
    trials: int, windows: int, least: int
) -> None:
    rng = Random(3)  # noqa: S311 - no secret
    found = sum(
        is_certain(make_side(rng, quiet, trials=trials, windows=windows),
                   make_side(rng, quiet, trials=trials, windows=windows, decline=0.1))
        for _ in range(100)
    )  # fmt: skip

    assert found >= least


def is_certain(default: Sequence[Trial], winner: Sequence[Trial]) -> bool:
    ratio = find_exact(default, winner).ratio
    assert ratio is not None
    return ratio.is_certain


def test_the_interval_holds_the_true_trend_as_often_as_it_says() -> None:
    rng = Random(5)  # noqa: S311 - no secret
    held = 0
    for _ in range(400):
        ratio = find_exact(make_side(rng, quiet), make_side(rng, quiet, decline=0.1)).ratio
        assert ratio is not None
        held += ratio.low < -0.1 < ratio.high

    assert 0.93 * 400 <= held <= 0.99 * 400


def test_trials_without_any_answer_have_ends_that_can_be_printed() -> None:
    dead = [make_aged([0.0, 0.0]), make_aged([0.0, 0.0])]
    dead[0] = replace(dead[0], windows=(dead[0].windows[0], silent(dead[0].windows[1])))
    ratio = find_exact(dead, dead[::-1]).ratio

    assert ratio is not None
    assert math.isfinite(ratio.high)


def silent(window: Window) -> Window:
    return replace(window, correct=0)
