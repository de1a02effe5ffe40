"""`tuner restore` after everything went wrong, on a host with systemd and as an ordinary user with sudo."""

import pytest

from benchmarks.faults.look import look_at
from tests.e2e.command_line import CommandLine
from tests.integration import hold_target
from tests.integration.waiting import holding
from tests.testbed.bed import Testbed
from tests.testbed.host import Sudo, TestHost, User

pytestmark = pytest.mark.more

STUDY = """\
study: lost
servers: [nginx, sysctl]
space: [nginx, sysctl-net]
target: {{host: "{url}", mode: managed, watchdog_s: 60}}
load: {{path: /}}
"""
CHANGES = {"worker_processes": 3, "worker_connections": 4000, "net.core.somaxconn": 5000}


@pytest.fixture(params=[User(name="root"), User(name="deploy", sudo=Sudo.FREELY)], ids=["root", "sudo"])
def web(own_bed: Testbed, request: pytest.FixtureRequest) -> TestHost:
    host = own_bed.add_host("web", systemd=True, user=request.param)
    host.limit_open_files("nginx", 2000)
    host.install_nginx()
    return host


def abandon(web: TestHost, tuner: CommandLine) -> None:
    """Leave the host changed, by a controller and a watchdog that are dead."""
    path = tuner.write(text=STUDY.format(url=web.ssh_url))
    with holding(hold_target.__file__, path, CHANGES):
        web.run(["systemctl", "stop", "tuner-watchdog-run"])


@pytest.mark.parametrize("lost", ["/var/lib/tuner", "/var/lib/tuner/run"])
def test_a_host_that_lost_what_it_kept_is_put_back_whole(web: TestHost, tuner: CommandLine, lost: str):
    before = look_at(web)
    abandon(web, tuner)
    web.run(["rm", "-r", lost])
    assert look_at(web) != before

    done = tuner.run("restore", "--host", web.ssh_url)

    assert done.returncode == 0, done.stderr
    assert look_at(web) == before
    assert web.show_unit("nginx", "ActiveState") == "active"
    assert web.show_unit("nginx", "NeedDaemonReload") == "no"
    pid = web.show_unit("nginx", "MainPID")
    limits = web.run(["sed", "-n", "s/^Max open files *//p", f"/proc/{pid}/limits"]).stdout
    assert int(limits.split()[1]) == 2000
    assert not (web.root / "etc/systemd/system/tuner-restore.service").exists()
    assert "Nothing to restore" in tuner.run("restore", "--host", web.ssh_url).stderr


def test_what_cannot_be_put_back_is_let_go_by_consent_only(web: TestHost, tuner: CommandLine):
    abandon(web, tuner)
    pid = web.show_unit("nginx", "MainPID")
    web.run(["mount", "--bind", "/etc/nginx", "/etc/nginx"])
    web.run(["mount", "-o", "remount,bind,ro", "/etc/nginx"])
    where = ("restore", "--host", web.ssh_url)

    refused = tuner.run(*where)
    unasked = tuner.run(*where, "--accept")
    accepted = tuner.run(*where, "--accept", "--yes")

    assert refused.returncode == 4, refused.stderr
    assert "/etc/nginx/nginx.conf" in refused.stderr
    assert "tuner restore --accept" in refused.stderr
    assert unasked.returncode == 2, unasked.stderr
    assert "Agree with --yes" in unasked.stderr
    assert accepted.returncode == 0, accepted.stderr
    assert "/var/lib/tuner/kept/" in accepted.stderr
    assert web.show_unit("nginx", "MainPID") == pid  # it was never stopped
    assert "Nothing to restore" in tuner.run(*where).stderr
