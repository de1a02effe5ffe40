"""Make the golden files of the servers again, from the programs on this machine.

Run as root from the checkout: python -m tests.unit.adapters.servers.capture
What a case expects is written as the adapter answers now: read the difference before you commit it.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from tests.unit.adapters.servers.golden import ADAPTERS, FOLDER, describe, facts_of, site_of
from tests.unit.adapters.servers.recording import RecordingHost, configuration, put_site, start
from tuner.adapters.hosts.local import LocalHost
from tuner.ports import Facts, FileState, Site

SITE = {"directory": "/site", "document_root": "/site/www", "port": 8080, "cpus": [1, 3]}
LOAD = ("ab", "-q", "-r", "-s", "2", "-c", "60", "-n", "6000", "http://127.0.0.1:8080/index.html")

# One other value than the packaged one wherever they fit together.
NGINX_VALUES: dict[str, Any] = {
    "worker_processes": 3,
    "worker_cpu_affinity": "auto",
    "worker_connections": 4096,
    "multi_accept": True,
    "accept_mutex": True,
    "accept_mutex_delay": 20,
    "epoll_events": 64,
    "timer_resolution": 100,
    "listen_backlog": 2048,
    "listen_deferred": True,
    "listen_sndbuf": 64,
    "sendfile": False,
    "tcp_nodelay": False,
    "aio": "threads",
    "thread_pool_threads": 8,
    "output_buffers_number": 1,
    "output_buffers_size": 64,
    "postpone_output": 0,
    "open_file_cache": 1000,
    "open_file_cache_inactive": 30,
    "open_file_cache_valid": 5,
    "open_file_cache_errors": True,
    "keepalive_requests": 100000,
    "connection_pool_size": 1024,
    "request_pool_size": 8192,
    "access_log_buffer": 64,
    "reset_timedout_connection": True,
}
APACHE_VALUES: dict[str, Any] = {
    "ThreadsPerChild": 64,
    "Processes": 3,
    "StartServers": 2,
    "MinSpareThreads": 66,
    "MaxSpareThreads": 240,
    "AsyncRequestWorkerFactor": 4,
    "ListenBacklog": 2048,
    "ListenCoresBucketsRatio": 1,
    "MaxConnectionsPerChild": 20000,
    "MaxKeepAliveRequests": 0,
    "AcceptFilter": "none",
    "EnableSendfile": True,
    "EnableMMAP": False,
    "MaxMemFree": 512,
    "ThreadStackSize": 262144,
    "ReadBufferSize": 16384,
    "FlushMaxThreshold": 262144,
    "FlushMaxPipelined": -1,
    "SendBufferSize": 65536,
}


def store(adapter: str, name: str, content: Mapping[str, Any]) -> None:
    path = FOLDER / adapter / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def describe_site(site: Site) -> dict[str, Any]:
    return {
        "directory": str(site.directory),
        "document_root": str(site.document_root),
        "port": site.port,
        "cpus": sorted(site.cpus),
    }


def capture_detect(adapter: str) -> Facts:
    host = RecordingHost(LocalHost())
    facts = ADAPTERS[adapter].detect(host)  # type: ignore[arg-type]
    answers = {"commands": host.commands, "files": host.files}
    store(adapter, "detect-debian-12", {**answers, "facts": describe(facts)})
    return facts


def capture_render(adapter: str, name: str, config: Mapping[str, Any], facts: Facts) -> None:
    store(adapter, f"render-{name}", {"config": dict(config), "site": SITE, "facts": describe(facts)})
    for path, content in ADAPTERS[adapter].render(config, site_of(SITE), facts_of(describe(facts))).items():
        (FOLDER / adapter / f"render-{name}.{path.name}").write_bytes(content)


def capture_check(adapter: str, facts: Facts, name: str, *changes: tuple[bytes, bytes]) -> None:
    """Let the program check its packaged configuration after changes to the text."""
    server = ADAPTERS[adapter]
    with LocalHost().sandbox() as sandbox:
        site = put_site(sandbox, server, configuration(adapter), facts, changes)
        checked = sandbox.run(server.check(site, facts) or (), timeout_s=10, open_files=1024)
    (FOLDER / adapter / f"check-{name}.txt").write_bytes(checked.stderr + checked.stdout)
    refusals = list(server.refusals(checked))
    store(adapter, f"check-{name}", {"returncode": checked.returncode, "refusals": refusals})


def capture_running(
    adapter: str, name: str, facts: Facts, config: Mapping[str, Any], asked: Mapping[str, Any] | None = None
) -> None:
    server = ADAPTERS[adapter]
    with LocalHost().sandbox() as sandbox:
        site = put_site(sandbox, server, config, facts)
        process = start(sandbox, server, site, config, facts)
        host = RecordingHost(sandbox)
        found = server.effective(host, asked or config, site, facts, process)  # type: ignore[arg-type]
        files = {path: content for path, content in host.files.items() if content is not None}
        store(adapter, f"running-{name}", {
            "config": dict(asked or config), "site": describe_site(site), "facts": describe(facts),
            "pid": process.pid, "commands": host.commands, "files": files, "effective": dict(found),
        })  # fmt: skip


def capture_log(
    adapter: str, name: str, facts: Facts, config: Mapping[str, Any], open_files: int | None = None
) -> None:
    """Press the server until its log says why."""
    server = ADAPTERS[adapter]
    with LocalHost().sandbox() as sandbox:
        site = put_site(sandbox, server, config, facts)
        process = start(sandbox, server, site, config, facts, open_files)
        sandbox.run(LOAD, timeout_s=30)
        time.sleep(1.2)  # Apache looks once a second
        log = process.output() + (sandbox.read(site.directory / "error.log").content or b"")
    (FOLDER / adapter / f"log-{name}.txt").write_bytes(log)
    store(adapter, f"log-{name}", {"complaints": list(server.complaints(log))})


def capture_nginx() -> None:
    facts = capture_detect("nginx")
    default = configuration("nginx")
    everything = configuration("nginx", **NGINX_VALUES)
    capture_render("nginx", "packaged", default, facts)
    capture_render("nginx", "everything", everything, facts)
    capture_render("nginx", "no-log", {"access_log": "off", "listen_reuseport": True}, facts)
    masks = b"worker_processes 3; worker_cpu_affinity 01 10;"
    own_log = b"access_log /dev/shm/tuner/nginx/b.log combined flush=1s;"
    for name, *changes in (
        ("packaged",),
        ("masks", (b"worker_processes auto;", masks)),
        ("unknown-directive", (b"open_file_cache off;", b"open_file_cach off;")),
        ("cache-of-nothing", (b"open_file_cache off;", b"open_file_cache max=0;")),
        ("odd-pool", (b"connection_pool_size 512;", b"connection_pool_size 1000;")),
        ("flush-without-buffer", (b"gzip on;", own_log)),
        ("aio-on", (b"aio off;", b"aio on;")),
        ("pool-without-threads", (b"user www-data;", b"thread_pool default threads=0;")),
        (
            "connections-above-files",
            (b"nofile 1024;", b"nofile 700;"),
            (b"connections 768;", b"connections 30000;"),
        ),
        ("conflicting-name", (b"    server {", b"    server { listen 8080; server_name _; }\n    server {")),
        ("negative-backlog", (b"backlog=511", b"backlog=-1")),
    ):
        capture_check("nginx", facts, name, *changes)
    capture_running("nginx", "packaged", facts, default)
    capture_running("nginx", "everything", facts, everything)
    capture_running(
        "nginx", "reuseport", facts, configuration("nginx", listen_reuseport=True, listen_backlog=300)
    )
    asked = {**default, "listen_backlog": 9000, "worker_processes": 4, "worker_rlimit_nofile": 2048}
    running = {**default, "listen_backlog": 9000}
    capture_running("nginx", "other-than-asked", facts, running, asked)
    capture_log("nginx", "connections", facts, {**default, "worker_connections": 20})
    capture_log("nginx", "open-files", facts, {**default, "worker_rlimit_nofile": 24})


def capture_apache() -> None:
    facts = capture_detect("apache")
    default = configuration("apache")
    everything = configuration("apache", **APACHE_VALUES)
    capture_render("apache", "packaged", default, facts)
    capture_render("apache", "everything", everything, facts)
    bare = {"KeepAlive": False, "CustomLog": "off", "RequestReadTimeout": False, "BufferedLogs": True}
    capture_render("apache", "no-log", bare, facts)
    capture_check("apache", facts, "packaged")
    for name, old, new in (
        ("no-name", b"ServerName localhost\n", b""),
        ("not-a-multiple", b"MaxRequestWorkers 150", b"MaxRequestWorkers 140"),
        ("above-server-limit", b"ServerLimit 16", b"ServerLimit 3"),
        ("above-thread-limit", b"ThreadsPerChild 25", b"ThreadsPerChild 75"),
        ("fewer-than-threads", b"MaxRequestWorkers 150", b"MaxRequestWorkers 10"),
        (
            "above-compiled-limits",
            b"ServerLimit 16\nThreadLimit 64",
            b"ServerLimit 30000\nThreadLimit 200000",
        ),
        ("zeros", b"StartServers 2\nMinSpareThreads 25", b"StartServers 0\nMinSpareThreads 0"),
        ("no-backlog", b"ListenBacklog 511", b"ListenBacklog 0"),
        ("no-factor", b"AsyncRequestWorkerFactor 2", b"AsyncRequestWorkerFactor 0"),
        ("no-ratio", b"EnableMMAP On", b"ListenCoresBucketsRatio 0"),
        ("unknown-directive", b"EnableMMAP On", b"EnableMMap2 On"),
        ("small-buffer", b"SendBufferSize 0", b"SendBufferSize 100"),
    ):
        capture_check("apache", facts, name, (old, new))
    capture_running("apache", "packaged", facts, default)
    capture_running("apache", "everything", facts, everything)
    asked = {
        **default,
        "ListenBacklog": 9000,
        "MaxRequestWorkers": 200,
        "ThreadsPerChild": 20,
        "StartServers": 5,
    }
    capture_running("apache", "other-than-asked", facts, {**default, "ListenBacklog": 9000}, asked)
    capture_running("apache", "small-stack", facts, {**default, "ThreadStackSize": 1000})
    few = {"ThreadsPerChild": 2, "MaxRequestWorkers": 2, "MinSpareThreads": 1, "MaxSpareThreads": 4}
    capture_log("apache", "workers", facts, {**default, **few, "StartServers": 1})
    capture_log("apache", "stack", facts, {**default, "ThreadStackSize": 1000})


def capture_h2o() -> None:
    facts = capture_detect("h2o")
    default = configuration("h2o")
    everything = configuration("h2o", **{
        "num-threads": 3, "max-connections": 4096, "tcp-fastopen": 0, "file.etag": False,
        "http2-max-concurrent-requests-per-connection": 50, "http1-request-timeout": 30,
        "http2-latency-optimization-max-additional-delay": 0.5, "proxy.timeout.keepalive": 0,
    })  # fmt: skip
    capture_render("h2o", "packaged", default, facts)
    capture_render("h2o", "everything", everything, facts)
    capture_render("h2o", "no-log", {"access-log": "off"}, facts)
    for name, *changes in (
        ("packaged",),
        ("no-threads", (b"num-threads: 2", b"num-threads: 0")),
        ("unknown-command", (b"num-threads: 2", b"tcp-reuseport: ON")),
        ("no-number", (b"max-connections: 1024", b"max-connections: many")),
        ("no-switch", (b"file.etag: ON", b"file.etag: maybe")),
        ("no-yaml", (b"num-threads: 2", b"{num-threads: 2")),
    ):
        capture_check("h2o", facts, name, *changes)
    capture_running("h2o", "packaged", facts, default)
    asked = {**default, "num-threads": 4, "max-connections": 2000}
    capture_running("h2o", "other-than-asked", facts, default, asked)
    capture_log("h2o", "open-files", facts, default, 24)


def capture_caddy() -> None:
    facts = capture_detect("caddy")
    default = configuration("caddy")
    everything = configuration("caddy", GOMAXPROCS=3, GOGC=400, GOMEMLIMIT=512)
    capture_render("caddy", "packaged", default, facts)
    capture_render("caddy", "everything", everything, facts)
    for name, *changes in (
        ("packaged",),
        ("unknown-key", (b'"idle_timeout"', b'"idle_timeouts"')),
        ("no-time", (b'"300s"', b'"300 apples"')),
        ("no-json", (b'"admin"', b"admin")),
        ("no-handler", (b'"file_server"', b'"fail_server"')),
    ):
        capture_check("caddy", facts, name, *changes)
    capture_running("caddy", "packaged", facts, default)
    capture_running("caddy", "everything", facts, everything)
    asked = {**default, "GOMAXPROCS": 4, "timeouts.idle": 30}
    capture_running("caddy", "other-than-asked", facts, {**default, "GOMAXPROCS": 2}, asked)


def capture_haproxy() -> None:
    facts = capture_detect("haproxy")
    default = configuration("haproxy")
    everything = configuration("haproxy", **{
        "nbthread": 3, "maxconn": 2000, "tune.bufsize": 32768, "tune.maxaccept": 64, "balance": "random",
        "tune.maxpollevents": 100, "tune.runqueue-depth": 100, "tune.recv_enough": 4096,
        "tune.sndbuf.client": 65536, "tune.idle-pool.shared": False, "tune.listener.multi-queue": False,
        "tune.sched.low-latency": True, "option.tcp-smart-accept": False, "option.tcp-smart-connect": True,
        "option.splice-auto": True, "bind.shards": "by-thread", "frontend.maxconn": 1500,
        "server.maxconn": 50, "server.pool-max-conn": 20, "server.pool-purge-delay": 60,
    })  # fmt: skip
    capture_render("haproxy", "packaged", default, facts)
    capture_render("haproxy", "everything", everything, facts)
    capture_render("haproxy", "no-log", {"log": "off", "busy-polling": True, "http-reuse": "always"}, facts)
    for name, *changes in (
        ("packaged",),
        ("no-threads", (b"tune.maxaccept 4", b"nbthread 0")),
        ("too-many-threads", (b"tune.maxaccept 4", b"nbthread 65")),
        ("unknown-keyword", (b"tune.maxaccept", b"tune.maxacept")),
        ("no-algorithm", (b"balance roundrobin", b"balance square")),
        ("no-backend", (b"default_backend behind", b"default_backend before")),
        ("no-timeouts", (b"timeout client 50000", b"")),
    ):
        capture_check("haproxy", facts, name, *changes)
    capture_running("haproxy", "packaged", facts, default)
    capture_running("haproxy", "everything", facts, everything)
    asked = {**default, "nbthread": 4, "balance": "random", "tune.bufsize": 65536, "bind.shards": "by-thread"}
    capture_running("haproxy", "other-than-asked", facts, {**default, "nbthread": 2}, asked)


def capture_sysctl() -> None:
    with LocalHost().sandbox() as sandbox:
        host = RecordingHost(sandbox)
        facts = ADAPTERS["sysctl"].detect(host)  # type: ignore[arg-type]
        answers = {"commands": host.commands, "files": host.files}
        store("sysctl", "detect-linux-6.18", {**answers, "facts": describe(facts)})
        config = {
            "net.core.somaxconn": 8192, "net.ipv4.tcp_wmem[1]": 65536, "net.ipv4.tcp_wmem[2]": 1048576,
            "net.ipv4.tcp_notsent_lowat": 4294967295, "net.ipv4.tcp_autocorking": False,
            "net.ipv4.tcp_slow_start_after_idle": 0, "net.ipv4.tcp_fin_timeout": 10,
            "net.ipv4.ip_local_port_range[0]": 10000, "net.ipv4.tcp_congestion_control": "reno",
        }  # fmt: skip
        capture_render("sysctl", "some", config, facts)
        for path, content in ADAPTERS["sysctl"].render(config, site_of(SITE), facts).items():
            sandbox.write(path, FileState(content=content))
        host = RecordingHost(sandbox)
        found = ADAPTERS["sysctl"].effective(host, config, site_of(SITE), facts, None)  # type: ignore[arg-type]
        store("sysctl", "running-some", {
            "config": config, "site": SITE, "facts": describe(facts), "pid": 0,
            "commands": {}, "files": host.files, "effective": dict(found),
        })  # fmt: skip


if __name__ == "__main__":
    capture_nginx()
    capture_apache()
    capture_caddy()
    capture_h2o()
    capture_haproxy()
    capture_sysctl()
