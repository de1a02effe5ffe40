"""Reads the entries of a space as written into what they are on this host."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuner.ports import Scalar
from tuner.space.expressions import LOAD_FACTS, Evaluator, Expression, bind_load, parse
from tuner.space.parameters import (
    CURRENT,
    NUMBER,
    Bound,
    Derived,
    Figure,
    Parameter,
    ParameterConstraint,
)
from tuner.space.problems import Place, Refused, problem, quote, suggest
from tuner.space.rules import LABELS
from tuner.space.sources import Draft
from tuner.space.values import (
    accept,
    accept_at,
    as_flag,
    as_number,
    find_special,
    format_number,
    is_on_grid,
    round_bounds,
    round_number,
)

_SIZE = re.compile(r"[0-9.]+ ?[A-Za-z%]+")
_NUMERIC_FIELDS = ("low", "high")
_ONLY_FOR_NUMBERS = ("low", "high", "scale", "step", "special", "unit")
_AS_WRITTEN = ("unit", "apply", "risk", "internal", "why", "source", "also", "acts_source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads entries for one host: expressions over facts alone become values, others are parsed."""

    known: frozenset[str]
    """Names that expressions may use."""
    facts: Mapping[str, Scalar]
    evaluators: Mapping[str, Evaluator]
    """By server."""
    current: Mapping[str, Scalar]
    installed: bool
    load: Mapping[str, Scalar]
    """Facts of the load, as far as they are known."""

    def expression(self, value: Scalar, place: Place, server: str) -> Scalar | Expression:
        """Return a number as it is, and the value of an expression that uses facts alone."""
        if not isinstance(value, str):
            return value
        if _SIZE.fullmatch(value.strip()):
            raise problem(
                place,
                f"{quote(value)} is not a number",
                "Write only the number, counted in the `unit:` of the parameter",
            )
        expression = self.parse(value, place, server)
        return expression.evaluate(self.facts) if expression.names <= self.facts.keys() else expression

    def parse(self, value: Scalar, place: Place, server: str) -> Expression:
        """Return the parsed expression."""
        return parse(str(value), place, self.known, self.evaluators[server])

    def _condition(self, draft: Draft) -> Expression | None:
        """Return `when` parsed; a plain true or false is one too."""
        when = draft.fields.get("when")
        if when is None:
            return None
        flag = as_flag(when)
        return self.parse(str(flag) if flag is not None else when, draft.at("when"), draft.server)

    def _acting(self, draft: Draft) -> Expression | None:
        """Return `acts_when` parsed, with what is known of the load in it."""
        written = draft.fields.get("acts_when")
        if written is None:
            return None
        place = draft.at("acts_when")
        if "acts_source" not in draft.fields:
            raise problem(place, "`acts_when:` has no source", "Add `acts_source:`")
        flag = as_flag(written)
        text = str(flag) if flag is not None else str(written)
        known = self.known | frozenset(LOAD_FACTS)
        return bind_load(parse(text, place, known, self.evaluators[draft.server]), self.load)

    def fact_value(self, parameter: Parameter, value: Scalar, place: Place) -> Scalar:
        """Return a value of a parameter that is written out, or an expression over facts alone."""
        try:
            return accept(parameter, value)
        except Refused as refused:
            if not isinstance(value, str) or not parameter.is_numeric:
                raise problem(place, refused.wrong, refused.remedy) from refused
        result = self.expression(value, place, parameter.server)
        if isinstance(result, Expression):
            raise problem(place, f"`{value}` uses other parameters", "Use only facts here")
        return accept_at(parameter, result, place, f"`{value}`: ")

    def parameter(self, draft: Draft, pinned: str, held: tuple[Scalar, Place] | None) -> Parameter | None:
        """Return the parameter; None when its active value is asked for and not known."""
        for key, remedy in (
            ("kind", "Add `kind: int`, float, categorical or bool"),
            ("default", "Add `default:`, the value without tuning"),
        ):
            if key not in draft.fields:
                raise problem(draft.place, f"the key {key} is missing", remedy)
        kind = draft.fields["kind"]
        _refuse_fields(draft, kind)
        blank = Parameter(
            name=draft.name,
            server=draft.server,
            kind=kind,
            default=0,
            log=draft.fields.get("scale") == "log",
            step=_read_step(draft, kind),
            special=_read_special(draft, kind),
            choices=_read_choices(draft, kind),
            when=self._condition(draft),
            pinned=pinned,
            acts_when=self._acting(draft),
            **_copy(draft, *_AS_WRITTEN),
        )
        ranged = self._with_bounds(blank, draft) if blank.is_numeric else blank
        value, place = held or (draft.fields["default"], draft.at("default"))
        is_labelled = CURRENT in ranged.special or CURRENT in ranged.choices
        if (value == CURRENT and not is_labelled) or (self.installed and self._is_found(draft, held)):
            return _with_current(ranged, self.current.get(draft.name))
        return replace(ranged, default=self._default(ranged, value, place))

    def _is_found(self, draft: Draft, held: object) -> bool:
        """Return whether the default is what the installed service has; it may not know an internal one."""
        return held is None and (draft.name in self.current or not draft.fields.get("internal", False))

    def _with_bounds(self, parameter: Parameter, draft: Draft) -> Parameter:
        for key in _NUMERIC_FIELDS:
            if key not in draft.fields:
                remedy = f"Add `{key}:`, a number or an expression"
                raise problem(draft.place, f"the key {key} is missing", remedy)
        low, high = (self._bound(draft, key) for key in _NUMERIC_FIELDS)
        if not isinstance(low, Expression) and parameter.log and low <= 0:
            raise problem(
                draft.at("low"),
                f"the scale is log and low is {format_number(low)}",
                "Set low above 0, and write 0 as a special value: `special: {off: 0}`",
            )
        if not isinstance(low, Expression) and not isinstance(high, Expression):
            least, most = round_bounds(low, high, parameter.kind)
            if least > most:
                refined = draft.at("high").source != draft.place.source
                raise problem(
                    draft.at("high" if refined else "low"),
                    f"low {_origin(low, draft, 'low')} is above high {_origin(high, draft, 'high')}",
                    "Correct `low:` or `high:`",
                )
            low, high = least, most
        return replace(parameter, low=low, high=high)

    def _bound(self, draft: Draft, key: str) -> Bound:
        bound = self.expression(draft.fields[key], draft.at(key), draft.server)
        if isinstance(bound, (bool, str)):
            raise problem(draft.at(key), f"{quote(bound)} is not a number", "Write a number or an expression")
        return bound

    def _default(self, parameter: Parameter, value: Scalar, place: Place) -> Scalar | Expression:
        """Return a default: a value if it can be one, else an expression."""
        try:
            return accept(parameter, value)
        except Refused as refused:
            is_word = isinstance(value, str) and value.replace("-", "_").isidentifier()
            if not isinstance(value, str) or (is_word and value not in self.known):
                remedy = refused.remedy
                if isinstance(value, str) and parameter.is_numeric:
                    remedy = suggest(value, [*parameter.special, *self.known])
                raise problem(place, refused.wrong, remedy) from refused
        result = self.expression(value, place, parameter.server)
        return (
            result if isinstance(result, Expression) else accept_at(parameter, result, place, f"`{value}`: ")
        )

    def derived(self, draft: Draft) -> Derived:
        """Return the derived setting."""
        value = self.parse(draft.fields["value"], draft.at("value"), draft.server)
        given = _copy(draft, "kind", "internal", "unit", "why", "source", "also")
        if value.names:
            given.setdefault("source", f"derived from {', '.join(sorted(value.names))}")
        in_force = self.current.get(draft.name)
        is_limit = bool(draft.fields.get("limit", False))
        return Derived(
            name=draft.name,
            server=draft.server,
            value=value,
            least=in_force if self.installed and is_limit and isinstance(in_force, int | float) else None,
            is_limit=is_limit,
            when=self._condition(draft),
            **given,
        )

    def constraint(self, draft: Draft) -> ParameterConstraint:
        """Return a rule between parameters."""
        rule = self.parse(draft.fields["rule"], draft.at("rule"), draft.server)
        return ParameterConstraint(rule=rule, why=draft.fields.get("why", ""))

    def figure(self, draft: Draft) -> Figure:
        """Return one figure of a server's capacity."""
        counts = draft.fields.get("counts") or LABELS.get(draft.name, draft.name.replace("_", " "))
        value = self.parse(draft.fields["value"], draft.at("value"), draft.server)
        return Figure(server=draft.server, name=draft.name, counts=counts, value=value)


