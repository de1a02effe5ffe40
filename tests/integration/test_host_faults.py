"""Faults of test hosts do what they say: a disk that forgets, a clock, a file that cannot be read."""

import os
import subprocess
import sys

import pytest

from tests.integration.waiting import wait_until
from tests.testbed import shim
from tests.testbed.bed import Testbed

WRITE = """
mkdir /var/lib/forgetful
sync /var/lib
echo kept > /var/lib/forgetful/kept; sync /var/lib/forgetful/kept /var/lib/forgetful
echo lost > /var/lib/forgetful/lost
echo lost > /var/lib/forgetful/.new; mv /var/lib/forgetful/.new /var/lib/forgetful/renamed
"""

WAIT_FOR_HOST = """
import sys
from tuner.plugins import make_host
host = make_host(sys.argv[1])
print("asked", flush=True)
print(host.run(("sleep", "2"), timeout_s=30).returncode)
"""


@pytest.mark.parametrize("has_journal", [True, False], ids=["journal", "no journal"])
def test_a_power_cut_leaves_what_was_synced_and_nothing_else(own_bed: Testbed, has_journal):
    host = own_bed.add_forgetful_host("web", has_journal=has_journal)
    own_bed.sync(host)
    host.run(["sh", "-c", WRITE])

    host = own_bed.restart(host)

    left = host.root / "var/lib/forgetful"
    assert (left / "kept").read_text() == "kept\n"
    assert [path.name for path in left.iterdir() if path.read_text() == "lost\n"] == []


def test_programs_of_a_host_see_another_day_and_a_file_that_cannot_be_read(own_bed: Testbed):
    host = own_bed.add_host("web")
    seen = shim.preload(host, shim.build(own_bed.home))
    file = host.root / "etc/h2o/h2o.conf"
    now = int(host.run(["date", "+%s"]).stdout)

    seen.set_faults(clock_offset_s=-86_400, bad_file=file)

    assert int(host.run(["date", "+%s"]).stdout) - now in range(-86_400, -86_000)
    for command in (["cat", "/etc/h2o/h2o.conf"], ["sha256sum", "/etc/h2o/h2o.conf"]):
        assert b"Input/output error" in host.run(command, check=False).stderr
    host.run(["sh", "-c", "echo new > /etc/h2o/new; mv /etc/h2o/new /etc/h2o/h2o.conf"])
    assert host.run(["cat", "/etc/h2o/h2o.conf"]).stdout == b"new\n"


def test_a_clock_that_is_set_a_day_ahead_does_not_end_a_wait_for_a_host(own_bed: Testbed):
    host = own_bed.add_host("web")
    seen = shim.build(own_bed.home)
    command = [sys.executable, "-c", WAIT_FOR_HOST, host.ssh_url]
    environment = {**os.environ, **seen.environment, "HOME": str(own_bed.home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as asks:
        assert asks.stdout is not None
        assert asks.stdout.readline() == b"asked\n"
        wait_until(lambda: host.processes("sleep"))

        seen.set_faults(clock_offset_s=86_400)

        assert asks.stdout.read() == b"0\n"
