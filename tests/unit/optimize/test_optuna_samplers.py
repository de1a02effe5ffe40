import math
from random import Random
from statistics import fmean

import pytest

from tests.unit.simulation import space_of, without_hints
from tuner.optimize.optimizer import Observation
from tuner.optimize.optuna_samplers import STARTUP_TRIALS, Tpe
from tuner.optimize.sparse import draw, draw_sparse
from tuner.space import Dimension

SPACE = without_hints(space_of())
DEFAULT = SPACE.encode(SPACE.default())
DIMENSIONS = SPACE.dimensions
BUDGET = 25


def surface(config):
    """Log speedup with a few settings that matter, one of them a number with its best in the middle."""
    return (
        (0.15 if config["open_file_cache"] else 0.0)
        + (0.10 if config["multi_accept"] else 0.0)
        - (0.20 if config["aio"] == "threads" else 0.0)
        - 0.05 * abs(math.log(config["keepalive_requests"] / 20_000))
    )


def search(seed):
    """Let TPE choose a whole budget; returns the true worth of what it chose, in order."""
    rng = Random(seed)  # noqa: S311 - no secret
    optimizer = Tpe(default=DEFAULT)
    seen, worths = [], []
    for _ in range(BUDGET):
        point = optimizer.suggest(DIMENSIONS, seen, seed=seed).point
        config = SPACE.decode(point)
        worths.append(surface(config))
        seen.append(
            Observation(
                point=SPACE.encode(config), log_ratio=worths[-1] + rng.gauss(0, 0.02), variance=0.0004,
                constraints={"started": -1.0},
            )
        )  # fmt: skip
    return worths


def test_after_its_first_points_the_suggestions_are_better_than_random_ones():
    last, uniform = [], []
    for seed in range(3):
        rng = Random(seed)  # noqa: S311 - no secret
        last += search(seed)[-8:]
        points = ({each.name: draw(each, rng) for each in DIMENSIONS} for _ in range(100))
        uniform += [surface(SPACE.decode(point)) for point in points]

    assert fmean(last) > fmean(uniform) + 0.05


def test_points_where_nothing_started_are_avoided():
    """What crashes is told without a measurement: only its constraint speaks."""
    rng = Random(4)  # noqa: S311 - no secret
    seen = []
    for _ in range(40):
        config = SPACE.decode(draw_sparse(DIMENSIONS, DEFAULT, rng=rng, share=0.5))
        crashed = config["aio"] == "threads"
        seen.append(
            Observation(
                point=SPACE.encode(config), log_ratio=None if crashed else rng.gauss(0, 0.01),
                variance=0.0004, constraints={"started": 1.0 if crashed else -1.0},
            )
        )  # fmt: skip

    suggested = [Tpe(default=DEFAULT).suggest(DIMENSIONS, seen, seed=seed).point["aio"] for seed in range(20)]

    assert sum(not each.is_feasible for each in seen) >= 10
    assert suggested.count("threads") < 4


@pytest.mark.parametrize("count", [STARTUP_TRIALS, STARTUP_TRIALS + 5])
def test_a_history_without_a_single_measurement_still_gives_a_suggestion(count):
    rng = Random(1)  # noqa: S311 - no secret
    failed = [
        Observation(
            point=draw_sparse(DIMENSIONS, DEFAULT, rng=rng), log_ratio=None, variance=0.0,
            constraints={"started": 1.0},
        )
        for _ in range(count)
    ]  # fmt: skip

    assert Tpe(default=DEFAULT).suggest(DIMENSIONS, failed, seed=1).point.keys() == DEFAULT.keys()


def test_a_larger_share_changes_more_parameters():
    def changed(share):
        rng = Random(1)  # noqa: S311 - no secret
        points = [draw_sparse(DIMENSIONS, DEFAULT, rng=rng, share=share) for _ in range(100)]
        return fmean(len(SPACE.changes(SPACE.decode(point))) for point in points)

    assert 0.5 < changed(0.0) <= 1.5
    assert changed(0.0) < changed(0.2) < changed(0.8)


def test_numbers_on_a_log_scale_are_drawn_evenly_by_their_magnitude():
    dimension = Dimension(name="n", parameter="n", kind="int", low=1, high=10_000, log=True)
    rng = Random(1)  # noqa: S311 - no secret

    values = [draw(dimension, rng) for _ in range(2000)]

    shares = [sum(10**k <= value < 10 ** (k + 1) for value in values) / 2000 for k in range(4)]
    assert all(0.2 < share < 0.3 for share in shares)


def test_an_observation_is_feasible_when_no_slack_is_positive():
    given = {"point": {}, "log_ratio": 0.1, "variance": 0.0}

    assert Observation(constraints={"a": 0.0, "b": -1.0}, **given).is_feasible
    assert not Observation(constraints={"a": 0.1, "b": -1.0}, **given).is_feasible
    assert Observation(constraints={}, **given).is_feasible
