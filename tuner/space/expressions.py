"""Expressions over host facts and parameters: parsed once, checked by name, evaluated without eval.

Only what the space language needs is let in: numbers, texts, comparisons, arithmetic that stays within
±1e18, `and`/`or`/`not`, `a if b else c`, and a few functions.
"""

import ast
import copy
import math
import operator
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from simpleeval import InvalidExpression, NameNotDefined, SimpleEval

from tuner.errors import UsageError
from tuner.ports import PROTOCOLS, Scalar
from tuner.space.problems import Place, problem, quote, suggest

FACTS = ("cores", "online_cores", "memory_mib", "connections", "open_files_max", "somaxconn")
LOAD_FACTS = (
    *("keepalive", "pipelining", "page_bytes", "pages", "protocol", "tls", "fastopen"),
    *("streams", "accepts_gzip", "uploads", "loopback", "installed"),
)  # fmt: skip
"""Facts of the load and of where it goes. Known to `acts_when` alone, so that a parameter may have the same
name elsewhere."""
LARGEST_NUMBER = 10**18
"""Beyond any setting; keeps powers and products of hostile files cheap."""
LONGEST_TEXT = 400
MOST_NODES = 200
MOST_ARGUMENTS = 20
MOST_REMEMBERED = 2000
"""Results of one expression that are kept: configurations differ in few settings, so most are asked again."""


class Unusable(Exception):
    """A value does not fit where the expression uses it."""


class Special:
    """Stands for a special value while a space is checked: it may be compared by == and !=, no more."""

    __slots__ = ("owner", "value")

    def __init__(self, owner: str, value: Scalar) -> None:
        self.owner = owner
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, Special) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        if isinstance(self.value, str):
            return _refuse_truth(self.owner, self.value)
        return bool(self.value)


class Text(str):
    """Stands for a text value while a space is checked: a text is neither true nor false."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return _refuse_truth("a parameter", str(self))


def _refuse_truth(owner: str, value: str) -> bool:
    """Refuse a text as a condition: 'off' would count as true."""
    raise Unusable(f"{owner} is the text {value!r}, not true or false; compare instead: == {value!r}")


def _number(value: object) -> int | float:
    if isinstance(value, Special):
        raise Unusable(
            f"{value.owner} may have the special value {value.value!r}, which is no number; "
            f"write: … if {value.owner} != {value.value!r} else …"
        )
    if isinstance(value, (int, float)):
        return value
    raise Unusable(f"{value!r} is not a number")


def _bounded(value: float) -> int | float:
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:  # also refuses nan
        raise Unusable("the result is beyond ±1e18")
    return value


def _of_numbers(calculate: Callable[..., int | float], fewest: int, most: int) -> Callable[..., int | float]:
    """Return the function for numbers alone, with a result within ±1e18."""

    def apply(*values: object) -> int | float:
        if not fewest <= len(values) <= most:
            wanted = "1 number" if most == 1 else f"{fewest} or more numbers"
            raise Unusable(f"a function takes {wanted}, not {len(values)}")
        return _bounded(calculate(*map(_number, values)))

    return apply


def _raise_to(base: float, exponent: float) -> int | float:
    if abs(base) > 1 and abs(exponent) * math.log2(abs(base)) > math.log2(LARGEST_NUMBER) + 1:
        raise Unusable("the power is beyond ±1e18")
    if base < 0 and exponent != int(exponent):
        raise Unusable("the root of a negative number")
    power: int | float = base**exponent
    return power


_OF_TWO: Mapping[type[ast.AST], Callable[..., int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _raise_to,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OPERATORS: Mapping[type[ast.AST], Callable[..., object]] = {
    **{node: _of_numbers(calculate, 2, 2) for node, calculate in _OF_TWO.items()},
    ast.USub: _of_numbers(operator.neg, 1, 1),
    ast.UAdd: _number,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.Name, ast.Load, ast.Constant, ast.And, ast.Or, *_OPERATORS),
)
_NUMERIC_FUNCTIONS = {
    **{function.__name__: _of_numbers(function, 2, MOST_ARGUMENTS) for function in (min, max)},
    **{
        function.__name__: _of_numbers(function, 1, 1)
        for function in (math.floor, math.ceil, round, int, abs, math.log2)
    },
}
FUNCTIONS = (*_NUMERIC_FUNCTIONS, "at_least", "least", "passes_to")


def parse_version(text: str) -> tuple[int, ...]:
    """Parse `1.21.6` as (1, 21, 6). Raises ValueError for anything else."""
    return tuple(int(part) for part in text.split("."))


def is_at_least(version: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Compare versions by number, missing parts as 0; an unknown version counts as the newest."""
    if not version:
        return True
    longest = max(len(version), len(wanted))
    return version + (0,) * (longest - len(version)) >= wanted + (0,) * (longest - len(wanted))


