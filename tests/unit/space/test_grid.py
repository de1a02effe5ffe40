"""Grids of values: within the range, valid, with what has to be in them; and the configuration at each."""

from itertools import pairwise

import pytest

from tests.unit.space.samples import WHOLE, load
from tuner.errors import UsageError
from tuner.space.grid import MOST_VALUES, choose_values, find_parameter, follows, place_value


@pytest.fixture
def space(tmp_path):
    return load(WHOLE, tmp_path)


@pytest.mark.parametrize(
    "name", ["processes", "threads", "timeout_s", "buffer.size", "chunk", "share", "pair[1]"]
)
def test_a_grid_is_valid_in_order_and_has_both_ends_and_the_default(space, name):
    default = space.default()

    values = choose_values(space, default, name, with_values=[default[name]])

    assert 3 <= len(values) <= MOST_VALUES
    assert values == sorted(set(values))
    assert default[name] in values
    for value in values:
        config = place_value(space, default, name, value).config
        assert config[name] == value
        assert space.violations(config) == ()


def test_a_logarithmic_range_is_spread_by_factors_of_round_numbers(space):
    values = choose_values(space, space.default(), "requests", with_values=[100])

    ratios = [later / earlier for earlier, later in pairwise(values[:-1])]
    assert max(ratios) / min(ratios) < 3


def test_special_values_are_in_every_grid_and_stand_last(space):
    values = choose_values(space, space.default(), "requests", with_values=[100])

    assert values[-1] == 0
    assert space.show("requests", values[-1]) == "unlimited"


def test_bytes_are_powers_of_two(space):
    values = choose_values(space, space.default(), "buffer.size")

    assert all(value & (value - 1) == 0 for value in values)


def test_every_choice_is_in_the_grid(space):
    assert choose_values(space, space.default(), "accept") == ["data", "none", "on", "off"]
    assert choose_values(space, space.default(), "keepalive") == [False, True]


def test_a_grid_around_a_value_is_finer(space):
    values = choose_values(space, space.default(), "threads", with_values=[60], around=60)

    assert 60 in values
    assert min(values) >= 15
    assert max(values) <= 240
    assert len(values) >= 5


def test_what_a_rule_forbids_is_not_in_the_grid(space):
    """`workers <= 40 * connections`: 8 processes leave no room for 512 threads."""
    base = space.complete({"processes": 8})

    values = choose_values(space, base, "threads", with_values=[25])

    assert max(values) <= 500
    assert 25 in values


def test_a_value_that_a_rule_forbids_is_refused_with_the_rule(space):
    base = space.complete({"processes": 8})

    with pytest.raises(UsageError, match=r"threads: 512: `workers <= 40 \* connections` does not hold"):
        place_value(space, base, "threads", 512)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("threads", 0, "0 is below its minimum, 1"),
        ("threads", "1000", "1000 is above its maximum, 512"),
        ("threads", "many", "'many' is not a number"),
        ("chunk", 15, "off its grid"),
        ("accept", "maybe", "none of its choices"),
        ("thread", 5, "threads"),
        ("old_setting", 5, "removed in version 2"),
        ("workers", 5, r"tuner derives it as `processes \* threads`. Name processes or threads instead"),
    ],
)
def test_what_no_configuration_has_is_named(space, name, value, said):
    with pytest.raises(UsageError, match=said):
        place_value(space, space.default(), name, value)


def test_what_depends_on_a_value_follows(space):
    base = space.complete({"processes": 8, "started": 8})

    point = place_value(space, base, "processes", 2)

    assert point.config["started"] == 2
    assert point.config["workers"] == 50
    followed = follows(space, base, point, "processes")
    assert followed["started"] == (8, 2)
    assert followed["workers"] == (200, 50)
    assert "per_process" not in followed
    assert "threads" not in followed


def test_what_is_switched_off_by_a_value_is_gone(space):
    point = place_value(space, space.complete({"requests": 500}), "keepalive", "off")

    assert "requests" not in point.config
    assert follows(space, space.default(), point, "keepalive")["timeout_s"] == (5.0, "")


def test_a_parameter_that_is_inactive_has_no_grid(space):
    base = space.complete({"keepalive": False})

    with pytest.raises(
        UsageError, match=r"requests: no other value is possible on this host.*`keepalive` is false"
    ):
        choose_values(space, base, "requests")


def test_labels_and_notation_are_read_as_the_space_reads_them(space):
    assert place_value(space, space.default(), "requests", "unlimited").value == 0
    assert place_value(space, space.default(), "threads", "64").value == 64
    assert find_parameter(space, "threads").default == 25


@pytest.mark.parametrize("name", ["buffer.size", "chunk", "processes", "share", "pair[1]"])
def test_a_grid_around_any_value_is_on_the_steps_of_its_range(space, name):
    for middle in choose_values(space, space.default(), name):
        values = choose_values(space, space.default(), name, with_values=[middle], around=middle)

        assert middle in values
        assert len(values) >= 2
