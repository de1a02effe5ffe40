"""Capture a golden window: python -m tests.unit.measure.capture NAME."""

import os
import sys
import time
from pathlib import PurePosixPath

from tests.unit.measure.golden import FOLDER, MARK
from tuner.adapters.hosts.local import LocalHost
from tuner.measure.counters import difference, take
from tuner.measure.processes import find_interrupt_threads
from tuner.ports import FileState

CONFIG = b"""daemon off; worker_processes 2; error_log stderr; pid /dev/shm/tuner/nginx.pid; events {}
http { access_log off; server { listen 8080; location / { return 200 "hello world\\n"; } } }
"""
LOAD = ("wrk", "-t1", "-c64", "-d2", "-H", "Connection: close", "http://127.0.0.1:8080/")


class RecordingHost:
    """Remembers what was read."""

    def __init__(self, host):
        self.host = host
        self.seen = {}

    def read(self, path: PurePosixPath) -> FileState:
        state = self.host.read(path)
        if state.content is not None:
            self.seen[path] = state.content.decode()
        return state

    def look(self, paths, *, trees=()):  # noqa: ARG002 - everything is read one by one
        return self

    def save(self, name, head):
        files = [f"{MARK}{path}\n{text.rstrip()}\n" for path, text in self.seen.items()]
        (FOLDER / f"{name}.txt").write_text(head + "\n" + "".join(files))


def capture(name):
    host = LocalHost()
    with host.sandbox() as sandbox:
        config = sandbox.directory / "nginx.conf"
        sandbox.write(config, FileState(content=CONFIG, mode=0o644))
        server = sandbox.start(["nginx", "-c", str(config)], cpus=frozenset({0}))
        time.sleep(0.5)
        groups = {
            "server": [server.pid],
            "tuner": [os.getpid()],
            "interrupts": find_interrupt_threads(host),
        }
        before, after = RecordingHost(host), RecordingHost(host)
        first = take(before, namespace_pid=sandbox.pid, groups=groups)
        ended = sandbox.run(LOAD, timeout_s=20, cpus=frozenset({1}))
        last = take(after, namespace_pid=sandbox.pid, groups=groups)
        pids = " ".join(f"{group}={','.join(str(pid) for pid in roots)}" for group, roots in groups.items())
        for moment, snapshot, host in (("before", first, before), ("after", last, after)):
            clocks = f"monotonic_s={snapshot.monotonic_s:.6f} wall_s={snapshot.wall_s:.6f}"
            rest = f"sandbox={sandbox.pid} {pids} generator_cpu_s={ended.cpu_s:.6f}"
            host.save(f"{name}.{moment}", f"{clocks} {rest}")
        counted = difference(first, last, generator_cpu_s=ended.cpu_s)
        sys.stdout.write(f"foreign {counted['foreign_cpu_share']:.3f}, steal {counted['steal_share']:.3f}\n")


if __name__ == "__main__":
    capture(sys.argv[1])
