"""The counters on this machine, with real programs. Others use its CPUs, too: nothing is said to be quiet."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.measure.counters import difference, take
from tuner.measure.memory import read_memory_bytes
from tuner.measure.processes import INTERRUPT_THREADS, find_interrupt_threads, find_own_process
from tuner.ports import FileReader, FileState, Host, Sandbox

pytestmark = pytest.mark.alone

BURN = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass"
BURN_IN_CHILDREN = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
for _ in range(3):
    if os.fork() == 0:
        while time.process_time() < 0.2:
            pass
        os._exit(0)
    os.wait()
print("done", flush=True)
signal.pause()
"""
LISTEN_ONLY = """
import signal, socket
listener = socket.create_server(("127.0.0.1", 8080), backlog=1)
print("ready", flush=True)
signal.pause()
"""
CONNECT = """
import socket
clients = [socket.socket() for _ in range(8)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", 8080))
"""
NGINX = b"""daemon off; worker_processes 2; error_log stderr; pid /dev/shm/tuner/nginx.pid; events {}
http {
  # Those of the installation may be anybody's, and nothing outside can be written.
  client_body_temp_path /dev/shm/tuner/body; proxy_temp_path /dev/shm/tuner/proxy;
  fastcgi_temp_path /dev/shm/tuner/fastcgi; uwsgi_temp_path /dev/shm/tuner/uwsgi;
  scgi_temp_path /dev/shm/tuner/scgi;
  access_log off; server { listen 8080; location / { return 200 "hello world\\n"; } }
}
"""
LOAD = ("wrk", "-t1", "-c16", "-d1", "-H", "Connection: close", "http://127.0.0.1:8080/")
NEAR_S = 0.15
"""Between two snapshots of the same moment lie some milliseconds, and others' CPU; ticks are 10 ms."""


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


@pytest.fixture
def sandbox(host: LocalHost) -> Iterator[Sandbox]:
    with host.sandbox() as opened:
        yield opened


def python(code, *arguments):
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


def test_a_program_that_burns_one_second_is_foreign_unless_it_is_ours(host):
    here = os.getpid()
    nobody: dict[str, list[int]] = {}
    ours = {"tuner": [here]}

    before = [take(host, namespace_pid=here, groups=groups) for groups in (nobody, ours)]
    burned = host.run(python(BURN, "1.0"), timeout_s=30)
    after = [take(host, namespace_pid=here, groups=groups) for groups in (nobody, ours)]

    foreign, own = (difference(*pair, generator_cpu_s=0.0) for pair in zip(before, after, strict=True))
    assert burned.cpu_s >= 1.0
    assert foreign["foreign_cpu_s"] > 1.0 - NEAR_S
    assert foreign["foreign_cpu_share"] == pytest.approx(foreign["foreign_cpu_s"] / foreign["elapsed_s"])
    assert own["tuner_cpu_s"] > 1.0 - NEAR_S
    assert foreign["foreign_cpu_s"] - own["foreign_cpu_s"] == pytest.approx(own["tuner_cpu_s"], abs=NEAR_S)


def test_a_generator_is_told_apart_from_the_tuner_that_waited_for_it(host):
    groups = {"tuner": [os.getpid()]}

    before = take(host, namespace_pid=os.getpid(), groups=groups)
    burned = host.run(python(BURN, "0.5"), timeout_s=30)
    after = take(host, namespace_pid=os.getpid(), groups=groups)

    counted = difference(before, after, generator_cpu_s=burned.cpu_s)
    assert counted["generator_cpu_s"] == burned.cpu_s
    assert counted["tuner_cpu_s"] < burned.cpu_s / 2


def test_children_that_come_and_go_are_in_the_servers_cpu(host, sandbox):
    server = sandbox.start(python(BURN_IN_CHILDREN))
    wait_until(lambda: b"ready" in server.output())
    groups = {"server": [server.pid], "tuner": [os.getpid()]}

    before = take(host, namespace_pid=sandbox.pid, groups=groups)
    os.kill(server.pid, signal.SIGUSR1)
    wait_until(lambda: b"done" in server.output())
    after = take(host, namespace_pid=sandbox.pid, groups=groups)

    counted = difference(before, after)
    assert counted["server_cpu_s"] == pytest.approx(0.6, abs=NEAR_S)
    assert counted["forks"] >= 3
    assert counted["server_processes"] == 1
    assert counted["server_switches_voluntary"] >= 3


