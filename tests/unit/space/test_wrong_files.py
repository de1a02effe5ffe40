"""Every fault of a space file is refused with file, line, value and remedy."""

import pytest

from tests.unit.space.samples import load, with_parameter
from tuner.errors import UsageError
from tuner.space import SpaceFacts, load_space

INT = "kind: int, low: 1, high: 9, default: 3"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("kind: integer, low: 1, high: 9, default: 3", "kind: 'integer' is no known value. Did you mean int"),
        ("low: 1, high: 9, default: 3", "the key kind is missing"),
        ("kind: int, low: 1, high: 9", "the key default is missing"),
        ("kind: int, high: 9, default: 3", "the key low is missing"),
        ("kind: int, low: 1, default: 3", "the key high is missing"),
        (f"{INT}, hihg: 3", "hihg: this key is not known. Did you mean high"),
        (f"{INT}, special: {{off: 0}}, unti: s", "unti: this key is not known. Did you mean unit|until"),
        ("kind: int, low: max(1, 2), high: 9, default: 3", "Quote an expression that holds a comma"),
        (f"{INT}, step: 0", "step '0' is not a number above 0"),
        (f"{INT}, step: 0.5", "step 0.5 of an int is not whole"),
        (f"{INT}, scale: logarithmic", "'logarithmic' is no known value. Did you mean log"),
        (f"{INT}, risk: dangerous", "'dangerous' is no known value. Known are risky, safe, semantic"),
        (f"{INT}, risk: rsky", "Did you mean risky"),
        (f"{INT}, apply: now", "'now' is no known value. Known are live, reload, restart"),
        (f"{INT}, scope: net", "'net' is no known value. Did you mean netns"),
        (f"{INT}, loopback: maybe", "'maybe' is neither true nor false"),
        (f"{INT}, since: new", "'new' is not a version"),
        (f"{INT}, why: ''", "why: the text is missing"),
        (f"{INT}, choices: [a, b]", "a parameter of kind int has no choices"),
        ("kind: int, low: 9, high: 1, default: 3", "low 9 is above high 1"),
        ("kind: int, low: 5 * cores, high: 9, default: 3", r"low 10 \(`5 \* cores`\) is above high 9"),
        (
            "kind: int, low: 1, high: 9, default: 10",
            "default: the default 10 is above its maximum, 9. Give 1 to 9",
        ),
        ("kind: int, low: 1, high: 9, default: 0", "the default 0 is below its minimum, 1"),
        ("kind: int, low: 1, high: 9, default: cores * 5", "the default 10 is above its maximum, 9"),
        ("kind: int, low: 1, high: n, default: 4", r"the default 4 is above its maximum, 3 \(`n`\)"),
        (
            "kind: int, low: 1, high: 9, step: 4, default: 3",
            "the default 3 is off its grid, which starts at 1 in steps of 4. Give",
        ),
        ("kind: int, low: 1, high: 9, default: 2.5", "2.5 is not a whole number"),
        ("kind: int, low: 1, high: 9, default: n / 2", "`n / 2` fails with n = 3: 1.5 is not a whole number"),
        ("kind: int, low: 1, high: 9, default: 'True'", "'True' is not a number"),
        (
            "kind: int, low: 1, high: 9, default: of, special: {off: 0}",
            "'of' is not a number. Did you mean off",
        ),
        ("kind: int, low: 1, high: n > 2, default: 1", "the bound is True, not a number"),
        ("kind: int, low: 1, high: cores > 2, default: 1", "False is not a number"),
        ("kind: int, low: 1, high: [9], default: 1", "list is given where one value belongs"),
        ("kind: int, low: 1, high: , default: 1", "high: the value is missing"),
        ("kind: int, low: 1, high: 1e30, default: 1", "`1e30` fails: the result is beyond"),
        (
            "kind: int, low: 0, high: 9, scale: log, default: 1",
            "the scale is log and low is 0. .*special value",
        ),
        ("kind: int, low: -3, high: 9, scale: log, default: 1", "the scale is log and low is -3"),
        (
            "kind: int, low: n - 3, high: 9, scale: log, default: 1",
            "the scale is log and low is 0 with n = 3",
        ),
        (
            "kind: int, low: n - 1, high: 9, scale: log, default: 2",
            "the scale is log and low is 0 with n = 1",
        ),
        ("kind: int, low: n, high: 5, default: 4", "low 9 is above high 5 with n = 9"),
        ("kind: int, low: 1, high: 100 / (n - 3), default: 1", "fails with n = 3: division by zero"),
        (
            "kind: int, low: 1, high: 100 / (n - 9), default: 1",
            "low 1 is above high|fails with n = 9: division by zero",
        ),
        ("kind: int, low: 1, high: nn, default: 1", "uses nn, which is not known. Did you mean n"),
        ("kind: int, low: 1, high: sqrt(n), default: 1", "calls 'sqrt', which is not a function"),
        ("kind: int, low: 1, high: x, default: 1", "`x` is circular: x → x"),
        (f"{INT}, special: {{number: 0}}", "'number' cannot be the label"),
        (f"{INT}, special: {{current: 0}}", "'current' cannot be the label"),
        (f"{INT}, special: {{7: 0}}", "'7' cannot be the label"),
        (f"{INT}, special: {{off: 0, none: 0}}", "the special value 0 is given twice, first as off"),
        (f"{INT}, special: {{off: 0.5}}", "the special value 0.5 of an int is not whole"),
        (f"{INT}, special: [0]", "is not a mapping"),
        ("kind: categorical, choices: [], default: a", "a categorical parameter has no choices"),
        ("kind: categorical, default: a", "a categorical parameter has no choices"),
        ("kind: categorical, choices: [a, b, a], default: a", "the choice 'a' is given twice"),
        ("kind: categorical, choices: [64, '64'], default: 64", "the choice '64' is given twice"),
        (
            "kind: categorical, choices: [one, two], default: tow",
            "'tow' is none of its choices. Did you mean two",
        ),
        ("kind: categorical, choices: [a], default: a, low: 3", "a parameter of kind categorical has no low"),
        ("kind: categorical, choices: [a], default: a, special: {b: 0}", "kind categorical has no special"),
        (
            "kind: int, low: 1, high: 64k, default: 1",
            "'64k' is not a number. Write only the number, counted in the `unit:` of the parameter",
        ),
        ("kind: int, low: 1, high: 9, default: 30s", "'30s' is not a number. Write only the number"),
        ("kind: bool, default: maybe", "'maybe' is neither on nor off"),
        ("kind: bool, default: 2", "2 is neither on nor off"),
        ("kind: bool, default: n", "`n` fails with n = 3: 3 is neither on nor off"),
        ("kind: bool, default: on, low: 0", "a parameter of kind bool has no low"),
        (f"{INT}, when: flagg", "uses flagg, which is not known. Did you mean flag"),
        (f"{INT}, when: \"'off'\"", "the result is the text 'off', neither true nor false"),
        (f"{INT}, when: x > 1", "`x > 1` is circular: x → x"),
    ],
)
def test_a_wrong_parameter_is_refused_at_its_line(tmp_path, body, wrong):
    with pytest.raises(UsageError, match=rf"^demo\.yaml:4: parameters\.x.*({wrong})"):
        load(with_parameter(body), tmp_path)