def _copy(draft: Draft, *keys: str) -> dict[str, Any]:
    """Return those fields that the draft gives, as written."""
    return {key: draft.fields[key] for key in keys if key in draft.fields}


def _origin(bound: Scalar, draft: Draft, key: str) -> str:
    written = draft.fields[key]
    return f"{bound}" if written == bound else f"{bound} (`{written}`)"


def _refuse_fields(draft: Draft, kind: str) -> None:
    is_numeric = kind not in {"categorical", "bool"}
    for key in (*(() if kind == "categorical" else ("choices",)), *(() if is_numeric else _ONLY_FOR_NUMBERS)):
        if key in draft.fields:
            wrong = f"a parameter of kind {kind} has no {key}"
            raise problem(draft.at(key), wrong, f"Remove {key} or correct kind")


def _read_step(draft: Draft, kind: str) -> int | float | None:
    step: int | float | None = draft.fields.get("step")
    if step is None or kind != "int":
        return step
    if step != int(step):
        wrong = f"step {step} of an int is not whole"
        raise problem(draft.at("step"), wrong, "Write a whole step, or kind: float")
    return int(step)


def _read_special(draft: Draft, kind: str) -> dict[str, Scalar]:
    special: Mapping[str, Scalar] = draft.fields.get("special", {})
    seen: dict[str, str] = {}
    for label, stored in special.items():
        fault = None
        if label in {NUMBER, CURRENT} or as_number(label) is not None:
            fault = f"{quote(label)} cannot be the label of a special value", "Use a word, as off"
        elif isinstance(stored, bool):
            fault = f"the special value {stored} is neither number nor text", "Quote it"
        elif str(stored) in seen:
            wrong = f"the special value {quote(stored)} is given twice, first as {seen[str(stored)]}"
            fault = wrong, "Give each special value once"
        elif isinstance(stored, float) and kind == "int":
            fault = f"the special value {stored} of an int is not whole", "Write a whole number or a text"
        if fault:
            raise problem(draft.at("special", label), *fault)
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
            raise problem(place, f"the choice {choice} is a boolean", "Quote the choice, or use kind: bool")
        if str(choice) in map(str, choices[:number]):
            raise problem(place, f"the choice {quote(choice)} is given twice", "Give each choice once")
    return tuple(choices)


def _with_current(parameter: Parameter, current: Scalar | None) -> Parameter | None:
    """Return the parameter with what is active as default; the range makes room for it.

    A value off the grid, or outside a range that cannot be stretched, becomes the special value `current`.
    """
    if current is None:
        return None
    if parameter.kind == "categorical" and str(current) not in map(str, parameter.choices):
        return replace(parameter, default=current, choices=(*parameter.choices, current))
    try:
        value = accept(parameter, current)
    except Refused:
        return None
    is_apart = not parameter.is_numeric or find_special(parameter.special, value) is not None
    number = None if is_apart else as_number(value)
    low, high = parameter.low, parameter.high
    if number is None or isinstance(low, Expression) or isinstance(high, Expression):
        return replace(parameter, default=value)
    number = round_number(number, parameter)
    if not is_on_grid(number, low, parameter) or (parameter.log and number <= 0):
        return replace(parameter, default=number, special={**parameter.special, CURRENT: number})
    return replace(parameter, default=number, low=min(low, number), high=max(high, number))
