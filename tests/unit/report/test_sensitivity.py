"""What mattered: over studies whose truth is known."""

import math
from functools import cache
from random import Random

import pytest

from tests.unit.simulated_study import small_space
from tuner.optimize.sparse import draw_sparse
from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.report.sensitivity import STARTS_NEEDED, Sensitivity, explain
from tuner.report.terminal import explanation
from tuner.statistics.control_level import Speedup

TRUE_EFFECTS = {"sendfile": 0.2, "open_file_cache": 0.15}


def true_worth(config: Config) -> float:
    off = TRUE_EFFECTS["sendfile"] * (config["sendfile"] is False)
    cached = TRUE_EFFECTS["open_file_cache"] * (config["open_file_cache"] != 0)
    return off + cached


def simulate(count: int, *, noise: float = 0.03, seed: int = 1) -> tuple[list[Start], dict[int, Speedup]]:
    space, rng = small_space(), Random(seed)  # noqa: S311 - no secret
    starts, speedups = [], {}
    for number in range(count):
        config = space.decode(draw_sparse(space.dimensions, space.encode(space.default()), rng=rng))
        starts.append(
            Start(
                number=number,
                role=Role.SEARCH,
                config=config,
                state=State.COMPLETE,
                started_s=10.0 * number,
            )
        )
        log_ratio = true_worth(config) + rng.gauss(0, noise)
        speedups[number] = Speedup(log_ratio=log_ratio, variance=noise**2)
    return starts, speedups


@cache
def explain_simulated(count: int) -> dict[str, Sensitivity]:
    starts, speedups = simulate(count)
    winner = small_space().complete({"sendfile": False, "open_file_cache": 1000})
    found = explain(small_space(), starts, speedups, winner=winner, seed=1)
    return {each.parameter: each for each in found}


def test_what_matters_is_found_and_comes_first() -> None:
    found = explain_simulated(60)

    assert set(list(found)[:2]) == set(TRUE_EFFECTS)
    assert {name for name, each in found.items() if each.verdict == "matters"} == set(TRUE_EFFECTS)


def test_effects_come_with_intervals_that_hold_the_truth() -> None:
    found = explain_simulated(60)

    for name, effect in TRUE_EFFECTS.items():
        low, high = found[name].low, found[name].high
        assert low is not None
        assert high is not None
        assert low < math.expm1(effect) < high
    assert found["sendfile"].direction == "off is better than on"


def test_noise_alone_is_called_noise() -> None:
    starts, _ = simulate(60)
    rng = Random(3)  # noqa: S311 - no secret
    speedups = {start.number: Speedup(log_ratio=rng.gauss(0, 0.05), variance=0.0025) for start in starts}

    found = explain(small_space(), starts, speedups, winner=None, seed=1)

    assert {each.verdict for each in found} == {"indistinguishable from noise"}
    assert all(each.kept is None for each in found)


@pytest.mark.parametrize("count", [0, 1, 5, 14, STARTS_NEEDED - 1])
def test_too_few_starts_are_named_with_their_number(count: int) -> None:
    found = explain_simulated(count)

    words = {each.verdict for each in found.values()} - {"not varied"}
    assert words <= {f"too few starts to tell: {count} of the {STARTS_NEEDED} needed"}
    assert all(each.importance is None for each in found.values())


def test_the_same_seed_gives_the_same_answer() -> None:
    starts, speedups = simulate(STARTS_NEEDED)

    first, second = (explain(small_space(), starts, speedups, winner=None, seed=7) for _ in range(2))

    assert first == second


def test_kept_says_what_the_winner_changes() -> None:
    found = explain_simulated(10)

    assert {name for name, each in found.items() if each.kept} == {"sendfile", "open_file_cache"}


def test_a_parameter_that_only_had_one_value_is_not_judged() -> None:
    starts, speedups = simulate(40)
    starts = [start for start in starts if start.config["aio"] == "off"]

    found = {each.parameter: each for each in explain(small_space(), starts, speedups, winner=None, seed=1)}

    assert found["aio"].verdict == "not varied"
    assert found["aio"].effect is None


def test_shares_of_importance_are_shares() -> None:
    found = explain_simulated(60)

    for each in found.values():
        assert each.importance is not None
        assert each.importance_low is not None
        assert each.importance_high is not None
        assert 0 <= each.importance_low <= each.importance <= each.importance_high <= 1


def test_the_text_says_how_much_to_believe() -> None:
    starts, speedups = simulate(14)
    found = explain(small_space(), starts, speedups, winner=None, seed=1)

    text = explanation(found, starts)

    assert "too few starts to tell: 14 of the 30 needed" in text
    assert "From 14 starts of the search" in text
    assert "only the confirmation measures the gain" in text
