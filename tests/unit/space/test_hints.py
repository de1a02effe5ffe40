"""What experts know of a parameter: how it is written, and where it stands in the dimensions."""

from dataclasses import replace

import pytest

from tests.unit.space.samples import load, with_parameter
from tests.unit.space.test_acting import of_load
from tuner.errors import UsageError
from tuner.space import Hint, Space, available_spaces, describe_presets, describe_space

INT = "kind: int, low: 1, high: 100, default: 10"
UP = "hint: {direction: up, odds: 3, source: a book}"


def one(body: str, folder, *refinements, rest: str = "", **changes: object) -> Space:
    return load(with_parameter(body, rest), folder, *refinements, **changes)


def hints(space: Space) -> dict[str, Hint]:
    return {each.name: each.hint for each in space.dimensions if each.hint is not None}


class TestWhatIsWritten:
    def test_a_direction_stands_in_the_dimension(self, tmp_path):
        space = one(f"{INT}, {UP}", tmp_path)

        assert space.parameters[0].hint == Hint(odds=3, direction="up", source="a book")
        assert hints(space) == {"x": Hint(odds=3, direction="up", source="a book")}
        assert hints(space)["x"].chance == 0.75

    def test_a_value_becomes_a_coordinate(self, tmp_path):
        hint = "hint: {value: 2 * cores, odds: 2, source: a book}"

        assert hints(one(f"{INT}, {hint}", tmp_path))["x"].value == 4

    def test_a_special_value_is_a_choice_and_no_number(self, tmp_path):
        special = "special: {unlimited: 0}, hint: {value: unlimited, odds: 2, source: a book}"

        assert {name: hint.value for name, hint in hints(one(f"{INT}, {special}", tmp_path)).items()} == {
            "x:special": "unlimited"
        }

    def test_a_number_beside_special_values_is_a_choice_and_a_number(self, tmp_path):
        special = "default: off, special: {off: 0}, hint: {value: 64, odds: 2, source: a book}"
        space = one(f"kind: int, low: 1, high: 100, {special}", tmp_path)

        assert {name: hint.value for name, hint in hints(space).items()} == {"x:special": "number", "x": 64}

    def test_in_a_range_that_moves_it_is_a_position(self, tmp_path):
        hint = "hint: {value: 6, odds: 2, source: a book}"
        space = one(f"kind: int, low: 1, high: 3 * n, default: 3, {hint}", tmp_path)

        assert space.decode({"x": hints(space)["x"].value})["x"] == 6

    def test_one_that_hangs_on_the_load_is_there_when_the_load_is_known(self, tmp_path):
        hint = "hint: {direction: up, odds: 3, when: not keepalive, source: a book}"

        assert hints(one(f"{INT}, {hint}", tmp_path, load={"keepalive": False}))
        assert not hints(one(f"{INT}, {hint}", tmp_path, load={"keepalive": True}))
        assert not hints(one(f"{INT}, {hint}", tmp_path))

    def test_what_is_not_searched_has_none(self, tmp_path):
        assert not hints(one(f"{INT}, {UP}", tmp_path, {"without": ["x"]}))

    def test_a_default_that_is_no_number_has_no_side(self, tmp_path):
        body = f"kind: int, low: 1, high: 100, default: off, special: {{off: 0}}, {UP}"

        assert not hints(one(body, tmp_path))

    def test_a_parameter_may_be_given_one_afterwards(self, tmp_path):
        space = one(INT, tmp_path)
        given = replace(space.parameters[0], hint=Hint(odds=2, direction="down"))

        assert hints(replace(space, parameters=(given, *space.parameters[1:]))) == {"x": given.hint}

    @pytest.mark.parametrize(
        ("hint", "fault"),
        [
            ("{odds: 3, source: a book}", "a value or a direction"),
            ("{direction: up, value: 3, odds: 3, source: a book}", "a value or a direction"),
            ("{direction: up, odds: 0.5, source: a book}", "are not from 1 to 20"),
            ("{direction: up, odds: 100, source: a book}", "are not from 1 to 20"),
            ("{direction: up, odds: 3}", "source is missing"),
            ("{direction: left, odds: 3, source: a book}", ".left. is no known value. Known are down, up"),
            ("{value: many, odds: 3, source: a book}", "`many` uses many"),
            ("{value: n + 1, odds: 3, source: a book}", "uses other parameters"),
        ],
    )
    def test_one_without_a_meaning_is_refused(self, tmp_path, hint, fault):
        with pytest.raises(UsageError, match=fault):
            one(f"{INT}, hint: {hint}", tmp_path)

    def test_a_choice_has_no_direction(self, tmp_path):
        with pytest.raises(UsageError, match="kind bool has no direction"):
            one(f"kind: bool, default: on, {UP}", tmp_path)


