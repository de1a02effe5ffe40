"""Reads the fields of one parameter as written into what it is on this host."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuner.ports import Scalar
from tuner.space.capacity import LABELS
from tuner.space.encoding import is_on_grid, settle_bounds, settle_number
from tuner.space.expressions import Evaluator, Expression, parse
from tuner.space.merging import Draft
from tuner.space.parameters import CURRENT, NUMBER, Bound, Derived, Figure, Parameter
from tuner.space.problems import Place, problem, quote, suggest
from tuner.space.scalars import Refused, as_flag, as_number
from tuner.space.values import accept, find_special, format_number

_SIZE = re.compile(r"[0-9.]+ ?[A-Za-z%]+")
_NUMERIC_FIELDS = ("low", "high")
_ONLY_FOR_NUMBERS = ("low", "high", "scale", "step", "special", "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Knows which names expressions may use, and turns those over facts alone into values."""

    known: frozenset[str]
    facts: Mapping[str, Scalar]
    evaluators: Mapping[str, Evaluator]
    """By server."""
    current: Mapping[str, Scalar]
    installed: bool

    def expression(self, value: Scalar, place: Place, server: str) -> Scalar | Expression:
        """Return a number as it is, and the value of an expression that uses facts alone."""
        if not isinstance(value, str):
            return value
        if _SIZE.fullmatch(value.strip()):
            raise problem(place, f"{quote(value)} is not a number", "Write the plain number, in its `unit:`")
        expression = self.parse(value, place, server)
        return expression.evaluate(self.facts) if expression.names <= self.facts.keys() else expression

    def parse(self, value: Scalar, place: Place, server: str) -> Expression:
        """Return the parsed expression."""
        return parse(str(value), place, self.known, self.evaluators[server])

    def condition(self, draft: Draft) -> Expression | None:
        """Return `when` parsed; a plain true or false is one too."""
        when = draft.fields.get("when")
        if when is None:
            return None
        flag = as_flag(when)
        return self.parse(str(flag) if flag is not None else when, draft.at("when"), draft.server)

    def parameter(self, draft: Draft, pinned: str, held: tuple[Scalar, Place] | None) -> Parameter | None:
        """Return the parameter; None when its value in force is asked for and not known."""
        given = draft.fields
        kind = given.get("kind")
        if kind is None:
            raise problem(
                draft.place, "the key kind is missing", "Add `kind: int`, float, categorical or bool"
            )
        if "default" not in given:
            raise problem(
                draft.place, "the key default is missing", "Add `default:`, what holds when nobody tunes"
            )
        blank = Parameter(
            name=draft.name,
            server=draft.server,
            kind=kind,
            default=0,
            log=given.get("scale") == "log",
            step=_read_step(draft, kind),
            unit=given.get("unit", ""),
            special=_read_special(draft, kind),
            choices=_read_choices(draft, kind),
            when=self.condition(draft),
            risk=given.get("risk", "safe"),
            apply=given.get("apply", "restart"),
            scope=given.get("scope", ""),
            internal=given.get("internal", False),
            why=given.get("why", ""),
            source=given.get("source", ""),
            also=given.get("also", ""),
            pinned=pinned,
        )
        ranged = self._with_bounds(blank, draft) if blank.is_numeric else blank
        value, place = held or (given["default"], draft.at("default"))
        is_labelled = CURRENT in ranged.special or CURRENT in ranged.choices
        if (value == CURRENT and not is_labelled) or (self.installed and self._is_found(draft, held)):
            return with_current(ranged, self.current.get(draft.name))
        return changed(ranged, default=self._value(ranged, value, place))

    def _is_found(self, draft: Draft, held: object) -> bool:
        """Whether the installed service says what the default is; it may not know an internal one."""
        return held is None and (draft.name in self.current or not draft.fields.get("internal", False))

    def _with_bounds(self, parameter: Parameter, draft: Draft) -> Parameter:
        for key in _NUMERIC_FIELDS:
            if key not in draft.fields:
                raise problem(
                    draft.place, f"the key {key} is missing", f"Add `{key}:`, a number or an expression"
                )
        low, high = (self._bound(draft, key) for key in _NUMERIC_FIELDS)
        if not isinstance(low, Expression) and parameter.log and low <= 0:
            raise problem(
                draft.at("low"),
                f"the scale is log and low is {format_number(low)}",
                "Begin above 0 and give 0 as a special value, as `special: {off: 0}`",
            )
        if not isinstance(low, Expression) and not isinstance(high, Expression):
            least, most = settle_bounds(low, high, parameter.kind)
            if least > most:
                refined = draft.at("high").source != draft.place.source
                raise problem(
                    draft.at("high" if refined else "low"),
                    f"low {_origin(low, draft, 'low')} is above high {_origin(high, draft, 'high')}",
                    "Exchange or correct them",
                )
            low, high = least, most
        return changed(parameter, low=low, high=high)

    def _bound(self, draft: Draft, key: str) -> Bound:
        bound = self.expression(draft.fields[key], draft.at(key), draft.server)
        if isinstance(bound, (bool, str)):
            raise problem(draft.at(key), f"{quote(bound)} is not a number", "Write a number or an expression")
        return bound

    def _value(self, parameter: Parameter, value: Scalar, place: Place) -> Scalar | Expression:
        """Read a default: a value if it can be one, else an expression."""
        try:
            return accept(parameter, value)
        except Refused as refused:
            if not isinstance(value, str):
                raise problem(place, refused.wrong, refused.remedy) from refused
            if _is_word(value) and value not in self.known:
                remedy = (
                    suggest(value, [*parameter.special, *self.known])
                    if parameter.is_numeric
                    else refused.remedy
                )
                raise problem(place, refused.wrong, remedy) from refused
        result = self.expression(value, place, parameter.server)
        if isinstance(result, Expression):
            return result
        try:
            return accept(parameter, result)
        except Refused as refused:
            raise problem(place, f"`{value}`: {refused.wrong}", refused.remedy) from refused

    def derived(self, draft: Draft) -> Derived:
        """Return the derived setting."""
        given = draft.fields
        value = self.parse(given["value"], draft.at("value"), draft.server)
        names = ", ".join(sorted(value.names))
        return Derived(
            name=draft.name,
            server=draft.server,
            value=value,
            kind=given.get("kind", "int"),
            least=self._limit_in_force(draft),
            when=self.condition(draft),
            internal=given.get("internal", False),
            unit=given.get("unit", ""),
            why=given.get("why", ""),
            source=given.get("source") or (f"follows from {names}" if names else ""),
            also=given.get("also", ""),
        )

    def figure(self, draft: Draft) -> Figure:
        """Return one figure of a server's capacity."""
        given = draft.fields
        return Figure(
            server=draft.server,
            name=draft.name,
            counts=given.get("counts") or LABELS.get(draft.name, draft.name.replace("_", " ")),
            value=self.parse(given["value"], draft.at("value"), draft.server),
            why=given.get("why", ""),
            source=given.get("source", ""),
        )

    def _limit_in_force(self, draft: Draft) -> int | float | None:
        """Return what an installed service is not to be lowered to less than."""
        current = self.current.get(draft.name)
        is_kept = self.installed and draft.fields.get("limit", False)
        return current if is_kept and isinstance(current, int | float) else None


