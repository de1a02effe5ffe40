"""Expressions over host facts and parameters: parsed once, checked by name, evaluated without eval.

Only what the space language needs is let in: numbers, texts, comparisons, arithmetic that stays within
1e18, `and`/`or`/`not`, `a if b else c`, and a few functions.
"""

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from simpleeval import InvalidExpression, NameNotDefined, SimpleEval

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.arithmetic import OPERATORS, Special, Text, Unusable, bounded, make_functions
from tuner.space.problems import Place, problem, quote, suggest

FACTS = ("cores", "memory_mib", "connections", "open_files_max", "somaxconn")
FUNCTIONS = ("min", "max", "floor", "ceil", "round", "int", "abs", "log2", "at_least", "least")
LONGEST_TEXT = 400
MOST_NODES = 200

_ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.Name, ast.Load, ast.Constant),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd),
    *(ast.And, ast.Or, ast.Not, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


class Evaluator:
    """Evaluates the expressions of one server, whose version `at_least` asks and whose capacity `least`."""

    def __init__(
        self, version: tuple[int, ...], least: Mapping[str, int | float] = MappingProxyType({})
    ) -> None:
        functions = make_functions(version, least)
        self._simple = SimpleEval(operators=dict(OPERATORS), functions=functions, names={})

    def evaluate(self, tree: ast.expr, text: str, names: Mapping[str, object]) -> object:
        """Evaluate a parsed expression; raises what simpleeval, arithmetic or Unusable raise."""
        self._simple.names = names
        return self._simple.eval(text, previously_parsed=tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One expression, parsed, with the names that it uses."""

    text: str
    place: Place
    names: frozenset[str]
    tree: ast.expr = field(repr=False, compare=False)
    evaluator: Evaluator = field(repr=False, compare=False)

    def evaluate(self, names: Mapping[str, object]) -> Scalar:
        """Return its value. Raises UsageError that tells the names' values when it fails."""
        try:
            value = self.evaluator.evaluate(self.tree, self.text, names)
            if isinstance(value, (int, float)):
                bounded(value)
        except NameNotDefined as error:
            raise self.failure(self._say_missing(names), names) from error
        except ZeroDivisionError as error:
            raise self.failure("division by zero", names) from error
        except (InvalidExpression, Unusable, ArithmeticError, ValueError, TypeError) as error:
            raise self.failure(str(error), names) from error
        if isinstance(value, Special):
            return value.value
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return str(value)
        raise self.failure(f"the result {value!r} is neither number nor text", names)

    def holds(self, names: Mapping[str, object]) -> bool:
        """Return whether it is true. Raises UsageError when it is a text."""
        value = self.evaluate(names)
        if isinstance(value, str):
            raise self.failure(
                f"the result is the text {value!r}, neither true nor false; compare it: == {value!r}", names
            )
        return bool(value)

    def _say_missing(self, names: Mapping[str, object]) -> str:
        missing = min(self.names - names.keys(), default="a name")
        if missing in FACTS:
            return f"the fact {missing} is not known of this host"
        return f"{missing} is inactive there and has no value"

    def failure(self, reason: str, names: Mapping[str, object]) -> UsageError:
        """Word a failed evaluation with the values it was made with."""
        used = ", ".join(f"{name} = {_plain(names[name])!r}" for name in sorted(self.names) if name in names)
        return problem(
            self.place,
            f"`{self.text}` fails{f' with {used}' if used else ''}: {reason}",
            "Correct the expression, or limit what it uses with `when`, low or high",
        )


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


def _plain(value: object) -> object:
    return value.value if isinstance(value, Special) else str(value) if isinstance(value, Text) else value


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
            "Write arithmetic over facts and parameters, as `2 * cores`; texts stand in single quotes",
        ) from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MOST_NODES:
        raise problem(place, f"{quote(text)} is too long", "Split it into derived settings")
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called)
    for node in nodes:
        _check_node(node, text, place)
    for name in sorted(names - set(known)):
        raise problem(place, f"`{text}` uses {name}, which is not known", _remedy(name, known))
    return Expression(text=text.strip(), place=place, names=names, tree=tree.body, evaluator=evaluator)


def _remedy(name: str, known: Collection[str]) -> str:
    if name in FUNCTIONS:
        return f"{name} is a function: write {name}(…)"
    if name == "version":
        return "Compare versions with at_least('1.21')"
    if name in {"on", "off", "yes", "no", "true", "false"}:
        return "A bool stands by its own name (`sendfile`, `not sendfile`); a text stands in single quotes"
    return suggest(name, known)


def _check_node(node: ast.AST, text: str, place: Place) -> None:
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            raise problem(
                place,
                f"`{text}` calls {quote(name or 'something')}, which is not a function here",
                suggest(name, FUNCTIONS),
            )
        if node.keywords:
            raise problem(place, f"`{text}` gives {name} an argument by name", "Give it by position")
    elif not isinstance(node, _ALLOWED):
        raise problem(
            place,
            f"`{text}` uses {type(node).__name__}, which this language does not have",
            f"Use arithmetic, comparisons, and/or/not, `a if b else c` and {', '.join(FUNCTIONS)}",
        )
    elif isinstance(node, ast.Constant) and not isinstance(node.value, (bool, int, float, str)):
        raise problem(place, f"`{text}` holds {quote(node.value)}", "Use numbers, and texts in single quotes")
