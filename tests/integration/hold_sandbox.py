"""Holds a busy sandbox until it is killed. Run as a program, with a marker to find it by."""

import json
import sys
import time
from pathlib import Path, PurePosixPath

from tuner.adapters.hosts.local import LocalHost
from tuner.ports import FileState

SHARED_MEMORY = PurePosixPath("/dev/shm")  # noqa: S108 - where POSIX shared memory is
TREE = """
import os, sys, time
os.fork() or os.fork() or os.setsid()
time.sleep(600)
"""


def main(marker: str) -> None:
    """Fill the sandbox with everything that could be left behind, then say so and wait."""
    with LocalHost().sandbox() as sandbox:
        somaxconn = PurePosixPath("/proc/sys/net/core/somaxconn")
        sandbox.write(somaxconn, FileState(content=b"12345"))
        sandbox.write(sandbox.directory / marker, FileState(content=b"a file"))
        sandbox.run(["ipcmk", "--shmem", "4096"], timeout_s=5)
        sandbox.run(["ipcmk", "--queue"], timeout_s=5)
        sandbox.run(["touch", str(SHARED_MEMORY / marker)], timeout_s=5)
        # From outside: no program of the sandbox may mount.
        enter = ["nsenter", f"--target={sandbox.pid}", "--mount", "--"]
        LocalHost().run([*enter, "mount", "-t", "tmpfs", marker, "/mnt"], timeout_s=5)
        sandbox.start([sys.executable, "-c", TREE, marker])
        said = {
            "namespaces": {
                kind: str(Path(f"/proc/{sandbox.pid}/ns/{kind}").readlink())
                for kind in ("net", "ipc", "mnt", "pid")
            },
            "somaxconn": (sandbox.read(somaxconn).content or b"").decode(),
            "shared_memory": sandbox.run(["ipcs", "--shmems"], timeout_s=5).stdout.decode(),
            "mounts": sandbox.run(["cat", "/proc/self/mounts"], timeout_s=5).stdout.decode(),
        }
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
