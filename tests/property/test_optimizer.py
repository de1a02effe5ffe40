from functools import cache
from random import Random

import optuna
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.property.space_strategies import load, points, spaces
from tests.unit.simulation import without_hints
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.optimizer import Observation
from tuner.optimize.optuna_samplers import STARTUP_TRIALS
from tuner.optimize.replay import distributions
from tuner.optimize.sparse import draw, draw_sparse

optuna.logging.set_verbosity(optuna.logging.ERROR)
BUILT_IN = ("nginx", "apache-event")
seeds = st.integers(0, 2**63)
tunable = spaces().filter(lambda space: space.dimensions)
own = st.sampled_from(["noisy-gp", "tpe"])
"""Those that make their own trial; tpe's is the longer one."""


@cache
def built_in(name):
    return load(name)


def is_within(space, point):
    """Ask Optuna itself: the same distributions are used to store the point."""
    known = distributions(space.dimensions)
    return point.keys() == known.keys() and all(
        known[name]._contains(known[name].to_internal_repr(value)) for name, value in point.items()
    )


def observe(space, seed, count):
    """Make up a history: half of it good, some of it without a measurement."""
    rng = Random(seed)  # noqa: S311 - no secret
    default = space.encode(space.default())
    seen = []
    for number in range(count):
        point = draw_sparse(space.dimensions, default, rng=rng)
        crashed = number % 5 == 4
        seen.append(
            Observation(
                point=space.encode(space.decode(point)),
                log_ratio=None if crashed else rng.gauss(0, 0.1),
                variance=0.001,
                constraints={"started": 1.0 if crashed else -1.0},
            )
        )
    return seen


@given(tunable, seeds, st.floats(0, 1))
def test_every_sparse_point_lies_within_the_dimensions(space, seed, share):
    rng = Random(seed)  # noqa: S311 - no secret
    point = draw_sparse(space.dimensions, space.encode(space.default()), rng=rng, share=share)

    assert is_within(space, point)


@given(tunable, seeds)
def test_every_value_drawn_lies_within_its_dimension(space, seed):
    rng = Random(seed)  # noqa: S311 - no secret

    assert is_within(space, {each.name: draw(each, rng) for each in space.dimensions})


@given(tunable.flatmap(lambda space: st.tuples(st.just(space), points(space))))
def test_every_configuration_is_encoded_within_the_dimensions(given_space):
    space, point = given_space
    complete = space.encode(space.default()) | point

    assert is_within(space, space.encode(space.decode(complete)))


@given(st.sampled_from(BUILT_IN), seeds)
def test_a_sparse_point_changes_something(name, seed):
    space = built_in(name)
    default = space.encode(space.default())

    rng = Random(seed)  # noqa: S311 - no secret
    assert draw_sparse(space.dimensions, default, rng=rng, share=0.0) != default


@given(tunable, seeds)
def test_a_sparse_point_changes_something_where_something_can_be_changed(space, seed):
    default = space.encode(space.default())
    rng = Random(seed)  # noqa: S311 - no secret
    may_change = any(
        len(each.choices) > 1 if each.kind == "categorical" else each.high > each.low
        for each in space.dimensions
    )

    assert (draw_sparse(space.dimensions, default, rng=rng) != default) == may_change


@settings(max_examples=examples(24), deadline=None)
@given(own, tunable, seeds, st.sampled_from([0, STARTUP_TRIALS - 1, STARTUP_TRIALS, STARTUP_TRIALS + 6]))
def test_every_suggestion_lies_within_the_dimensions_and_is_the_same_again(name, space, seed, count):
    optimizer = make_optimizer(name, space.encode(space.default()))
    history = observe(space, seed, count)

    point = optimizer.suggest(space.dimensions, history, seed=seed % 2**31).point

    assert is_within(space, point)
    again = make_optimizer(name, space.encode(space.default()))
    assert again.suggest(space.dimensions, history, seed=seed % 2**31).point == point


@settings(max_examples=examples(12), deadline=None)
@given(own, st.sampled_from(BUILT_IN), st.integers(0, 2**31 - 2), st.sampled_from([0, STARTUP_TRIALS + 5]))
def test_another_seed_suggests_something_else(optimizer_name, name, seed, count):
    """Where no hint says with what to begin."""
    space = without_hints(built_in(name))
    optimizer = make_optimizer(optimizer_name, space.encode(space.default()))
    history = observe(space, seed, count)

    first, second = (optimizer.suggest(space.dimensions, history, seed=each) for each in (seed, seed + 1))

    assert first != second
