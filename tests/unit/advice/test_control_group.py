"""Limits of a control group, of version 2 or 1, or of one above it: page cache is no lack of memory."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tuner.advice.control_group import count_in_groups, find_group_facts
from tuner.advice.findings import Level, SeenServer, judge
from tuner.advice.rules import FOLDER, read_rules
from tuner.advice.server_look import KnownFiles, add_room
from tuner.hosts.control_groups import MIB, find_groups
from tuner.ports import FileState, Scalar

TWO = "/sys/fs/cgroup/system.slice"
ONE = "/sys/fs/cgroup/memory/system.slice"
CACHE = f"anon {20 * MIB}\ninactive_file {60 * MIB}\nactive_file {10 * MIB}\nslab_reclaimable {2 * MIB}\n"
PRESSED = f"anon {95 * MIB}\ninactive_file {3 * MIB}\nactive_file {MIB}\n"
ALL_BY_CACHE = {
    f"{TWO}/web.service/memory.max": "max", f"{TWO}/web.service/memory.events": "max 0\noom_kill 0\n",
    f"{TWO}/memory.max": str(100 * MIB), f"{TWO}/memory.events": "max 44\noom_kill 7\n",
    f"{TWO}/memory.current": str(100 * MIB), f"{TWO}/memory.stat": CACHE,
}  # fmt: skip
PRESSING = {**ALL_BY_CACHE, f"{TWO}/memory.stat": PRESSED}
FIRST_VERSION = {
    f"{ONE}/memory.limit_in_bytes": str(100 * MIB), f"{ONE}/memory.failcnt": "44",
    f"{ONE}/memory.usage_in_bytes": str(100 * MIB),
    f"{ONE}/memory.stat": f"inactive_file 0\ntotal_inactive_file {60 * MIB}\ntotal_active_file {12 * MIB}\n",
}  # fmt: skip


def read(files: Mapping[str, str], cgroup: bytes = b"0::/system.slice/web.service\n") -> dict[str, Scalar]:
    """Return the facts and counts of a server in these control groups."""
    known = KnownFiles(
        {PurePosixPath(path): FileState(content=text.encode()) for path, text in files.items()}
    )
    groups = find_groups(cgroup)
    return {**find_group_facts(known, groups), **count_in_groups(known, groups)}


@pytest.mark.parametrize(
    ("files", "cgroup", "used_mib"),
    [
        (ALL_BY_CACHE, b"0::/system.slice/web.service\n", 28),
        (PRESSING, b"0::/system.slice/web.service\n", 96),
        (FIRST_VERSION, b"5:memory:/system.slice/web.service\n", 28),
    ],
    ids=["cache, version 2", "pressed, version 2", "cache, version 1"],
)
def test_use_and_hits_are_those_of_the_group_with_the_limit(files, cgroup, used_mib):
    facts = read(files, cgroup)

    assert facts["memory_limit_mib"] == 100
    assert str(facts["memory_group"]).endswith("/system.slice")
    assert facts["memory_limit_hits"] == 44
    assert facts["group_used_mib"] == used_mib


def test_kills_of_other_services_below_the_same_limit_are_not_those_of_a_server():
    assert read(ALL_BY_CACHE)["group_oom_kills"] == 0


@pytest.mark.parametrize(("files", "level"), [(ALL_BY_CACHE, None), (PRESSING, Level.NOW)])
def test_a_limit_that_page_cache_reaches_does_not_bite(files: Mapping[str, str], level: Level | None):
    seen = SeenServer(
        server="h2o", rules=read_rules(FOLDER / "h2o.yaml"), scope={**read(files), "look_s": 1.0}, current={},
        kernel={}, files={}, log=(), kernel_log=(), now_s=0.0, started_s=0.0,
    )  # fmt: skip
    found = {each.rule: each.level for each in judge(seen)}

    assert found.get("h2o.memory_limit") == level


@pytest.mark.parametrize(
    ("facts", "room_mib"), [({}, 3000), (read(ALL_BY_CACHE), 72), ({"memory_limit_mib": 9000}, 3000)]
)
def test_a_server_has_no_more_room_than_its_group_and_its_host(facts: dict[str, Scalar], room_mib: int):
    assert add_room(facts, {"available_mib": 3000})["room_mib"] == room_mib


def test_tasks_and_quota_of_a_group_above_count():
    tasks = {f"{TWO}/pids.max": "50", f"{TWO}/pids.current": "49", f"{TWO}/pids.events": "max 3\n"}
    own = {f"{TWO}/web.service/pids.max": "max", f"{TWO}/web.service/pids.current": "9"}
    quota = {f"{TWO}/cpu.max": "50000 100000", f"{TWO}/cpu.stat": "nr_periods 10\nnr_throttled 4\n"}
    idle = {f"{TWO}/web.service/cpu.stat": "nr_periods 0\nnr_throttled 0\n"}

    facts = read({**tasks, **own, **quota, **idle})

    assert (facts["tasks"], facts["tasks_limit"], facts["tasks_refused"]) == (49, 50, 3)
    assert (facts["cpu_quota"], facts["quota_periods"], facts["throttled_periods"]) == (0.5, 10, 4)
