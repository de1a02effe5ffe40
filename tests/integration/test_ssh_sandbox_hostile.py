"""A server that is hostile: what it can reach from inside a sandbox on a host over SSH."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.devices import require_devices
from tests.integration.everybody import python_for_everybody
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost, User
from tuner.adapters.hosts.isolation import KEPT_CAPABILITIES
from tuner.adapters.hosts.ssh import SshHost
from tuner.ports import FileState

HOSTILE = Path(__file__).with_name("hostile_server.py").read_bytes()
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
IDENTIFY_PROC = ("stat", "-c", "%d", "/proc")


@pytest.fixture(scope="module", params=["root", "deploy"])
def machine(bed: Testbed, request: pytest.FixtureRequest) -> TestHost:
    made = bed.add_host(request.param, user=User(name=request.param))
    # As on a real machine: what is mounted there keeps an ordinary user from a fresh /proc.
    made.run(["umount", "/proc/sys/net", "/proc/sys"])
    # Inside, nobody has the number of a process of the host.
    made.run(["sh", "-c", "echo 20000 >/proc/sys/kernel/ns_last_pid"])
    return made


@pytest.fixture(scope="module")
def host(machine: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(machine.ssh_url)) as made:
        yield made


def test_a_hostile_server_gets_nowhere(host: SshHost):
    others = host.start(["sleep", "600"])
    with host.sandbox() as sandbox:
        program = sandbox.directory / "hostile_server.py"
        sandbox.write(program, FileState(content=HOSTILE))
        told = (str(others.pid), str(sandbox.pid), "/etc/hostname")
        ran = sandbox.run((str(python_for_everybody()), "-B", str(program), *told), timeout_s=30)
    others.stop(timeout_s=5)

    assert ran.returncode == 0, ran.stderr.decode()
    tried = json.loads(ran.stdout)
    assert len(tried) > 30
    assert {name for name, result in tried.items() if result == "done"} == set()


def test_a_server_has_few_rights_and_gets_no_more(host: SshHost):
    with host.sandbox() as sandbox:
        ran = sandbox.run(("cat", "/proc/self/status"), timeout_s=5).stdout.decode()
        server = sandbox.start(("sleep", "600"))
        started = (sandbox.read(PurePosixPath(f"/proc/{server.pid}/status")).content or b"").decode()
        score = sandbox.read(PurePosixPath(f"/proc/{server.pid}/oom_score_adj")).content

    kept = sum(1 << number for number in KEPT_CAPABILITIES.values())
    for status in (ran, started):
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["CapEff"], 16) & ~kept == 0
        assert int(fields["CapPrm"], 16) & ~kept == 0
        assert int(fields["CapInh"], 16) == 0
        assert fields["NoNewPrivs"] == "1"
    assert score == b"500\n"


def test_the_devices_that_every_program_needs_are_there(host: SshHost):
    with host.sandbox() as sandbox:
        require_devices(sandbox, "echo b | cat /dev/stdin")


def test_no_server_sees_what_the_first_shell_writes_or_the_sandbox_leaves_beside_itself(host: SshHost):
    with host.sandbox() as sandbox:
        sandbox.write(SOMAXCONN, FileState(content=b"77\n"))
        seen = sandbox.run(["ls", "-A", "/dev/shm", "/run"], timeout_s=5).stdout  # noqa: S108 - inside

    assert seen == b"/dev/shm:\ntuner\n\n/run:\n"


def test_nothing_but_memory_and_tmp_can_be_written(host: SshHost):
    everywhere = "for each in / /etc /sys /proc/sys/net/core/somaxconn; do [ ! -w $each ] || echo $each; done"
    with host.sandbox() as sandbox:
        writable = sandbox.run(["sh", "-c", everywhere], timeout_s=5)
        temporary = sandbox.run(["sh", "-c", "[ -w /tmp ] && [ -w /dev/shm ]"], timeout_s=5)

    assert writable.stdout == b""
    assert temporary.returncode == 0


def test_processes_inside_are_read_and_watched_by_their_ids_on_the_host(host: SshHost):
    with host.sandbox() as sandbox:
        server = sandbox.start(["sh", "-c", "sleep 600 & wait"])
        inside = sandbox.run(["sh", "-c", "echo /proc/[0-9]*"], timeout_s=5).stdout.split()
        on_host = host.read(PurePosixPath(f"/proc/{server.pid}/comm"))
        looked = sandbox.look([SOMAXCONN, PurePosixPath("/etc/hostname")], trees=[server.pid])
        status = looked.read(PurePosixPath(f"/proc/{server.pid}/status")).content

        assert on_host == sandbox.read(PurePosixPath(f"/proc/{server.pid}/comm"))
        assert b"/proc/1" in inside
        assert f"/proc/{server.pid}".encode() not in inside
        assert status is not None
        assert looked.read(SOMAXCONN) == sandbox.read(SOMAXCONN)


def test_what_a_server_prints_and_how_it_ends_is_told(host: SshHost):
    with host.sandbox() as sandbox:
        for _ in range(10):
            server = sandbox.start(["sh", "-c", "echo started 1; kill -TERM $$"])
            wait_until(lambda: server.poll() is not None)  # noqa: B023 - called at once
            assert server.output() == b"started 1\n"
            assert server.poll() == -15
            server.stop(timeout_s=1)


def test_where_no_fresh_proc_is_permitted_the_hosts_stays_and_can_only_be_read(bed: Testbed):
    """As in a container that hides a part of /proc from its users."""
    host = SshHost(bed.add_host("masked", user=User(name="deploy")).ssh_url)
    try:
        with host.sandbox() as sandbox:
            sandbox.write(SOMAXCONN, FileState(content=b"77\n"))
            server = sandbox.start(["sleep", "600"])
            identified = [each.run(IDENTIFY_PROC, timeout_s=5).stdout for each in (sandbox, host)]

            assert sandbox.read(SOMAXCONN).content == b"77\n"
            assert sandbox.read(PurePosixPath(f"/proc/{server.pid}/comm")).content == b"sleep\n"
            assert sandbox.run(["sh", "-c", f"echo 1 >{SOMAXCONN}"], timeout_s=5).returncode != 0
            assert identified[0] == identified[1]
    finally:
        host.close()
