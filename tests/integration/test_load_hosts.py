"""Load from real hosts over SSH: it arrives where it should, is added up, and ends by itself."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.load_target import check_load_target
from tuner.errors import TargetError
from tuner.hosts.conflicts import find_conflicts
from tuner.hosts.load_places import find_generators, open_load_places
from tuner.hosts.url import parse_url
from tuner.measure.counters import difference, take
from tuner.measure.processes import find_interrupt_threads, find_own_process
from tuner.measure.sending import send, share_out
from tuner.ports import Host, Workload

ROOT = PurePosixPath("/var/www/html")


@pytest.fixture(scope="module")
def web(bed: Testbed) -> TestHost:
    made = bed.add_host("web")
    made.install_nginx()
    return made


@pytest.fixture(scope="module")
def target(web: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(web.ssh_url)) as host:
        yield host


@pytest.fixture(scope="module")
def senders(bed: Testbed) -> Iterator[Mapping[str, SshHost]]:
    hosts = [SshHost(bed.add_host(name).ssh_url) for name in ("gen1", "gen2")]
    yield {host.name: host for host in hosts}
    for host in hosts:
        host.close()


def workload(web: TestHost, duration_s: float = 1.0) -> Workload:
    return Workload(
        url=f"http://{web.address}/index.nginx-debian.html", connections=5, keepalive=True,
        duration_s=duration_s,
    )  # fmt: skip


def served(web: TestHost) -> int:
    """Count what nginx has logged."""
    log = web.root / "var/log/nginx/access.log"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def test_two_load_hosts_together_count_what_the_target_served(web, target, senders):
    assert find_generators(Wrk(), senders)
    with open_load_places(senders, target) as places:
        before = served(web)
        sent = send(Wrk(), share_out(workload(web), places))
        wait_until(lambda: served(web) - before >= sent.result.correct)

        assert sent.result.failures.total == 0
        assert sent.result.correct > 100
        # Each of 5 connections may have one more under way when the window ends, and each wrk probes once.
        assert served(web) - before <= sent.result.correct + 2 * (5 + 2)
        assert all(place.is_remote for place in places)
        assert sent.busy > 0
        directories = [place.directory for place in places]

    listed = [
        host.run(("ls", "-d", str(path)), timeout_s=5).stdout
        for host, path in zip(senders.values(), directories, strict=True)
    ]
    assert listed == [b"", b""]


def test_a_window_needs_one_round_trip_for_each_of_its_steps(web, target, senders):
    pid = int((web.root / "run/nginx.pid").read_text())
    groups = {
        "server": [pid], "tuner": [find_own_process(target)], "interrupts": find_interrupt_threads(target),
    }  # fmt: skip
    host = next(iter(senders.values()))

    with open_load_places({host.name: host}, target) as places:
        shares = share_out(workload(web), places)
        send(Wrk(), shares)
        on_target, on_sender = target.requests, host.requests
        before = take(target, namespace_pid=pid, groups=groups)
        sent = send(Wrk(), shares)
        after = take(target, namespace_pid=pid, groups=groups)

    counted = difference(before, after, generator_cpu_s=sent.target_cpu_s)
    assert target.requests - on_target == 2
    assert host.requests - on_sender == 2  # the window, and the directory that is removed
    assert counted["server_cpu_s"] > 0
    assert counted["server_processes"] > 1
    assert counted["server_rss_bytes"] > 2**20
    assert counted["segments_sent"] > 100


def test_load_is_aimed_at_the_address_of_the_target_only(bed, web, target, senders):
    assert check_load_target(parse_url(f"http://{web.address}/"), target, senders)
    for elsewhere in (
        f"http://{bed.address}/",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://198.18.255.9/",
    ):
        with pytest.raises(TargetError, match="tuner sends no load to"):
            check_load_target(parse_url(elsewhere), target, senders)


def test_a_page_on_the_target_proves_what_an_address_cannot(bed, web, target, senders):
    other = bed.add_host("other")
    other.install_nginx()
    # As behind NAT: the address that is asked is none of those that this "target" has.
    behind = SshHost(other.ssh_url)
    url = parse_url(f"http://{web.address}/")

    assert "serves the test file that tuner put into" in check_load_target(
        url, _Seen(behind, target), senders, token_directory=ROOT
    )
    with pytest.raises(TargetError, match="does not serve the test file"):
        check_load_target(url, behind, senders, token_directory=ROOT)

    for host in (web, other):
        assert not list((host.root / "var/www/html").glob("tuner-*"))
    behind.close()


class _Seen:
    """The network of one host with the files of another."""

    def __init__(self, network: Host, files: Host) -> None:
        self.name = files.name
        self.run_all = network.run_all
        self.write = files.write
        self.look = files.look
        self.read = files.read


def test_conflicts_are_looked_for_in_one_round_trip(target):
    target.run(("true",), timeout_s=5)
    before = target.requests

    found = find_conflicts(
        target, ["net.core.somaxconn", "vm.swappiness"], [PurePosixPath("/etc/nginx/nginx.conf")]
    )

    assert target.requests - before == 1
    assert all(each.where and each.remedy for each in found)


def test_a_load_host_that_is_lost_spoils_the_window_and_its_generator_ends_by_itself(bed, web, target):
    lost = bed.add_host("lost")
    kept = LocalHost()
    host = SshHost(lost.ssh_url)
    with open_load_places({"local": kept, host.name: host}, target) as places:
        cutting = threading.Timer(0.5, lost.kill_sshd)
        cutting.start()
        sent = send(Wrk(), share_out(workload(web, 2.0), places))
        cutting.join()
        wait_until(lambda: not lost.processes("wrk"))

    assert sent.result is None
    assert host.name in (sent.lost or "")
    assert not Path(places[0].directory).exists()
    host.close()
