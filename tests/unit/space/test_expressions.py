import pytest

from tuner.errors import UsageError
from tuner.space.expressions import FACTS, Evaluator, Expression, is_at_least, parse
from tuner.space.problems import Place

NAMES = {"cores": 4, "n": 3, "zero": 0, "rate": 2.5, "flag": True, "mode": "off", "net_core_x": 7}


def make(text: str, version: tuple[int, ...] = (1, 22, 1)) -> Expression:
    return parse(
        text, Place(source="f.yaml", line=7, key="x.high"), {*NAMES, *FACTS, "absent"}, Evaluator(version)
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * cores", 8),
        ("cores / 8", 0.5),
        ("cores // 3", 1),
        ("-cores + 10 % 4", -2),
        ("2 ** 10", 1024),
        ("min(cores, 3, n)", 3),
        ("max(1, floor(rate), ceil(rate))", 3),
        ("round(rate * 3) + int(rate) + abs(-1)", 11),
        ("log2(8)", 3.0),
        ("n if flag else 0", 3),
        ("1 <= n < 4", True),
        ("flag and not zero", True),
        ("mode == 'off' or mode != 'on'", True),
        ("'on' if cores > 2 else 'off'", "on"),
        ("cores if mode == 3 else net_core_x", 7),
        ("0 if zero == 0 else 1 / zero", 0),
        ("True", True),
        ("  7  ", 7),
    ],
)
def test_expressions_over_facts_and_parameters(text, value):
    result = make(text).evaluate(NAMES)

    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("version", "asked", "holds"),
    [
        ((1, 22, 1), "1.22", True),
        ((1, 22), "1.22.0", True),
        ((1, 9), "1.21", False),
        ((1, 21, 5), "1.21.6", False),
        ((2,), "1.99.99", True),
        ((), "99", True),
    ],
)
def test_versions_are_compared_by_number_and_an_unknown_one_is_the_newest(version, asked, holds):
    assert make(f"at_least('{asked}')", version).evaluate({}) is holds
    assert is_at_least(version, tuple(map(int, asked.split(".")))) is holds


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("coers * 2", "`coers \\* 2` uses coers, which is not known. Did you mean cores"),
        ("floor + 1", "uses floor, which is not known. floor is a function: write floor"),
        ("version >= 2", "uses version, which is not known. Compare versions with at_least"),
        ("mode == off", "uses off, which is not known. .*single quotes"),
        ("mix(1, 2)", "calls 'mix', which is not a function here. Did you mean max"),
        ("eval('1')", "calls 'eval', which is not a function"),
        ("__import__('os')", "calls '__import__', which is not a function"),
        ("cores.real", "uses Attribute, which expressions cannot contain"),
        ("(1).__class__", "uses Attribute"),
        ("'a'.upper()", "calls 'something', which is not a function"),
        ("mode[0]", "uses Subscript"),
        ("[1, 2]", "uses List"),
        ("(1, 2)", "uses Tuple"),
        ("{1: 2}", "uses Dict"),
        ("[n for n in mode]", "uses ListComp"),
        ("lambda: 1", "uses Lambda"),
        ("(lambda: 1)()", "calls 'something', which is not a function"),
        ("f'{n}'", "uses JoinedStr"),
        ("n := 3", "is not an expression"),
        ("n is 3", "uses Is"),
        ("n in mode", "uses In"),
        ("n << 3", "uses LShift"),
        ("n & 3", "uses BitAnd"),
        ("~n", "uses Invert"),
        ("max(*mode)", "uses Starred"),
        ("max(1, key=2)", "gives max an argument by name"),
        ("1j", "contains 1j"),
        ("b'a'", "contains b'a'"),
        ("None", "contains None"),
        ("...", "contains Ellipsis"),
        ("2 *", "is not an expression"),
        ("import os", "is not an expression"),
        ("n = 3", "is not an expression"),
        ("1; 2", "is not an expression"),
        ("", "is not an expression"),
        ("\0", "is not an expression"),
        ("(" * 300, "is not an expression"),
        ("-" * 399 + "1", "is too long|is not an expression"),
        ("1" + " + 1" * 99, "is too long"),
        ("n" * 500, "has 500 characters"),
    ],
)
def test_what_the_language_does_not_have_is_refused_with_its_place(text, wrong):
    with pytest.raises(UsageError, match=rf"(?s)^f\.yaml:7: x\.high: .*({wrong})"):
        make(text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("n / zero", "with n = 3, zero = 0: division by zero"),
        ("n // zero", "division by zero"),
        ("n % zero", "division by zero"),
        ("zero ** -1", "cannot be raised to a negative power|division by zero"),
        ("log2(zero)", "math domain error|must be a positive"),
        ("10 ** 19", "the power is beyond ±1e18"),
        ("9 ** 9 ** 9 ** 9", "the power is beyond ±1e18"),
        ("(2 ** 59) * (2 ** 59)", "the result is beyond ±1e18"),
        ("(-8) ** 0.5", "the root of a negative number"),
        ("mode + 1", "'off' is not a number"),
        ("mode * 1000000", "'off' is not a number"),
        ("mode < 3", "'off' is not a number"),
        ("min(mode, 3)", "'off' is not a number"),
        ("min(3)", "takes 2 or more numbers, not 1"),
        ("round(1, 2)", "takes 1 number, not 2"),
        ("at_least(3)", "at_least needs a version in quotes"),
        ("at_least('new')", "at_least needs a version like '1.21', not 'new'"),
        ("absent + 1", "absent is inactive here and has no value"),
        ("memory_mib", "the fact memory_mib is not known of this host"),
    ],
)
def test_an_expression_that_fails_tells_its_values_and_the_reason(text, wrong):
    with pytest.raises(UsageError, match=rf"^f\.yaml:7: x\.high: `.*` fails.*({wrong})"):
        make(text).evaluate(NAMES)


def test_a_text_is_neither_true_nor_false():
    with pytest.raises(UsageError, match="the result is the text 'off', neither true nor false; compare it"):
        make("mode").holds(NAMES)


@pytest.mark.parametrize(("text", "holds"), [("n", True), ("zero", False), ("flag", True), ("n > 3", False)])
def test_numbers_and_booleans_are_conditions(text, holds):
    assert make(text).holds(NAMES) is holds
