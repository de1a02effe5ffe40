"""Rules for advice are data: their format, their names, and that every built-in one is whole."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.unit.editor import find_faults
from tuner.advice.rule_file import json_schema
from tuner.advice.rules import KERNEL, known_settings, read_file, read_rules, rule_files
from tuner.errors import UsageError

FOLDER = Path(__file__).parents[3] / "search_spaces"
MPMS = {"apache", "apache-worker", "apache-prefork"}
SERVERS = MPMS | {"nginx", "php-fpm", "haproxy", "caddy", "h2o", "sysctl"}
SOURCE = re.compile(r"https://\S+|\w\(\d\)|\w+/\S+\.(?:c|rst)\b")
"""An address, a manual page, or a file of the source code."""
RULE = """\
advice: small
servers: [nginx]
title: One rule
processes: '^nginx'
rules:
  connections:
    limit: "Connections of a worker: {worker_connections}"
    harm: fails
    now:
      - when: connections > worker_connections * workers
        evidence: "{connections} are open"
    settings:
      worker_connections:
        value: 2 * worker_connections
        why: More connections; more memory.
    cost: Memory.
    source: nginx.org
"""


def read(text: str, folder: Path) -> None:
    path = folder / "small.yaml"
    path.write_text(text)
    read_rules(path, checks_names=True)


def test_every_built_in_rule_is_whole_and_uses_known_names():
    for path in rule_files():
        rules = read_rules(path, checks_names=True)
        own = known_settings((*rules.file.servers, KERNEL))
        for name, rule in rules.file.rules.items():
            unknown = [each for each, of in rule.settings.items() if not of.outside and each not in own]
            assert unknown == [], f"{path.name}: {name}"
        assert find_faults(path.read_text(), json_schema()) == [], path.name
        assert "$schema=../advice.schema.json" in path.read_text().splitlines()[0]


def test_each_server_has_rules_and_each_rule_a_source_to_look_at():
    files = [read_file(path)[1] for path in sorted((FOLDER / "advice").rglob("*.yaml"))]
    sources = {f"{file.advice}.{name}": rule.source for file in files for name, rule in file.rules.items()}

    assert {server for file in files for server in file.servers} == SERVERS
    assert len(sources) >= 45
    assert [name for name, source in sources.items() if not SOURCE.search(source)] == []


def test_a_right_file_is_read(tmp_path: Path):
    read(RULE, tmp_path)


def test_the_committed_schema_is_the_generated_one():
    committed = (FOLDER / "advice.schema.json").read_text(encoding="utf-8")

    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert committed == json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", (
        "write it again: python -m tuner.advice.rule_file > search_spaces/advice.schema.json"
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("connections > ", "conections > ", "small.yaml:10: rules.connections.now.0.when: `conections > "),
        ("{connections} are", "{conection} are", "conection, which is not known. Did you mean connections?"),
        ("harm: fails", "harm: hurts", "'hurts' is no known value"),
        ("    cost: Memory.\n", "", "the key cost is missing"),
        ("when: connections > worker_connections * workers", "log: '('", "is no regular expression"),
        ("    now:\n", "    causes: [queue]\n    now:\n", "there is no rule queue"),
        ("        value: 2", "        goes_with: one\n        value: 2", "worker_connections goes with one"),
        ('        evidence: "{connections} are open"\n', "", "Give `when:` with `evidence:`"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_refused_with_its_place(tmp_path: Path, before: str, after: str, said: str):
    assert before in RULE

    with pytest.raises(UsageError, match=r"small\.yaml") as refused:
        read(RULE.replace(before, after), tmp_path)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("Connections: {connections} of {workers}", "Connections: 7 of 2"),
        ("Connections: {cores}", "Connections"),
        ("A queue (somaxconn {somaxconn})", "A queue"),
        ("Memory for {cores} workers", "Memory for workers"),
        ("Connections: {connections}, {cores} CPUs", "Connections: 7"),
    ],
)
def test_a_clause_with_an_unknown_value_is_left_out(tmp_path: Path, limit: str, said: str):
    path = tmp_path / "small.yaml"
    path.write_text(RULE.replace("Connections of a worker: {worker_connections}", limit))

    assert read_rules(path).fill(limit, {"connections": 7, "workers": 2}) == said
