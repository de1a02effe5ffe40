"""Measure how load generators keep a rate: CPU time, requests that were due, lateness, bursts.

    python -m benchmarks.rate_generators [--rates 1000 10000 30000] [--seconds 10]

nginx on CPU 0 logs the millisecond of each request, so all generators are measured alike. The generator has
CPU 1. Generators that are not installed are left out. Run it on a machine on which nothing else runs.

The index of dispersion is the variance over the mean of requests in a millisecond: 0 for evenly spaced ones,
1 for users who come independently, more for bursts.
"""

import argparse
import math
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pvariance

PORT = 8097
URL = f"http://127.0.0.1:{PORT}/"
CONF = """\
daemon off; pid nginx.pid; error_log error.log; worker_processes 1; worker_rlimit_nofile 20000;
events {{ worker_connections 8000; }}
http {{
  log_format sent $msec;
  access_log access.log sent buffer=4m flush=1s;
  keepalive_requests 10000000;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 "{body}"; }} }}
}}
"""
SKIPPED_S = 0.5
"""At either end: connections open, and stragglers."""
MOST_RPS_PER_CONNECTION = 100

Command = Callable[[int, int, int], Sequence[str]]
"""Rate, seconds and connections → a command."""
GENERATORS: Mapping[str, Command] = {
    "h2load": lambda rate, seconds, count: (
        "h2load", "--h1", f"--clients={count}", f"--rps={rate / count:.6g}", f"--duration={seconds}", URL,
    ),
    "oha": lambda rate, seconds, count: (
        "oha", "--no-tui", "-z", f"{seconds}s", "-c", str(count), "-q", str(rate), URL,
    ),
    "vegeta": lambda rate, seconds, count: (
        "vegeta", "attack", f"-rate={rate}/1s", f"-duration={seconds}s", f"-connections={count}",
        f"-max-connections={count}", f"-max-workers={count}", "-max-body=0", "-targets=targets",
        "-output=vegeta.bin",
    ),
}  # fmt: skip


def main() -> None:
    """Print a row for each generator and rate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[1000, 10_000, 30_000])
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    print("| generator | due/s | sent | µs CPU/request | late p50 | late p99 | late max | dispersion |")
    print("|---|---|---|---|---|---|---|---|")
    for name in filter(shutil.which, GENERATORS):
        for rate in given.rates:
            print(f"| {name} | {rate:,} | {measure(name, rate, given.seconds)} |", flush=True)


def measure(name: str, rate: int, seconds: int) -> str:
    """Return the cells of a row."""
    count = max(10, math.ceil(rate / MOST_RPS_PER_CONNECTION))
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "targets").write_text(f"GET {URL}\n", encoding="utf-8")
        (folder / "nginx.conf").write_text(CONF.format(port=PORT, body="x" * 1000), encoding="utf-8")
        started = ("taskset", "-c", "0", "nginx", "-p", text, "-c", "nginx.conf")
        server = subprocess.Popen(started)
        try:
            while not (folder / "nginx.pid").exists() and server.poll() is None:
                time.sleep(0.01)
            before_s = _children_s()
            argv = ("taskset", "-c", "1", *GENERATORS[name](rate, seconds, count))
            subprocess.run(argv, cwd=folder, check=True, capture_output=True)
            spent_s = _children_s() - before_s
        finally:
            server.terminate()
            server.wait()
        sent_s = sorted(map(float, (folder / "access.log").read_text(encoding="utf-8").split()))
    if not sent_s:
        return "0 |  |  |  |  | "
    first_s, last_s = sent_s[0] + SKIPPED_S, sent_s[0] + seconds - SKIPPED_S
    inside = [each for each in sent_s if first_s <= each < last_s]
    offsets = [each - number / rate for number, each in enumerate(inside)]
    late = sorted(1000 * (each - min(offsets)) for each in offsets)
    bins = Counter(round(1000 * (each - first_s)) for each in inside)
    counts = [bins[each] for each in range(round(1000 * (last_s - first_s)))]
    cells = (
        f"{len(inside) / rate / (last_s - first_s):.1%}", f"{1e6 * spent_s / len(sent_s):.1f}",
        f"{late[len(late) // 2]:.1f} ms", f"{late[99 * len(late) // 100]:.1f} ms", f"{late[-1]:.1f} ms",
        f"{pvariance(counts) / fmean(counts):.2f}",
    )  # fmt: skip
    return " | ".join(cells)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
