"""The limit of child processes is seen without a line of a log: in processes, sockets and the status page."""

import re
from collections.abc import Mapping, Sequence

import pytest

from tuner.advice.findings import Finding, Level, SeenServer, judge
from tuner.advice.log_lines import LogLine, cut_messages
from tuner.advice.rules import FOLDER, read_rules
from tuner.advice.server_look import RunningProcess, find_workers
from tuner.ports import Scalar

RULES = read_rules(FOLDER / "php-fpm.yaml")
POOL: Mapping[str, Scalar] = {
    "pm": "dynamic", "pm_max_children": 4, "pm_max_spare_servers": 2, "another_pool": "none",
}  # fmt: skip
TEXT = (
    "[26-Nov-2026 18:45:56] WARNING: [pool api] server reached pm.max_children setting (20), consider "
    "raising it"
)
(LINE,) = cut_messages([LogLine(text=TEXT, source="/var/log/php8.2-fpm.log", at_s=0.0)], RULES.file.message)


def find(facts: Mapping[str, Scalar], log: Sequence[LogLine] = ()) -> Finding | None:
    """Return what is found of the limit of child processes."""
    seen = SeenServer(
        server="php-fpm", rules=RULES, scope={**POOL, **facts}, current={}, kernel={}, files={}, log=log,
        kernel_log=(), now_s=0.0, started_s=0.0,
    )  # fmt: skip
    return {each.rule: each for each in judge(seen)}.get("php-fpm.max_children")


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        ({"workers": 4, "queue_waiting": 1}, Level.NOW),
        ({"workers": 4, "queue_waiting": 1, "pm": "static"}, Level.NOW),
        ({"active_children": 4, "listen_queue": 2, "queue_waiting": 0}, Level.NOW),
        ({"active_children": 4, "listen_queue": 0, "queue_waiting": 2}, Level.NOW),
        ({"children_reached": 1, "look_s": 1.0}, Level.NOW),
        ({"workers": 4}, Level.NEXT),
        ({"workers": 4, "pm": "ondemand"}, Level.NEXT),
        ({"children_reached_ever": 3}, Level.NEXT),
    ],
)
def test_processes_sockets_and_the_status_page_show_the_limit(facts: Mapping[str, Scalar], level: Level):
    found = find(facts)

    assert found is not None
    assert found.level is level
    assert found.limit == "Limit of child processes: pm.max_children 4"


@pytest.mark.parametrize(
    "facts",
    [
        {"workers": 3, "queue_waiting": 0, "active_children": 3, "listen_queue": 0},
        {"workers": 4, "pm": "static"},
        {"workers": 4, "pm_max_spare_servers": 4},
        {"workers": 9, "queue_waiting": 1, "another_pool": "api"},
    ],
    ids=["one is free", "all run always", "all may be idle", "several pools"],
)
def test_processes_that_prove_no_limit_are_no_finding(facts: Mapping[str, Scalar]):
    assert find(facts) is None


@pytest.mark.parametrize(
    ("another", "settings"), [("none", ["pm.max_children"]), ("api", ["pool.pm.max_children"])]
)
def test_of_several_pools_the_line_names_the_one_to_change(another: str, settings: list[str]):
    found = find({"another_pool": another}, [LINE])

    assert found is not None
    assert [each.name for each in found.proposals] == settings
    assert "[pool api]" in found.evidence[0].text


@pytest.mark.parametrize(
    ("text", "another"),
    [
        ("[global]\npid = /run/a\n[www]\nlisten = /run/b\n", None),
        ("[www]\nlisten = /run/b\n[global]\npid = /run/a\n", None),
        ("[global]\n[www]\nlisten = /run/b\n;[old]\n[api]\nlisten = /run/c\n", "api"),
    ],
)
def test_a_second_pool_is_noticed(text: str, another: str | None):
    found = re.search(RULES.file.values["another_pool"], text, re.MULTILINE)

    assert (found and found[1]) == another


def test_child_processes_of_the_status_page_are_no_workers():
    first = RunningProcess(pid=1, parent=0, command="php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)")
    titles = ("php-fpm: pool www", "php-fpm: pool www_status", "php-fpm: pool www_status  ")
    children = [RunningProcess(pid=pid, parent=1, command=title) for pid, title in enumerate(titles, start=2)]

    assert [each.pid for each in find_workers([first, *children], first, RULES.file.workers)] == [2]
