"""Opens a testbed with a host whose link is slow, says where it is, and waits to be killed."""

import signal

from tests.testbed.bed import open_testbed

with open_testbed() as bed:
    host = bed.add_host("web")
    bed.delay(host, round_trip_ms=1)
    print(host.address, host.pid, flush=True)  # noqa: T201 - to the test that started it
    signal.pause()
