import pytest

from tests.unit.space.samples import DEFAULT, WHOLE, load, with_parameter
from tuner.errors import UsageError
from tuner.space import UNSET, Space


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Space:
    return load(WHOLE, tmp_path_factory.mktemp("whole"))


def one(body: str, folder, rest: str = "") -> Space:
    return load(with_parameter(body, rest), folder)


class TestDefault:
    def test_it_holds_every_parameter_in_order_and_what_follows(self, space):
        assert space.default() == DEFAULT
        assert list(space.default()) == list(DEFAULT)

    def test_values_have_the_type_of_their_kind(self, space):
        assert {name: type(value) for name, value in space.default().items()} == {
            name: type(value) for name, value in DEFAULT.items()
        }

    def test_it_violates_nothing(self, space):
        assert space.violations(space.default()) == ()


class TestDimensions:
    def test_pinned_parameters_have_none(self, space):
        names = {dimension.parameter for dimension in space.dimensions}

        assert names == {parameter.name for parameter in space.parameters} - {"log", "unsafe"}

    def test_fixed_bounds_are_those_of_the_dimension(self, space):
        (threads,) = (dimension for dimension in space.dimensions if dimension.name == "threads")

        assert (threads.kind, threads.low, threads.high, threads.log, threads.step) == (
            "int",
            1,
            512,
            True,
            1,
        )

    def test_bounds_over_facts_are_fixed(self, space):
        assert next(each for each in space.dimensions if each.name == "processes").high == 8

    def test_bounds_over_other_parameters_and_steps_of_fractions_make_a_position(self, space):
        positions = {dimension.name for dimension in space.dimensions if dimension.is_position}

        assert positions == {"started", "spare", "buffer.size", "slack", "pair[1]", "share"}

    def test_special_values_have_a_dimension_of_their_own(self, space):
        (special,) = (dimension for dimension in space.dimensions if dimension.name == "requests:special")

        assert special.choices == ("number", "unlimited")
        assert special.parameter == "requests"

    def test_a_high_off_the_grid_comes_down_to_it(self, tmp_path):
        space = one("kind: int, low: 1, high: 9, step: 3, default: 4", tmp_path)

        assert (space.dimensions[0].low, space.dimensions[0].high, space.dimensions[0].step) == (1, 7, 3)

    def test_steps_of_fractions_are_positions_on_the_grid_down_to_its_end(self, tmp_path):
        space = one("kind: float, low: 0.5, high: 2, step: 0.4, default: 0.5", tmp_path)

        assert space.dimensions[0].is_position
        assert [space.decode({"x": share})["x"] for share in (0.0, 0.3, 0.6, 1.0)] == [0.5, 0.9, 1.3, 1.7]

    def test_a_grid_of_fractions_with_one_value_has_none(self, tmp_path):
        space = one("kind: float, low: 0.5, high: 0.8, step: 0.4, default: 0.5", tmp_path)

        assert "x" not in {dimension.name for dimension in space.dimensions}

    def test_a_range_of_one_value_has_none(self, tmp_path):
        space = one("kind: int, low: 4, high: 2 * cores, default: 4", tmp_path)

        assert "x" not in {dimension.name for dimension in space.dimensions}
        assert space.decode({})["x"] == 4

    def test_a_range_of_one_value_beside_a_special_one_still_has_both(self, tmp_path):
        space = one("kind: int, low: 4, high: 4, default: off, special: {off: 0}", tmp_path)

        assert space.decode({"x:special": "number"})["x"] == 4
        assert space.decode({"x:special": "off"})["x"] == 0
        assert space.encode({**space.default(), "x": 4})["x:special"] == "number"


class TestDecode:
    def test_an_empty_point_is_the_default(self, space):
        assert space.decode({}) == space.default()

    def test_a_special_value_is_apart_from_the_range(self, space):
        config = space.decode({"requests": 500, "requests:special": "unlimited"})

        assert config["requests"] == 0
        assert config["kept"] == "yes"

    def test_a_point_that_says_number_and_no_more_gives_one(self, tmp_path):
        space = one("kind: int, low: 10, high: 20, default: off, special: {off: 0}", tmp_path)

        assert space.decode({})["x"] == 0
        assert space.decode({"x:special": "number"})["x"] == 15

    def test_inactive_parameters_and_what_depends_on_them_are_left_out(self, space):
        config = space.decode({"keepalive": False, "timeout_s": 3.0, "requests": 77})

        assert {"timeout_s", "requests", "kept"}.isdisjoint(config)

    def test_positions_follow_the_bounds_beside_them(self, space):
        ends = [space.decode({"processes": 8, "started": at})["started"] for at in (0.0, 1.0)]

        assert ends == [1, 8]

    @pytest.mark.parametrize(
        ("point", "wrong"),
        [
            ({"threds": 3}, "threds: the search space has no dimension of this name. Did you mean threads"),
            ({"log": True}, "log: the search space has no dimension of this name"),
            ({"threads": 513}, "threads: 513 is not within 1 to 512"),
            ({"threads": float("nan")}, "threads: nan is not within 1 to 512"),
            ({"threads": "many"}, "threads: 'many' is not within"),
            ({"started": 1.5}, "started: 1.5 is not within 0 to 1"),
            ({"accept": "maybe"}, "accept: 'maybe' is none of"),
            ({"requests:special": "never"}, "'never' is none of"),
        ],
    )
    def test_what_is_outside_the_dimensions_is_refused(self, space, point, wrong):
        with pytest.raises(UsageError, match=wrong):
            space.decode(point)

    def test_numbers_of_numpy_become_plain_ones(self, space):
        import numpy as np

        config = space.decode({"threads": np.int64(7), "timeout_s": np.float64(0.7), "keepalive": np.True_})

        assert [type(config[name]) for name in ("threads", "timeout_s", "keepalive")] == [int, float, bool]


