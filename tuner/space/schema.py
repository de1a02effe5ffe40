"""The file format of a space: its models, and the JSON Schema for editors.

`python -m tuner.space.schema > search_spaces/space.schema.json` writes the published schema again.
"""

import json
import re
import sys
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from tuner.ports import Scalar
from tuner.space import parameters
from tuner.space.file_format import Flag, make_schema, one_of, read_as
from tuner.space.problems import Refused, quote
from tuner.space.rules import ALLOWANCE
from tuner.space.values import as_number
from tuner.space.yaml_text import Plain

LONGEST_NAME = 100
LONGEST_SCALAR = 1000
_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*(?:\[[0-9]{1,2}\])?")
_VERSION_PATTERN = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")


def _read_scalar(value: object) -> Scalar:
    """Return a number, text or boolean as written; an unquoted number is a number."""
    if isinstance(value, Plain):
        if value in {"", "~", "null"}:
            raise Refused("the value is missing", "Write a value, or leave the key out")
        number = as_number(value)
        return number if number is not None else _shortened(str(value))
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, (int, float)):
        if as_number(value) is None and not isinstance(value, bool):
            raise Refused(f"{value!r} is beyond ±1e18", "Write a smaller number")
        return value
    raise Refused(f"{type(value).__name__} is given where one value belongs", "Write a number or a text")


def _shortened(text: str) -> str:
    if len(text) > LONGEST_SCALAR:
        raise Refused(f"the text has {len(text)} characters", f"Use at most {LONGEST_SCALAR}")
    return text


def _read_text(value: object) -> str:
    """Return words, with line breaks made spaces."""
    if isinstance(value, str) and value.strip():
        return _shortened(" ".join(value.split()))
    what = "the text is missing" if value in (None, "") else f"{quote(value)} is not a text"
    raise Refused(what, "Write a text, and quote a text that looks like a number")


def _read_version(value: object) -> str:
    """Return a version such as '1.21.6', as text."""
    if isinstance(value, str) and _VERSION_PATTERN.fullmatch(value):
        return str(value)
    raise Refused(f"{quote(value)} is not a version in quotes", "Write a version as '1.21.6'")


def _read_expression(value: object) -> Scalar:
    """Return a number or the text of an expression."""
    scalar = _read_scalar(value)
    if isinstance(scalar, str) and not scalar.strip():
        raise Refused("the value is missing", "Write a number or an expression")
    return scalar


def _read_step(value: object) -> int | float:
    """Return a distance above 0."""
    number = as_number(value)
    if number is None or number <= 0:
        raise Refused(f"step {quote(value)} is not a number above 0", "Write the distance between two values")
    return number


def _read_odds(value: object) -> int | float:
    """Return odds from 1 to MOST_ODDS to one."""
    number = as_number(value)
    if number is None or not 1 <= number <= parameters.MOST_ODDS:
        raise Refused(
            f"the odds {quote(value)} are not from 1 to {parameters.MOST_ODDS}",
            "Write how often the hint helps for each time that it does not; reverse a hint that is "
            "mostly wrong",
        )
    return number


def _read_name(value: object) -> str:
    """Return the name of a parameter."""
    if isinstance(value, str) and _NAME_PATTERN.fullmatch(value) and len(value) <= LONGEST_NAME:
        return str(value)
    raise Refused(
        f"{quote(value)} is not a name",
        "Use letters, digits, _ . - and an index in brackets at the end, as a.b[1]",
    )


_NAME = {"type": "string", "pattern": f"^{_NAME_PATTERN.pattern}$"}
_VERSION = {"type": "string", "pattern": f"^{_VERSION_PATTERN.pattern}$"}

