"""Says in plain words what would have to be otherwise for a setting to act under a load."""

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from simpleeval import InvalidExpression

from tuner.ports import FASTCGI, HTTP, HTTP1, WEBSOCKET
from tuner.space.expressions import LOAD_FACTS, Expression, Special, Unusable

_FACTS: Mapping[str, tuple[str, str]] = {
    "keepalive": ("with keep-alive", "without keep-alive"),
    "pipelining": ("with pipelined requests", "without pipelined requests"),
    "tls": ("with TLS", "without TLS"),
    "fastopen": ("with TCP Fast Open", "without TCP Fast Open"),
    "uploads": ("with uploads", "without uploads"),
    "accepts_gzip": ("if clients accept gzip", "if clients do not accept gzip"),
    "loopback": ("over loopback", "over a network"),
    "installed": ("on an installed server", "in a sandbox"),
}
"""What is so or not → how it is asked for, and how its absence is."""
_NUMBERS = {
    "connections": "with {} connections",
    "page_bytes": "with pages of {} bytes",
    "pages": "with {} pages",
    "streams": "with {} streams per connection",
}
"""Whole numbers → how they are asked for."""
_PASSED_ON: Mapping[object, str] = {HTTP: "HTTP", FASTCGI: "FastCGI", WEBSOCKET: "WebSocket"}
_BEYOND: Mapping[type[ast.cmpop], str] = {ast.Gt: "at least", ast.GtE: "at least", ast.Lt: "less than"}


def say_lacking(
    condition: Expression, settled: Mapping[str, object], load: Mapping[str, object] = MappingProxyType({})
) -> str:
    """Return what lacks for a condition that does not hold, such as `with keep-alive`.

    Args:
        condition: an `acts_when` or a `when`.
        settled: facts of the host, and the settings that have a value.
        load: what is known of the load.
    """
    known = {name: value for name, value in settled.items() if name not in LOAD_FACTS} | dict(load)
    # In the condition's own tree, values stand in the place of the names.
    return _Teller(condition=condition, known=known).tell(ast.parse(condition.text, mode="eval").body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    condition: Expression
    known: Mapping[str, object]

    def tell(self, node: ast.expr) -> str:
        """Return what lacks for a part of the condition that does not hold."""
        said = ""
        match node:
            case ast.BoolOp(op=ast.Or(), values=parts):
                said = _join([self.tell(part) for part in parts], "or")
            case ast.BoolOp(values=parts):
                said = _join([self.tell(part) for part in parts if self._fails(part)], "and")
            case ast.Name(id=name):
                said = _FACTS[name][0] if name in _FACTS else f"if {name} is on"
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
                said = _FACTS[name][1] if name in _FACTS else f"if {name} is off"
            case ast.Call(func=ast.Name(id="passes_to"), args=asked):
                named = [_PASSED_ON[each.value] for each in asked if isinstance(each, ast.Constant)]
                said = "if the server passes requests on" + (f" by {' or '.join(named)}" if named else "")
            case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="passes_to"))):
                protocol = self.condition.evaluator.backend
                said = f"if the server passes nothing on by {_PASSED_ON.get(protocol, protocol)}"
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                said = self._tell_comparison(left, operator, self._evaluate(right))
        return said or self._quote(node)

    def _tell_comparison(self, left: ast.expr, operator: ast.cmpop, right: object) -> str:
        """Return what lacks for a comparison; empty where there are no words for it."""
        number, beyond = _take_apart(left), _BEYOND.get(type(operator))
        if number is not None and beyond is not None and isinstance(right, int | float):
            name, factor = number
            least = right // factor + 1 if isinstance(operator, ast.Gt) else math.ceil(right / factor)
            has = self.known.get(name)
            here = f" (here {has:,})" if isinstance(has, int) else ""
            return _NUMBERS[name].format(f"{beyond} {int(least):,}") + here
        match left, operator:
            case ast.Name(id="protocol"), ast.NotEq() if right == HTTP1:
                return "over HTTP/2"
            case ast.Name(id=name), ast.NotEq() | ast.Eq() if isinstance(right, bool | int | float | str):
                return f"if {name} is {'not ' if isinstance(operator, ast.NotEq) else ''}{right}"
        return ""

    def _quote(self, node: ast.expr) -> str:
        """Return a part as it is written, with the values of its names."""
        names = sorted({each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & self.known.keys())
        here = ", ".join(f"{name} is {_say(self.known[name])}" for name in names)
        return f"if `{ast.unparse(node)}`" + (f" (here {here})" if here else "")

    def _fails(self, node: ast.expr) -> bool:
        """Return whether a part is known not to hold."""
        value = self._evaluate(node)
        return value is not None and not isinstance(value, Special | str) and not value

    def _evaluate(self, node: ast.expr) -> object:
        """Return the value of a part; None where it has none here."""
        try:
            return self.condition.evaluator.evaluate(node, self.condition.text, self.known)
        except (InvalidExpression, Unusable, ArithmeticError, ValueError, TypeError):
            return None


def _take_apart(node: ast.expr) -> tuple[str, int] | None:
    """Return the number and its factor, of `connections` or `2 * connections`; None for anything else."""
    match node:
        case ast.Name(id=name) if name in _NUMBERS:
            return name, 1
        case ast.BinOp(left=ast.Constant(value=int(factor)), op=ast.Mult(), right=ast.Name(id=name)):
            return (name, factor) if name in _NUMBERS and factor > 0 else None
    return None


def _join(parts: Sequence[str], word: str) -> str:
    """Join different parts by a word, with commas where there are more than two or one is joined itself."""
    *first, last = list(dict.fromkeys(parts)) or [""]
    if not first:
        return last
    is_listed = len(first) > 1 or any(f" {inner} " in each for each in parts for inner in ("or", "and"))
    return f"{', '.join(first)}{',' if is_listed else ''} {word} {last}"


def _say(value: object) -> str:
    plain = value.value if isinstance(value, Special) else value
    return ("on" if plain else "off") if isinstance(plain, bool) else str(plain)
