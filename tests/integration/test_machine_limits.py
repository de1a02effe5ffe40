"""What may be used of a machine, read in control groups that limit it for real."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.limits import group, start_in
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.hosts.machine import read_machine
from tuner.study import load_study

GROUPS = Path("/sys/fs/cgroup")
CPU = min(os.sched_getaffinity(0))
OLDER = {
    "cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
    "memory": {"memory.limit_in_bytes": f"{2**30}"},
    "cpuset": {"cpuset.mems": "0", "cpuset.cpus": f"{CPU}"},
}
"""Limits in control groups of version 1, which has a tree for each controller."""
NEWER = {"cpu.max": "50000 100000", "memory.max": f"{2**30}", "cpuset.cpus": f"{CPU}"}
"""The same of version 2."""
SANDBOX = """\
study: limited
servers: [nginx]
space: [nginx]
"""
MANAGED = """\
study: limited
servers: [nginx]
space: [nginx]
target: {{host: "{url}", mode: managed}}
load: {{path: /}}
"""
PREPARE = """
import json, sys
from pathlib import Path
from tuner.campaign.prepare import prepare
from tuner.study import load_study
setup = prepare(load_study(Path(sys.argv[1])))
most = next(each.high for each in setup.space.dimensions if each.name == "worker_processes")
found = setup.fingerprint
print(json.dumps([found.cores, found.memory_mib, found.limits, setup.placement.note, most]))
"""


@pytest.fixture
def limited() -> Iterator[list[Path]]:
    """Make a group with little of everything; gives the files that take the ids of its processes."""
    name = f"tuner-test-{uuid.uuid4().hex[:8]}"
    is_newer = (GROUPS / "cgroup.controllers").exists()
    older = {GROUPS / controller / name: files for controller, files in OLDER.items()}
    with ExitStack() as stack:
        try:
            if is_newer:
                (GROUPS / "cgroup.subtree_control").write_text("+cpu +cpuset +memory")
            made = {GROUPS / name: NEWER} if is_newer else older
            for folder, files in made.items():
                folder.mkdir()
                stack.callback(folder.rmdir)
                for file, value in files.items():
                    (folder / file).write_text(value)
        except OSError as error:
            pytest.skip(f"no group with limits can be made here: {error}")
        entries = [folder / "cgroup.procs" for folder in made]
        yield entries
        wait_until(lambda: not any(entry.read_text().strip() for entry in entries))


def test_a_sandbox_is_prepared_within_the_limits_of_the_session(limited: list[Path], tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text(SANDBOX)
    enter = 'for each in "$@"; do echo $$ >"$each"; done; exec "$PYTHON" -c "$PREPARE" "$STUDY"'
    environment = {"PYTHON": sys.executable, "PREPARE": PREPARE, "STUDY": str(study)}

    done = subprocess.run(
        ["/bin/sh", "-c", enter, "enter", *map(str, limited)],
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr.decode()
    cores, memory_mib, limits, note, most = json.loads(done.stdout)
    assert (cores, memory_mib, most) == (1, 1024, 2)
    assert "CPU quota 0.5 of 1 CPUs, 1,024 of " in limits
    assert note == f"co-located: server and generator share the only CPU, CPU {CPU}"


def test_an_installed_service_has_the_limits_of_its_own_group(own_bed: Testbed, tmp_path: Path):
    host = own_bed.add_host("web")
    study = tmp_path / "study.yaml"
    study.write_text(MANAGED.format(url=host.ssh_url))
    with group(host, "cpu", cfs_period_us="100000", cfs_quota_us="50000") as procs:
        start_in(host, procs, "service", "nginx", "start")
        host.wait_until_it_answers(80)
        machine = plugins.make_host(host.ssh_url)

        found = find_target(load_study(study), machine)

        assert "CPU quota" not in read_machine(machine).limits
        assert "CPU quota 0.5 of" in found.machine.limits
        assert found.machine.cores == 1
        assert found.space_facts["names"]["online_cores"] == os.cpu_count()