def test_an_accept_queue_that_is_full_is_seen_in_its_own_network_only(host, sandbox):
    server = sandbox.start(python(LISTEN_ONLY))
    wait_until(lambda: b"ready" in server.output())
    groups = {"server": [server.pid]}
    with host.sandbox() as elsewhere:
        places = (sandbox.pid, elsewhere.pid)

        before = [take(host, namespace_pid=pid, groups=groups) for pid in places]
        sandbox.run(python(CONNECT), timeout_s=30)
        after = [take(host, namespace_pid=pid, groups=groups) for pid in places]

    here, there = (difference(*pair) for pair in zip(before, after, strict=True))
    assert here["listen_overflows"] > 0
    assert here["listen_drops"] >= here["listen_overflows"]
    assert here["active_opens"] == 8
    # Two of eight: the queue holds one more than its backlog (net/sock.h, sk_acceptq_is_full).
    assert here["passive_opens"] == 2
    assert there["listen_overflows"] == there["active_opens"] == 0


def test_nginx_under_load_is_counted_by_who_did_what(host, sandbox):
    config = sandbox.directory / "nginx.conf"
    sandbox.write(config, FileState(content=NGINX, mode=0o644))
    server = sandbox.start(("nginx", "-c", str(config)))
    port = PurePosixPath("/proc/net/tcp")
    wait_until(lambda: b":1F90 " in (sandbox.read(port).content or b""))
    groups = {
        "server": [server.pid],
        "tuner": [os.getpid()],
        "interrupts": find_interrupt_threads(host),
    }

    before = take(host, namespace_pid=sandbox.pid, groups=groups)
    load = sandbox.run(LOAD, timeout_s=30)
    after = take(host, namespace_pid=sandbox.pid, groups=groups)

    counted = difference(before, after, generator_cpu_s=load.cpu_s)
    shares = ("server_cpu_s", "generator_cpu_s", "tuner_cpu_s", "interrupts_cpu_s", "foreign_cpu_s")
    assert load.returncode == 0
    assert counted["server_processes"] == 3
    assert counted["server_cpu_s"] > 0
    assert counted["passive_opens"] >= 100
    assert counted["time_wait"] > counted["time_wait_before"]
    assert counted["server_rss_bytes"] > 2**20
    assert counted["server_switches_voluntary"] > 0
    # What the hypervisor took counts as the time of whoever ran then.
    assert sum(counted[name] for name in shares) <= counted["busy_s"] + counted["steal_s"] + NEAR_S


FORKS = """
import os, time
held = bytearray(64 << 20)
for _ in range(2):
    os.fork()
print("ready", flush=True)
time.sleep(30)
"""


def test_memory_that_forks_share_counts_once(host, sandbox):
    server = sandbox.start((sys.executable, "-c", FORKS))
    wait_until(lambda: server.output().count(b"ready") == 4)

    tree = take(host, namespace_pid=sandbox.pid, groups={"server": [server.pid]})
    together = read_memory_bytes(host, [pid for pid, _ in tree.groups["server"]])

    assert len(tree.groups["server"]) == 4
    assert sum(each.resident_bytes for each in tree.server.values()) > 4 * (64 << 20)
    assert together is not None
    assert 64 << 20 < together < 2 * (64 << 20)


def test_memory_is_unknown_where_a_process_may_not_be_read_and_none_where_it_has_ended(host, sandbox):
    process = sandbox.start((sys.executable, "-c", LISTEN_ONLY))
    wait_until(lambda: b"ready" in process.output())
    alone = read_memory_bytes(host, [process.pid])
    ended = sandbox.start(("true",))
    wait_until(lambda: ended.poll() is not None)

    assert alone is not None
    assert read_memory_bytes(host, [process.pid, ended.pid]) == pytest.approx(alone, rel=0.1)
    assert read_memory_bytes(Forbidding(host), [process.pid]) is None
    assert read_memory_bytes(host, []) is None


class Forbidding:
    """A host as a user sees it who may not read the memory of others."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def look(self, _paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        assert not trees
        return self

    def read(self, path: PurePosixPath) -> FileState:
        if path.name == "smaps_rollup":
            raise TargetError(f"local: {path} cannot be read: Permission denied.")
        return self._host.read(path)


def test_a_sandbox_shows_the_same_counters_as_the_host_around_it(host, sandbox):
    groups = {"tuner": [os.getpid()]}

    inside = take(sandbox, namespace_pid=sandbox.pid, groups=groups)
    outside = take(host, namespace_pid=sandbox.pid, groups=groups)

    counted = difference(inside, outside)
    assert inside.boot_id == outside.boot_id
    assert inside.totals.keys() == outside.totals.keys()
    assert counted["cpus"] == os.cpu_count()
    assert counted["passive_opens"] == 0


def test_threads_that_do_the_work_of_interrupts_are_found_where_they_can_be_seen(host):
    names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in find_interrupt_threads(host)]

    kernel_threads_are_seen = Path("/proc/2/comm").read_text().strip() == "kthreadd"
    assert all(name.startswith(INTERRUPT_THREADS) for name in names)
    assert ("ksoftirqd/0" in names) is kernel_threads_are_seen


def test_commands_of_this_machine_are_children_of_the_tuner(host):
    assert find_own_process(host) in {os.getpid(), os.getppid()}
