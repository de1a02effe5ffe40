"""A server that leaks until the kernel kills it, in a memory cgroup of its own."""

import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.waiting import is_running, wait_until
from tests.page_server import PageServer, split
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.readiness import Manner
from tuner.deploy.sandbox import SandboxTarget
from tuner.errors import Crashed
from tuner.hosts.placement import place
from tuner.measure.trial import NO_JUDGES, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load
from tuner.ports import LoadShape
from tuner.records import Window
from tuner.study.presets import PRESETS

MEMORY = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)
"""Where groups with a limit are made: cgroup v1, v2."""
LIMIT = 64 * 2**20


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """Make a group whose processes have little memory; gives the file that takes their ids."""
    name = f"tuner-test-{uuid.uuid4().hex[:8]}"
    for root, limit in MEMORY:
        group = root / name
        try:
            group.mkdir()
            (group / limit).write_text(f"{LIMIT}\n")
        except OSError:
            if group.exists():
                group.rmdir()
            continue
        yield group / "cgroup.procs"
        wait_until(lambda: not (group / "cgroup.procs").read_text().strip())  # noqa: B023 - the last one
        group.rmdir()
        return
    pytest.skip("no group with a memory limit can be made here")


def test_a_server_that_leaks_until_the_kernel_kills_it_has_crashed(small_memory: Path) -> None:
    host = LocalHost()
    servers: Mapping[str, Any] = {"page": PageServer()}
    placement = place(os.sched_getaffinity(0))
    facts = {"page": servers["page"].detect(host)}
    plan = SandboxTarget(
        host=host, servers=servers, facts=facts, chain=link(facts, {}), split=split,
        content=open_content("builtin", "/index.html"), placement=placement,
        load=ExpectedLoad(manner=Manner(keepalive=False)),
    )  # fmt: skip
    load = Load.prepare(Wrk(), LoadShape(connections=4, keepalive=False), host)
    windows: list[Window] = []

    with plan.deploy({"leaked_bytes": 100_000}) as deployment:
        pid = deployment.processes["page"].pid
        small_memory.write_text(f"{pid}\n")
        with pytest.raises(Crashed, match=r"page: it was killed by signal 9"):
            measure_trial(deployment, load, PRESETS["quick"], NO_JUDGES, RetryBudget(), windows.append)

    assert not is_running(pid)
