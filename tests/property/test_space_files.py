"""Whatever stands in a space file, it loads or is refused: nothing else ever happens."""

from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.property.space_strategies import HOST, load
from tests.unit.space.samples import WHOLE
from tuner.errors import UsageError
from tuner.space.expressions import FUNCTIONS, Evaluator, parse
from tuner.space.problems import Place
from tuner.space.yaml_text import read_yaml

FOLDER = Path(__file__).parents[2] / "search_spaces"
TEXTS = {"whole": dedent(WHOLE).encode(), **{path.stem: path.read_bytes() for path in FOLDER.glob("*.yaml")}}
LOOSE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

pieces = st.binary(min_size=1, max_size=6) | st.sampled_from(
    [b"\n", b" ", b": ", b"{", b"}", b"[", b"]", b"'", b'"', b"&a ", b"*a", b"!!", b"#", b"- ", b"|",
     b"~", b"0", b"-", b"1e999", b".inf", b".nan", b"cores", b"low", b"high", b"when", b" / 0",
     b" ** 9", b"(", b")", b"\t", b"\xff", b"\x00", b"\xe2\x80\xa8", b"kind: bool",
     b"default: current", b"special: {a: 0}", b"9" * 20]
)  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A valid file in which a few places are replaced, removed, doubled or moved."""
    content = draw(st.sampled_from([TEXTS["whole"], TEXTS["whole"], *TEXTS.values()]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        middle = draw(st.one_of(pieces, st.just(b""), st.just(content[start:end] * 2)))
        content = content[:start] + middle + content[end:]
    return content


def refusal_of(content: bytes) -> str | None:
    """Say how a file is refused; None when it loads."""
    try:
        load(read_yaml(content, "mutated.yaml"))
    except UsageError as error:
        return str(error)
    return None


@settings(LOOSE, max_examples=examples(200))
@given(mutations())
def test_a_file_with_changed_bytes_loads_or_is_refused(content):
    refusal_of(content)


@settings(LOOSE, max_examples=examples(100))
@given(mutations())
def test_a_refusal_names_the_file_and_is_printable(content):
    message = refusal_of(content)

    assert message is None or message.startswith("mutated.yaml")
    assert message is None or message.replace("\n", " ").isprintable()


@settings(LOOSE, max_examples=examples(150))
@given(st.binary(max_size=300))
def test_any_bytes_load_or_are_refused(content):
    with suppress(UsageError):
        load(read_yaml(content, "noise.yaml"))


words = st.sampled_from(
    ["kind", "low", "high", "default", "int", "float", "bool", "categorical", "log", "cores", "x", "y",
     "special", "when", "parameters", "derived", "constraints", "presets", "values", "value", "rule",
     "set", "only", "allow", "server", "step", "choices", "x * 2", "1 / y", "current", "on", "off",
     "risky", "since", "1.2", ""]
)  # fmt: skip
leaves = words | st.integers() | st.floats() | st.booleans() | st.none() | st.text(max_size=8)
entries = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=4),
    max_leaves=20,
)
DEMO = {"server": "demo", "parameters": {"x": {"kind": "int", "low": 1, "high": 9, "default": 3}}}


@settings(LOOSE, max_examples=examples(150))
@given(st.dictionaries(words, entries, max_size=4))
def test_any_entry_of_a_study_refines_or_is_refused(entry):
    with suppress(UsageError):
        load(DEMO, entry)


@settings(LOOSE, max_examples=examples(150))
@given(st.dictionaries(words, leaves, max_size=8))
def test_any_description_of_a_parameter_loads_or_is_refused(fields):
    with suppress(UsageError):
        space = load(DEMO, {"server": "demo", "parameters": {"y": fields}})
        assert space.violations(space.default()) == ()


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", "and", "or", "if", "in", "is"]
atoms = st.sampled_from(
    ["cores", "x", "y", "0", "1", "2.5", "1e18", "'a'", "True", "z", "at_least('1.2')", "**", "10 ** 18"]
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join),
        st.tuples(st.sampled_from(FUNCTIONS), inner, inner).map(
            lambda call: f"{call[0]}({call[1]}, {call[2]})"
        ),
        st.tuples(st.sampled_from(["-", "not ", "~", "log2", "floor", "round"]), inner).map(
            lambda of: f"{of[0]}({of[1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda of: f"({of[0]} if {of[1]} else {of[2]})"),
    ),
    max_leaves=12,
)


@settings(LOOSE, max_examples=examples(150))
@given(
    expressions | st.text(max_size=30),
    st.integers(-5, 5),
    st.floats(-1e18, 1e18) | st.sampled_from(["a", ""]),
)
def test_any_expression_has_a_value_or_is_refused(text, x, y):
    names = {**HOST, "x": x, "y": y}
    with suppress(UsageError):
        value = parse(text, Place(source="f.yaml"), names, Evaluator((1, 2))).evaluate(names)
        assert isinstance(value, (bool, int, float, str))


def test_the_functions_are_those_that_the_language_names():
    assert set(Evaluator(()).functions) == set(FUNCTIONS)


@pytest.mark.parametrize("depth", [50, 150, 199])
@pytest.mark.parametrize(
    "shape", ["({})", "-{}", "not {}", "{} + 1", "{} ** 2", "max(1, {})", "1 if {} else 0", "{} < 1"]
)
def test_deep_expressions_are_bounded(shape, depth):
    text = "x"
    for _ in range(depth):
        text = shape.format(text)

    with suppress(UsageError):
        parse(text, Place(source="f.yaml"), {"x"}, Evaluator(())).evaluate({"x": 1})
