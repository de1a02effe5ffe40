"""Measure how fast access logs are read, and how much memory that takes.

    python -m benchmarks.traffic [--mib 1024] [--folder /dev/shm]

Writes a log of that size in each format: of 400 pages, 20,000 items, queries, and few broken lines. Each
is read in a process of its own, and timed by its CPU time. Exit status 1 when one is read at less than 1 GB a
minute, or with more than 512 MiB of memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

LEAST_MB_PER_S = 1000 / 60
MOST_MIB = 512
MEBIBYTE = 2**20
BATCH = 20_000
"""Different lines, written again and again with other times."""
BROKEN = 5_000
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"

Line = Callable[[Random, int], str]
"""Makes a line of a second."""


def main() -> int:
    """Write, read and print a row for each format."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        return _read(given.read)
    print(f"{'format':16} {'MB':>7} {'requests':>11} {'MB/s':>7} {'s/GB':>6} {'peak MiB':>9}")
    results = []
    for name, make in FORMATS.items():
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            log = Path(folder) / f"{name}.log"
            _write(log, make, given.mib * MEBIBYTE)
            argv = (sys.executable, "-m", "benchmarks.traffic", "--read", str(log))
            found = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
            size = log.stat().st_size / 1e6
        rate = size / found["seconds"]
        shown = f"{rate:7.1f} {1000 / rate:6.1f} {found['mib']:9.0f}"
        print(f"{name:16} {size:7,.0f} {found['requests']:11,} {shown}", flush=True)
        results.append(rate >= LEAST_MB_PER_S and found["mib"] <= MOST_MIB)
    return int(not all(results))


def _read(log: Path) -> int:
    from tuner.commands.logged_load import read_logs

    log_format = DOLLARS if log.stem == "log_format" else None
    begun_s = time.process_time()  # other programs may have the other CPUs
    load = read_logs([str(log)], log_format=log_format, takes_unsafe=False, stands_in=False)
    seconds = time.process_time() - begun_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "requests": load.requests, "mib": peak_mib}))
    return 0


def _write(log: Path, make: Line, size: int) -> None:
    draw = Random(1)  # noqa: S311 - no secret
    written = second = 0
    with log.open("w") as file:
        while written < size:
            lines = [make(draw, second + index // 200) for index in range(BATCH)]
            lines[::BROKEN] = ["\x16\x03\x01\x02 broken\n"] * len(lines[::BROKEN])
            text = "".join(lines)
            written += file.write(text)
            second += BATCH // 200


def _draw(draw: Random) -> tuple[str, str, int, int]:
    """Return client, target, status and length of a request."""
    client = f"198.51.{draw.randrange(256)}.{draw.randrange(256)}"
    place = draw.random()
    if place < 0.6:
        page = int(400 * draw.random() ** 3)
        status = 200 if draw.random() < 0.9 else 304
        return client, f"/pages/part-{page}.html", status, 2000 + 97 * page
    if place < 0.9:
        target = f"/item/{draw.randrange(20_000)}?ref={draw.randrange(10**9)}"
        return client, target, 200, draw.randrange(3000, 9000)
    return client, f"/none/{draw.randrange(10**6):x}", 404, 153


def _stamp(second: int) -> str:
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1_773_309_600 + second))


def _combined(draw: Random, second: int) -> str:
    return f'{_common(draw, second)[:-1]} "https://a.test/" "{AGENT}"\n'


def _common(draw: Random, second: int) -> str:
    client, target, status, size = _draw(draw)
    return f'{client} - - [{_stamp(second)}] "GET {target} HTTP/1.1" {status} {size}\n'


DOLLARS = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" $request_time $connection $connection_requests'
)


def _with_times(draw: Random, second: int) -> str:
    connection = draw.randrange(10**7)
    timed = f"{draw.random():.3f} {connection} {1 + connection % 9}"
    return f"{_combined(draw, second)[:-1]} {timed}\n"


def _httplog(draw: Random, second: int) -> str:
    client, target, status, size = _draw(draw)
    return (
        f"Mar 12 10:00:00 web1 haproxy[811]: {client}:{draw.randrange(1024, 65536)} "
        f"[{_stamp(second)[:20]}.655] web~ static/srv1 10/0/30/69/{draw.randrange(900)} {status} {size} "
        f'- - ---- 1/1/1/1/0 0/0 "GET {target} HTTP/1.1"\n'
    )


def _json(draw: Random, second: int) -> str:
    client, target, status, size = _draw(draw)
    request = {
        "remote_ip": client, "remote_port": str(draw.randrange(1024, 65536)), "proto": "HTTP/2.0",
        "method": "GET", "host": "a.test", "uri": target,
        "headers": {"User-Agent": [AGENT], "Accept-Encoding": ["gzip"]}, "tls": {"version": 772},
    }  # fmt: skip
    line = {
        "level": "info", "ts": 1_773_309_600 + second + 0.25, "logger": "http.log.access",
        "msg": "handled request", "request": request, "duration": draw.random(), "size": size,
        "status": status, "resp_headers": {"Content-Type": ["text/html"]},
    }  # fmt: skip
    return json.dumps(line, separators=(",", ":")) + "\n"


FORMATS: dict[str, Line] = {
    "common": _common,
    "combined": _combined,
    "log_format": _with_times,
    "httplog": _httplog,
    "json": _json,
}

if __name__ == "__main__":
    sys.exit(main())