@pytest.mark.parametrize(
    ("rest", "line", "wrong"),
    [
        ("presets: {p: {values: {y: 1}}}\n", 7, "no parameter has the name y"),
        ("presets: {p: {values: {fleg: on}}}\n", 7, "no parameter has the name fleg. Did you mean flag"),
        ("presets: {p: {values: {x: 99}}}\n", 7, "values.x: 99 is above its maximum, 9. Give 1 to 9"),
        ("presets:\n  p:\n    values:\n      x: 0\n", 10, "0 is below its minimum, 1"),
        ("presets: {p: {values: {x: many}}}\n", 7, "`many` uses many, which is not known"),
        ("presets: {p: {values: {x: n}}}\n", 7, "`n` uses other parameters. Use only facts"),
        ("presets: {p: {values: {flag: perhaps}}}\n", 7, "'perhaps' is neither on nor off"),
        ("presets: {p: {values: {x: cores / 4}}}\n", 7, "`cores / 4`: 0.5 is not a whole number"),
        ("presets: {p: {title: t}}\n", 7, "the key values is missing"),
        (
            "derived: {d: {value: x * 2}}\npresets: {p: {values: {d: 4}}}\n",
            8,
            "you cannot set d, because tuner derives it as `x",
        ),
        ("derived: {d: {valeu: x}}\n", 7, "valeu: this key is not known. Did you mean value"),
        ("derived: {d: {value: x, valeu: x}}\n", 7, "valeu: this key is not known. Did you mean value"),
        ("derived: {d: {value: y * 2}}\n", 7, "uses y, which is not known"),
        ("derived:\n  d: {value: e + 1}\n  e: {value: d + 1}\n", 8, "circular: d → e → d"),
        ("derived: {d: {value: 1 / (n - 9)}}\n", 7, "`1 / .n - 9.` fails with n = 9: division by zero"),
        ("derived: {flag: {value: x}}\n", 7, "the names flag and flag are both written flag in expressions"),
        ("derived: {cores: {value: x}}\n", 7, "the name cores already means a fact"),
        ("derived: {min: {value: x}}\n", 7, "the name min already means a fact, function or keyword"),
        ("constraints: [{rule: x <= y}]\n", 7, "uses y, which is not known"),
        (
            "constraints: [{rule: x <= 2, why: So it is.}]\n",
            7,
            "the default configuration breaks this rule: .*So it is",
        ),
        ("constraints: [{rule: x / (n - 9) < 5}]\n", 7, "fails with n = 9, x = 1: division by zero"),
        ("constraints: {rule: x < 99}\n", 7, "is not a list"),
        ("constraint: []\n", 7, "constraint: this key is not known. Did you mean constraints"),
        ("dead: {gone: }\n", 7, "dead.gone: the text is missing"),
        ("only: [z]\n", 7, "only.0: no parameter has the name z"),
        ("set: {x: 99}\n", 7, "set.x: the value 99 is above its maximum, 9"),
    ],
)
def test_a_wrong_entry_beside_the_parameters_is_refused_at_its_line(tmp_path, rest, line, wrong):
    with pytest.raises(UsageError, match=rf"^demo\.yaml:{line}: .*({wrong})"):
        load(with_parameter(INT, rest), tmp_path)


