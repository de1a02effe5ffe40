"""What a search space consists of: parameters, derived settings, constraints, presets, dimensions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tuner.ports import Scalar
from tuner.space.expressions import Expression

Kind = Literal["int", "float", "categorical", "bool"]
Risk = Literal["safe", "semantic", "risky"]
Apply = Literal["live", "reload", "restart"]
Bound = int | float | Expression

CURRENT = "current"
"""Default that means: what is in force on the host."""
SPECIAL_SUFFIX = ":special"
NUMBER = "number"
"""Choice of a special dimension that means: the value is within the range."""


def any_path_exists(_path: str) -> bool:
    """Answer for a host that nothing is known of: every path is taken to exist."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFacts:
    """What a space needs to know of the host."""

    names: Mapping[str, Scalar]
    """Facts for expressions: cores, memory_mib, connections, open_files_max (fs.nr_open), somaxconn (of the
    network namespace in which servers listen)."""
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Server → version; a server that is not here counts as the newest."""
    current: Mapping[str, Scalar] = field(default_factory=dict)
    """Values in force before anything is changed, by parameter name."""
    exists: Callable[[str], bool] = any_path_exists
    sandbox: bool = True
    loopback: bool = True
    installed: bool = False
    """Whether an installed service is tuned: then what is in force is the default of every parameter, and one
    whose value in force is not known is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One setting that may be tuned, as it is on this host."""

    name: str
    server: str
    kind: Kind
    default: Scalar | Expression
    low: Bound = 0
    high: Bound = 0
    log: bool = False
    step: int | float | None = None
    unit: str = ""
    special: Mapping[str, Scalar] = field(default_factory=dict)
    """Label → stored value, apart from the range."""
    choices: tuple[Scalar, ...] = ()
    when: Expression | None = None
    risk: Risk = "safe"
    apply: Apply = "restart"
    scope: str = ""
    internal: bool = False
    why: str = ""
    source: str = ""
    also: str = ""
    """What else a change does for users or operators."""
    pinned: str = ""
    """Why it is held at its default and has no dimension; empty when it is tuned."""
    identifier: str = field(init=False)
    """Its name in expressions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identifier", identifier(self.name))

    @property
    def is_numeric(self) -> bool:
        return self.kind in {"int", "float"}

    @property
    def has_fixed_bounds(self) -> bool:
        return not isinstance(self.low, Expression) and not isinstance(self.high, Expression)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Return what depends on other parameters."""
        candidates = (self.low, self.high, self.default, self.when)
        return tuple(candidate for candidate in candidates if isinstance(candidate, Expression))


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A setting that follows from others."""

    name: str
    server: str
    value: Expression
    kind: Literal["int", "float"] = "int"
    least: int | float | None = None
    """Of a limit that has to be high enough: what an installed service has already, and keeps."""
    when: Expression | None = None
    internal: bool = False
    unit: str = ""
    why: str = ""
    source: str = ""
    also: str = ""
    identifier: str = field(init=False)
    """Its name in expressions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identifier", identifier(self.name))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.value,) if self.when is None else (self.value, self.when)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A rule between parameters. It says nothing where one of them is inactive."""

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
    why: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Values known from elsewhere, tried before the search."""

    name: str
    title: str
    source: str
    values: Mapping[str, Scalar]
    """What is left of the preset on this host; the rest of the configuration is at its default."""
    adjusted: Mapping[str, str] = field(default_factory=dict)
    """Parameter → why its value is not used as written."""


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


def identifier(name: str) -> str:
    """Return the name of a parameter as it stands in expressions: `tcp_wmem[1]` is tcp_wmem_1."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name.replace("]", ""))
