"""Follow the advice for five limits by hand, and measure the load again.

    python -m benchmarks.advice_solved [WORDS…]

With words, only the cases are measured whose names have one of them. Each window is a fresh start of the
server, before and after in turn. Printed is a Markdown row for each case: correct responses per second before
and after (medians), and the mean ratio of the pairs with its 95 % interval.
"""

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev

from scipy.special import stdtrit

from tests.integration.limits import (
    NGINX,
    PARTIAL,
    PROXY,
    clients,
    edit,
    load,
    set_pool,
)
from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import PHP_PORT, TestHost
from tuner.commands.advise import advise
from tuner.plugins import make_host
from tuner.ports import Scalar

PAIRS = 5
WARM_UP_S, WINDOW_S = 4, 4
"""Responses count after the warm-up, in which php-fpm starts child processes."""
PREFORK = "etc/apache2/mods-available/mpm_prefork.conf"
BUSY_PAGE = "<?php usleep(100000); echo 'hello';\n"
KEPT = b"GET /icons/ HTTP/1.1\r\nHost: web\r\n\r\n"
FIRST_PORT, REUSE = "net.ipv4.ip_local_port_range[0]", "net.ipv4.tcp_tw_reuse"
SITE = "server { listen 8082; root /var/www/html; sendfile_max_chunk 8k; limit_rate 40000; }\n"
"""A page of 10 KB takes 0.2 s: after 8 KiB, nginx waits for the time that these take at its rate."""

Proposed = Mapping[str, Scalar]
"""Setting → value that the advice proposes; empty before it is followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One limit, and how its advice is followed."""

    name: str
    rule: str
    follows: tuple[str, ...]
    """Settings of the advice that are followed."""
    prepare: Callable[[TestHost], None]
    """Installs what stays the same."""
    configure: Callable[[TestHost, Proposed], None]
    """Writes the configuration that is proposed, or the one with the limit, and starts the server with it."""
    wrk: tuple[str, ...]
    url: str = "http://{}/"
    idle: int = 0
    """Clients that keep their connections meanwhile."""
    sent: bytes = KEPT
    """By each of them."""


def start_nginx(host: TestHost) -> None:
    """Start nginx as it is packaged."""
    host.install_nginx()


def restart_nginx(host: TestHost, port: int = 80) -> None:
    """Start nginx again, with the files that it has now."""
    host.run(["service", "nginx", "restart"])
    host.wait_until_it_answers(port)


def connect_more(host: TestHost, proposed: Proposed) -> None:
    """Set the connections of a worker."""
    value = proposed.get("worker_connections", 20)
    edit(host, NGINX, (r"worker_connections \d+", f"worker_connections {value}"))
    restart_nginx(host)


def put_text(host: TestHost) -> None:
    """Install nginx with a long text that it compresses."""
    edit(host, NGINX, (r"gzip on;", "gzip on; gzip_comp_level 9; gzip_types *;"))
    text = "".join(f"{number * 7919 % 100_003:x} " for number in range(60_000))
    (host.root / "var/www/html/big.txt").write_text(text)
    host.install_nginx()


def compress_less(host: TestHost, proposed: Proposed) -> None:
    """Set the level of compression."""
    edit(host, NGINX, (r"gzip_comp_level \d", f"gzip_comp_level {proposed.get('gzip_comp_level', 9)}"))
    restart_nginx(host)


def put_page(host: TestHost) -> None:
    """Install php-fpm with two child processes and a page that waits for 0.1 s, as for a database."""
    set_pool(host, pm__max_children="2", pm__start_servers="1", pm__max_spare_servers="1")
    host.install("php-fpm")
    host.put_page("index.php", BUSY_PAGE)


def add_children(host: TestHost, proposed: Proposed) -> None:
    """Set the most child processes."""
    (pool,) = (host.root / "etc/php").glob("*/fpm/pool.d/www.conf")
    text = re.sub(
        r"^pm\.max_children = \d+$(?=\npm\.start_servers = 1$)",
        f"pm.max_children = {proposed.get('pm.max_children', 2)}",
        pool.read_text(), flags=re.MULTILINE,
    )  # fmt: skip
    pool.write_text(text)
    host.run(["service", next((host.root / "etc/init.d").glob("php*-fpm")).name, "restart"])
    host.wait_until_it_answers(PHP_PORT)


def start_prefork(host: TestHost) -> None:
    """Install Apache with eight processes."""
    edit(host, PREFORK, (r"MaxRequestWorkers\s+\d+", "MaxRequestWorkers 8"))
    host.install_apache(mpm="prefork")


def keep_shorter(host: TestHost, proposed: Proposed) -> None:
    """Set how long Apache waits for the next request of a connection."""
    value = proposed.get("KeepAliveTimeout", 60)
    edit(host, "etc/apache2/apache2.conf", (r"^KeepAliveTimeout \d+", f"KeepAliveTimeout {value}"))
    host.run(["apache2ctl", "restart"])
    host.wait_until_it_answers(80)


