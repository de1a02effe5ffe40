"""The test hosts keep to themselves, and nothing is left of them."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.leftovers import processes_with
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import PHP_PORT, Sudo, TestHost, User
from tests.testbed.namespaces import runs

CHECKOUT = Path(__file__).parents[2]
USED_MACHINE = CHECKOUT / "tests/testbed/used_machine.sh"
PASSWORD = "geheim"  # noqa: S105 - of an account that lives for a second


def log_in(host: TestHost, command: str) -> bytes:
    options = [
        "-F",
        "/dev/null",
        "-o",
        "BatchMode=yes",
        "-o",
        f"UserKnownHostsFile={host.home / '.ssh/known_hosts'}",
    ]
    return subprocess.run(
        ["ssh", *options, "-i", str(host.identity), host.ssh_url, command], check=True, capture_output=True
    ).stdout


def test_a_host_lets_its_user_in_who_may_use_sudo(bed: Testbed):
    host = bed.add_host("user", user=User(name="deploy", password=PASSWORD, sudo=Sudo.PASSWORD))

    said = log_in(host, f"id -un; hostname; echo {PASSWORD} | sudo -S -p '' id -un")

    assert said == b"deploy\nuser\nroot\n"
    assert "deploy" not in Path("/etc/passwd").read_text()


def test_what_a_host_writes_stays_its_own(web: TestHost):
    web.run(["sh", "-c", "echo x >/etc/nginx/written-by-a-test; echo 99 >/proc/sys/net/core/somaxconn"])

    assert (
        web.run(["cat", "/etc/nginx/written-by-a-test", "/proc/sys/net/core/somaxconn"]).stdout == b"x\n99\n"
    )
    assert not Path("/etc/nginx/written-by-a-test").exists()
    assert Path("/proc/sys/net/core/somaxconn").read_text() != "99\n"
    assert web.run(["sh", "-c", "echo 1 >/proc/sys/vm/swappiness"], check=False).returncode != 0


@pytest.mark.parametrize("server", ["nginx", "apache", "h2o"])
def test_packaged_servers_answer(bed: Testbed, server: str):
    host = bed.add_host(server)

    host.install(server)

    assert host.status_of("/") is not None


def test_php_fpm_answers_behind_nginx(bed: Testbed):
    host = bed.add_host("php")

    host.install("php-fpm")
    host.put_page("twice.php", "<?php echo 'twice ', 2 * 21;")

    wait_until(lambda: host.status_of("/index.php", port=PHP_PORT) == 200)
    page = host.run(["curl", "-sS", f"http://{host.address}:{PHP_PORT}/twice.php"])
    assert page.stdout == b"twice 42"


def test_hosts_reach_each_other_unless_the_link_is_cut(bed: Testbed, web: TestHost):
    other = bed.add_host("other")
    knock = ["timeout", "0.5", "bash", "-c", f": </dev/tcp/{web.address}/22"]

    assert other.run(knock, check=False).returncode == 0
    web.cut()
    assert other.run(knock, check=False).returncode != 0
    web.heal()
    wait_until(lambda: other.run(knock, check=False).returncode == 0)


def test_a_link_can_be_slow(bed: Testbed):
    host = bed.add_host("far")
    bed.delay(host, round_trip_ms=40)
    log_in(host, "true")

    began_s = time.monotonic()
    socket.create_connection((host.address, 22)).close()

    assert time.monotonic() - began_s >= 0.04


@pytest.mark.alone
def test_nothing_is_left_when_the_tests_are_killed(tmp_path: Path):
    before = processes_with("tests/testbed/link.py")
    held = subprocess.Popen(
        [sys.executable, "-m", "tests.testbed.hold_testbed"],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with held:
        address, pid = held.stdout.readline().decode().split()
        network = address.split(".")[2]
        assert Path(f"/sys/class/net/testbed-{network}").exists()
        held.kill()

    wait_until(lambda: not Path(f"/sys/class/net/testbed-{network}").exists())
    wait_until(lambda: not runs(int(pid)))
    wait_until(lambda: processes_with("tests/testbed/link.py") == before)


@pytest.mark.more
def test_hosts_and_tests_neither_see_nor_touch_what_tuner_keeps_on_this_machine(tmp_path: Path):
    """One test of each kind of machine, where a managed run was killed and a log is large."""
    tests = (
        "test_managed.py::test_a_second_tuner_is_refused_with_the_name_of_the_first",
        "test_systemd.py::test_a_unit_is_stopped_started_and_given_more_files_by_a_drop_in",
        "test_keeper.py::test_a_second_tuner_is_told_who_is_at_work",
        "../contract/test_servers.py::TestNginx::test_the_service_starts_is_in_force_and_stops",
    )
    ended = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", str(USED_MACHINE), str(tmp_path)),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(f"tests/integration/{each}" for each in tests),
        ],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if name != "TUNER_STATE"},
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout.decode()[-4000:] + ended.stderr.decode()
