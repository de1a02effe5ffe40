"""Later entries of a study's `space:` list refine earlier ones."""

from pathlib import Path

import pytest

from tests.unit.space.samples import facts, load, with_parameter
from tuner.errors import UsageError
from tuner.space import Space, available_spaces, load_space
from tuner.space.yaml_text import read_yaml

TEXT = with_parameter(
    "kind: int, low: 1, high: 90, default: 30", "derived: {d: {value: x * 2}}\ndead: {gone: long ago}\n"
)


def tuned(space: Space) -> set[str]:
    return {dimension.parameter for dimension in space.dimensions}


def test_only_names_what_is_tuned_and_the_rest_keeps_its_default(tmp_path):
    space = load(TEXT, tmp_path, {"only": ["n"]})

    assert tuned(space) == {"n"}
    assert space.default() == {"x": 30, "n": 3, "flag": False, "d": 60}


def test_without_names_what_is_not_tuned(tmp_path):
    assert tuned(load(TEXT, tmp_path, {"without": ["n"]})) == {"x", "flag"}


def test_without_leaves_out_what_would_follow_from_other_settings(tmp_path):
    space = load(TEXT, tmp_path, {"without": ["d"]})

    assert "d" not in space.decode({"x": 50})
    assert space.left_out["d"] == "named by `without:`"


def test_set_holds_a_value_in_every_configuration(tmp_path):
    space = load(TEXT, tmp_path, {"set": {"x": 7, "flag": "on"}})

    assert tuned(space) == {"n"}
    assert space.default() == {"x": 7, "n": 3, "flag": True, "d": 14}
    assert space.decode({"n": 9})["x"] == 7


def test_set_takes_an_expression(tmp_path):
    space = load(TEXT, tmp_path, {"set": {"x": "10 * n + cores"}})

    assert [space.decode({"n": n})["x"] for n in (1, 8)] == [12, 82]


def test_a_held_value_stays_within_bounds_that_others_move(tmp_path):
    text = with_parameter("kind: int, low: 1, high: n, default: 1")
    space = load(text, tmp_path, {"set": {"x": 3}})

    assert [space.decode({"n": n})["x"] for n in (1, 2, 3, 9)] == [1, 2, 3, 3]


def test_fields_of_a_parameter_can_be_replaced_one_by_one(tmp_path):
    space = load(
        TEXT, tmp_path, {"parameters": {"x": {"high": 40, "risk": "semantic"}}}, {"allow": ["semantic"]}
    )

    assert (space.dimensions[0].low, space.dimensions[0].high) == (1, 40)


def test_a_file_without_a_server_refines_what_stands_before_it(tmp_path):
    (tmp_path / "mine.yaml").write_text("only: [x]\nparameters:\n  x: {low: 20}\n")
    (tmp_path / "demo.yaml").write_text(TEXT)

    space = load_space(["demo.yaml", "mine.yaml"], facts=facts(), base=tmp_path)

    assert tuned(space) == {"x"}
    assert space.dimensions[0].low == 20


def test_a_refinement_narrows_only_what_stands_before_it(tmp_path):
    (tmp_path / "other.yaml").write_text("server: two\nparameters:\n  y: {kind: bool, default: on}\n")

    space = load(TEXT, tmp_path, {"only": ["n"]}, "other.yaml")

    assert tuned(space) == {"n", "y"}
    assert (space.server_of("y"), space.server_of("n")) == ("two", "demo")
    assert space.name == "one + two"


def test_a_space_named_twice_is_itself(tmp_path):
    once, twice = (load(TEXT, tmp_path, *again) for again in ([], ["demo.yaml"]))

    assert once.dimensions == twice.dimensions
    assert once.constraints == twice.constraints


def test_two_servers_cannot_own_one_parameter(tmp_path):
    (tmp_path / "other.yaml").write_text("server: two\nparameters:\n  x: {high: 3}\n")

    with pytest.raises(
        UsageError, match=r"^other\.yaml:3: parameters\.x: x already belongs to demo, not to two"
    ):
        load(TEXT, tmp_path, "other.yaml")