def test_a_cycle_over_several_parameters_is_named_in_full(tmp_path):
    text = (
        "server: demo\nparameters:\n"
        "  a: {kind: int, low: 1, high: b, default: 1}\n"
        "  b: {kind: int, low: 1, high: 9, default: c}\n"
        "  c: {kind: bool, default: on, when: a > 3}\n"
    )

    with pytest.raises(
        UsageError, match=r"^demo\.yaml:3: parameters\.a\.high: `b` is circular: a → b → c → a\."
    ):
        load(text, tmp_path)


def test_two_names_that_read_the_same_in_expressions_are_refused(tmp_path):
    text = "server: demo\nparameters:\n  a.b: {kind: bool, default: on}\n  a-b: {kind: bool, default: on}\n"

    with pytest.raises(
        UsageError, match=r"^demo\.yaml:4: .*the names a-b and a\.b are both written a_b in expressions"
    ):
        load(text, tmp_path)


@pytest.mark.parametrize("name", ["two words", "9lives", "a/b", "a[x]", "a'b", "x" * 101, "$(reboot)", "a;b"])
def test_a_name_that_could_not_be_a_setting_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match=r"^demo\.yaml:3: .*is not a name"):
        load(f'server: demo\nparameters:\n  "{name}": {{kind: bool, default: on}}\n', tmp_path)


def test_a_parameter_given_twice_is_refused(tmp_path):
    text = "server: demo\nparameters:\n  a: {kind: bool, default: on}\n  a: {kind: bool, default: off}\n"

    with pytest.raises(
        UsageError, match=r"^demo\.yaml:4: parameters: 'a' is given a second time \(first at line 3\)"
    ):
        load(text, tmp_path)


