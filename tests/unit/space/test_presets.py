import pytest

from tests.unit.space.samples import WHOLE, load, with_parameter

INT = "kind: int, low: 1, high: 4 * cores, default: 3"


def presets(folder, *lines: str, **changes: object):
    space = load(
        with_parameter(INT, "presets:\n" + "".join(f"  {line}\n" for line in lines)), folder, **changes
    )
    return space, {preset.name: preset for preset in space.presets}


def test_they_keep_their_order_and_say_where_they_are_from(tmp_path):
    space = load(WHOLE, tmp_path)

    assert [(preset.name, preset.title, preset.source) for preset in space.presets] == [
        ("expert", "As experts do", "a book"),
        ("quiet", "", ""),
    ]


def test_values_are_as_a_configuration_keeps_them(tmp_path):
    expert, _ = load(WHOLE, tmp_path).presets

    assert expert.values == {"processes": 4, "started": 4, "requests": 0}
    assert expert.adjusted == {}


def test_each_completes_to_a_valid_configuration(tmp_path):
    space = load(WHOLE, tmp_path)

    for preset in space.presets:
        config = space.complete(preset.values)
        assert space.violations(config) == ()
        assert space.decode(space.encode(config)) == config


def test_what_is_not_allowed_is_dropped_with_a_word(tmp_path):
    _, quiet = load(WHOLE, tmp_path).presets

    assert quiet.values == {"keepalive": False}
    assert quiet.adjusted == {"log": "its risk is semantic, and `allow:` does not name semantic"}


def test_what_is_allowed_is_used(tmp_path):
    _, quiet = load(WHOLE, tmp_path, {"allow": ["semantic"]}).presets

    assert quiet.values == {"log": False, "keepalive": False}


def test_values_beyond_what_this_host_allows_are_pulled_in_with_a_word(tmp_path):
    _, found = presets(tmp_path, "p: {values: {x: 16}}")

    assert found["p"].values == {"x": 8}
    assert found["p"].adjusted == {"x": "16 is above its maximum, 8"}


def test_values_may_be_expressions_over_facts(tmp_path):
    _, found = presets(tmp_path, "p: {values: {x: cores * 2, n: 'min(9, connections)'}}")

    assert found["p"].values == {"x": 4, "n": 9}


def test_inactive_values_are_dropped_with_a_word(tmp_path):
    text = with_parameter(
        f"{INT}, when: flag", "presets: {p: {values: {x: 4, n: 2}}, q: {values: {x: 4, flag: on}}}\n"
    )
    p, q = load(text, tmp_path).presets

    assert (p.values, p.adjusted) == ({"n": 2}, {"x": "this parameter is inactive here"})
    assert q.values == {"x": 4, "flag": True}


def test_one_of_which_nothing_is_left_is_left_out_with_a_word(tmp_path):
    text = with_parameter(f"{INT}, since: 9", "presets: {p: {values: {x: 4}}, empty: {values: {}}}\n")
    space = load(text, tmp_path, versions={"demo": (1,)})

    assert [preset.name for preset in space.presets] == ["empty"]
    reason = "none of its settings is tuned (x: it exists since 9, demo here is 1)"
    assert space.left_out["preset p"] == reason


def test_one_of_which_the_study_itself_holds_everything_does_not_blame_the_host(tmp_path):
    text = with_parameter(INT, "presets: {p: {values: {x: 4}}}\n")
    space = load(text, tmp_path, {"without": ["x"]})

    assert space.left_out["preset p"] == "none of its settings is tuned (x: named by `without:`)"


def test_one_that_breaks_a_constraint_here_is_left_out_with_the_rule(tmp_path):
    text = with_parameter(
        INT, "constraints: [{rule: x * n <= 3 * connections}]\npresets: {p: {values: {x: 8, n: 9}}}\n"
    )

    assert load(text, tmp_path, connections=100).presets[0].values == {"x": 8, "n": 9}
    space = load(text, tmp_path, connections=10)
    assert space.presets == ()
    assert "`x * n <= 3 * connections` does not hold" in space.left_out["preset p"]


def test_two_spaces_may_use_one_name(tmp_path):
    (tmp_path / "other.yaml").write_text(
        "space: two\nserver: two\n"
        "parameters: {y: {kind: bool, default: on}}\npresets: {p: {values: {y: off}}}\n"
    )
    space = load(with_parameter(INT, "presets: {p: {values: {x: 4}}}\n"), tmp_path, "other.yaml")

    assert [(preset.name, dict(preset.values)) for preset in space.presets] == [
        ("one: p", {"x": 4}),
        ("two: p", {"y": False}),
    ]


@pytest.mark.parametrize("written", ["on", "yes", "true", "True", "'on'"])
def test_on_is_true_for_a_bool_and_a_text_for_a_choice(tmp_path, written):
    text = with_parameter(
        f"kind: categorical, choices: [off, {written}], default: off",
        f"presets: {{p: {{values: {{x: {written}, flag: {written}}}}}}}\n",
    )
    (preset,) = load(text, tmp_path).presets

    assert preset.values == {"x": written.strip("'"), "flag": True}
