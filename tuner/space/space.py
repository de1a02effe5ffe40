"""A search space on one host: from points to configurations and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.ports import Config, Scalar
from tuner.space.dimensions import coordinates_of, lay_out, read_point, value_at
from tuner.space.hints import lay_out_hints
from tuner.space.parameters import (
    SAFE,
    Derived,
    Dimension,
    Item,
    Parameter,
    ParameterConstraint,
    Preset,
)
from tuner.space.problems import Refused, problem, quote, suggest
from tuner.space.rounding import TOLERANCE, round_for_people
from tuner.space.rules import (
    Growth,
    Rules,
    Scope,
    capacity_at,
    default_value,
    describe_capacity,
    evaluate_bounds,
    find_growth,
    guard_by,
    name_shortfalls,
)
from tuner.space.values import (
    accept,
    accept_at,
    as_number,
    fault_in_range,
    find_special,
    keep_within,
    show_value,
)

UNSET: Scalar = ""
"""Stands as the old value of a derived setting that the default configuration does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Ordered parameters of one or more servers, with what follows from them and what binds them."""

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    """Those that this host has, tuned or pinned."""
    derived: tuple[Derived, ...]
    presets: tuple[Preset, ...]
    left_out: Mapping[str, str]
    """Name → why it is not there on this host."""
    dead: Mapping[str, str]
    """Settings that old guides still give → what became of them."""
    rules: Rules = field(repr=False)
    unguarded: "Space | None" = field(default=None, repr=False)
    """The space without the guard of its capacity; None where this one has none."""
    allows_less: bool = False
    """Whether a configuration may hold less than the default."""
    dimensions: tuple[Dimension, ...] = field(init=False)
    _dimension: Mapping[str, Dimension] = field(init=False, repr=False)
    _item: Mapping[str, Item] = field(init=False, repr=False)
    _encoded: dict[tuple[object, ...], dict[str, Scalar]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Points of the configurations that were encoded before: models ask for the same ones again and again."""
    _default: dict[str, Scalar] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Once it was asked for."""
    _changed: dict[tuple[object, ...], dict[str, tuple[Scalar, Scalar]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """What the configurations change that were looked at before, derived settings left out."""

    def __post_init__(self) -> None:
        dimensions = lay_out_hints(self.parameters, lay_out(self.parameters), self._bounds_at_default)
        items: tuple[Item, ...] = (*self.parameters, *self.derived)
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "_dimension", {dimension.name: dimension for dimension in dimensions})
        object.__setattr__(self, "_item", {item.name: item for item in items})

    def _bounds_at_default(self, parameter: Parameter) -> tuple[float, float]:
        if parameter.has_fixed_bounds:
            return evaluate_bounds(parameter, {})
        return evaluate_bounds(parameter, self.rules.scope(self.default()))

    @property
    def name(self) -> str:
        return " + ".join(self.names)

    @property
    def constraints(self) -> tuple[ParameterConstraint, ...]:
        return self.rules.constraints

    @property
    def may_change(self) -> frozenset[str]:
        """Return the settings that trials may write: those that are tuned, and what follows from them."""
        moved: dict[str, Item] = {each.identifier: each for each in self.parameters if not each.pinned}
        for item in self.rules.order:
            if not item.depends_on.isdisjoint(moved):
                moved[item.identifier] = item
        return frozenset(item.name for item in moved.values() if not item.internal)

    @property
    def inert(self) -> dict[str, str]:
        """Return name → why it cannot act under the load; such parameters are not searched."""
        return {each.name: each.inert for each in self.parameters if each.inert and each.pinned}

    @property
    def inert_but_tuned(self) -> dict[str, str]:
        """Return name → why it cannot act, of those that are searched because the study names them."""
        return {each.name: each.inert for each in self.parameters if each.inert and not each.pinned}

    def decode(self, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the configuration at a point; a dimension that the point lacks is at its default.

        What cannot act beside the other values stays at its default.
        It is valid but for declared constraints, which `violations` tells. Raises UsageError for an unknown
        dimension or a coordinate outside it.
        """
        return self.settle_at(read_point(self._dimension, point))

    def settle_at(self, point: Mapping[str, Scalar], *, watched: bool = False) -> dict[str, Scalar]:
        """Return the configuration at a point of plain values; see `Rules.settle` for `watched`."""

        def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar | None:
            if parameter.pinned or not parameter.acts(scope):
                return None
            return value_at(parameter, self._dimension, point, low, high)

        return self.rules.settle(pick, watched=watched)

    def encode(self, config: Config) -> dict[str, Scalar]:
        """Return the point of a configuration: decoding it gives a valid configuration again.

        Values of pinned parameters have no coordinate and are lost.
        """
        key = _make_key(config)
        if key not in self._encoded:
            self._encoded[key] = self._encode(config)
        return dict(self._encoded[key])

    def _encode(self, config: Config) -> dict[str, Scalar]:
        point: dict[str, Scalar] = {}
        for parameter in self.parameters:  # where those lie that turn out to be inactive
            point.update(coordinates_of(parameter, self._dimension, None, 0, 0))

        def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar:
            if parameter.name in config:
                value = accept_at(parameter, config[parameter.name], parameter.name)
            else:
                value = default_value(parameter, low, high, scope)
            point.update(coordinates_of(parameter, self._dimension, value, low, high))
            return value

        self.rules.settle(pick)
        return {dimension.name: point[dimension.name] for dimension in self.dimensions}

    def complete(self, values: Mapping[str, Scalar], *, fit: bool = False) -> dict[str, Scalar]:
        """Return the configuration with these values; what is not given is at its default.

        Raises UsageError for an unknown name, a value of the wrong type or out of range, one whose parameter
        is inactive, or a broken constraint. With `fit`, values out of range are pulled into it, inactive and
        derived ones are dropped, and constraints are left to `violations`: a part of a valid configuration
        always gives a configuration that way.
        """
        for name in values:
            if name not in self._item:
                raise self._unknown(name)

        def pick(parameter: Parameter, low: float, high: float, _scope: Scope) -> Scalar | None:
            if parameter.name not in values:
                return None
            value = accept_at(parameter, values[parameter.name], parameter.name)
            fault = fault_in_range(parameter, value, low, high)
            if fault is not None and not fit:
                raise problem(parameter.name, fault.wrong, fault.remedy)
            return keep_within(parameter, value, low, high)

        config = self.rules.settle(pick)
        if not fit:
            self._refuse_what_does_not_follow(values, config)
        return config

    def round(self, config: Config) -> dict[str, Scalar]:
        """Return a valid configuration with the numbers that a person would write, as far as rules allow.

        Defaults, special values and numbers that a hint or a preset names stay as they are.
        """
        tried = (self._round(config, tolerance) for tolerance in (TOLERANCE, 0.0))
        return next((each for each in tried if not self.violations(each)), dict(config))

    def _round(self, config: Config, tolerance: float) -> dict[str, Scalar]:
        chosen = self.changes(config)  # what follows, follows the rounded ones

        def pick(parameter: Parameter, low: float, high: float, _scope: Scope) -> Scalar | None:
            if parameter.name not in chosen:
                return None
            value = config[parameter.name]
            number = as_number(value) if parameter.is_numeric else None
            if number is None or find_special(parameter.special, value) or value in self._known(parameter):
                return value
            rounded = round_for_people(number, parameter, low, high, tolerance=tolerance)
            return keep_within(parameter, rounded, low, high)

        return self.rules.settle(pick)

    def _known(self, parameter: Parameter) -> list[Scalar | None]:
        """Return the values of a parameter that are known from elsewhere."""
        hints = [each.value for each in (parameter.hint, parameter.own_hint) if each is not None]
        return [*hints, *(preset.values.get(parameter.name) for preset in self.presets)]

    def _refuse_what_does_not_follow(self, values: Mapping[str, Scalar], config: Config) -> None:
        for name, value in values.items():
            item = self._item[name]
            if name not in config:
                condition = item.when.text if item.when else ""
                wrong = f"{quote(value)} has no effect, because `{condition}` is false"
                raise problem(name, wrong, "Leave this parameter out")
            if isinstance(item, Derived) and not _is_alike(value, config[name]):
                wrong = (
                    f"{quote(value)} is given, but tuner derives this setting as `{item.value.text}` = "
                    f"{config[name]}"
                )
                raise problem(name, wrong, f"Set {' and '.join(sorted(item.value.names))} instead")
        for sentence in self.rules.broken(config):
            raise problem(self.name, sentence, "Change one of these values")

    def _unknown(self, name: str) -> Exception:
        if name in self.left_out:
            return problem(
                name,
                (f"this parameter is not available on this host: {self.left_out[name]}"),
                "Leave this parameter out",
            )
        if name in self.dead:
            return problem(name, f"this parameter is obsolete: {self.dead[name]}", "Leave this parameter out")
        return problem(name, f"{self.name} has no such parameter", suggest(name, self._item))

    def default(self) -> dict[str, Scalar]:
        """Return the configuration in which nothing is tuned."""
        if not self._default:
            self._default.update(self.rules.settle(default_value))
        return dict(self._default)

    def violations(self, config: Config) -> tuple[str, ...]:
        """Return a sentence for everything that makes a configuration invalid."""
        found: list[str] = [
            f"{name}: {self.name} has no such parameter" for name in config if name not in self._item
        ]

        def pick(parameter: Parameter, low: float, high: float, _scope: Scope) -> Scalar | None:
            if parameter.name not in config:
                found.append(f"{parameter.name}: there is no value")
                return None
            try:
                value = accept(parameter, config[parameter.name])
            except Refused as refused:
                found.append(f"{parameter.name}: {refused.wrong}")
                return None
            fault = fault_in_range(parameter, value, low, high)
            if fault is not None:
                found.append(f"{parameter.name}: {fault.wrong}")
            return value

        settled = self.rules.settle(pick)
        for name, value in config.items():
            if name in self._item and name not in settled:
                found.append(f"{name}: this parameter is inactive and has the value {quote(value)}")
            elif isinstance(self._item.get(name), Derived) and settled[name] != value:
                found.append(
                    f"{name}: {quote(value)} differs from {quote(settled[name])}, which its expression gives"
                )
        found += [
            f"{item.name}: there is no value" for item in self.derived if item.name in settled.keys() - config
        ]
        return (*found, *self.rules.broken(settled))

    def capacity(self, config: Config) -> dict[str, dict[str, int | float]]:
        """Return what the servers hold at once with a configuration: server → figure → number."""
        return capacity_at(self.rules.figures, self.rules.scope(config))

    def describe_capacity(self, config: Config) -> dict[str, str]:
        """Return server → what it holds at once, in one line."""
        return describe_capacity(self.rules.figures, self.capacity(config))

    def lacks(self, config: Config) -> tuple[str, ...]:
        """Return a sentence for everything in which a configuration has less capacity than the default."""
        guard = guard_by(self.capacity(self.default()), self.rules.facts)
        return name_shortfalls(self.rules.figures, self.capacity(config), guard)

    def grows(self, config: Config) -> tuple[Growth, ...]:
        """Return each server that takes more than twice the default's memory, and which setting takes it."""
        chosen = self.chosen(config)
        kept = {
            name: {each: value for each, value in chosen.items() if each != name}
            for name in chosen
            if not self._item[name].internal
        }
        reverted = {name: self.capacity(self.complete(each, fit=True)) for name, each in kept.items()}
        return find_growth(self.capacity(self.default()), self.capacity(config), reverted)

    def open(self) -> "Space":
        """Return the space in which a configuration may hold less than the default."""
        return self.unguarded or self

    def shipped(self, config: Config) -> dict[str, tuple[Scalar, Scalar]]:
        """Return name → (default, value) for every setting that is written otherwise than by default.

        A default that depends on a choice is left to the server where it cannot act under the load.
        """
        chosen, inert = self.changes(config), self.inert
        return {
            name: pair
            for name, pair in self.changes(config, derived=True).items()
            if not self._item[name].internal and pair[0] != pair[1]
            if name in chosen or name not in inert
        }

    def also(self, name: str) -> str:
        """Return what else a change of a setting does for users or operators, and its risk; may be empty."""
        item = self._item.get(name)
        if item is None:
            return ""
        risk = item.risk if isinstance(item, Parameter) else SAFE
        return item.also if risk == SAFE else f"Risk: {risk}, as the study allows. {item.also}".strip()

    @property
    def risks(self) -> dict[str, list[str]]:
        """Return risk → what is tuned of it, as far as the study had to allow that."""
        tuned = {dimension.parameter for dimension in self.dimensions}
        found: dict[str, list[str]] = {}
        for each in self.parameters:
            if each.name in tuned and each.risk != SAFE:
                found.setdefault(each.risk, []).append(each.name)
        return found

    def changes(self, config: Config, *, derived: bool = False) -> dict[str, tuple[Scalar, Scalar]]:
        """Return name → (default, value) for every choice that differs from what would hold without it.

        `complete` of these values gives the configuration again. With `derived`, also what merely follows:
        derived settings and defaults that depend on a choice.
        """
        if derived:
            return self._compare(config, derived=True)
        key = _make_key(config)
        if key not in self._changed:
            self._changed[key] = self._compare(config, derived=False)
        return dict(self._changed[key])

    def chosen(self, config: Config) -> dict[str, Scalar]:
        """Return name → value of what a configuration changes by choice."""
        return {name: value for name, (_, value) in self.changes(config).items()}

    def _compare(self, config: Config, *, derived: bool) -> dict[str, tuple[Scalar, Scalar]]:
        unchosen = self.default()
        choices: dict[str, tuple[Scalar, Scalar]] = {}

        def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar:
            untouched = default_value(parameter, low, high, scope)
            value = config.get(parameter.name, untouched)
            start = unchosen.setdefault(parameter.name, untouched)
            if value != untouched:
                choices[parameter.name] = (start, value)
            return value

        settled = self.rules.settle(pick)
        if not derived:
            return {name: choices[name] for name in settled if name in choices}
        followed = {
            name: (unchosen.get(name, UNSET), value)
            for name, value in settled.items()
            if unchosen.get(name, UNSET) != value
        }
        return {name: (choices | followed)[name] for name in settled if name in choices or name in followed}

    def server_of(self, name: str) -> str:
        """Return the server whose setting it is. Raises UsageError for an unknown name."""
        if name not in self._item:
            raise self._unknown(name)
        return self._item[name].server

    def for_server(self, config: Config, server: str) -> dict[str, Scalar]:
        """Return what of a configuration is written to one server."""
        return {
            name: value
            for name, value in config.items()
            if (item := self._item.get(name)) and item.server == server and not item.internal
        }

    def apply_of(self, name: str) -> str:
        """Return what a change of a setting needs: live, reload or restart; the most if it is derived."""
        item = self._item.get(name)
        return item.apply if isinstance(item, Parameter) else "restart"

    def show(self, name: str, value: Scalar) -> str:
        """Return a value as people read it: 64 KiB, off, auto."""
        return show_value(self._item.get(name), value)


def _make_key(config: Config) -> tuple[object, ...]:
    """Return a key of a configuration. True and 1 are equal, and not the same setting."""
    return tuple((name, type(value), value) for name, value in config.items())


def _is_alike(given: Scalar, value: Scalar) -> bool:
    """Return whether a given value, which may be text from a file, is the one that follows."""
    number = None if isinstance(value, bool | str) else as_number(given)
    return given == value if number is None else number == value