class TestWithoutHints:
    REST = "presets: {p: {values: {n: 2}}}\n"

    def test_a_study_may_begin_without_hints_and_presets(self, tmp_path):
        with_them = one(f"{INT}, {UP}", tmp_path, rest=self.REST)
        without = one(f"{INT}, {UP}", tmp_path, {"hints": False}, rest=self.REST)

        assert hints(with_them)
        assert not hints(without)
        assert [preset.is_tried for preset in with_them.presets] == [True]
        assert [preset.is_tried for preset in without.presets] == [False]

    def test_the_search_is_over_the_same_values(self, tmp_path):
        with_them, without = (one(f"{INT}, {UP}", tmp_path, *more) for more in ((), ({"hints": False},)))

        assert [replace(each, hint=None) for each in with_them.dimensions] == list(without.dimensions)


class TestBuiltInSpaces:
    @pytest.mark.parametrize("name", available_spaces())
    def test_every_hint_has_odds_and_a_source_that_is_no_measurement_of_ours(self, name):
        for row in describe_space(name):
            if row["hint"]:
                assert 1 <= row["hint"]["odds"] <= 5
                assert "measured with" not in row["hint"]["source"]
        for preset in describe_presets(name):
            assert "measured" not in preset["source"]

    def test_a_losing_recipe_is_not_tried_first(self):
        recipes = {each["name"]: each["try_first"] for each in describe_presets("apache-event")}

        assert recipes == {"all-started": True, "hand-tuned-2012": False}

    def test_those_of_closed_connections_are_there_for_closed_connections(self):
        closed, kept = (hints(of_load("nginx", keepalive=each)).keys() for each in (False, True))

        assert {"listen_deferred", "multi_accept"} <= closed
        assert "keepalive_requests" in kept
        assert not {"listen_deferred", "multi_accept"} & kept


TOLD = {"hints": {"x": {"value": 50, "odds": 9, "source": "three studies"}}}


class TestWhatAStudyTellsItself:
    def test_it_takes_the_place_of_what_the_space_says(self, tmp_path):
        space = one(f"{INT}, {UP}", tmp_path, TOLD)

        assert hints(space) == {"x": Hint(odds=9, value=50, source="three studies")}

    def test_what_the_space_says_waits_for_when_it_is_refuted(self, tmp_path):
        dimension, alone, untold = (
            one(f"{INT}, {UP}", tmp_path, *sources).dimensions[0]
            for sources in ([TOLD], [{"hints": False}, TOLD], [])
        )

        assert dimension.is_told
        assert dimension.own_hint == Hint(odds=3, direction="up", source="a book")
        assert (alone.is_told, alone.own_hint) == (True, None)
        assert (untold.is_told, untold.own_hint) == (False, None)

    def test_it_holds_where_the_hints_of_the_space_are_off(self, tmp_path):
        other = "  y: {kind: bool, default: off, hint: {value: on, odds: 2, source: a book}}"
        space = one(f"{INT}, {UP}", tmp_path, {"hints": False}, TOLD, rest=other)

        assert hints(space) == {"x": Hint(odds=9, value=50, source="three studies")}

    def test_what_comes_later_may_switch_it_off(self, tmp_path):
        assert not hints(one(f"{INT}, {UP}", tmp_path, TOLD, {"hints": False}))

    def test_it_does_not_say_that_the_parameter_is_to_be_tuned(self, tmp_path):
        acting = "acts_when: not keepalive, acts_source: a book"
        space = one(f"{INT}, {acting}", tmp_path, TOLD, load={"keepalive": True})

        assert "x" in space.inert

    @pytest.mark.parametrize(
        ("told", "words"),
        [
            ({"z": {"value": 1, "odds": 2, "source": "us"}}, ["hints.z", "no parameter has the name z"]),
            ({"x": {"value": 1, "odds": 200, "source": "us"}}, ["hints.x.odds", "200", "1 to 20"]),
            ({"x": {"value": "much", "odds": 2, "source": "us"}}, ["hints.x", "`much`"]),
            ({"x": {"odds": 2, "source": "us", "valeu": 1}}, ["hints.x.valeu", "Did you mean value?"]),
        ],
    )
    def test_what_has_no_meaning_is_refused(self, tmp_path, told, words):
        with pytest.raises(UsageError) as refused:
            one(INT, tmp_path, {"hints": told})

        for word in words:
            assert word in str(refused.value)
