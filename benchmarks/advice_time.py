"""Measure how long `tuner advise` takes on a host with nginx and php-fpm: run there, and over SSH.

    python -m benchmarks.advice_time [RUNS]

Exit status 1 when the slowest run takes longer than its limit.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.testbed.bed import open_testbed
from tests.testbed.namespaces import entrance

TUNER = str(Path(sys.executable).with_name("tuner"))
LIMITS_S = {"on the host": 2.0, "over SSH": 3.0}


def main() -> int:
    """Run both in turn, and print a line for each."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with open_testbed() as bed:
        os.environ["HOME"] = str(bed.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        host = bed.add_host("web")
        host.install("php-fpm")
        commands = {
            "on the host": [*entrance(host.pid), TUNER, "advise", "--json"],
            "over SSH": [TUNER, "advise", "--host", host.ssh_url, "--json"],
        }
        took = {name: [] for name in commands}
        for _ in range(runs):
            for name, argv in commands.items():
                took[name].append(run(argv))
    for name, seconds in took.items():
        print(
            f"{name:12} median {median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f} s, "
            f"{runs} runs, limit {LIMITS_S[name]:g} s"
        )
    return int(any(max(seconds) > LIMITS_S[name] for name, seconds in took.items()))


def run(argv: Sequence[str]) -> float:
    """Run a command that advises, and return its seconds."""
    began_s = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began_s
    found = {each["name"] for each in json.loads(done.stdout)["servers"]}
    if found != {"nginx", "php-fpm"}:
        sys.exit(f"Found {found} instead: {done.stderr}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