class TestEncode:
    def test_it_gives_every_dimension_a_coordinate(self, space):
        assert list(space.encode(space.default())) == [dimension.name for dimension in space.dimensions]

    def test_inactive_parameters_have_one_too(self, space):
        point = space.encode(space.complete({"keepalive": False}))

        assert point["timeout_s"] == 5.0
        assert point["requests:special"] == "number"

    def test_a_special_value_within_the_range_is_kept_apart_by_its_label(self, tmp_path):
        space = one("kind: int, low: 0, high: 9, default: 3, special: {off: 0}", tmp_path)

        assert space.encode(space.complete({"x": 0}))["x:special"] == "off"


class TestViolations:
    @pytest.mark.parametrize(
        ("changed", "wrong"),
        [
            ({"threads": 1000}, "threads: 1000 is above its maximum, 512"),
            ({"threads": "lots"}, "threads: 'lots' is not a number"),
            ({"started": 3}, "started: 3 is above its maximum"),
            ({"stranger": 3}, "stranger: whole has no such parameter"),
            ({"keepalive": False}, "timeout_s: this parameter is inactive and has the value 5.0"),
            ({"workers": 51}, "workers: 51 differs from 50, which its expression gives"),
        ],
    )
    def test_each_is_named(self, space, changed, wrong):
        assert any(wrong in sentence for sentence in space.violations({**space.default(), **changed}))

    @pytest.mark.parametrize("name", ["threads", "timeout_s", "workers"])
    def test_a_missing_value_is_one(self, space, name):
        config = {key: value for key, value in space.default().items() if key != name}

        assert f"{name}: there is no value" in space.violations(config)

    def test_a_broken_constraint_is_one_with_its_reason(self, space):
        config = space.decode({"processes": 8, "threads": 512})

        (sentence,) = space.violations(config)
        assert sentence.startswith(
            "`workers <= 40 * connections` does not hold with connections = 100, workers = 4096"
        )
        assert sentence.endswith(": Memory ends before.")

    def test_a_constraint_says_nothing_where_its_parameter_is_inactive(self, space):
        assert space.violations(space.complete({"keepalive": False})) == ()


class TestChanges:
    def test_the_default_has_none(self, space):
        assert space.changes(space.default()) == {}

    def test_choices_are_told_with_the_default_beside_them(self, space):
        config = space.complete({"threads": 64, "keepalive": False})

        assert space.changes(config) == {"threads": (25, 64), "keepalive": (True, False)}

    def test_what_merely_follows_is_told_on_demand(self, space):
        config = space.complete({"processes": 1, "threads": 100})

        assert space.changes(config, derived=True) == {
            "processes": (2, 1), "threads": (25, 100), "started": (2, 1), "spare": (50, 200),
            "workers": (50, 100), "limit": (64, 100), "ratio": (12.5, 100.0), "per_process": (12, 100),
        }  # fmt: skip

    def test_they_are_enough_to_make_the_configuration_again(self, space):
        config = space.decode(
            {"processes": 7, "started": 0.9, "keepalive": False, "pair[0]": 70, "slack": 0.3}
        )
        values = {name: value for name, (_, value) in space.changes(config).items()}

        assert space.complete(values) == config

    def test_a_parameter_that_becomes_active_at_its_default_is_no_change(self, tmp_path):
        space = one("kind: int, low: 1, high: 9, default: 3, when: flag", tmp_path)

        assert space.changes(space.complete({"flag": True}), derived=True) == {"flag": (False, True)}
        assert space.changes(space.complete({"flag": True, "x": 4})) == {"x": (3, 4), "flag": (False, True)}

    def test_a_derived_setting_that_the_default_lacks_was_unset(self, tmp_path):
        rest = "derived: {d: {value: n + 1, when: flag}}\n"
        space = one("kind: int, low: 1, high: 9, default: 3", tmp_path, rest)

        assert space.changes(space.complete({"flag": True}), derived=True)["d"] == (UNSET, 4)
        assert space.show("d", UNSET) == "not set"


class TestServers:
    def test_each_setting_belongs_to_one(self, space):
        assert space.server_of("threads") == space.server_of("workers") == "demo"

    def test_an_unknown_name_belongs_to_none(self, space):
        with pytest.raises(UsageError, match="Did you mean workers"):
            space.server_of("worker")

    def test_internal_ones_are_not_written(self, space):
        written = space.for_server(space.default(), "demo")

        assert written.keys() == DEFAULT.keys() - {"processes", "per_process"}
        assert space.for_server(space.default(), "other") == {}


class TestShow:
    @pytest.mark.parametrize(
        ("name", "value", "shown"),
        [
            ("buffer.size", 65536, "64 KiB"), ("buffer.size", 1048576, "1 MiB"), ("chunk", 2048, "2 MiB"),
            ("buffer.size", 1000, "1000 bytes"), ("buffer.size", 0, "0 bytes"), ("chunk", 100, "100 KiB"),
            ("keepalive", True, "on"), ("keepalive", False, "off"), ("requests", 0, "unlimited"),
            ("requests", 100, "100"), ("threads", 25, "25"), ("workers", 50, "50"), ("accept", "off", "off"),
            ("timeout_s", 5.0, "5 s"), ("timeout_s", 0.25, "0.25 s"), ("unknown", 7, "7"),
        ],
    )  # fmt: skip
    def test_values_are_shown_as_people_read_them(self, space, name, value, shown):
        assert space.show(name, value) == shown
