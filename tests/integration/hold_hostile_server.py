"""Runs a hostile server in a sandbox and prints what it achieved. Run as a program."""

import os
import sys
from pathlib import Path

from tuner.adapters.hosts.local import LocalHost

HOSTILE = Path(__file__).with_name("hostile_server.py")


def main(own_file: str) -> None:
    """Let it try everything against this process, which stands for the controller."""
    with LocalHost().sandbox() as sandbox:
        told = (str(os.getpid()), str(sandbox.pid), own_file)
        ran = sandbox.run((sys.executable, "-B", str(HOSTILE), *told), timeout_s=30)
    sys.stdout.buffer.write(ran.stdout)
    sys.stderr.buffer.write(ran.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
