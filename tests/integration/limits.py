"""Situations in which a server on a test host meets a limit for real, while a load is on it."""

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import PHP_PORT, TestHost

ROOT = Path(__file__).parents[2]
NGINX = "etc/nginx/nginx.conf"
PARTIAL = b"GET / HTTP/1.1\r\nHost: web\r\n"
SLOW = "<?php sleep(20); echo 'late';\n"
HUNGRY = "<?php $kept = str_repeat('x', 100 << 20); sleep(5); echo strlen($kept);\n"


class Situation:
    """A limit that is made to bite.

    Args:
        name: for people.
        bite: lets the limit bite as long as it is open.
        rules: what may be named first.
        systemd: whether the host has systemd.
        is_busy: whether it needs CPUs that nothing else uses.
    """

    def __init__(
        self, name: str, bite: "Bite", *rules: str, systemd: bool = False, is_busy: bool = False
    ) -> None:
        self.name = name
        self.bite = bite
        self.rules = rules
        self.systemd = systemd
        self.is_busy = is_busy


@contextmanager
def limit(situation: Situation, bed: Testbed, name: str = "web") -> Iterator[TestHost]:
    """Make the host of a situation, and let its limit bite."""
    host = bed.add_host(name, systemd=situation.systemd)
    with situation.bite(host):
        yield host


Bite = Callable[[TestHost], AbstractContextManager[None]]


def edit(host: TestHost, file: str, *changes: tuple[str, str]) -> None:
    """Replace what matches in a file of a host; each has to be there."""
    path = host.root / file
    text = path.read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{file}: {pattern}"
    path.write_text(text)


@contextmanager
def clients(host: TestHost, count: int, sent: bytes = PARTIAL, *, port: int = 80) -> Iterator[None]:
    """Hold connections on which something was sent; those that are refused are left out."""
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.settimeout(0.5)
            with contextlib.suppress(OSError):
                client.connect((host.address, port))
                client.sendall(sent)
        yield


