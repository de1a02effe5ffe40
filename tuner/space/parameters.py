"""Records of a search space: parameters, derived settings, constraints, presets, dimensions, facts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, get_type_hints

from pydantic import TypeAdapter

from tuner.ports import Scalar
from tuner.space.expressions import Expression

ParameterKind = Literal["int", "float", "categorical", "bool"]
Risk = Literal["safe", "semantic", "risky"]
Apply = Literal["live", "reload", "restart"]
Direction = Literal["up", "down"]
Bound = int | float | Expression

SAFE = "safe"
"""The risk that no study has to allow."""
MOST_ODDS = 20
NOT_ALLOWED = "`allow:` does not name"
"""Part of the reason why a parameter is pinned that a study has to allow."""
CURRENT = "current"
"""Default that means: what is active on the host."""
SPECIAL_SUFFIX = ":special"
NUMBER = "number"
"""Choice of a special dimension that means: the value is within the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFacts:
    """What a space needs to know of the host."""

    names: Mapping[str, Scalar]
    """Facts for expressions: cores (CPUs that may be used), online_cores (those that a server counts; as many
    as cores when left out), memory_mib, connections, open_files_max (fs.nr_open), somaxconn (of the network
    namespace in which servers listen)."""
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Server → version; a server that is not here counts as the newest."""
    current: Mapping[str, Scalar] = field(default_factory=dict)
    """Active values before anything is changed, by parameter name."""
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Parameter → why its server leaves it alone on this host."""
    exists: Callable[[str], bool] = lambda _path: True
    """Whether a path is on the host."""
    sandbox: bool = True
    """Whether a private instance is tuned, which touches nothing that is one value for the host."""
    loopback: bool = True
    """Whether the load comes over the loopback device."""
    installed: bool = False
    """Whether an installed service is tuned: then what is active is the default of every parameter, and one
    whose active value is not known is left alone."""
    load: Mapping[str, Scalar] = field(default_factory=dict)
    """Facts of the load for `acts_when`, of those that LOAD_FACTS names; what is not known is not there, and
    what hangs on it is taken to act."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """Server → the protocol in which it asks the private server that it passes requests to."""


def facts_to_json(facts: SpaceFacts, paths: Mapping[str, bool]) -> dict[str, Any]:
    """Return facts as JSON values: a study is read again where its host cannot be reached.

    Args:
        facts: of the host.
        paths: what `facts.exists` has answered, by path.
    """
    kept = {each.name: getattr(facts, each.name) for each in fields(facts) if each.name != "exists"}
    return {**kept, "exists": dict(paths)}


def facts_from_json(data: Mapping[str, Any]) -> SpaceFacts:
    """Return the facts that `facts_to_json` wrote; a path that was not asked for counts as there.

    Raises:
        ValueError: they hold what no tuner writes.
        KeyError: a part of them is missing, or nobody knows it.
    """
    read = {name: _forms()[name].validate_python(value) for name, value in data.items()}
    paths = read["exists"]
    return SpaceFacts(**{**read, "exists": lambda path: paths.get(path, True)})


@cache
def _forms() -> Mapping[str, TypeAdapter[Any]]:
    """Return the form of each fact among JSON values."""
    forms = get_type_hints(SpaceFacts) | {"exists": Mapping[str, bool]}
    return {name: TypeAdapter(form) for name, form in forms.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What a setting has whether it is tuned or follows from others."""

    name: str
    server: str
    unit: str = ""
    when: Expression | None = None
    """Condition under which it exists."""
    internal: bool = False
    """Whether it only builds other settings and is not written itself."""
    why: str = ""
    source: str = ""
    also: str = ""
    """What else a change does for users or operators."""
    identifier: str = field(init=False)
    """Its name in expressions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identifier", identifier(self.name))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Return what depends on facts and other settings."""
        written = (getattr(self, key, None) for key in ("low", "high", "default", "value", "when"))
        return tuple(each for each in written if isinstance(each, Expression))

    @property
    def depends_on(self) -> frozenset[str]:
        """Return the identifiers and facts that its expressions use."""
        return frozenset().union(*(expression.names for expression in self.expressions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What experts know of one parameter: which way a change is likely to help, and how likely."""

    odds: float
    """So many to one that it helps; MOST_ODDS at most, for no hint is certain."""
    value: Scalar | None = None
    """The value that is likely to be better; in a dimension, a coordinate of it."""
    direction: Direction | None = None
    """The side of the default that is likely to be better; this or a value is given."""
    source: str = ""

    @property
    def chance(self) -> float:
        """Return the probability that it is right."""
        return self.odds / (1 + self.odds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(_Setting):
    """One setting that may be tuned, as it is on this host."""

    kind: ParameterKind
    default: Scalar | Expression
    low: Bound = 0
    high: Bound = 0
    log: bool = False
    """Whether it is searched on a logarithmic scale."""
    step: int | float | None = None
    """Distance between two values, counted from low; None for every number of its kind."""
    special: Mapping[str, Scalar] = field(default_factory=dict)
    """Label → stored value, apart from the range."""
    choices: tuple[Scalar, ...] = ()
    apply: Apply = "restart"
    """What a change needs to be active."""
    risk: Risk = "safe"
    """What a study has to allow before it is tuned."""
    pinned: str = ""
    """Why it is held at its default and has no dimension; empty when it is tuned."""
    acts_when: Expression | None = None
    """Condition under which a change of it can be felt; None where it always can, or nobody knows better."""
    acts_source: str = ""
    """Where that is known from."""
    hint: Hint | None = None
    """What the search leans on; None where nobody knows anything, or the study wants no hints."""
    is_told: bool = False
    """Whether the study file gives the hint: it counts until the first trial that follows it refutes it."""
    own_hint: Hint | None = None
    """What the space itself says, for then."""
    inert: str = ""
    """Why it cannot act under the load; it is pinned for that, unless the study names it."""

    def acts(self, scope: Mapping[str, object]) -> bool:
        """Return whether it can act beside the values chosen so far; what cannot be told counts as yes."""
        return self.acts_when is None or self.acts_when.decides(scope) is not False

    @property
    def follows(self) -> frozenset[str]:
        """Return everything that has to be settled before it."""
        return self.depends_on | (self.acts_when.names if self.acts_when else frozenset())

    @property
    def is_numeric(self) -> bool:
        return self.kind in {"int", "float"}

    @property
    def has_fixed_bounds(self) -> bool:
        return not isinstance(self.low, Expression) and not isinstance(self.high, Expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(_Setting):
    """A setting that follows from others."""

    value: Expression
    kind: Literal["int", "float"] = "int"
    least: int | float | None = None
    """Of a limit that has to be high enough: what an installed service has already, and keeps."""
    is_limit: bool = False
    """Whether it only has to be high enough, so that nobody needs to lower it."""

    @property
    def follows(self) -> frozenset[str]:
        """Return everything that has to be settled before it."""
        return self.depends_on


Item = Parameter | Derived


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterConstraint:
    """A rule between parameters. It holds where one of them is inactive."""

    rule: Expression
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of what a server can hold at once."""

    server: str
    name: str
    counts: str
    """What is counted, as it stands behind the number."""
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Values known from elsewhere."""

    name: str
    title: str
    source: str
    values: Mapping[str, Scalar]
    """What is left of the preset on this host; the rest of the configuration is at its default."""
    adjusted: Mapping[str, str] = field(default_factory=dict)
    """Parameter → why its value is not used as written."""
    is_tried: bool = True
    """Whether it is tried before the search; otherwise it waits to be asked for by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One coordinate of a point, fixed over the study.

    A parameter whose bounds depend on others has the position within its bounds as dimension (float, 0 to 1),
    so that every point is a valid configuration.
    """

    name: str
    parameter: str
    kind: Literal["int", "float", "categorical"]
    low: int | float = 0
    high: int | float = 0
    log: bool = False
    step: int | float | None = None
    choices: tuple[Scalar, ...] = ()
    is_position: bool = False
    hint: Hint | None = None
    """What is known of this coordinate; of a parameter with special values both dimensions may have one."""
    is_told: bool = False
    """Whether the study file says it, of this coordinate or of its parameter's other one."""
    own_hint: Hint | None = None
    """What the space itself says of it, where the study file tells something else."""


def identifier(name: str) -> str:
    """Return the name of a parameter as it stands in expressions: `tcp_wmem[1]` is tcp_wmem_1."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name.replace("]", ""))
