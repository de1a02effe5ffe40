"""The file format of a space as pydantic models, and the JSON Schema that editors complete from.

`python -m tuner.space.schema > search_spaces/space.schema.json` writes the published schema again.
"""

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from tuner.ports import Scalar
from tuner.space import scalars

KINDS = ("int", "float", "categorical", "bool")
RISKS = ("safe", "semantic", "risky")
ALLOWANCES = (*RISKS, "capacity")


def _as(read: Callable[[object], object], schema: dict[str, Any]) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(read), WithJsonSchema(schema)


def _enum(*words: str) -> tuple[PlainValidator, WithJsonSchema]:
    return _as(scalars.one_of(*words), {"enum": list(words)})


_NAME = {"type": "string", "pattern": f"^{scalars.NAME_PATTERN.pattern}$"}
_VERSION = {"type": "string", "pattern": f"^{scalars.VERSION_PATTERN.pattern}$"}
_FLAG = {"enum": [True, False, "on", "off", "yes", "no"]}

Name = Annotated[str, *_as(scalars.read_name, _NAME)]
Words = Annotated[str, *_as(scalars.read_text, {"type": "string", "minLength": 1})]
Flag = Annotated[bool, *_as(scalars.read_flag, _FLAG)]
Version = Annotated[str, *_as(scalars.read_version, _VERSION)]
Number = Annotated[Scalar, *_as(scalars.read_expression, {"type": ["number", "string"]})]
Condition = Annotated[Scalar, *_as(scalars.read_expression, {"type": ["string", "boolean"]})]
Value = Annotated[Scalar, *_as(scalars.read_scalar, {"type": ["number", "string", "boolean"]})]
Step = Annotated[float, *_as(scalars.read_step, {"type": "number", "exclusiveMinimum": 0})]
Kind = Annotated[str, *_enum(*KINDS)]
Risk = Annotated[str, *_enum(*RISKS)]
Allowance = Annotated[str, *_enum(*ALLOWANCES)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParameterEntry(_Entry):
    """One setting that may be tuned. In a file that refines, only the fields that change."""

    kind: Kind | None = Field(None, description="What its values are.")
    low: Number | None = Field(None, description="Smallest value: a number or an expression.")
    high: Number | None = Field(None, description="Largest value: a number or an expression.")
    scale: Annotated[str, *_enum("linear", "log")] | None = Field(
        None, description="How it is sampled between low and high; linear unless said."
    )
    step: Step | None = Field(None, description="Distance between two values, counted from low.")
    unit: Words | None = Field(None, description="bytes, KiB, ms, s … or what is counted.")
    default: Value | None = Field(
        None,
        description="What holds when nobody tunes: a value, an expression, the label of a special value, or "
        "`current` for what is in force on the host.",
    )
    special: dict[Words, Value] | None = Field(
        None, description="Values apart from the range, label: stored value, as `off: 0`."
    )
    choices: list[Value] | None = Field(None, description="The values of a categorical parameter, as texts.")
    when: Condition | None = Field(None, description="Condition under which it exists; else it is left out.")
    since: Version | None = Field(None, description="First server version that knows it.")
    until: Version | None = Field(None, description="First server version that no longer knows it.")
    exists: Words | None = Field(None, description="Path that must exist on the host.")
    risk: Risk | None = Field(
        None, description="semantic and risky ones keep their default until `allow:` names their risk."
    )
    apply: Annotated[str, *_enum("live", "reload", "restart")] | None = Field(
        None, description="What it takes to put a new value in force."
    )
    scope: Annotated[str, *_enum("netns", "host")] | None = Field(
        None, description="host: one value for the machine, which a sandbox does not touch."
    )
    loopback: Flag | None = Field(None, description="false: without effect when the load is on loopback.")
    internal: Flag | None = Field(None, description="true: only builds other settings, not written itself.")
    why: Words | None = Field(None, description="One sentence: what it does to a web server's speed.")
    source: Words | None = Field(None, description="Manual page, kernel file or section.")
    also: Words | None = Field(
        None, description="What else a change does for users or operators; shown wherever it ships."
    )


class DerivedEntry(_Entry):
    """A setting that follows from others and is never sampled."""

    value: Number = Field(description="Expression over facts, parameters and other derived settings.")
    kind: Annotated[str, *_enum("int", "float")] | None = Field(
        None, description="float keeps fractions; int, the default, cuts them off."
    )
    when: Condition | None = Field(None, description="Condition under which it exists.")
    since: Version | None = Field(None, description="First server version that knows it.")
    until: Version | None = Field(None, description="First server version that no longer knows it.")
    limit: Flag | None = Field(
        None, description="true: an upper limit; one that an installed service has is not lowered."
    )
    internal: Flag | None = Field(None, description="true: only builds other settings, not written itself.")
    unit: Words | None = Field(None, description="bytes, KiB, ms, s … or what is counted.")
    why: Words | None = Field(None, description="Why it follows.")
    source: Words | None = Field(None, description="Manual page, kernel file or section.")
    also: Words | None = Field(
        None, description="What else a change does for users or operators; shown wherever it ships."
    )


class CapacityEntry(_Entry):
    """How much a server can hold at once. No candidate holds less than the default, unless allowed.

    `memory_mib` is what it may take at most: the machine's, or the default's where that is more.
    """

    value: Number = Field(description="Expression over facts, parameters and derived settings.")
    counts: Words | None = Field(
        None, description="What is counted, in the plural; the figure's name unless said."
    )
    why: Words | None = Field(None, description="What happens beyond it.")
    source: Words | None = Field(None, description="Manual page, source file or section.")


class ConstraintEntry(_Entry):
    """What cannot be built by bounds and derived settings."""

    rule: Condition = Field(description="Expression that must be true.")
    why: Words | None = Field(None, description="What happens otherwise.")


class PresetEntry(_Entry):
    """Values known from elsewhere, tried before the search."""

    title: Words | None = Field(None, description="One line.")
    source: Words | None = Field(None, description="Who recommends them.")
    values: dict[Name, Value] = Field(description="Values of parameters; the rest stays at its default.")


class SpaceFile(_Entry):
    """A search space. Without `server:` it refines the spaces named before it."""

    space: Words | None = Field(None, description="Name of the space.")
    server: Words | None = Field(None, description="Adapter whose settings these are.")
    title: Words | None = Field(None, description="One line.")
    parameters: dict[Name, ParameterEntry] = Field(default_factory=dict, description="In the order shown.")
    derived: dict[Name, DerivedEntry] = Field(default_factory=dict, description="Settings that follow.")
    capacity: dict[Name, CapacityEntry] = Field(
        default_factory=dict,
        description="What the server can hold at once: connections, requests, queue, memory_mib …; an "
        "expression asks with least('requests') for what no candidate may go below.",
    )
    constraints: list[ConstraintEntry] = Field(default_factory=list, description="Rules between parameters.")
    presets: dict[Words, PresetEntry] = Field(default_factory=dict, description="Tried first, in this order.")
    dead: dict[Name, Words] = Field(
        default_factory=dict, description="Settings that old guides still give: name: what became of it."
    )
    only: list[Name] | None = Field(None, description="Tune these alone; the rest keeps its default.")
    without: list[Name] | None = Field(None, description="Do not tune these; they keep their default.")
    set: dict[Name, Value] | None = Field(None, description="Hold these at a value or expression.")
    allow: list[Allowance] | None = Field(
        None, description="Tune parameters of these risks, too; capacity: also go below the default's."
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a space file."""
    schema: dict[str, Any] = _tidy(SpaceFile.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tuner search space",
        **schema,
    }


def _tidy(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop what says nothing to an editor: titles made of names, and null where a key may be left out."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _tidy(item) for key, item in node.items() if not _is_noise(key, item)}
    branches = [branch for branch in kept.get("anyOf", []) if branch != {"type": "null"}]
    if "patternProperties" in kept:  # else a key of any other form would pass
        kept["additionalProperties"] = False
    if len(branches) == 1:
        del kept["anyOf"]
        kept = {**branches[0], **kept}
    return kept


def _is_noise(key: str, item: object) -> bool:
    return (key == "title" and isinstance(item, str)) or (key == "default" and item is None)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