class Evaluator:
    """Evaluates the expressions of one server.

    `at_least` asks for its version, `least` for its capacity, `passes_to` for what it passes requests to.
    """

    def __init__(
        self,
        version: tuple[int, ...],
        least: Mapping[str, int | float] = MappingProxyType({}),
        backend: str = "",
    ) -> None:
        self._version = version
        self._least = least
        self.backend = backend
        self.functions: dict[str, Callable[..., object]] = {
            **_NUMERIC_FUNCTIONS,
            "at_least": self._at_least,
            "least": self._least_capacity,
            "passes_to": self._passes_to,
        }
        self._simple = SimpleEval(operators=dict(_OPERATORS), functions=self.functions, names={})

    def evaluate(self, tree: ast.expr, text: str, names: Mapping[str, object]) -> object:
        """Evaluate a parsed expression; raises what simpleeval, arithmetic or Unusable raise."""
        self._simple.names = names
        return self._simple.eval(text, previously_parsed=tree)

    def _at_least(self, wanted: object) -> bool:
        if not isinstance(wanted, str):
            raise Unusable("at_least needs a version in quotes, such as at_least('1.21')")
        try:
            return is_at_least(self._version, parse_version(wanted))
        except ValueError:
            raise Unusable(f"at_least needs a version like '1.21', not {wanted!r}") from None

    def _least_capacity(self, figure: object) -> int | float:
        if isinstance(figure, str) and figure in self._least:
            return self._least[figure]
        known = ", ".join(map(repr, self._least)) or "none"
        raise Unusable(f"least needs a figure of this server's capacity, not {figure!r}; known are: {known}")

    def _passes_to(self, *protocols: object) -> bool:
        """Return whether requests are passed to a server that is asked in one of these, or any, protocols."""
        for protocol in protocols:
            if protocol not in PROTOCOLS:
                known = ", ".join(map(repr, PROTOCOLS))
                raise Unusable(f"passes_to needs protocols, not {protocol!r}; known are: {known}")
        return self.backend in (protocols or PROTOCOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One expression, parsed, with the names that it uses."""

    text: str
    place: Place
    names: frozenset[str] = field(repr=False)
    tree: ast.expr = field(repr=False, compare=False)
    evaluator: Evaluator = field(repr=False, compare=False)
    _results: dict[tuple[object, ...], Scalar] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """By the types and values of its names: True and 1 are equal, and not the same setting."""

    def evaluate(self, names: Mapping[str, object]) -> Scalar:
        """Return its value. Raises UsageError with the names' values when it fails."""
        used = [names.get(name) for name in self.names]
        key = (*map(type, used), *used)
        if key not in self._results:
            if len(self._results) >= MOST_REMEMBERED:
                self._results.clear()
            self._results[key] = self._evaluate(names)
        return self._results[key]

    def _evaluate(self, names: Mapping[str, object]) -> Scalar:
        try:
            value = self.evaluator.evaluate(self.tree, self.text, names)
            if isinstance(value, (int, float)):
                _bounded(value)
        except NameNotDefined as error:
            missing = min(self.names - names.keys(), default="a name")
            lacks = f"{missing} is inactive here and has no value"
            if missing in FACTS:
                lacks = f"the fact {missing} is not known of this host"
            raise self.failure(lacks, names) from error
        except ZeroDivisionError as error:
            raise self.failure("division by zero", names) from error
        except (InvalidExpression, Unusable, ArithmeticError, ValueError, TypeError) as error:
            raise self.failure(str(error), names) from error
        if isinstance(value, (bool, int, float)):
            return value
        plain = _plain(value)
        if isinstance(plain, (bool, int, float, str)):
            return plain
        raise self.failure(f"the result {value!r} is neither number nor text", names)

    def holds(self, names: Mapping[str, object]) -> bool:
        """Return whether it is true. Raises UsageError when it is a text."""
        value = self.evaluate(names)
        if isinstance(value, str):
            raise self.failure(
                f"the result is the text {value!r}, neither true nor false; compare it: == {value!r}", names
            )
        return bool(value)

    def decides(self, names: Mapping[str, object]) -> bool | None:
        """Return whether it is true, None where that hangs on a name without a value. Raises as `holds`."""
        try:
            return self.holds(names)
        except UsageError as error:
            if isinstance(error.__cause__, NameNotDefined):
                return None
            raise

    def failure(self, reason: str, names: Mapping[str, object]) -> UsageError:
        """Return the error of a failed evaluation, with the values that it was made with."""
        used = ", ".join(f"{name} = {_plain(names[name])!r}" for name in sorted(self.names) if name in names)
        return problem(
            self.place,
            f"`{self.text}` fails{f' with {used}' if used else ''}: {reason}",
            "Correct the expression, or limit its parameters with `when`, `low` or `high`",
        )


class _Binding(ast.NodeTransformer):
    """Puts values in the place of facts of the load; one without a value becomes a name that has none."""

    def __init__(self, load: Mapping[str, Scalar]) -> None:
        self._load = load

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in LOAD_FACTS:
            return node
        if node.id in self._load:
            return ast.Constant(self._load[node.id])
        return ast.Name(id=f"{node.id} of the load", ctx=ast.Load())


def bind_load(expression: Expression, load: Mapping[str, Scalar]) -> Expression:
    """Return an expression with the facts of the load settled; those that are not known stay open."""
    tree = _Binding(load).visit(copy.deepcopy(expression.tree))
    return replace(expression, tree=tree)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Special) else str(value) if isinstance(value, str) else value