Name = Annotated[str, *read_as(_read_name, _NAME)]
Words = Annotated[str, *read_as(_read_text, {"type": "string", "minLength": 1})]
Version = Annotated[str, *read_as(_read_version, _VERSION)]
NumberOrExpression = Annotated[Scalar, *read_as(_read_expression, {"type": ["number", "string"]})]
Condition = Annotated[Scalar, *read_as(_read_expression, {"type": ["string", "boolean"]})]
Value = Annotated[Scalar, *read_as(_read_scalar, {"type": ["number", "string", "boolean"]})]
Step = Annotated[float, *read_as(_read_step, {"type": "number", "exclusiveMinimum": 0})]
Odds = Annotated[
    float, *read_as(_read_odds, {"type": "number", "minimum": 1, "maximum": parameters.MOST_ODDS})
]
KindName = Annotated[str, *one_of(*get_args(parameters.ParameterKind))]
Risk = Annotated[str, *one_of(*get_args(parameters.Risk))]
Apply = Annotated[str, *one_of(*get_args(parameters.Apply))]
Allowance = Annotated[str, *one_of(*get_args(parameters.Risk), ALLOWANCE)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _SettingEntry(_Entry):
    when: Condition | None = Field(
        None, description="Condition under which the setting exists; otherwise it is left out."
    )
    since: Version | None = Field(None, description="First server version that has the setting.")
    until: Version | None = Field(None, description="First server version that no longer has the setting.")
    internal: Flag | None = Field(
        None, description="true: only other settings are derived from it; it is not written itself."
    )
    unit: Words | None = Field(None, description="Unit: bytes, KiB, ms, s … or the things that are counted.")
    why: Words | None = Field(
        None, description="One sentence: effect of the setting on a web server's speed."
    )
    source: Words | None = Field(None, description="Manual page, kernel file or section.")
    also: Words | None = Field(
        None, description="Risk of a change to users or operators; shown wherever the setting ships."
    )


class HintEntry(_Entry):
    """Expert knowledge of a parameter, as odds. Two thirds of the search lean on it."""

    value: Value | None = Field(None, description="The value that is likely to be better.")
    direction: Annotated[str, *one_of(*get_args(parameters.Direction))] | None = Field(
        None, description="The side of the default that is likely to be better."
    )
    odds: Odds = Field(description="Odds to one that the hint helps: 3 means right three times out of four.")
    when: Condition | None = Field(
        None, description="Condition over facts of the load and of the host under which the hint holds."
    )
    source: Words = Field(description="Manual, code, paper or measurement that somebody else can check.")


class ParameterEntry(_SettingEntry):
    """One setting that may be tuned. In a file that refines, only the fields that change."""

    kind: KindName | None = Field(None, description="Kind of the values.")
    low: NumberOrExpression | None = Field(None, description="Smallest value: a number or an expression.")
    high: NumberOrExpression | None = Field(None, description="Largest value: a number or an expression.")
    scale: Annotated[str, *one_of("linear", "log")] | None = Field(
        None, description="How values are spread between low and high; default: linear."
    )
    step: Step | None = Field(None, description="Distance between two values, counted from low.")
    default: Value | None = Field(
        None,
        description="Value without tuning: a value, an expression, the label of a special value, or "
        "`current` for the active value on the host.",
    )
    special: dict[Words, Value] | None = Field(
        None, description="Values outside the range, as LABEL: STORED VALUE, such as `off: 0`."
    )
    choices: list[Value] | None = Field(None, description="The values of a categorical parameter, as texts.")
    exists: Words | None = Field(None, description="Path that must exist on the host.")
    risk: Risk | None = Field(
        None,
        description="Parameters of risk semantic or risky keep their default until `allow:` names that risk.",
    )
    apply: Apply | None = Field(None, description="Action that makes a new value active.")
    acts_when: Condition | None = Field(
        None,
        description="Condition over facts of the load (keepalive, pipelining, page_bytes, pages, protocol, "
        "tls, fastopen, streams, accepts_gzip, uploads, loopback, installed), of the host and over "
        "parameters; where it does not hold, the parameter has no effect and keeps its default. A fact "
        "that is not known counts as if the condition held.",
    )
    acts_source: Words | None = Field(
        None, description="Evidence for `acts_when:`: the server's code or its manual."
    )
    hint: HintEntry | None = Field(None, description="Expert knowledge of the parameter, as odds.")
    scope: Annotated[str, *one_of("netns", "host", "private")] | None = Field(
        None,
        description="host: one value for the machine, which a sandbox does not touch. private: exists "
        "only in private instances, not in the files of an installed service.",
    )
    loopback: Flag | None = Field(None, description="false: the setting has no effect on load over loopback.")


class DerivedEntry(_SettingEntry):
    """A setting that follows from others and is never sampled."""

    value: NumberOrExpression = Field(
        description="Expression over facts, parameters and other derived settings."
    )
    kind: Annotated[str, *one_of("int", "float")] | None = Field(
        None, description="float keeps fractions; int, the default, cuts them off."
    )
    limit: Flag | None = Field(
        None, description="true: an upper limit; that of an installed service is never lowered."
    )
    why: Words | None = Field(None, description="Reason for the expression.")


class CapacityEntry(_Entry):
    """How much a server can hold at once. No candidate has less capacity than the default, unless allowed.

    `memory_mib` is what it may take at most: the machine's, or the default's where that is more.
    """

    value: NumberOrExpression = Field(description="Expression over facts, parameters and derived settings.")
    counts: Words | None = Field(
        None, description="Things that are counted, in the plural; default: the figure's name."
    )
    why: Words | None = Field(None, description="Consequence of exceeding this capacity.")
    source: Words | None = Field(None, description="Manual page, source file or section.")


class ConstraintEntry(_Entry):
    """A rule that bounds and derived settings cannot express."""

    rule: Condition = Field(description="Expression that must be true.")
    why: Words | None = Field(None, description="Consequence of breaking the rule.")


class PresetEntry(_Entry):
    """Values known from elsewhere, tried before the search unless it says otherwise."""

    title: Words | None = Field(None, description="Title of the preset, in one line.")
    source: Words | None = Field(None, description="Source of the recommendation.")
    try_first: Flag | None = Field(
        None, description="false: a recipe that is measured only when it is asked for by its name."
    )
    values: dict[Name, Value] = Field(description="Values of parameters; all others keep their default.")


_FLAG, _HINTS = "[flag]", "[hints]"
Hints = Annotated[
    Annotated[Flag, Tag(_FLAG)] | Annotated[dict[Name, HintEntry], Tag(_HINTS)],
    Discriminator(lambda given: _HINTS if isinstance(given, dict) else _FLAG),
]


class SpaceFile(_Entry):
    """A search space. Without `server:` it refines the spaces named before it."""

    space: Words | None = Field(None, description="Name of the search space.")
    server: Words | None = Field(None, description="Adapter whose settings these are.")
    title: Words | None = Field(None, description="Title of the search space, in one line.")
    parameters: dict[Name, ParameterEntry] = Field(
        default_factory=dict, description="Parameters, in the order in which they are shown."
    )
    derived: dict[Name, DerivedEntry] = Field(
        default_factory=dict, description="Settings that are derived from others."
    )
    capacity: dict[Name, CapacityEntry] = Field(
        default_factory=dict,
        description="Capacity of the server: connections, requests, queue, memory_mib …; in an expression, "
        "least('requests') is the least that a candidate may have.",
    )
    constraints: list[ConstraintEntry] = Field(default_factory=list, description="Rules between parameters.")
    presets: dict[Words, PresetEntry] = Field(
        default_factory=dict, description="Configurations known from elsewhere, in the order they are tried."
    )
    dead: dict[Name, Words] = Field(
        default_factory=dict,
        description="Settings that old guides still recommend, as NAME: what became of the setting.",
    )
    parts: list[Words] = Field(
        default_factory=list,
        description="Names of parts that search spaces share: files in search_spaces/parts.",
    )
    elsewhere: dict[Name, Value] = Field(
        default_factory=dict,
        description="Parameters of other servers that expressions use, as NAME: VALUE; the value counts "
        "where a study does not tune that server.",
    )
    only: list[Name] | None = Field(None, description="Parameters to tune; all others keep their default.")
    without: list[Name] | None = Field(None, description="Parameters not to tune; they keep their default.")
    set: dict[Name, Value] | None = Field(None, description="Parameters to hold at a value or expression.")
    hints: Hints | None = Field(
        None,
        description="off: search without hints and without presets. PARAMETER: a hint that replaces that of "
        "the search space; this does not change whether the parameter is tuned.",
    )
    allow: list[Allowance] | None = Field(
        None,
        description="Risks that may be tuned; capacity: candidates may have less of it than the default.",
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a space file."""
    return make_schema(SpaceFile, "tuner search space")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
