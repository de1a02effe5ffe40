"""Reads files of rules, parses what they hold, and checks every name in them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tuner.advice.facts import HOST_FACTS, SERVER_FACTS
from tuner.advice.rule_file import EvidenceEntry, RuleEntry, RuleFile, StatusEntry
from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.expressions import Evaluator, Expression, parse
from tuner.space.file_format import validate
from tuner.space.parameters import identifier
from tuner.space.problems import problem, suggest
from tuner.space.sources import BUILT_IN, available_spaces, merge, read_sources
from tuner.space.values import as_flag
from tuner.space.yaml_text import Document, read_yaml

FOLDER = BUILT_IN / "advice"
KERNEL = "sysctl"
"""The adapter whose settings every rule may use."""
BEGIN = "Begin with `advice:`, `servers:` and `rules:`"
_IN_BRACES = re.compile(r"\{([^{}]*)\}")
_CLAUSES = (": ", " (", "; ", ", ")
"""Begins of a clause that may be left out."""
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one file, parsed."""

    file: RuleFile
    expressions: Mapping[str, Expression]
    """By their text."""

    def holds(self, text: Scalar, scope: Mapping[str, Scalar]) -> bool:
        """Return whether a condition is true; one that needs an unknown fact, or fails with it, is not."""
        try:
            return self.expressions[_as_text(text)].decides(scope) is True
        except UsageError:
            return False

    def evaluate(self, text: Scalar, scope: Mapping[str, Scalar]) -> Scalar | None:
        """Return the value of an expression; None where a fact that it needs is unknown or of no use."""
        expression = self.expressions[_as_text(text)]
        try:
            return expression.evaluate(scope)
        except UsageError:
            return None

    def fill(self, text: str, scope: Mapping[str, Scalar]) -> str:
        """Return a text with the values of its expressions, and without the clause of an unknown one."""
        for found in _IN_BRACES.finditer(text):
            if self.evaluate(found[1], scope) is None:
                begin = max(text.rfind(sign, 0, found.start()) for sign in _CLAUSES)
                rest = text[found.end() :].lstrip()
                return self.fill(text[:begin] if begin > 0 else text[: found.start()] + rest, scope)
        return _IN_BRACES.sub(lambda found: show(self.evaluate(found[1], scope)), text)


def show(value: Scalar | None) -> str:
    """Write a value: 1,024, 0.25, auto."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - digits


def rule_files() -> tuple[Path, ...]:
    """Return the built-in files of rules."""
    return tuple(sorted(FOLDER.glob("*.yaml")))


@cache
def read_file(path: Path) -> tuple[Document, RuleFile]:
    """Read a file of rules. Raises UsageError for what its format does not allow."""
    document = read_yaml(path.read_bytes(), f"search_spaces/advice/{path.name}", begin=BEGIN)
    return document, validate(RuleFile, document)


def read_rules(path: Path, *, version: tuple[int, ...] = (), checks_names: bool = False) -> Rules:
    """Read a file of rules and parse its expressions.

    Args:
        path: the file.
        version: of the server; empty counts as the newest.
        checks_names: whether names are held against the facts and spaces that there are, which takes a while.

    Raises UsageError with the place of the first fault.
    """
    document, file = read_file(path)
    evaluator = Evaluator(version)
    known = _known_names(file) if checks_names else frozenset()
    expressions: dict[str, Expression] = {}
    rules: dict[str, RuleEntry] = {}
    parts = ((document, file), *(read_file(FOLDER / "parts" / f"{name}.yaml") for name in file.parts))
    for source, part in parts:
        for keys, text in _texts(part):
            names = known if checks_names else frozenset(_WORD.findall(text))
            expressions[text] = parse(text, source.place(keys), names, evaluator)
        rules = {**rules, **{name: rule for name, rule in part.rules.items() if name not in rules}}
        _check_rules(source, part)
    _check_causes(document, file, rules)
    return Rules(file=file.model_copy(update={"rules": rules}), expressions=expressions)


def _texts(file: RuleFile) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every expression of a file with its place."""
    for name, rule in file.rules.items():
        at = ("rules", name)
        yield from (((*at, "limit"), text) for text in _IN_BRACES.findall(rule.limit))
        for level, entries in (("now", rule.now), ("next", rule.next)):
            for number, entry in enumerate(entries):
                yield from _texts_of(entry, (*at, level, number))
        for setting, proposal in rule.settings.items():
            for key in ("value", "current", "when", "studied_value"):
                if (text := getattr(proposal, key)) is not None:
                    yield (*at, "settings", setting, key), _as_text(text)
            for key in ("why", "outside"):
                found = _IN_BRACES.findall(getattr(proposal, key) or "")
                yield from (((*at, "settings", setting, key), text) for text in found)


