"""The command that advises: its list of rules, and options that exclude each other."""

import json
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine


def test_all_rules_are_listed_without_a_look_at_a_host(tmp_path: Path):
    tuner = CommandLine(tmp_path)

    listed = tuner.call("advise", "--rules")
    rows = json.loads(tuner.call("advise", "--rules", "--json").stdout)

    assert listed.returncode == 0
    assert len(rows) >= 45
    assert {row["server"] for row in rows} >= {"nginx", "Apache httpd", "Linux kernel", "Any server"}
    assert [row["rule"] for row in rows if row["rule"] not in listed.stdout.split()] == []


def test_the_rules_of_one_server_come_with_the_shared_ones_and_those_of_the_kernel(tmp_path: Path):
    rows = json.loads(CommandLine(tmp_path).call("advise", "h2o", "--rules", "--json").stdout)

    assert {row["rule"].partition(".")[0] for row in rows} == {"h2o", "server", "kernel"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "advice.pdf"), "--output: advice.pdf: advice is written as .html or .md."),
        (("-o", "none/advice.html"), "--output: none: there is no such folder."),
        (("--rules", "--markdown"), "--rules: rules are printed as text or JSON."),
        (("--rules", "-o", "rules.html"), "--rules: rules are printed as text or JSON."),
        (("ngnix", "--rules"), "Did you mean nginx"),
        (("--corpus", "none"), "the corpus does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_before_a_look(tmp_path: Path, arguments, said):
    refused = CommandLine(tmp_path).call("advise", *arguments)

    assert refused.returncode == 2
    assert said in refused.stderr