@contextmanager
def load(host: TestHost, *arguments: str, url: str = "http://{}/") -> Iterator[None]:
    """Run wrk against a host in the background."""
    argv = ["wrk", "-d", "30", *arguments, url.format(host.address)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        try:
            wait_until(lambda: running.poll() is not None or has_connections(host))
            assert running.poll() is None, running.stdout and running.stdout.read()
            yield
        finally:
            running.kill()


@contextmanager
def beside(host: TestHost, module: str, *arguments: object) -> Iterator[None]:
    """Run a module of these tests in the network of a host, in the background."""
    inside = ["nsenter", f"--target={host.pid}", "--net", "--"]
    argv = [*inside, sys.executable, "-m", f"tests.integration.{module}", *map(str, arguments)]
    with subprocess.Popen(argv, cwd=ROOT) as running:
        try:
            yield
            assert running.poll() in {None, 0}
        finally:
            running.kill()


def has_connections(host: TestHost) -> bool:
    """Tell whether a client is connected (proc_net_tcp(5): state 01), over ssh apart."""
    tables = [Path(f"/proc/{host.pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [row.split() for table in tables for row in table.splitlines()[1:]]
    return any(row[3] == "01" and not row[1].endswith(":0016") for row in rows)


def await_line(host: TestHost, log: str, words: str, again: Callable[[], None] = lambda: None) -> None:
    """Wait until a log of a host has a line."""

    def is_there() -> bool:
        again()
        path = host.root / log
        return path.exists() and words in path.read_text(errors="replace")

    wait_until(is_there, patience_s=20)


@contextmanager
def few_worker_connections(host: TestHost) -> Iterator[None]:
    edit(host, NGINX, (r"worker_connections \d+", "worker_connections 20"))
    host.install_nginx()
    with clients(host, 60):
        await_line(host, "var/log/nginx/error.log", "worker_connections are not enough")
        yield


@contextmanager
def few_open_files(host: TestHost) -> Iterator[None]:
    edit(host, NGINX, (r"^user", "worker_rlimit_nofile 30;\nuser"))
    host.install_nginx()
    with clients(host, 80):
        await_line(host, "var/log/nginx/error.log", "24: Too many open files")
        yield


@contextmanager
def few_open_files_by_unit(host: TestHost) -> Iterator[None]:
    host.limit_open_files("nginx", 40)
    host.install_nginx()
    with clients(host, 120):
        await_line(host, "var/log/nginx/error.log", "24: Too many open files")
        yield


def few_workers(mpm: str) -> Bite:
    """Let Apache have 25 workers, and all of them wait for the rest of a request."""

    @contextmanager
    def bite(host: TestHost) -> Iterator[None]:
        file = f"etc/apache2/mods-available/mpm_{mpm}.conf"
        edit(host, file, (r"MaxRequestWorkers\s+\d+", "MaxRequestWorkers 25"))
        host.install_apache(mpm=mpm)
        with clients(host, 60):
            await_line(host, "var/log/apache2/error.log", "server reached MaxRequestWorkers")
            yield

    return bite


@contextmanager
def kept_connections(host: TestHost) -> Iterator[None]:
    edit(
        host,
        "etc/apache2/mods-available/mpm_prefork.conf",
        (r"MaxRequestWorkers\s+\d+", "MaxRequestWorkers 8"),
    )
    edit(host, "etc/apache2/apache2.conf", (r"^KeepAliveTimeout \d+", "KeepAliveTimeout 60"))
    host.install_apache(mpm="prefork")
    with clients(host, 30, b"GET /icons/ HTTP/1.1\r\nHost: web\r\n\r\n"):
        await_line(host, "var/log/apache2/error.log", "server reached MaxRequestWorkers")
        yield


def set_pool(host: TestHost, **settings: str) -> None:
    (pool,) = (host.root / "etc/php").glob("*/fpm/pool.d/www.conf")
    lines = [f"{name.replace('__', '.')} = {value}\n" for name, value in settings.items()]
    pool.write_text(pool.read_text() + "".join(lines))


@contextmanager
def few_children(host: TestHost) -> Iterator[None]:
    set_pool(host, pm__max_children="2", pm__start_servers="1", pm__max_spare_servers="1")
    host.install("php-fpm")
    host.put_page("index.php", SLOW)
    with clients(host, 8, b"GET /index.php HTTP/1.1\r\nHost: web\r\n\r\n", port=PHP_PORT):
        (log,) = [path.name for path in (host.root / "var/log").glob("php*-fpm.log")]
        await_line(host, f"var/log/{log}", "max_children")
        yield


@contextmanager
def slow_backend(host: TestHost) -> Iterator[None]:
    set_pool(host, pm__max_children="1", pm__start_servers="1", pm__max_spare_servers="1")
    host.install("php-fpm")
    edit(
        host,
        "etc/nginx/conf.d/php.conf",
        (r"include fastcgi_params;", "include fastcgi_params; fastcgi_read_timeout 1s;"),
    )
    host.run(["service", "nginx", "restart"])
    host.put_page("index.php", SLOW)
    with clients(host, 8, b"GET /index.php HTTP/1.1\r\nHost: web\r\n\r\n", port=PHP_PORT):
        await_line(host, "var/log/nginx/error.log", "upstream timed out")
        yield


@contextmanager
def short_queue(host: TestHost) -> Iterator[None]:
    edit(
        host,
        "etc/nginx/sites-available/default",
        (r"listen 80 default_server", "listen 80 default_server backlog=2"),
    )
    host.install_nginx()
    with load(host, "-t", "2", "-c", "200", "-H", "Connection: close"):
        yield


PROXY = "server {{ listen 8081; location / {{ proxy_pass http://127.0.0.1:{port}; }} }}\n"
SLOW_SITE = "server { listen 8082; root /var/www/html; limit_rate 1; }\n"


@contextmanager
def few_ports(host: TestHost) -> Iterator[None]:
    (host.root / "etc/nginx/conf.d/proxy.conf").write_text(PROXY.format(port=8082) + SLOW_SITE)
    host.install_nginx()
    host.run(["sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40030"])
    with clients(host, 60, f"{PARTIAL.decode()}\r\n".encode(), port=8081):
        await_line(host, "var/log/nginx/error.log", "99: Cannot assign requested address")
        yield


@contextmanager
def dead_backend(host: TestHost) -> Iterator[None]:
    (host.root / "etc/nginx/conf.d/proxy.conf").write_text(PROXY.format(port=81))
    host.install_nginx()
    host.status_of("/", port=8081)
    await_line(host, "var/log/nginx/error.log", "111: Connection refused")
    yield


@contextmanager
def group(host: TestHost, controller: str, **files: str) -> Iterator[str]:
    """Give a host a control group of version 1 with these limits; yield the file that takes processes in.

    The group lies in the machine's own tree, and ends with the processes of the host.
    """
    name = f"tuner-limits-{host.pid}"
    here, there = Path("/sys/fs/cgroup", controller, name), f"/sys/fs/cgroup/{controller}"
    here.mkdir()
    try:
        for file, value in files.items():
            (here / f"{controller}.{file}").write_text(value)
        host.run(["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"])
        host.run(["mkdir", there])
        host.run(["mount", "-t", "cgroup", "-o", controller, "none", there])
        yield f"{there}/{name}/cgroup.procs"
    finally:
        for pid in host.processes():
            with contextlib.suppress(OSError):
                (here.parent / "cgroup.procs").write_text(str(pid))
        wait_until(lambda: not (here / "cgroup.procs").read_text())
        here.rmdir()


def start_in(host: TestHost, procs: str, *argv: str) -> None:
    """Start a service inside a control group."""
    host.run(["sh", "-c", 'echo $$ >"$1" && shift && exec "$@"', "start", procs, *argv])


@contextmanager
def small_quota(host: TestHost) -> Iterator[None]:
    with group(host, "cpu", cfs_period_us="100000", cfs_quota_us="10000") as procs:
        start_in(host, procs, "service", "nginx", "start")
        host.wait_until_it_answers(80)
        with load(host, "-t", "1", "-c", "20"):
            yield


@contextmanager
def little_memory(host: TestHost) -> Iterator[None]:
    set_pool(host, pm__max_children="20", **{"php_admin_value[memory_limit]": "-1"})
    with group(host, "memory", limit_in_bytes=str(100 << 20)) as procs:
        host.put_nginx_before_php()
        host.put_page("index.php", HUNGRY)
        service = next((host.root / "etc/init.d").glob("php*-fpm")).name
        start_in(host, procs, "service", service, "start")
        with load(host, "-t", "1", "-c", "8", url=f"http://{{}}:{PHP_PORT}/index.php"):
            await_line(host, f"var/log/{service.replace('-fpm', '')}-fpm.log", "signal 9")
            yield


@contextmanager
def few_tasks(host: TestHost) -> Iterator[None]:
    with group(host, "pids", max="70") as procs:
        start_in(host, procs, "apache2ctl", "start")
        host.wait_until_it_answers(80)
        with clients(host, 60):
            await_line(host, "var/log/apache2/error.log", "unable to create worker thread")
            yield


@contextmanager
def full_disk(host: TestHost) -> Iterator[None]:
    host.install_nginx()
    host.fill_disk()
    yield


@contextmanager
def high_compression(host: TestHost) -> Iterator[None]:
    edit(host, NGINX, (r"gzip on;", "gzip on; gzip_comp_level 9; gzip_types *;"))
    text = "".join(f"{number * 7919 % 100_003:x} " for number in range(60_000))
    (host.root / "var/www/html/big.txt").write_text(text)
    host.install_nginx()
    with load(host, "-t", "1", "-c", "32", "-H", "Accept-Encoding: gzip", url="http://{}/big.txt"):
        yield


@contextmanager
def no_tls_sessions(host: TestHost) -> Iterator[None]:
    make = ["openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=web"]
    host.run([*make, "-keyout", "/etc/ssl/web.key", "-out", "/etc/ssl/web.pem"])
    (host.root / "etc/nginx/conf.d/tls.conf").write_text(
        "server { listen 443 ssl; ssl_certificate /etc/ssl/web.pem; ssl_certificate_key /etc/ssl/web.key;\n"
        "ssl_session_tickets off; root /var/www/html; }\n"
    )
    host.install_nginx()
    with load(host, "-t", "1", "-c", "32", "-H", "Connection: close", url="https://{}/"):
        yield


@contextmanager
def one_worker(host: TestHost) -> Iterator[None]:
    edit(host, NGINX, (r"^worker_processes .*", "worker_processes 1;"))
    host.install_nginx()
    with load(host, "-t", "1", "-c", "50"):
        yield


@contextmanager
def few_connections_of_h2o(host: TestHost) -> Iterator[None]:
    edit(host, "etc/h2o/h2o.conf", (r"^pid-file", "max-connections: 10\npid-file"))
    host.install_h2o()
    with clients(host, 40):
        yield


@contextmanager
def few_connections_of_haproxy(host: TestHost) -> Iterator[None]:
    edit(host, "etc/haproxy/haproxy.cfg", (r"^global", "global\n\tmaxconn 10"))
    serve_by_haproxy(host, "", "server one 127.0.0.1:8080")
    with clients(host, 40):
        yield


@contextmanager
def few_connections_of_a_frontend(host: TestHost) -> Iterator[None]:
    serve_by_haproxy(host, "maxconn 10", "server one 127.0.0.1:8080")
    with clients(host, 40):
        yield


@contextmanager
def few_requests_to_a_server(host: TestHost) -> Iterator[None]:
    (host.root / "etc/nginx/conf.d/slow.conf").write_text(SLOW_SITE)
    # Else requests leave the queue after `timeout connect`, 5 s, with status 503.
    put_nginx_behind_haproxy(host, "timeout queue 60s\n\tserver one 127.0.0.1:8082 maxconn 2")
    with clients(host, 20, f"{PARTIAL.decode()}\r\n".encode()):
        yield


def put_nginx_behind_haproxy(host: TestHost, server: str) -> None:
    """Start the packaged HAProxy at port 80, and the packaged nginx at port 8080."""
    edit(host, "etc/nginx/sites-available/default", (r"\b80 default_server", "8080 default_server"))
    host.start_service("nginx", port=8080)
    serve_by_haproxy(host, "", server)


def serve_by_haproxy(host: TestHost, frontend: str, server: str) -> None:
    """Start the packaged HAProxy with a site: a line of its frontend, and a server."""
    path = host.root / "etc/haproxy/haproxy.cfg"
    frontend = f"\nfrontend web\n\tbind :80\n\t{frontend}\n\tdefault_backend app\n"
    path.write_text(f"{path.read_text()}{frontend}\nbackend app\n\t{server}\n")
    host.run(["mkdir", "-p", "/run/haproxy"])
    host.run(["haproxy", "-D", "-f", "/etc/haproxy/haproxy.cfg"])


@contextmanager
def reached_children(host: TestHost) -> Iterator[None]:
    """Let php-fpm have few child processes, and log no warnings: processes and the status page say so."""
    hide_warnings(host)
    set_pool(
        host,
        pm__max_children="2",
        pm__start_servers="1",
        pm__max_spare_servers="1",
        pm__status_path="/status",
        pm__status_listen="/run/php/status.sock",
    )
    host.install("php-fpm")
    host.put_page("index.php", SLOW)
    with clients(host, 8, b"GET /index.php HTTP/1.1\r\nHost: web\r\n\r\n", port=PHP_PORT):
        wait_until(lambda: count_php_processes(host) > 2)  # the first one, and both children
        yield


def hide_warnings(host: TestHost) -> None:
    """Let php-fpm log errors alone."""
    (file,) = (host.root / "etc/php").glob("*/fpm/php-fpm.conf")
    edit(host, str(file.relative_to(host.root)), (r"^;?log_level = .*", "log_level = error"))


def count_php_processes(host: TestHost) -> int:
    (program,) = (host.root / "usr/sbin").glob("php-fpm[0-9]*")
    return len(host.processes(program.name))


@contextmanager
def flooded_queue(host: TestHost) -> Iterator[None]:
    edit(
        host,
        "etc/nginx/sites-available/default",
        (r"listen 80 default_server", "listen 80 default_server backlog=8"),
    )
    host.install_nginx()
    with beside(host, "syn_flood", host.address, 80):
        wait_until(lambda: count_cookies(host) > 0)
        yield


def count_cookies(host: TestHost) -> int:
    """Count the SYN cookies that a host has sent."""
    names, values = [
        row.split()
        for row in Path(f"/proc/{host.pid}/net/netstat").read_text().splitlines()
        if row.startswith("TcpExt:")
    ]
    return int(dict(zip(names, values, strict=True))["SyncookiesSent"])


@contextmanager
def full_connection_table(host: TestHost) -> Iterator[None]:
    host.install_nginx()
    numbers = ["cat", *(f"/proc/sys/net/netfilter/nf_conntrack_{name}" for name in ("count", "max"))]

    def is_full() -> bool:
        count, most = map(int, host.run(numbers).stdout.split())
        return count >= most

    with beside(host, "track_connections", 80):
        wait_until(is_full, patience_s=20)
        yield


SITUATIONS = (
    Situation("worker_connections", few_worker_connections, "nginx.worker_connections"),
    Situation("open files of a worker", few_open_files, "nginx.open_files"),
    Situation("open files by the unit", few_open_files_by_unit, "nginx.open_files", systemd=True),
    *(
        Situation(f"MaxRequestWorkers, {mpm}", few_workers(mpm), "apache.max_request_workers")
        for mpm in ("event", "worker", "prefork")
    ),
    Situation("keep-alive starves prefork", kept_connections, "apache.keepalive"),
    Situation("pm.max_children", few_children, "php-fpm.max_children"),
    Situation("slow backend with one worker", slow_backend, "php-fpm.max_children"),
    Situation("short accept queue", short_queue, "nginx.listen_queue", "kernel.accept_queue", is_busy=True),
    Situation("local ports to an upstream", few_ports, "nginx.upstream_ports"),
    Situation("dead backend", dead_backend, "nginx.upstream_refused"),
    Situation("CPU quota", small_quota, "nginx.cpu_quota"),
    Situation("memory of the control group", little_memory, "php-fpm.memory_limit"),
    Situation("tasks of the control group", few_tasks, "apache.tasks_limit", "apache.no_more_processes"),
    Situation("log on a full disk", full_disk, "nginx.log_disk"),
    Situation("gzip at level 9", high_compression, "nginx.compression", is_busy=True),
    Situation("TLS without sessions", no_tls_sessions, "nginx.tls_sessions", is_busy=True),
    Situation("one worker for two CPUs", one_worker, "nginx.too_few_workers", is_busy=True),
    Situation("max-connections of h2o", few_connections_of_h2o, "h2o.max_connections"),
    Situation("maxconn of HAProxy", few_connections_of_haproxy, "haproxy.maxconn"),
    Situation("maxconn of a frontend", few_connections_of_a_frontend, "haproxy.frontend_maxconn"),
    Situation("maxconn of a server", few_requests_to_a_server, "haproxy.server_maxconn"),
    Situation("children by the status page", reached_children, "php-fpm.max_children"),
    Situation("SYN flood", flooded_queue, "kernel.syn_cookies"),
    Situation("full connection table", full_connection_table, "kernel.connection_table"),
)


def serve(host: TestHost, server: str) -> None:
    """Start a packaged server as it is; HAProxy with an nginx behind it."""
    match server:
        case "haproxy":
            put_nginx_behind_haproxy(host, "server one 127.0.0.1:8080")
            host.wait_until_it_answers(80)
        case "caddy":
            host.run(["caddy", "start", "--config", "/etc/caddy/Caddyfile"])
            host.wait_until_it_answers(80)
        case _:
            host.install(server)


@contextmanager
def idle(_: TestHost) -> Iterator[None]:
    yield


@contextmanager
def busy(host: TestHost) -> Iterator[None]:
    with load(host, "-t", "1", "-c", "20"):
        yield


def tune(host: TestHost, server: str) -> None:
    """Give a server what a careful operator gives it."""
    if server == "nginx":
        edit(host, NGINX, (r"worker_connections \d+", "worker_connections 8192"))
        edit(host, NGINX, (r"^user", "worker_rlimit_nofile 20000;\nuser"))
    else:
        file = "etc/apache2/mods-available/mpm_event.conf"
        edit(host, file, (r"ThreadsPerChild\s+\d+", "ThreadsPerChild 64"))
        edit(host, file, (r"MaxRequestWorkers\s+\d+", "MaxRequestWorkers 512"))