def _is_word(value: str) -> bool:
    return value.replace("-", "_").isidentifier()


def changed(parameter: Parameter, **fields: Any) -> Parameter:  # noqa: ANN401 - any field
    """Return the parameter with other fields."""
    return replace(parameter, **fields)


def _origin(bound: Scalar, draft: Draft, key: str) -> str:
    written = draft.fields[key]
    return f"{bound}" if written == bound else f"{bound} (`{written}`)"


def _read_step(draft: Draft, kind: str) -> int | float | None:
    step = draft.fields.get("step")
    _refuse_fields(draft, kind)
    if step is not None and kind == "int" and step != int(step):
        raise problem(
            draft.at("step"), f"step {step} of an int is not whole", "Write a whole step, or kind: float"
        )
    return int(step) if step is not None and kind == "int" else step


def _refuse_fields(draft: Draft, kind: str) -> None:
    wrong: tuple[str, ...] = ("choices",) if kind != "categorical" else ()
    if kind in {"categorical", "bool"}:
        wrong += _ONLY_FOR_NUMBERS
    for key in wrong:
        if key in draft.fields:
            raise problem(
                draft.at(key), f"a parameter of kind {kind} has no {key}", f"Remove {key} or correct kind"
            )


def _read_special(draft: Draft, kind: str) -> dict[str, Scalar]:
    special: Mapping[str, Scalar] = draft.fields.get("special", {})
    seen: dict[str, str] = {}
    for label, stored in special.items():
        here = draft.at("special", label)
        if label in {NUMBER, CURRENT} or as_number(label) is not None:
            raise problem(
                here, f"{quote(label)} cannot be the label of a special value", "Use a word, as off"
            )
        if isinstance(stored, bool):
            raise problem(here, f"the special value {stored} is neither number nor text", "Quote it")
        if str(stored) in seen:
            raise problem(
                here,
                f"the special value {quote(stored)} is that of {seen[str(stored)]} already",
                "Keep one of them",
            )
        if isinstance(stored, float) and kind == "int":
            raise problem(
                here, f"the special value {stored} of an int is not whole", "Write a whole number or a text"
            )
        seen[str(stored)] = label
    return dict(special)


def _read_choices(draft: Draft, kind: str) -> tuple[Scalar, ...]:
    if kind == "bool":
        return (False, True)
    if kind != "categorical":
        return ()
    choices: list[Scalar] = draft.fields.get("choices", [])
    place = draft.at("choices")
    if not choices:
        raise problem(place, "a categorical parameter has no choices", "Add `choices: [a, b]`")
    for number, choice in enumerate(choices):
        if isinstance(choice, bool):
            raise problem(place, f"the choice {choice} is a boolean", "Quote it, or use kind: bool")
        if str(choice) in map(str, choices[:number]):
            raise problem(place, f"the choice {quote(choice)} is given twice", "Keep one of them")
    return tuple(choices)


def with_current(parameter: Parameter, current: Scalar | None) -> Parameter | None:
    """Return the parameter with what is in force as default; the range makes room for it.

    A value off the grid, or outside a range that cannot be stretched, becomes the special value `current`.
    """
    if current is None:
        return None
    if parameter.kind == "categorical" and str(current) not in map(str, parameter.choices):
        return changed(parameter, default=current, choices=(*parameter.choices, current))
    try:
        value = accept(parameter, current)
    except Refused:
        return None
    number = (
        as_number(value) if parameter.is_numeric and find_special(parameter.special, value) is None else None
    )
    low, high = parameter.low, parameter.high
    if number is None or isinstance(low, Expression) or isinstance(high, Expression):
        return changed(parameter, default=value)
    number = settle_number(number, parameter)
    if not is_on_grid(number, low, parameter) or (parameter.log and number <= 0):
        return changed(parameter, default=number, special={**parameter.special, CURRENT: number})
    return changed(parameter, default=number, low=min(low, number), high=max(high, number))
