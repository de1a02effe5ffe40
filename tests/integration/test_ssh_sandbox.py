"""Sandboxes on a host over SSH, for root and for an ordinary user without sudo."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import PurePosixPath

import pytest

from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost, User
from tuner.adapters.hosts.ssh import SshHost
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, FileState

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")


def running(machine: TestHost, name: str) -> list[bytes]:
    """List processes of that name, those in sandboxes as well; not those that ended and nobody waited for."""
    return machine.run(["pgrep", "--runstates", "RSDT", "-x", name], check=False).stdout.split()


@pytest.fixture(scope="module", params=["root", "deploy"])
def machine(bed: Testbed, request: pytest.FixtureRequest) -> TestHost:
    return bed.add_host(request.param, user=User(name=request.param))


@pytest.fixture(scope="module")
def host(machine: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(machine.ssh_url)) as made:
        yield made


def test_a_server_runs_inside_and_answers_only_there(machine: TestHost, host: SshHost):
    with host.sandbox() as sandbox:
        sandbox.write(sandbox.directory / "index.html", FileState(content=b"hello"))
        server = sandbox.start(["busybox", "httpd", "-f", "-p", "8080", "-h", str(sandbox.directory)])
        ask = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:8080/"]
        wait_until(lambda: sandbox.run(ask, timeout_s=5).stdout == b"200")

        assert host.run(ask, timeout_s=5).stdout == b"000"
        assert b"httpd" in sandbox.read(PurePosixPath(f"/proc/{server.pid}/cmdline")).content
        listening = sandbox.read(PurePosixPath(f"/proc/{sandbox.pid}/net/tcp6")).content
        assert b":1F90 " in listening
        assert running(machine, "busybox")

    assert server.poll() is not None
    wait_until(lambda: not running(machine, "busybox"))


def test_settings_of_the_network_are_its_own(host: SshHost):
    before = host.read(SOMAXCONN)
    with host.sandbox() as sandbox:
        sandbox.write(SOMAXCONN, FileState(content=b"77\n"))
        assert sandbox.read(SOMAXCONN).content == b"77\n"
        with pytest.raises(ConfigRejected, match="the kernel refused 'many'"):
            sandbox.write(SOMAXCONN, FileState(content=b"many"))

    assert host.read(SOMAXCONN) == before


def test_what_is_the_hosts_cannot_be_written(host: SshHost):
    with host.sandbox() as sandbox:
        with pytest.raises(TargetError, match="is outside the sandbox"):
            sandbox.write(PurePosixPath("/etc/hosts"), FileState(content=b""))
        assert sandbox.run(["sh", "-c", "echo x >>/etc/hosts"], timeout_s=5).returncode != 0
        with pytest.raises(TargetError, match="cannot contain another"):
            sandbox.sandbox()


def test_a_shared_directory_is_seen_inside(machine: TestHost, host: SshHost):
    machine.run(["sh", "-c", "mkdir -p /srv/site && echo hello >/srv/site/index.html"])

    with host.sandbox(share=PurePosixPath("/srv/site")) as sandbox:
        assert sandbox.read(sandbox.directory / "shared/index.html").content == b"hello\n"
        sandbox.write(sandbox.directory / "a/b/c", FileState(content=b"x"))
        assert sandbox.read(sandbox.directory / "a/b/c").content == b"x"

    assert host.read(PurePosixPath("/dev/shm/tuner/a/b/c")) == ABSENT  # noqa: S108 - outside it is not there


def test_the_deadline_and_stopping_kill_what_runs_inside(machine: TestHost, host: SshHost):
    with host.sandbox() as sandbox:
        late = sandbox.run(["sh", "-c", "setsid sleep 701 & sleep 702"], timeout_s=0.3)
        started = sandbox.start(["sh", "-c", "trap '' TERM; sleep 703"])
        wait_until(lambda: len(running(machine, "sleep")) == 1)
        started.stop(timeout_s=0.1)

        assert late.timed_out
        assert not running(machine, "sleep")


def test_a_sandbox_ends_with_its_connection(machine: TestHost, host: SshHost):
    with host.sandbox() as sandbox:
        sandbox.start(["sleep", "704"])
        machine.kill_sshd()

        wait_until(lambda: not running(machine, "sleep"))
        with pytest.raises(TargetError, match="the connection broke"):
            sandbox.run(["true"], timeout_s=5)
    wait_until(lambda: not machine.run(["pgrep", "-x", "nsenter|unshare|sleep"], check=False).stdout)
    wait_until(lambda: not list((machine.root / "dev/shm").iterdir()))
    machine.start_sshd()
