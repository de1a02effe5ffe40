"""A finished study as a corpus keeps it: no name of a host, no address, no path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

VERSION: Final = 1
"""Of the form below."""
MOST_TRIED = 2000
MOST_NAMES = 500
TEXT = r"^[A-Za-z0-9 _.,:;()+=<>%#*\[\]-]{0,100}$"
"""Neither a slash nor an at sign: no path, no address, no account."""
MOST_NUMBER = 10**18

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.\[\]-]{0,79}$")]
Text = Annotated[str, Field(pattern=TEXT)]
Value = (
    bool
    | Annotated[int, Field(ge=-MOST_NUMBER, le=MOST_NUMBER)]
    | Annotated[float, Field(ge=-MOST_NUMBER, le=MOST_NUMBER)]
    | Text
)
Values = Annotated[Mapping[Name, Value], Field(max_length=MOST_NAMES)]
LogGain = Annotated[float, Field(ge=-20, le=20)]
Deviation = Annotated[float, Field(gt=0, le=20)]
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)
"""A file comes from strangers: nothing is guessed, nothing is left over, every number is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The machine and the load of a study, without their names."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    cpu: Text
    cores: Annotated[int, Field(ge=1, le=2**16)]
    memory_mib: Annotated[int, Field(ge=1, le=2**40)]
    kernel: Text
    """Its version, without what a distribution or a company adds."""
    co_located: bool
    servers: Annotated[Mapping[Name, Text], Field(max_length=20)]
    """Server → version."""
    workload: Values
    """Facts of the load, by name; what is not known is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One configuration that a study tried."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    changes: Values
    """Parameter → value, where it differs from the study's default."""
    log_gain: LogGain | None
    """Mean log gain over the default of its trials; None where none of them was a measurement."""
    deviation: Deviation
    """Standard deviation of that."""
    starts: Annotated[int, Field(ge=1, le=10**6)]
    is_feasible: bool
    """Whether it rather kept the study's constraints than not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What a study confirmed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    changes: Values
    log_gain: LogGain
    low: LogGain
    high: LogGain
    """Ends of the 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStudy:
    """What one finished study found, and where."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    version: Literal[1] = VERSION
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    """Of the study alone; it tells nobody what the study was called."""
    tuner: Text
    """Version of the tuner that wrote it."""
    finished: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day of its last trial."""
    metric: Text
    surroundings: Surroundings
    defaults: Values
    """Parameter → default, of all that were searched or follow from none."""
    tried: Annotated[tuple[Tried, ...], Field(max_length=MOST_TRIED)]
    shipped: Shipped | None = field(default=None)
    """None where nothing beat the default."""
