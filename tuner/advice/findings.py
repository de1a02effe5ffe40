"""Judges the rules by what was read: each limit with its evidence and what lifts it, the worst first."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from tuner.advice.log_lines import Here, LogLine, quote_line
from tuner.advice.rule_file import HARMS, HIGHER, EvidenceEntry, ProposalEntry, RuleEntry
from tuner.advice.rules import Rules
from tuner.advice.server_look import CLOCK_S, RunningServer
from tuner.ports import Files, Scalar
from tuner.space.parameters import identifier

RECENT_S = 3600.0
"""A log line that is older proves no limit that bites now."""


class Level(StrEnum):
    """How near a limit is, or that a setting is worth trying."""

    NOW = "now"
    NEXT = "next"
    TRY = "try"
    """No limit is known; hints or studies of alike hosts let expect a gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation that proves a finding."""

    text: str
    source: str = ""
    """File that it stands in; empty for counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One setting that lifts a limit, with its value now and the proposed one."""

    name: str
    current: Scalar | None
    value: Scalar | None
    """None where no number follows from what is known."""
    place: str
    """File and line, or the place outside the configuration."""
    why: str
    hint: tuple[str, Scalar] | None = None
    """The setting and value with which a study of the installed server measures it; None where none can."""
    unit: str = ""
    """Of both values; empty for what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One limit that bites or is near, or one setting that is worth trying."""

    server: str
    rule: str
    """`FILE.RULE`."""
    level: Level
    limit: str
    harm: str
    evidence: tuple[Evidence, ...]
    proposals: tuple[Proposal, ...]
    cost: str
    """Empty where none is known."""
    source: str
    causes: tuple[str, ...] = ()
    """Rules whose limits follow from this one."""
    is_caused: bool = False
    """Whether another finding's limit causes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a look at a host found."""

    host: str
    servers: tuple[RunningServer, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...]
    """What could not be read, and what to do about it."""
    look_s: float
    corpus: Path | None = None
    """Folder of the earlier studies that were asked; None without."""
    need_url: frozenset[str] = frozenset()
    """Servers for whose studies the URL of a page has to be named."""
    is_of_kernel: bool = False
    """Whether the kernel alone was asked for."""

    @property
    def bites(self) -> bool:
        """Whether a limit bites now."""
        return any(each.level is Level.NOW for each in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenServer:
    """Everything that was read of one server and its host."""

    server: str
    rules: Rules
    scope: Mapping[str, Scalar]
    """Facts and settings, by the names that expressions use."""
    current: Mapping[str, Scalar]
    """Settings by their own names."""
    files: Files
    log: Sequence[LogLine]
    kernel_log: Sequence[LogLine]
    now_s: float
    started_s: float
    """Start of the server: an older line may be about another configuration."""
    kernel: Mapping[str, Scalar]
    """Settings of the kernel among them; each has a file of its own."""
    tuned: Container[str] = ()
    """Settings that a study of the installed server can change."""
    here: Here = field(default_factory=Here)
    """Tells which lines of the kernel's log are about this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """Evidence that was found, and how near the limit is by it."""

    level: Level
    evidence: Evidence
    told: Mapping[str, Scalar]
    """What the last line says of the limit, by the groups of its expression."""


def judge(seen: SeenServer) -> Iterator[Finding]:
    """Yield the findings of one server."""
    for name, rule in seen.rules.file.rules.items():
        if finding := _judge(name, rule, seen):
            yield finding


def rank(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put what bites now first and what is worth trying last, causes before their consequences."""
    found = tuple(findings)
    levels = tuple(Level)
    caused = {(rule, each.level) for each in found for rule in each.causes}
    marked = [replace(each, is_caused=(each.rule, each.level) in caused) for each in found]
    return tuple(
        sorted(marked, key=lambda each: (levels.index(each.level), each.is_caused, HARMS.index(each.harm)))
    )


def _judge(name: str, rule: RuleEntry, seen: SeenServer) -> Finding | None:
    every = [*_observe(rule.now, Level.NOW, seen), *_observe(rule.next, Level.NEXT, seen)]
    found = [each for each in every if each.level is Level.NOW] or every
    if not found:
        return None
    level = found[0].level
    scope = {**seen.scope, **{name: value for each in every for name, value in each.told.items()}}
    return Finding(
        server=seen.server, rule=_full_name(name, seen), level=level, harm=rule.harm,
        limit=seen.rules.fill(rule.limit, scope),
        evidence=tuple(each.evidence for each in found),
        proposals=tuple(_propose(rule.settings, replace(seen, scope=scope))), cost=rule.cost,
        source=rule.source, causes=tuple(_full_name(each, seen) for each in rule.causes),
    )  # fmt: skip


def _full_name(rule: str, seen: SeenServer) -> str:
    return rule if "." in rule else f"{seen.rules.file.advice}.{rule}"


def _observe(entries: Iterable[EvidenceEntry], level: Level, seen: SeenServer) -> Iterator[_Observation]:
    for entry in entries:
        if entry.when is not None and not seen.rules.holds(entry.when, seen.scope):
            continue
        if entry.pattern:
            yield from _find_lines(entry, entry.pattern, level, seen)
        else:
            text = seen.rules.fill(entry.evidence or "", seen.scope)
            yield _Observation(level=level, evidence=Evidence(text=text), told={})


def _find_lines(entry: EvidenceEntry, pattern: str, level: Level, seen: SeenServer) -> Iterator[_Observation]:
    """Find the lines of a log since the server's start; what is not recent proves no limit that bites now."""
    since_s = seen.started_s - CLOCK_S
    lines = [
        (line, found.groupdict())
        for line in (seen.log if entry.log else seen.kernel_log)
        if (line.at_s is None or line.at_s >= since_s) and (found := re.match(pattern, line.message))
    ]
    matching = [each for each in lines if entry.log or seen.here.has(each[1]) is not bool(entry.foreign_log)]
    if not matching:
        return
    recent = [each for each in matching if each[0].at_s is not None and each[0].at_s >= seen.now_s - RECENT_S]
    last, told = (recent or matching)[-1]
    when = "at an unknown time" if last.at_s is None else f"{_show_age(seen.now_s - last.at_s)} ago"
    count = len(recent or matching)
    lines_said = f"{count:,} line{'' if count == 1 else 's'}{' in the last hour' if recent else ''}"
    said = seen.rules.fill(entry.evidence, seen.scope) + ": " if entry.evidence else ""
    text = f"{said}{lines_said}, the last {when}: “{quote_line(last.text)}”"
    yield _Observation(
        level=level if recent else Level.NEXT, evidence=Evidence(text=text, source=last.source),
        told={name: int(value) if value.isdigit() else value for name, value in told.items() if value},
    )  # fmt: skip


def _show_age(seconds: float) -> str:
    """Return a time span in its largest unit."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{max(0, int(seconds))} s"


def _propose(settings: Mapping[str, ProposalEntry], seen: SeenServer) -> Iterator[Proposal]:
    proposed: set[str] = set()
    for name, entry in settings.items():
        if entry.goes_with is not None and entry.goes_with not in proposed:
            continue
        if entry.when is not None and not seen.rules.holds(entry.when, seen.scope):
            continue
        told = None if entry.current is None else seen.rules.evaluate(entry.current, seen.scope)
        if told is None and entry.outside is None:  # elsewhere, a setting of this name is another one
            told = seen.current.get(name, seen.scope.get(identifier(name)))
        value = None if entry.value is None else _as_whole(seen.rules.evaluate(entry.value, seen.scope))
        if value is not None and told is not None and not _lifts(value, told, entry.lifts):
            continue
        proposed.add(name)
        yield Proposal(
            name=name, current=told, value=value, why=seen.rules.fill(entry.why, seen.scope),
            place=(
                find_place(name, seen.files, seen.kernel, line=entry.line)
                if entry.outside is None
                else seen.rules.fill(entry.outside, seen.scope)
            ),
            hint=_find_hint(name, value, entry, seen), unit=entry.unit or "",
        )  # fmt: skip


def _find_hint(
    name: str, value: Scalar | None, entry: ProposalEntry, seen: SeenServer
) -> tuple[str, Scalar] | None:
    """Return what a study tries for a proposal."""
    if entry.studied_value is not None and entry.studied_as in seen.tuned:
        name, value = entry.studied_as or "", seen.rules.evaluate(entry.studied_value, seen.scope)
    is_studied = value is not None and entry.outside is None and name in seen.tuned
    return (name, value) if is_studied and value is not None else None


def _lifts(value: Scalar, current: Scalar, how: str) -> bool:
    """Return whether a value lifts a limit that the value now has; words are compared with nothing."""
    if isinstance(value, str) or isinstance(current, str) or how == "other":
        return value != current
    return value > current if how == HIGHER else value < current


def _as_whole(value: Scalar | None) -> Scalar | None:
    return int(value) if isinstance(value, float) and value == int(value) else value


def find_place(name: str, files: Files, kernel: Container[str], *, line: str | None = None) -> str:
    """Return the file and line of a setting, the last that sets it; empty where it stands nowhere.

    Args:
        name: of the setting.
        files: configuration of its server.
        kernel: settings that have a file of their own.
        line: regular expression for its line, where its name is not it.
    """
    if name in kernel:
        return str(PurePosixPath("/proc/sys", name.partition("[")[0].replace(".", "/")))
    pattern = re.compile(line or rf"^\s*(?:[^#;\s][^#]*[{{;]\s*)?{re.escape(name)}\b")
    places = [
        f"{path}:{number}"
        for path, content in files.items()
        for number, text in enumerate(content.decode(errors="replace").splitlines(), start=1)
        if pattern.search(text)
    ]
    return places[-1] if places else ""
