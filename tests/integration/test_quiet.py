"""Waiting for other programs, on the real machine."""

import subprocess
import sys
import time

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.wrk import Wrk
from tuner.measure.quiet import wait_until_quiet
from tuner.measure.window import Load
from tuner.study import LoadSettings

pytestmark = pytest.mark.alone

BUSY = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass\n"


def test_a_program_that_uses_a_cpu_is_waited_for():
    host = LocalHost()
    load = Load.prepare(Wrk(), LoadSettings(), host)
    with subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=5)]) as hog:
        began_s = time.monotonic()
        quiet = wait_until_quiet(host, load, most_s=60)
        waited_s = time.monotonic() - began_s
        ended = hog.poll() is not None

    assert quiet
    assert ended
    assert waited_s > 5


def test_a_program_that_goes_on_is_given_up():
    host = LocalHost()
    load = Load.prepare(Wrk(), LoadSettings(), host)
    with subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=20)]) as hog:
        quiet = wait_until_quiet(host, load, most_s=4)
        hog.kill()

    assert not quiet
