"""What the servers really do with settings that their own checks say nothing about."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.apache import Apache, ApacheMpm, ApachePrefork
from tuner.adapters.servers.nginx import Nginx
from tuner.ports import Config, CpuSet, FileState, Process, Sandbox, Scalar, Server, Site
from tuner.space import Space, SpaceFacts, load_space

PAGE = b"<!DOCTYPE html><title>servers</title>\n"
URL = "http://127.0.0.1:8080"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        opened.write(opened.directory / "www" / "index.html", FileState(content=PAGE, mode=0o644))
        yield opened


def load(name: str) -> Space:
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 4096,
        "connections": 100,
        "open_files_max": 8192,
        "somaxconn": 4096,
    }
    return load_space([name], facts=SpaceFacts(names=names), base=Path())


def start(server: Server, config: Config, sandbox: Sandbox, cpus: CpuSet = frozenset()) -> Process:
    www = sandbox.directory / "www"
    site = Site(directory=sandbox.directory / "own", document_root=www, cpus=cpus)
    facts = server.detect(sandbox)
    for path, content in server.render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))
    process = sandbox.start(
        server.start(site, facts) or (), cpus=cpus or None, open_files=server.needs(config).open_files
    )
    wait_until(lambda: ask(sandbox, "/index.html") == PAGE)
    return process


def ask(sandbox: Sandbox, path: str) -> bytes:
    return sandbox.run(("curl", "-s", "--max-time", "5", URL + path), timeout_s=10).stdout


def test_the_parent_ends_no_process_of_an_idle_server_at_the_lowest_spare_threads(sandbox):
    space = load("apache-event")
    config = space.complete(
        {
            "ThreadsPerChild": 40,
            "Processes": 4,
            "StartServers": 3,
            "MinSpareThreads": 1,
            "MaxSpareThreads": 120,
        }
    )

    start(Apache(), space.for_server(config, "apache"), sandbox)

    def status(key: str) -> int:
        found = re.search(rf"^{key}: (\d+)$", ask(sandbox, "/server-status?auto").decode(), re.MULTILINE)
        return int(found[1]) if found else -1

    # The parent looks once a second.
    wait_until(lambda: status("ServerUptimeSeconds") >= 3)
    assert (status("Processes"), status("Stopping")) == (3, 0)


@pytest.mark.parametrize("started", [3, 40])
def test_prefork_ends_no_process_that_it_started_at_the_lowest_spare_servers(sandbox, started):
    space = load("apache-prefork")
    config = space.complete({"StartServers": started, "MinSpareServers": 1, "MaxSpareServers": started})

    start(ApachePrefork(), space.for_server(config, "apache-prefork"), sandbox)

    def status(key: str) -> int:
        found = re.search(rf"^{key}: (\d+)$", ask(sandbox, "/server-status?auto").decode(), re.MULTILINE)
        return int(found[1]) if found else -1

    # The parent looks once a second.
    wait_until(lambda: status("ServerUptimeSeconds") >= 3)
    assert status("BusyWorkers") + status("IdleWorkers") == started


def test_the_mpm_that_a_configuration_names_is_the_one_that_runs(sandbox):
    space = load("apache-mpm")
    for mpm in ("worker", "prefork", "event"):
        config = space.for_server(space.complete({"MPM": mpm}), "apache-mpm")
        process = start(ApacheMpm(), config, sandbox)

        assert f"\nServerMPM: {mpm}\n" in ask(sandbox, "/server-status?auto").decode()
        process.stop(timeout_s=10)


def test_workers_that_are_bound_to_cpus_stay_on_those_of_their_instance(sandbox):
    space = load("nginx")
    config = space.complete({"worker_processes": 2, "worker_cpu_affinity": "auto"})
    last = max(os.sched_getaffinity(0))

    process = start(Nginx(), space.for_server(config, "nginx"), sandbox, frozenset({last}))

    children = sandbox.read(PurePosixPath(f"/proc/{process.pid}/task/{process.pid}/children")).content or b""
    workers = [int(pid) for pid in children.split()]
    assert len(workers) == 2
    assert [os.sched_getaffinity(pid) for pid in workers] == [{last}, {last}]


def test_log_lines_that_are_written_together_come_without_a_stop(sandbox):
    space = load("nginx")
    config = space.complete({"access_log_buffer": 1024})
    start(Nginx(), space.for_server(config, "nginx"), sandbox)

    log = sandbox.directory / "own" / "access.log"

    wait_until(lambda: b"GET /index.html" in (sandbox.read(log).content or b""))
