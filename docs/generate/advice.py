"""Writes the catalogue of rules for advice from the files of rules."""

from collections.abc import Iterator
from pathlib import Path

from docs.generate.markdown import code, escape, fields, put
from tuner.advice.facts import HOST_FACTS, SERVER_FACTS
from tuner.advice.rule_file import EvidenceEntry, RuleEntry, RuleFile
from tuner.advice.rules import FOLDER, read_file, rule_files

HEAD = """\
# Rules for advice

Every limit that `tuner advise` knows, with its evidence and its remedy. [Advice](../advise.md) explains a
finding and how to add a rule. Expressions use setting names and the facts at the end of this page.
"""
HARMS = {"fails": "requests fail", "waits": "requests wait", "slows": "requests are slower than necessary"}


def write_page(folder: Path) -> None:
    """Write `advice.md` into a folder."""
    files = [read_file(path)[1] for path in (*rule_files(), *sorted((FOLDER / "parts").glob("*.yaml")))]
    lines = [HEAD, *(line for file in files for line in _write_file(file))]
    for title, facts in (("Facts of the host", HOST_FACTS), ("Facts of a server", SERVER_FACTS)):
        lines += [f"## {title}", "", "| fact | meaning |", "|---|---|"]
        lines += [*(f"| {code(name)} | {escape(told)} |" for name, told in facts.items()), ""]
    put(folder / "advice.md", "\n".join(lines) + "\n")


def _write_file(file: RuleFile) -> Iterator[str]:
    yield from (f"## {escape(file.title)}", "")
    for name, rule in file.rules.items():
        yield from (f"### {code(f'{file.advice}.{name}')}", "", f"{escape(rule.limit)}.", "")
        yield from (*fields(_tell(rule)), "")
        for setting, of in rule.settings.items():
            value = "" if of.value is None else f" = {code(str(of.value))}"
            place = f" ({escape(of.outside)})" if of.outside else ""
            condition = "" if of.when is None else f", if {code(str(of.when))}"
            yield f"- {code(setting)}{value}{place}{condition}: {escape(of.why)}"
        yield ""


def _tell(rule: RuleEntry) -> dict[str, str]:
    return {
        "Consequence": HARMS[rule.harm],
        "Bites now": "; ".join(map(_show, rule.now)),
        "Is near": "; ".join(map(_show, rule.next)),
        "Causes": ", ".join(map(code, rule.causes)),
        "Cost": escape(rule.cost),
        "Source": escape(rule.source),
    }


def _show(entry: EvidenceEntry) -> str:
    pattern = entry.pattern
    log = f"{'error' if entry.log else 'kernel'} log: {code(pattern)}" if pattern else ""
    condition = " and ".join(filter(None, (log, "" if entry.when is None else code(str(entry.when)))))
    return f"{escape(entry.evidence)} ({condition})" if entry.evidence else condition
