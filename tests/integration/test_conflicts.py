"""Who else writes configuration files or restarts services is found on real hosts, by locks and timers."""

import subprocess

import pytest

from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner import plugins
from tuner.hosts.conflicts import Conflict, find_conflicts

HOLD = """
import fcntl, os, pathlib, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
file = path.open("w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
TIMER = "[Timer]\nOnCalendar=2199-01-01\nUnit=certbot.service\n"


def find(host: TestHost) -> list[Conflict]:
    found = find_conflicts(plugins.make_host(host.ssh_url), ["worker_processes"], [])
    words = ("package", "certbot", "may replace")
    return [each for each in found if any(word in str(each) for word in words)]


@pytest.mark.parametrize(
    "path",
    ["/var/lib/dpkg/lock-frontend", "/run/unattended-upgrades.lock", "/var/lib/letsencrypt/.certbot.lock"],
)
def test_a_lock_that_somebody_holds_is_refused_and_one_that_was_left_is_not(own_bed: Testbed, path: str):
    host = own_bed.add_host("web")
    argv = ["nsenter", f"--target={host.pid}", "--mount", "--pid", "--", "python3", "-c", HOLD, path]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (conflict,) = find(host)
        holder.communicate()

    assert conflict.is_refused
    assert find(host) == []


def test_a_timer_that_will_fire_is_a_warning(own_bed: Testbed):
    host = own_bed.add_host("web", systemd=True)
    units = host.root / "etc/systemd/system"
    (units / "certbot.timer").write_text(TIMER)
    (units / "certbot.service").write_text("[Service]\nExecStart=/bin/true\n")
    host.run(["systemctl", "daemon-reload"])
    assert find(host) == []

    host.run(["systemctl", "start", "certbot.timer"])

    (conflict,) = find(host)
    assert (conflict.is_refused, conflict.where) == (False, "certbot.timer")
