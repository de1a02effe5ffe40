"""Measure how long `tuner advise` takes for a running nginx: on its host, and over SSH.

    python -m benchmarks.advice_time [RUNS]

Printed is a Markdown table. Exit status 1 when the slowest run takes longer than its limit.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.testbed.bed import open_testbed

TUNER = str(Path(sys.executable).with_name("tuner"))
LIMITS_S = {"on the host": 2.0, "over SSH": 3.0}
APART = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
START = """
ip link set lo up
for place in /run /var/log /var/lib/nginx; do mount -t tmpfs tmpfs "$place"; done
mkdir /var/log/nginx
nginx
"""
"""An installed nginx in namespaces of its own."""
TAKE_TIME = """
for _ in $(seq "$1"); do
  began=$(date +%s%N)
  "$2" advise nginx --host "$3" >/dev/null || [ $? = 1 ]
  echo $((($(date +%s%N) - began) / 1000000))
done
"""


def main() -> int:
    """Run both, and print a row of a Markdown table for each."""
    runs = sys.argv[1] if len(sys.argv) > 1 else "10"
    with open_testbed() as bed:
        os.environ["HOME"] = str(bed.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        host = bed.add_host("web")
        host.install_nginx()
        took = {
            "on the host": take_time([*APART, "sh", "-ec", START + TAKE_TIME], runs, "local"),
            "over SSH": take_time(["sh", "-ec", TAKE_TIME], runs, host.ssh_url),
        }
    print("| tuner runs | runs | median | fastest | slowest | limit |\n|---|---:|---:|---:|---:|---:|")
    for name, seconds in took.items():
        times = (median(seconds), min(seconds), max(seconds), LIMITS_S[name])
        print(f"| {name} | {runs} | {' | '.join(f'{each:.2f} s' for each in times)} |")
    return int(any(max(seconds) > LIMITS_S[name] for name, seconds in took.items()))


def take_time(shell: list[str], runs: str, url: str) -> list[float]:
    """Run a script that advises so many times, and return the seconds of each."""
    argv = [*shell, "time", runs, TUNER, url]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    return [int(each) / 1000 for each in done.stdout.split()]


if __name__ == "__main__":
    sys.exit(main())
