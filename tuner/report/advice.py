"""Advice for people and scripts: on a screen, as Markdown, as JSON."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tuner.advice.findings import Advice, Finding, Level, Proposal
from tuner.advice.rules import show
from tuner.report.wording import make_printable

HEADINGS = {
    Level.NOW: "Limits that bite now",
    Level.NEXT: "Limits that are near, or did bite before",
}
NOT_MEASURED = "not measured"
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")
"""Characters that Markdown or HTML may take for more than text."""


def advice_text(advice: Advice) -> str:
    """Return advice for a terminal."""
    lines = [_summarize(advice)]
    for level, heading in HEADINGS.items():
        found = [each for each in advice.findings if each.level is level]
        lines += ["", heading] if found else []
        for each in found:
            lines += ["", *_write_finding(each, number=advice.findings.index(each) + 1)]
    lines += _write_unread(advice, "  ")
    return "\n".join(lines)


def advice_markdown(advice: Advice) -> str:
    """Return advice as Markdown, in which nothing that was read is taken for markup."""
    lines = ["# Advice", "", _escape(_summarize(advice))]
    for level, heading in HEADINGS.items():
        found = [each for each in advice.findings if each.level is level]
        lines += ["", f"## {heading}"] if found else []
        for each in found:
            first, *rest = _write_finding(each, number=0)
            lines += ["", f"### {_escape(first.strip())}", ""]
            lines += [f"- {_escape(' '.join(line.split()))}" for line in rest]
    lines += _write_unread(advice, "- ", _escape)
    return "\n".join(lines)


def advice_json(advice: Advice) -> dict[str, Any]:
    """Return advice as plain data; keys are stable."""
    return {
        "host": advice.host, "bites": advice.bites, "look_s": advice.look_s,
        "servers": [
            {
                "name": each.name, "version": ".".join(map(str, each.installation.facts.version)),
                "pid": each.first.pid, "workers": len(each.workers),
            }
            for each in advice.servers
        ],
        "findings": [_as_json(each) for each in advice.findings],
        "unread": list(advice.unread),
    }  # fmt: skip


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "server": finding.server, "rule": finding.rule, "level": finding.level.value, "limit": finding.limit,
        "harm": finding.harm, "caused_by_another": finding.is_caused,
        "evidence": [{"text": each.text, "source": each.source} for each in finding.evidence],
        "settings": [
            {
                "name": each.name, "now": each.current, "proposed": each.value, "place": each.place,
                "why": each.why,
            }
            for each in finding.proposals
        ],
        "cost": finding.cost, "source": finding.source, "measured": False,
        "measure": measure_command(finding),
    }  # fmt: skip


def measure_command(finding: Finding) -> str:
    """Return the command that measures what a finding proposes; empty where no study can."""
    tunable = any(each.can_be_tuned for each in finding.proposals)
    if not tunable or finding.server == "kernel":
        return ""
    return f"tuner init {finding.server} --from-advice && tuner run {finding.server}.yaml --preset quick"


def _summarize(advice: Advice) -> str:
    """Return in a sentence what was found, and where."""
    counts = [sum(each.level is level for each in advice.findings) for level in (Level.NOW, Level.NEXT)]
    bites = (
        f"{counts[0]} limit{' bites' if counts[0] == 1 else 's bite'} now"
        if counts[0]
        else "no limit bites now"
    )
    near = f", {counts[1]} {'is' if counts[1] == 1 else 'are'} near" if counts[1] else ""
    servers = ", ".join(_title(each.name, each.installation.facts.version) for each in advice.servers)
    looked = f"Looked for {advice.look_s:.1f} s at {servers or 'the kernel; no known server runs'}"
    return make_printable(f"{advice.host}: {bites}{near}. {looked}. No load was sent, nothing was changed.")


def _title(name: str, version: tuple[int, ...]) -> str:
    return f"{name} {'.'.join(map(str, version))}".strip()


def _write_finding(finding: Finding, *, number: int) -> Iterator[str]:
    mark = f"{number}. " if number else ""
    yield make_printable(f"{mark}{finding.server}: {finding.limit}")
    for seen in finding.evidence:
        place = f" ({seen.source})" if seen.source else ""
        yield make_printable(f"   seen     {seen.text}{place}")
    for each in finding.proposals:
        yield make_printable(f"   set      {_show_proposal(each)}")
        yield make_printable(f"            {each.why}")
    yield f"   costs    {finding.cost}"
    command = measure_command(finding)
    yield f"   measure  {NOT_MEASURED} yet{f'; run {command}' if command else ''}"
    yield f"   source   {finding.source}"


def _show_proposal(each: Proposal) -> str:
    """Write a proposal: name, value now, proposed value, place."""
    now = "" if each.current is None else f" {show(each.current)}"
    value = "" if each.value is None else f" → {show(each.value)}"
    return f"{each.name}{now}{value}{f' ({each.place})' if each.place else ''}"


def _write_unread(advice: Advice, mark: str, write: Callable[[str], str] = make_printable) -> list[str]:
    return ["", "Not read:", *(f"{mark}{write(each)}" for each in advice.unread)] if advice.unread else []


def _escape(text: str) -> str:
    return _MARKS.sub(r"\\\1", make_printable(text))
