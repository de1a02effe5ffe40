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
    "pm": "dynamic", "pm_max_children": 4, "pm_max_spare_servers": 2, "pm_start_servers": 2,
    "pm_min_spare_servers": 1, "tasks_room": 1000, "another_pool": "none",
}  # fmt: skip


def read_line(text: str) -> LogLine:
    """Return a line of the log of php-fpm."""
    line = LogLine(text=f"[26-Nov-2026 18:45:56] WARNING: {text}", source="/var/log/php-fpm.log", at_s=0.0)
    (cut,) = cut_messages([line], RULES.file.message)
    return cut


LINE = read_line("[pool api] server reached pm.max_children setting (20), consider raising it")
KILLED = read_line("[pool www] child 812 exited on signal 9 (SIGKILL) after 3.123456 seconds from start")


def find(
    facts: Mapping[str, Scalar], log: Sequence[LogLine] = (), rule: str = "max_children"
) -> Finding | None:
    """Return what is found of a limit."""
    seen = SeenServer(
        server="php-fpm", rules=RULES, scope={**POOL, **facts}, current={}, kernel={}, files={}, log=log,
        kernel_log=(), now_s=0.0, started_s=0.0,
    )  # fmt: skip
    return {each.rule: each for each in judge(seen)}.get(f"php-fpm.{rule}")


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        ({"workers": 4, "queue_lasting": 1}, Level.NOW),
        ({"workers": 4, "queue_lasting": 1, "pm": "static"}, Level.NOW),
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
        {"workers": 3, "queue_lasting": 0, "active_children": 3, "listen_queue": 0},
        {"workers": 4, "pm": "static"},
        {"workers": 4, "pm": "static", "queue_waiting": 1, "queue_lasting": 0},
        {"workers": 4, "pm_max_spare_servers": 4},
        {"workers": 9, "queue_lasting": 1, "another_pool": "api"},
    ],
    ids=["one is free", "all run always", "a request that is just taken", "all may be idle", "several pools"],
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


NEW: Mapping[str, Scalar] = {"workers": 2, "used_mib": 2, "worker_mib": 1, "grown_mib": 0}
"""Two child processes without a request."""
GROWN: Mapping[str, Scalar] = {"workers": 4, "used_mib": 400, "worker_mib": 100, "grown_mib": 100}


@pytest.mark.parametrize(
    ("facts", "level"),
    [({}, None), ({"oom_kills_ever": 0}, None), ({"oom_kills_ever": 1}, Level.NEXT)],
    ids=["unknown", "the kernel killed nothing", "the kernel killed a process"],
)
def test_a_killed_child_process_proves_a_lack_of_memory_only_with_a_kill_by_the_kernel(facts, level):
    memory = {**NEW, "pm_max_children": 50, "room_mib": 3681}

    found = find({**memory, **facts}, [KILLED], "memory_of_children")

    assert (found and found.level) == level


@pytest.mark.parametrize(
    ("facts", "proposed"),
    [({**NEW, "room_mib": 3681}, []), ({**GROWN, "room_mib": 600}, [("pm.max_children", 8)])],
    ids=["child processes without a request", "child processes that have served requests"],
)
def test_a_lack_of_memory_is_never_answered_with_more_child_processes(facts, proposed):
    found = find({**facts, "pm_max_children": 50, "oom_kills_ever": 1}, [KILLED], "memory_of_children")

    assert found is not None
    assert [(each.name, each.value) for each in found.proposals if each.name != "services"] == proposed


@pytest.mark.parametrize(("memory", "value"), [(NEW, 8), (GROWN, 12)])
def test_child_processes_without_a_request_allow_a_smaller_step(memory, value):
    found = find({**memory, "workers": 4, "queue_lasting": 1, "room_mib": 1200})

    assert found is not None
    assert [each.value for each in found.proposals] == [value]


def test_of_several_pools_the_line_tells_the_number_of_its_pool():
    found = find({**GROWN, "another_pool": "api", "room_mib": 1200}, [LINE])

    assert found is not None
    assert [(each.current, each.value) for each in found.proposals] == [(20, 29)]
