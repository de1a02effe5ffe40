"""Advice for people and scripts: on a screen, as Markdown, as JSON, as a page; and the rules behind it."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tuner.advice.findings import Advice, Finding, Level, Proposal
from tuner.advice.rule_file import EvidenceEntry, RuleEntry, RuleFile
from tuner.advice.rules import KERNEL, show
from tuner.advice.server_look import RunningServer
from tuner.ports import Scalar
from tuner.report.wording import capitalize, make_printable
from tuner.shell_words import write_command

HEADINGS = {
    Level.NOW: "Limits that bite now",
    Level.NEXT: "Limits that are near, or did bite before",
    Level.TRY: "Settings worth trying, by hints and earlier studies",
}
NOT_MEASURED = "not measured"
URL = "URL"
NAME_URL = "For URL, write the address of a page that this server makes, such as http://127.0.0.1/index.php."
NO_SETTING = "nothing: tuner knows no setting that lifts this limit further. Reduce the load, or add a host"
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")
"""Characters that Markdown or HTML may take for more than text."""


def advice_text(advice: Advice) -> str:
    """Return advice for a terminal."""
    lines = [_summarize(advice)]
    for heading, found in _group(advice):
        lines += ["", heading]
        for number, each in found:
            lines += ["", *_write_finding(each, advice, number=number)]
    lines += _write_unread(advice, "  ")
    return "\n".join(lines)


def advice_markdown(advice: Advice) -> str:
    """Return advice as Markdown, in which nothing that was read is taken for markup."""
    lines = ["# Advice", "", _escape(_summarize(advice))]
    for heading, found in _group(advice):
        lines += ["", f"## {heading}"]
        for _, each in found:
            first, *rest = _write_finding(each, advice, number=0)
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
        "findings": [_as_json(each, advice) for each in advice.findings],
        "unread": list(advice.unread),
    }  # fmt: skip


def advice_page(advice: Advice) -> str:
    """Render one page, the same bytes for the same advice."""
    from tuner.report.markup import render_page

    groups = [
        (heading, [(number, each, measure_command(each, advice)) for number, each in found])
        for heading, found in _group(advice)
    ]
    return render_page(
        "advice_page.html.j2",
        advice=advice, verdict=capitalize(say_verdict(advice)), looked=_say_look(advice), groups=groups,
        show_change=show_change, no_setting=capitalize(NO_SETTING), url=URL, name_url=NAME_URL, figures={},
    )  # fmt: skip


def measure_command(finding: Finding, advice: Advice) -> str:
    """Return the command that measures what a finding proposes; empty where no study can.

    What is worth trying is hinted by the search space of a new study, or by the same corpus.
    """
    is_kernel, is_try = finding.server == "kernel", finding.level is Level.TRY
    if not (is_try or any(each.hint for each in finding.proposals)):
        return ""
    server = KERNEL if is_kernel else finding.server
    options = ["--managed" if is_try else "--from-advice"]
    options += ["--host", advice.host] if "://" in advice.host else []
    options += ["--corpus", str(advice.corpus)] if is_try and advice.corpus else []
    options += ["--url", URL] if server in advice.need_url else []
    study = f"{server}.yaml"
    init, check = write_command("tuner", "init", server, *options), write_command("tuner", "check", study)
    return f"{init} && {check} && {write_command('tuner', 'run', study, '--preset', 'quick')}"


def _as_json(finding: Finding, advice: Advice) -> dict[str, Any]:
    return {
        "server": finding.server, "rule": finding.rule, "level": finding.level.value, "limit": finding.limit,
        "harm": finding.harm, "caused_by_another": finding.is_caused,
        "evidence": [{"text": each.text, "source": each.source} for each in finding.evidence],
        "settings": [
            {
                "name": each.name, "now": each.current, "proposed": each.value, "place": each.place,
                "why": each.why, "unit": each.unit,
            }
            for each in finding.proposals
        ],
        "cost": finding.cost, "source": finding.source, "measured": False,
        "measure": measure_command(finding, advice),
    }  # fmt: skip


def _group(advice: Advice) -> Iterator[tuple[str, list[tuple[int, Finding]]]]:
    """Yield the heading of each level that has findings, with its findings and their numbers."""
    numbered = list(enumerate(advice.findings, start=1))
    for level, heading in HEADINGS.items():
        if found := [(number, each) for number, each in numbered if each.level is level]:
            yield heading, found


def say_verdict(advice: Advice) -> str:
    """Return how many limits bite, how many are near, and how many settings are worth trying."""
    now, near, tries = (sum(each.level is level for each in advice.findings) for level in HEADINGS)
    said = [f"{now or 'no'} limit{'s bite' if now > 1 else ' bites'} now"]
    said += [f"{near} {'is' if near == 1 else 'are'} near"] if near else []
    said += [f"{tries} setting{' is' if tries == 1 else 's are'} worth trying"] if tries else []
    return ", ".join(said)


def _say_look(advice: Advice) -> str:
    servers = ", ".join(map(_title, advice.servers))
    kernel = "the kernel" if advice.is_of_kernel else "the kernel; no known server runs"
    looked = f"Looked for {advice.look_s:.1f} s at {servers or kernel}"
    return f"{looked}. No load was sent, nothing was changed."


def _summarize(advice: Advice) -> str:
    """Return in a sentence what was found, and where."""
    return make_printable(f"{advice.host}: {say_verdict(advice)}. {_say_look(advice)}")


def _title(server: RunningServer) -> str:
    """Write name, version and first process: of several that run, only this one is looked at."""
    version = ".".join(map(str, server.installation.facts.version))
    return " ".join(filter(None, (server.name, version, f"(process {server.first.pid})")))


def _write_finding(finding: Finding, advice: Advice, *, number: int) -> Iterator[str]:
    mark = f"{number}. " if number else ""
    yield make_printable(f"{mark}{finding.server}: {finding.limit}")
    for seen in finding.evidence:
        place = f" ({seen.source})" if seen.source else ""
        yield make_printable(f"   seen     {seen.text}{place}")
    for each in finding.proposals:
        yield make_printable(f"   set      {_show_proposal(each)}")
        yield make_printable(f"            {each.why}")
    if not finding.proposals:
        yield f"   set      {NO_SETTING}"
    elif finding.cost:
        yield make_printable(f"   costs    {finding.cost}")
    command = measure_command(finding, advice)
    yield f"   measure  {NOT_MEASURED} yet{f'; run {command}' if command else ''}"
    if URL in command:
        yield f"            {NAME_URL}"
    yield make_printable(f"   source   {finding.source}")


def _show_proposal(each: Proposal) -> str:
    """Write a proposal: name, value now, proposed value, place."""
    return " ".join(filter(None, (each.name, show_change(each), f"({each.place})" if each.place else "")))


def show_change(each: Proposal) -> str:
    """Write the value now and the proposed one with their unit; only the first where no number follows."""
    now, value = (_show_value(one, each.unit) for one in (each.current, each.value))
    if each.value is None:
        return f"now {now}" if now else ""
    return f"{now} → {value}".strip()


def _show_value(value: Scalar | None, unit: str) -> str:
    if value is None:
        return ""
    is_number = not isinstance(value, (bool, str))
    return f"{show(value)} {unit}" if is_number and unit else show(value)


def _write_unread(advice: Advice, mark: str, write: Callable[[str], str] = make_printable) -> list[str]:
    return ["", "Not read:", *(f"{mark}{write(each)}" for each in advice.unread)] if advice.unread else []


def _escape(text: str) -> str:
    return _MARKS.sub(r"\\\1", make_printable(text))


def rules_text(files: Iterable[RuleFile]) -> str:
    """Return all rules for a terminal: name, limit, conditions in words, source."""
    lines: list[str] = []
    for file in files:
        for name, rule in file.rules.items():
            lines += ["", f"{file.advice}.{name}", f"   limit    {rule.limit}"]
            lines += [f"   now      {condition}" for condition in map(_say_condition, rule.now)]
            lines += [f"   next     {condition}" for condition in map(_say_condition, rule.next)]
            lines += [f"   source   {rule.source}"]
    return "\n".join(lines[1:])


def rules_json(files: Iterable[RuleFile]) -> list[dict[str, Any]]:
    """Return all rules as plain data; keys are stable."""
    return [_rule_as_json(file, name, rule) for file in files for name, rule in file.rules.items()]


def _rule_as_json(file: RuleFile, name: str, rule: RuleEntry) -> dict[str, Any]:
    return {
        "rule": f"{file.advice}.{name}", "server": file.title, "limit": rule.limit, "harm": rule.harm,
        "now": [_say_condition(each) for each in rule.now],
        "next": [_say_condition(each) for each in rule.next],
        "settings": list(rule.settings), "cost": rule.cost, "source": rule.source,
    }  # fmt: skip


def _say_condition(entry: EvidenceEntry) -> str:
    """Return an observation in words; of a log line without words, its pattern."""
    if entry.pattern is None:
        return entry.evidence or str(entry.when)
    log = "error log" if entry.log else "kernel log"
    return f"{entry.evidence} ({log})" if entry.evidence else f"{log}: {entry.pattern}"