def put_proxy(host: TestHost) -> None:
    """Install nginx that asks itself at another port for each page."""
    (host.root / "etc/nginx/conf.d/proxy.conf").write_text(PROXY.format(port=8082) + SITE)
    (host.root / "var/www/html/page.txt").write_text("x" * 10_000)
    host.install_nginx()


def open_ports(host: TestHost, proposed: Proposed) -> None:
    """Set the first local port, and whether a port is used again before its TIME-WAIT has passed.

    The logs begin again: a line for each refused request would fill the disk.
    """
    for name in ("access", "error"):
        (host.root / f"var/log/nginx/{name}.log").write_bytes(b"")
    first, reuse = proposed.get(FIRST_PORT, 40_000), proposed.get(REUSE, 2)
    host.run(["sysctl", "-qw", f"net.ipv4.ip_local_port_range={first} 40030"])
    host.run(["sysctl", "-qw", f"net.ipv4.tcp_tw_reuse={reuse}"])
    restart_nginx(host)


CASES = (
    Case(
        name="connections of an nginx worker", rule="nginx.worker_connections",
        follows=("worker_connections",), prepare=start_nginx, configure=connect_more, wrk=("-c", "20"),
        idle=60, sent=PARTIAL,
    ),
    Case(
        name="gzip at level 9", rule="nginx.compression", follows=("gzip_comp_level",), prepare=put_text,
        configure=compress_less,
        wrk=("-c", "32", "-H", "Accept-Encoding: gzip"), url="http://{}/big.txt",
    ),
    Case(
        name="child processes of php-fpm", rule="php-fpm.max_children", follows=("pm.max_children",),
        prepare=put_page, configure=add_children, wrk=("-c", "20"), url=f"http://{{}}:{PHP_PORT}/index.php",
    ),
    Case(
        name="keep-alive starves prefork", rule="apache.keepalive", follows=("KeepAliveTimeout",),
        prepare=start_prefork, configure=keep_shorter, wrk=("-c", "4", "-H", "Connection: close"), idle=8,
    ),
    Case(
        name="local ports to an upstream", rule="nginx.upstream_ports", follows=(FIRST_PORT, REUSE),
        prepare=put_proxy, configure=open_ports, wrk=("-c", "60"), url="http://{}:8081/page.txt",
    ),
)  # fmt: skip


def main() -> int:
    """Measure the cases, and print a row for each; 1 when advice did not name the limit or did not help."""
    words = sys.argv[1:]
    chosen = [each for each in CASES if not words or any(word in each.name for word in words)]
    print(f"Correct responses per second, {PAIRS} pairs of {WINDOW_S} s.\n")
    print("| limit | advice followed | before | after | ratio, 95 % CI |\n|---|---|---|---|---|")
    with open_testbed() as bed:
        os.environ["HOME"] = str(bed.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        solved = [_solve(bed, each, f"case{number}") for number, each in enumerate(chosen)]
    return int(not all(solved))


def _solve(bed: Testbed, case: Case, name: str) -> bool:
    host = bed.add_host(name)
    case.prepare(host)
    case.configure(host, {})
    _measure(host, case)  # php-fpm starts one child process a second, and reaches its limit then
    with clients(host, case.idle, case.sent), load(host, "-t", "1", *case.wrk, url=case.url):
        found = advise(make_host(host.ssh_url)).findings
    if found[0].rule != case.rule:
        print(f"| {case.name} | not named: {', '.join(each.rule for each in found)} | | | |", flush=True)
        return False
    proposals = [each for each in found[0].proposals if each.name in case.follows]
    proposed = {each.name: each.value for each in proposals}
    before, after = [], []
    for pair in range(PAIRS):
        for values, rates in [({}, before), (proposed, after)][:: 1 if pair % 2 else -1]:
            case.configure(host, values)
            rates.append(_measure(host, case))
    followed = ", ".join(f"`{each.name}` {each.current} → {each.value}" for each in proposals)
    medians = f"{median(before):,.0f} | {median(after):,.0f}"
    print(f"| {case.name} | {followed} | {medians} | {_compare(before, after)} |", flush=True)
    return median(after) > median(before)


def _measure(host: TestHost, case: Case) -> float:
    """Load a server for a window, and return its correct responses per second."""
    argv = ["-t", "1", "--timeout", "2", *case.wrk, case.url.format(host.address)]
    with clients(host, case.idle, case.sent):
        for seconds in (WARM_UP_S, WINDOW_S):
            wrk = ["wrk", "-d", str(seconds), *argv]
            told = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
    (counted,) = re.findall(r"^\s*(\d+) requests in ", told, re.MULTILINE)
    wrong = re.findall(r"Non-2xx or 3xx responses: (\d+)", told)
    return (int(counted) - sum(map(int, wrong))) / WINDOW_S


def _compare(before: list[float], after: list[float]) -> str:
    """Return the mean ratio of the pairs with its 95 % interval, by Student's t of the logarithms."""
    if not min(before) or not min(after):
        return "no ratio"
    logs = [math.log(two / one) for one, two in zip(before, after, strict=True)]
    reach = float(stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
    low, mean, high = (math.exp(fmean(logs) + side * reach) for side in (-1, 0, 1))
    return f"{mean:.2f}× [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
