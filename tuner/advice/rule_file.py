"""The file format of rules for advice: its models, and the JSON Schema for editors.

`python -m tuner.advice.rule_file > search_spaces/advice.schema.json` writes the published schema again.
"""

import json
import re
import sys
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tuner.space.file_format import make_schema, one_of, read_as
from tuner.space.problems import Refused, quote
from tuner.space.schema import Condition, Name, NumberOrExpression, Words

FAILS = "fails"
HARMS = (FAILS, "waits", "slows")
"""Consequences for clients, the worst first."""
HIGHER = "higher"
LIFTS = (HIGHER, "lower", "other")
"""Which values of a setting lift a limit."""


def _read_pattern(value: object) -> str:
    """Return a regular expression."""
    if isinstance(value, str) and value:
        try:
            re.compile(value)
        except re.error as error:
            raise Refused(f"{quote(value)} is no regular expression: {error}", "Correct it") from error
        return str(value)
    raise Refused(f"{quote(value)} is no regular expression", "Write one, in single quotes")


Pattern = Annotated[str, *read_as(_read_pattern, {"type": "string", "format": "regex"})]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class EvidenceEntry(_Entry):
    """One observation that proves a limit: a condition over facts, or a line of a log."""

    when: Condition | None = Field(
        None, description="Condition over facts and settings; with a log, lines count only if it holds."
    )
    log: Pattern | None = Field(
        None, description="Regular expression for the beginning of a message in the error log."
    )
    kernel_log: Pattern | None = Field(
        None, description="Regular expression for the beginning of a message in the kernel's log."
    )
    foreign_log: Pattern | None = Field(
        None,
        description="As `kernel_log`, for a message about another host on the same kernel: its network "
        "namespace (group `network`) is another one, or nothing listens here at its port (group `port`).",
    )
    evidence: Words | None = Field(
        None, description="What was seen; expressions stand in braces. Without it the log line is quoted."
    )

    @property
    def pattern(self) -> str | None:
        """Return the regular expression for a message; None for a condition alone."""
        return self.log or self.kernel_log or self.foreign_log


class ProposalEntry(_Entry):
    """One setting that lifts the limit."""

    value: NumberOrExpression | None = Field(
        None, description="Expression for the proposed value on this machine."
    )
    current: NumberOrExpression | None = Field(
        None,
        description="Expression for the value now, if the configuration does not name it or is not active.",
    )
    unit: Words | None = Field(None, description="Unit of both values, such as KiB or s.")
    lifts: Annotated[str, *one_of(*LIFTS)] = Field(
        HIGHER,
        description="Which values lift the limit: those higher or lower than the value now, or any other. "
        "tuner proposes no other values.",
    )
    when: Condition | None = Field(None, description="Condition under which it is proposed.")
    goes_with: Name | None = Field(
        None, description="An earlier setting of the rule. tuner proposes this setting only together with it."
    )
    studied_as: Name | None = Field(
        None, description="The setting of a study from which this one follows; with `studied_value`."
    )
    studied_value: NumberOrExpression | None = Field(
        None, description="Expression for the value of that setting."
    )
    line: Pattern | None = Field(
        None, description="Regular expression for its line in the configuration, where its name is not it."
    )
    outside: Words | None = Field(
        None,
        description="The place of a setting that no search space has, such as a systemd unit; expressions "
        "stand in braces.",
    )
    why: Words = Field(description="Effect of the proposed value, then the trade-off.")


class RuleEntry(_Entry):
    """One limit, what proves it, and what lifts it."""

    limit: Words = Field(description="The limit, as a noun phrase.")
    harm: Annotated[str, *one_of(*HARMS)] = Field(
        description="Consequence for clients: requests fail, wait, or are slower than necessary."
    )
    now: list[EvidenceEntry] = Field(
        default_factory=list, description="Each proves that the limit bites now."
    )
    next: list[EvidenceEntry] = Field(default_factory=list, description="Each proves that it is near.")
    causes: list[Name] = Field(
        default_factory=list,
        description="Rules whose limits are consequences of this one, listed after it: NAME in this file, "
        "else FILE.RULE.",
    )
    settings: dict[Name, ProposalEntry] = Field(default_factory=dict, description="Settings that lift it.")
    cost: Words = Field(description="What it costs to lift the limit: memory, risk or work.")
    source: Words = Field(description="Documentation, source file or kernel file.")


class StatusEntry(_Entry):
    """The server's own status page."""

    configured: Pattern = Field(
        description="Finds the page in the configuration: its path as the one group or the group `path`, and "
        "the socket or port to ask as the group `address`. With both, it is asked over FastCGI."
    )
    query: Words | None = Field(None, description="Added to the path, such as `?auto`.")
    asks: Words | None = Field(None, description="Commands for an address without a path.")
    counters: dict[Name, Pattern] = Field(
        default_factory=dict,
        description="Fact: regular expression with a group. The fact is what was counted during the look; "
        "NAME_ever is what was counted since the start.",
    )
    gauges: dict[Name, Pattern] = Field(
        default_factory=dict,
        description="Fact: regular expression with a group; of several matches the largest.",
    )
    counts: dict[Name, Pattern] = Field(
        default_factory=dict, description="Fact: regular expression; the fact is how often it is there."
    )
    fullest: dict[Name, Pattern] = Field(
        default_factory=dict,
        description="Fact: regular expression with two groups, a number and its limit. The match nearest to "
        "its limit gives the facts NAME and NAME_limit.",
    )


class RuleFile(_Entry):
    """Rules for one server or for the kernel."""

    advice: Words = Field(description="Name of the file.")
    parts: list[Words] = Field(
        default_factory=list, description="Files in search_spaces/advice/parts whose rules follow its own."
    )
    servers: list[Words] = Field(
        default_factory=list, description="Adapters whose settings the rules use; the first that fits counts."
    )
    spaces: dict[Name, Name] = Field(
        default_factory=dict, description="Adapter: search space with hints of what is worth trying."
    )
    title: Words = Field(description="One line.")
    processes: Pattern | None = Field(
        None,
        description="Regular expression for the command line of the first process; rules of the kernel have "
        "none.",
    )
    workers: Pattern | None = Field(
        None,
        description="Regular expression for the command lines of workers. If it is missing, all "
        "descendants of the first process are workers.",
    )
    configuration: Pattern | None = Field(
        None,
        description="Regular expression whose group is the path of the configuration, in the command line of "
        "the first process.",
    )
    files: list[Words] = Field(
        default_factory=list, description="Configuration files of a server whose adapter finds none."
    )
    error_log: Words | None = Field(None, description="Error log of a server whose adapter finds none.")
    message: Pattern | None = Field(
        None,
        description="A line of the error log, with what the program itself says as the group `message`. A "
        "line whose group `pid` is no process of the server counts for nothing.",
    )
    quiet_log: Pattern | None = Field(
        None,
        description="Finds a configured log level at which the log lacks lines that the rules read.",
    )
    loud_log: Pattern | None = Field(
        None,
        description="Finds a log level at which the log has the warnings that the rules read. By default the "
        "log leaves these warnings out.",
    )
    shared_log: Pattern | None = Field(
        None,
        description="Finds a setting that lets applications write whole lines into the log. Then no line of "
        "the log counts.",
    )
    values: dict[Name, Pattern] = Field(
        default_factory=dict,
        description="Fact: regular expression with a group, over the configuration; else `none`.",
    )
    status: StatusEntry | None = Field(None, description="Status page, where one is configured.")
    rules: dict[Name, RuleEntry] = Field(description="Rules in the order of their weight.")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of rules."""
    return make_schema(RuleFile, "tuner rules for advice")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