def test_a_preset_that_a_refinement_narrows_is_fitted_not_refused(tmp_path):
    text = with_parameter(
        "kind: int, low: 1, high: 90, default: 30",
        "  c: {kind: categorical, choices: [a, b], default: a}\n"
        "presets: {p: {values: {x: 80, c: b, n: 9}}}\n",
    )
    space = load(
        text, tmp_path, {"parameters": {"x": {"high": 40}, "c": {"choices": ["a", "z"]}}, "without": ["n"]}
    )

    (preset,) = space.presets
    assert preset.values == {"x": 40}
    assert preset.adjusted == {
        "x": "80 is above its maximum, 40",
        "c": "b is no longer among its choices",
        "n": "named by `without:`",
    }


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ({"only": ["xx"]}, r"space entry 2: only\.0: no parameter has the name xx"),
        ({"only": ["fleg"]}, "no parameter has the name fleg. Did you mean flag"),
        (
            {"only": ["d"]},
            r"only\.0: tuner does not tune d, but derives it as `x \* 2`. Name the parameters of this",
        ),
        ({"set": {"gone": 1}}, r"space entry 2: set\.gone: gone is obsolete: long ago. Remove this entry"),
        ({"set": {"x": 1000}}, r"space entry 2: set\.x: the value 1000 is above its maximum, 90"),
        ({"set": {"flag": "maybe"}}, r"set\.flag: 'maybe' is neither on nor off"),
        ({"set": {"x": "xx + 1"}}, r"set\.x: `xx \+ 1` uses xx, which is not known"),
        ({"set": ["x"]}, r"set: \['x'\] is not a mapping"),
        ({"set": {1: 2}}, r"set\.1: 1 is not a name"),
        ({1: 2}, "1: this key is not known"),
        ({"onyl": ["x"]}, "onyl: this key is not known. Did you mean only"),
        ({"parameters": {"x": {"high": 10}}}, "the default 30 is above its maximum, 10"),
        ({"parameters": {"x": {"high": 0}}}, r"^space entry 2: parameters\.x\.high: low 1 is above high 0"),
        ({"parameters": {"x": {"since": 1.2}}}, "1.2 is not a version in quotes"),
        ({"parameters": {"x": {"low": float("nan")}}}, "nan is beyond"),
        (["x"], r"space entry 2: \['x'\] is no name, path or mapping"),
        (None, "space entry 2: None is no name, path or mapping"),
        ("nosuch", "search space 'nosuch': no search space has this name"),
        ("nosuch.yaml", "nosuch.yaml: there is no file .*/nosuch.yaml"),
        ("/dev/zero", "/dev/zero: there is no file"),
        (".", "'.': no search space has this name|there is no file"),
        ("a\0b.yaml", "there is no file|cannot be read"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_number(tmp_path, entry, wrong):
    with pytest.raises(UsageError, match=wrong):
        load(TEXT, tmp_path, entry)


@pytest.mark.parametrize("sources", [[], "nginx", Path("nginx")])
def test_the_list_must_be_one_and_name_something(tmp_path, sources):
    with pytest.raises(UsageError, match=r"is not a list with entries\. Write `space:"):
        load_space(sources, facts=facts(), base=tmp_path)


def test_a_misspelt_built_in_space_names_the_nearest(tmp_path):
    name = available_spaces()[0]

    with pytest.raises(UsageError, match=f"Did you mean {name}"):
        load_space([name[:-1] + "q"], facts=facts(), base=tmp_path)


def test_an_entry_of_a_study_file_is_blamed_at_its_line(tmp_path):
    study = read_yaml(b"study: s\nspace:\n  - ./demo.yaml\n  - set:\n      x: 1000\n", "study.yaml")
    (tmp_path / "demo.yaml").write_text(TEXT)

    with pytest.raises(UsageError, match=r"^study\.yaml:5: set\.x: the value 1000 is above its maximum, 90"):
        load_space(["./demo.yaml", study.below(("space", 1))], facts=facts(), base=tmp_path)
