"""Writes what advice proposes into the file of a new study."""

import json
from pathlib import Path

from tuner.advice.findings import Advice, Level
from tuner.advice.log_lines import quote_line
from tuner.advice.rule_file import FAILS
from tuner.campaign.prepare import prepare
from tuner.commands.corpus import insert_lines, write_value
from tuner.study import load_study
from tuner.study.folder import put_in_place

ODDS = 3
"""Right three times out of four: what a proposal is trusted until it is measured."""

AS_NOW = "constraints: [failure_rate <= default]"
WITHOUT_FAILURES = "constraints: [failure_rate <= 0.001 unlike default]"
"""Requests fail now: the default may do so, a winner may not."""


def propose_advised(path: Path, advice: Advice) -> tuple[str, ...]:
    """Add what advice proposes to the file of a new study, as hints that are tried first.

    Returns the hinted settings. What no study can change stands there as a comment.
    """
    space = prepare(load_study(path)).space
    known = {each.name for each in space.parameters if not each.pinned}
    lines = ["  # Found by `tuner advise`, not measured. The search leans on hints, and measures them."]
    hints: dict[str, list[str]] = {}
    for finding in (each for each in advice.findings if each.level is not Level.TRY):  # the space has those
        lines += [f"  # {finding.level}: {quote_line(finding.limit)}"]
        lines += [f"  #   {quote_line(each.text)}" for each in finding.evidence]
        for each in finding.proposals:
            name, hinted = each.hint or ("", None)
            if hinted is None or name not in known:
                value = "" if each.value is None else f": {each.value}"
                lines.append(f"  #   outside of this study: {each.name}{value}. {quote_line(each.why)}")
            elif name not in hints:
                source = json.dumps(f"tuner advise: {quote_line(finding.limit)}")
                fields = f"value: {write_value(hinted)}, odds: {ODDS}, source: {source}"
                hints[name] = [f"      {json.dumps(name)}: {{{fields}}}"]
    if hints:
        lines += ["  - hints:", *(line for of in hints.values() for line in of)]
    text = insert_lines(path.read_text(encoding="utf-8"), lines)
    if any(each.level is Level.NOW and each.harm == FAILS for each in advice.findings):
        text = text.replace(AS_NOW, WITHOUT_FAILURES)
    put_in_place(path, text.encode())
    return tuple(hints)
