import json
from pathlib import Path

import pytest

from tests.unit.adapters.servers.golden import (
    RecordedHost,
    RecordedProcess,
    cases,
    describe,
    facts_of,
    printed,
    read,
    site_of,
)
from tuner.ports import Completed


def name_of(case: Path) -> str:
    return f"{case.parent.name}-{case.stem}"


@pytest.mark.parametrize("case", cases("render"), ids=name_of)
def test_a_configuration_becomes_exactly_these_files(case: Path):
    server, stored = read(case)

    files = server.render(stored["config"], site_of(stored["site"]), facts_of(stored["facts"]))

    expected = {path.name.removeprefix(f"{case.stem}."): path for path in case.parent.glob(f"{case.stem}.*")}
    del expected["json"]
    assert {path.name for path in files} == set(expected)
    for path, content in files.items():
        assert content.decode() == expected[path.name].read_text()


@pytest.mark.parametrize("case", cases("check"), ids=name_of)
def test_what_the_check_refuses_or_would_change_is_read_from_what_it_printed(case: Path):
    server, stored = read(case)
    checked = Completed(
        argv=(server.name, "-t"),
        returncode=stored["returncode"],
        stdout=b"",
        stderr=printed(case),
        duration_s=0.1,
    )

    assert list(server.refusals(checked)) == stored["refusals"]


@pytest.mark.parametrize("case", cases("check"), ids=name_of)
def test_a_check_that_fails_says_why(case: Path):
    _, stored = read(case)

    assert stored["returncode"] == 0 or stored["refusals"]


@pytest.mark.parametrize("case", cases("log"), ids=name_of)
def test_a_log_is_cut_down_to_the_lines_that_explain(case: Path):
    server, stored = read(case)

    assert list(server.complaints(printed(case))) == stored["complaints"]


@pytest.mark.parametrize("case", cases("detect"), ids=name_of)
def test_facts_are_read_from_what_the_host_answers(case: Path):
    server, stored = read(case)
    host = RecordedHost(commands=stored["commands"], files=stored["files"])

    assert describe(server.detect(host)) == stored["facts"]


@pytest.mark.parametrize("case", cases("running"), ids=name_of)
def test_what_is_in_force_is_read_back_from_the_kernel_and_the_server(case: Path):
    server, stored = read(case)
    host = RecordedHost(commands=stored["commands"], files=stored["files"])
    process = RecordedProcess(pid=stored["pid"]) if stored["pid"] else None
    site = site_of(stored["site"])

    found = server.effective(host, stored["config"], site, facts_of(stored["facts"]), process)

    assert dict(found) == stored["effective"]
    assert set(found) <= set(stored["config"])


def test_values_that_did_not_take_are_read_back_as_what_they_became():
    differing = {}
    for case in cases("running"):
        _, stored = read(case)
        asked, found = stored["config"], stored["effective"]
        differing[name_of(case)] = {name: found[name] for name in found if found[name] != asked[name]}

    assert {name: values for name, values in differing.items() if values} == {
        "apache-running-other-than-asked": {
            "ListenBacklog": 4096,
            "MaxRequestWorkers": 150,
            "StartServers": 2,
            "ThreadsPerChild": 25,
        },
        "apache-running-small-stack": {"ThreadStackSize": 0},
        "caddy-running-other-than-asked": {"GOMAXPROCS": 2, "timeouts.idle": 300},
        "h2o-running-other-than-asked": {"max-connections": 1024, "num-threads": 2},
        "haproxy-running-other-than-asked": {
            "nbthread": 2,
            "bind.shards": "one",
            "tune.bufsize": 16384,
            "balance": "roundrobin",
        },
        "nginx-running-other-than-asked": {
            "listen_backlog": 4096,
            "worker_processes": 2,
            "worker_rlimit_nofile": 1024,
        },
    }


def test_every_golden_file_belongs_to_a_case():
    for case in (case for kind in ("check", "log") for case in cases(kind)):
        assert case.with_suffix(".txt").exists()
    for path in Path(__file__).parent.glob("*/*.json"):
        assert path.stem.split("-")[0] in {"render", "check", "log", "detect", "running"}
        json.loads(path.read_text())