def possible_texts(expression: Expression, texts: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return every text that an expression could give.

    Args:
        expression: what is looked at, without evaluating it.
        texts: identifier → texts that it may stand for; one that is not here is a number.
    """
    return frozenset(_texts_below(expression.tree, texts))


def _texts_below(node: ast.expr, texts: Mapping[str, Collection[str]]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name):
            yield from texts.get(name, ())
        case ast.IfExp(body=first, orelse=second):
            yield from _texts_below(first, texts)
            yield from _texts_below(second, texts)
        case ast.BoolOp(values=values):
            # `and` and `or` give one of their operands.
            for value in values:
                yield from _texts_below(value, texts)
        case _:
            # Arithmetic, comparisons and functions give numbers or fail.
            return


def parse(text: str, place: Place, known: Collection[str], evaluator: Evaluator) -> Expression:
    """Parse an expression and check every name and function in it. Raises UsageError."""
    if len(text) > LONGEST_TEXT:
        raise problem(place, f"the expression has {len(text)} characters", f"Use at most {LONGEST_TEXT}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # `1 is 1` warns before it is refused below
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise problem(
            place,
            f"{quote(text)} is not an expression",
            "Write arithmetic over facts and parameters, such as `2 * cores`; put texts in single quotes",
        ) from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MOST_NODES:
        raise problem(place, f"{quote(text)} is too long", "Split the expression into derived settings")
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called)
    for node in nodes:
        _check_node(node, text, place)
    for name in sorted(names - set(known)):
        raise problem(place, f"`{text}` uses {name}, which is not known", _remedy(name, known))
    body = _Choosing(evaluator).visit(tree.body)
    functions = {id(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)}
    used = (node for node in ast.walk(body) if isinstance(node, ast.Name) and id(node) not in functions)
    return Expression(
        text=text.strip(), place=place, names=frozenset(node.id for node in used), tree=body,
        evaluator=evaluator,
    )  # fmt: skip


class _Choosing(ast.NodeTransformer):
    """Leaves out what is never taken where a choice hangs on whom requests are passed to alone.

    What stands there may be left out on this host, and would take all that mentions it along.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not _asks_for_backend(node.test):
            return node
        try:
            is_taken = self._evaluator.evaluate(node.test, "", {})
        except (InvalidExpression, Unusable):  # it is told with its place when it is evaluated
            return node
        return node.body if is_taken else node.orelse


def _asks_for_backend(test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="passes_to")):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks_for_backend(operand)
        case ast.BoolOp(values=values):
            return all(map(_asks_for_backend, values))
        case _:
            return False


def _remedy(name: str, known: Collection[str]) -> str:
    if name in FUNCTIONS:
        return f"{name} is a function: write {name}(…)"
    if name == "version":
        return "Compare versions with at_least('1.21')"
    if name in {"on", "off", "yes", "no", "true", "false"}:
        return "Write a bool by its name (`sendfile`, `not sendfile`), and a text in single quotes"
    return suggest(name, known)


def _check_node(node: ast.AST, text: str, place: Place) -> None:
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            wrong = f"`{text}` calls {quote(name or 'something')}, which is not a function here"
            raise problem(place, wrong, suggest(name, FUNCTIONS))
        if node.keywords:
            raise problem(
                place, f"`{text}` gives {name} an argument by name", "Give the argument by position"
            )
    elif not isinstance(node, _ALLOWED):
        raise problem(
            place,
            f"`{text}` uses {type(node).__name__}, which expressions cannot contain",
            f"Use arithmetic, comparisons, and/or/not, `a if b else c` and {', '.join(FUNCTIONS)}",
        )
    elif isinstance(node, ast.Constant) and not isinstance(node.value, (bool, int, float, str)):
        raise problem(
            place, f"`{text}` contains {quote(node.value)}", "Use numbers, and texts in single quotes"
        )
