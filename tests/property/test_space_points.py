"""Every point of every space is a valid configuration, and every configuration has a point."""

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.property.space_strategies import load, points, spaces
from tests.unit.space.samples import WHOLE
from tests.unit.space.samples import load as load_sample
from tuner.space import Space, available_spaces


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Space:
    return load_sample(WHOLE, tmp_path_factory.mktemp("whole"), {"allow": ["semantic", "risky"]})


@pytest.fixture(scope="module", params=available_spaces())
def built_in(request) -> Space:
    return load(request.param, {"allow": ["semantic", "risky"]})


def assert_valid(space: Space, config: dict) -> None:
    assert space.violations(config) == space.rules.broken(config)
    assert space.decode(space.encode(config)) == config


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_point_of_any_space_is_a_valid_configuration(data):
    space = data.draw(spaces())
    config = space.decode(data.draw(points(space)))

    assert_valid(space, config)
    assert space.complete(config) == config
    assert space.complete({name: new for name, (_, new) in space.changes(config).items()}) == config


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_point_of_the_sample_is_valid_but_for_declared_constraints(whole, data):
    assert_valid(whole, whole.decode(data.draw(points(whole))))


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_point_of_the_built_in_spaces_is_valid(built_in, data):
    config = built_in.decode(data.draw(points(built_in)))

    assert_valid(built_in, config)
    assert all(isinstance(value, (bool, int, float, str)) for value in config.values())


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_decoding_is_deterministic_and_encoding_settles(whole, data):
    point = data.draw(points(whole))
    config = whole.decode(point)
    settled = whole.encode(config)

    assert whole.decode(point) == config
    assert whole.encode(whole.decode(settled)) == settled


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_part_of_a_configuration_completes_to_a_valid_one_with_fit(whole, data):
    config = whole.decode(data.draw(points(whole)))
    names = data.draw(st.sets(st.sampled_from(sorted(config))))

    fitted = whole.complete({name: config[name] for name in names}, fit=True)

    assert whole.violations(fitted) == whole.rules.broken(fitted)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_choices_alone_make_the_configuration_again(built_in, data):
    config = built_in.decode(data.draw(points(built_in)))
    values = {name: new for name, (_, new) in built_in.changes(config).items()}

    assert built_in.complete(values, fit=True) == config


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_valid_configuration_is_rounded_to_a_valid_one_of_the_same_settings(built_in, data):
    config = built_in.decode(data.draw(points(built_in)))
    assume(not built_in.violations(config))

    rounded = built_in.round(config)

    assert not built_in.violations(rounded)
    assert built_in.changes(rounded).keys() <= built_in.changes(config).keys()
    assert built_in.complete({name: new for name, (_, new) in built_in.changes(rounded).items()}) == rounded
    assert built_in.round(built_in.default()) == built_in.default()


def test_every_special_value_and_every_choice_is_reached(whole):
    reached = {
        dimension.name: Counter(
            whole.show(dimension.parameter, whole.decode({dimension.name: choice})[dimension.parameter])
            for choice in dimension.choices
        )
        for dimension in whole.dimensions
        if dimension.kind == "categorical"
    }

    assert reached["requests:special"] == {"100": 1, "unlimited": 1}
    assert set(reached["accept"]) == {"data", "none", "on", "off"}
    assert set(reached["keepalive"]) == {"on", "off"}


def test_every_value_of_a_range_that_others_bound_is_reached_equally_often(whole):
    positions = [(index + 0.5) / 800 for index in range(800)]
    counted = Counter(whole.decode({"processes": 8, "started": at})["started"] for at in positions)

    assert counted == dict.fromkeys(range(1, 9), 100)