def test_a_file_without_parameters_is_refused(tmp_path):
    with pytest.raises(UsageError, match="the search space has no parameters"):
        load("space: empty\nserver: demo\n", tmp_path)


def test_a_new_parameter_without_a_server_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"^demo\.yaml:2: parameters\.a: a is not in an earlier entry, and this entry has no `server:`",
    ):
        load("parameters:\n  a: {kind: bool, default: on}\n", tmp_path)


class TestMisuseOfValuesThatAreNoQuantity:
    """What goes wrong only for some values is found when the space is loaded."""

    def test_a_special_value_in_arithmetic(self, tmp_path):
        text = with_parameter(
            "kind: int, low: 10, high: 99, special: {off: 0}, default: 10", "derived: {d: {value: 100 / x}}\n"
        )

        with pytest.raises(UsageError, match=r"^demo\.yaml:7: .*x may have the special value 0, .* write: "):
            load(text, tmp_path)

    def test_a_special_value_that_is_guarded(self, tmp_path):
        text = with_parameter(
            "kind: int, low: 10, high: 99, special: {off: 0, auto: auto}, default: 10",
            "derived: {d: {value: 100 / x if x != 0 and x != 'auto' else 0}}\n",
        )

        assert load(text, tmp_path).complete({"x": "auto"})["d"] == 0

    def test_a_text_as_condition(self, tmp_path):
        text = with_parameter(
            "kind: categorical, choices: [on, off], default: on", "derived: {d: {value: 1 if x else 0}}\n"
        )

        with pytest.raises(UsageError, match="is the text 'on', not true or false; compare instead: == 'on'"):
            load(text, tmp_path)

    def test_an_inactive_parameter(self, tmp_path):
        text = with_parameter(
            "kind: int, low: 1, high: 9, default: 3, when: flag", "derived: {d: {value: x + 1}}\n"
        )

        with pytest.raises(
            UsageError, match=r"^demo\.yaml:7: derived\.d\.value: `x \+ 1` fails: x is inactive here"
        ):
            load(text, tmp_path)

    def test_an_inactive_parameter_that_is_guarded(self, tmp_path):
        text = with_parameter(
            "kind: int, low: 1, high: 9, default: 3, when: flag",
            "derived: {d: {value: x + 1 if flag else 0}}\n",
        )

        assert load(text, tmp_path).default()["d"] == 0

    def test_a_fault_that_only_one_combination_of_twenty_switches_shows(self, tmp_path):
        switches = "".join(f"  s{number}: {{kind: bool, default: off}}\n" for number in range(20))
        text = f"server: demo\nparameters:\n{switches}derived:\n  d: {{value: 1 / (1 - s7)}}\n"

        with pytest.raises(UsageError, match=r"`1 / \(1 - s7\)` fails with s7 = True: division by zero"):
            load(text, tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "root:$6$secret:20000:0:::::\n",
        "password: secret\n",
        "- secret\n",
        "a: secret\na: secret\n",
        "{secret",
    ],
)
def test_nothing_is_quoted_of_a_file_elsewhere_that_is_no_space(tmp_path, content):
    (tmp_path / "shadow.yaml").write_text(content)
    study = tmp_path / "study"
    study.mkdir()
    (study / "link.yaml").symlink_to("../shadow.yaml")

    for path in (str(tmp_path / "shadow.yaml"), "../shadow.yaml", "./link.yaml"):
        with pytest.raises(
            UsageError, match=r"this file is no search space\. tuner does not show its content"
        ) as refused:
            load_space([path], facts=SpaceFacts(names={}), base=study)
        assert "secret" not in f"{refused.value}{refused.value.__cause__}{refused.value.__context__}"


def test_a_space_elsewhere_is_read_and_its_faults_are_told(tmp_path):
    (tmp_path / "ours.yaml").write_text("space: ours\nserver: nginx\nparameters: {x: {kind: integer}}\n")
    (tmp_path / "study").mkdir()

    with pytest.raises(UsageError, match=r"'integer' is no known value\. Did you mean int"):
        load_space(["../ours.yaml"], facts=SpaceFacts(names={}), base=tmp_path / "study")