def _texts_of(entry: EvidenceEntry, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if entry.when is not None:
        yield (*at, "when"), _as_text(entry.when)
    for text in _IN_BRACES.findall(entry.evidence or ""):
        yield (*at, "evidence"), text


def _as_text(value: Scalar) -> str:
    flag = as_flag(value)
    return str(value) if flag is None else str(flag)


def _check_rules(document: Document, file: RuleFile) -> None:
    """Check that each rule of a file proves something."""
    for name, rule in file.rules.items():
        place = document.place(("rules", name))
        for number, (setting, proposal) in enumerate(rule.settings.items()):
            if proposal.goes_with not in {None, *list(rule.settings)[:number]}:
                wrong = f"{setting} goes with {proposal.goes_with}, which is no setting before it"
                raise problem(place, wrong, suggest(proposal.goes_with or "", rule.settings))
        if not rule.now and not rule.next:
            raise problem(place, "nothing proves this limit", "Add `now:` or `next:`")
        for number, entry in enumerate((*rule.now, *rule.next)):
            logs = [key for key in ("log", "kernel_log", "foreign_log") if getattr(entry, key) is not None]
            if len(logs) > 1 or (not logs and (entry.when is None or entry.evidence is None)):
                wrong = f"entry {number + 1} is no observation"
                raise problem(place, wrong, "Give `when:` with `evidence:`, or `log:`, or `kernel_log:`")


def _check_causes(document: Document, file: RuleFile, every: Mapping[str, RuleEntry]) -> None:
    """Check that what a rule causes is a rule; a part may name one that only some servers have."""
    for name, rule in file.rules.items():
        for number, other in enumerate(rule.causes):
            if "." not in other and other not in every:
                place = document.place(("rules", name, "causes", number))
                raise problem(place, f"there is no rule {other}", suggest(other, every))


def _known_names(file: RuleFile) -> frozenset[str]:
    """Return the names that expressions of a file may use."""
    of_server = SERVER_FACTS if file.processes else {}
    own = (*file.values, *(_status_names(file.status) if file.status else ()))
    settings = (identifier(name) for name in known_settings((*file.servers, KERNEL)))
    entries = (entry for rule in file.rules.values() for entry in (*rule.now, *rule.next))
    told = (name for entry in entries if entry.pattern for name in re.compile(entry.pattern).groupindex)
    return frozenset((*HOST_FACTS, *of_server, *own, *settings, *told))


def _status_names(status: StatusEntry) -> Iterator[str]:
    """Yield the facts that a status page gives."""
    yield from (*status.gauges, *status.counts)
    for names, second in ((status.counters, "_ever"), (status.fullest, "_limit")):
        yield from (each for name in names for each in (name, f"{name}{second}"))


def known_settings(servers: tuple[str, ...]) -> frozenset[str]:
    """Return the parameters and derived settings in the spaces of these servers."""
    return frozenset(name for server, names in _settings().items() if server in servers for name in names)


@cache
def _settings() -> Mapping[str, frozenset[str]]:
    """Return the settings of each server, by its spaces."""
    found: dict[str, frozenset[str]] = {}
    for space in available_spaces():
        merged = merge(read_sources([space], Path.cwd()))
        for server in merged.servers:
            found[server] = found.get(server, frozenset()) | merged.parameters.keys() | merged.derived.keys()
    return found
