"""A study from advice: hints of what it proposes; what a server wrote stays a comment."""

from dataclasses import replace
from pathlib import Path

from tests.e2e.command_line import CommandLine
from tests.unit.advice.samples import BITES, HOSTILE, PROPOSAL, make_advice
from tuner.advice.findings import Evidence
from tuner.campaign.prepare import prepare
from tuner.commands.advised_study import propose_advised
from tuner.study import load_study


def test_hostile_text_is_a_comment_or_the_source_of_a_hint(tmp_path: Path):
    path, text = tmp_path / "nginx.yaml", f"{HOSTILE}\n  - other: space\r\u2028\x85# \"'"
    CommandLine(tmp_path).call("init", "nginx")
    known = replace(PROPOSAL, name="open_file_cache", value=1000, hint=("open_file_cache", 1000))
    outside = replace(PROPOSAL, name="LimitNOFILE", why=text, hint=None)
    finding = replace(BITES, limit=text, evidence=(Evidence(text=text),), proposals=(known, outside))

    hinted = propose_advised(path, make_advice(finding))

    assert hinted == ("open_file_cache",)
    hostile = [line for line in path.read_text().split("\n") if "window.hacked" in line]
    assert [line[:4] for line in hostile] == ["  # "] * 3 + ["    "]
    assert hostile[3].startswith('      "open_file_cache": {value: 1000, odds: 3, source: "tuner advise: ')
    assert all(line.isprintable() for line in hostile)
    prepare(load_study(path))
