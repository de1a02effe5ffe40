"""One window's load from several places: how it is divided, what is added up, whose fault a failure is."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.unit.bench import ScriptedGenerator
from tuner.adapters.loads.oha import Oha
from tuner.adapters.loads.wrk import Wrk
from tuner.errors import TargetError, UsageError
from tuner.hosts.load_places import LoadPlace, find_generators, open_load_places
from tuner.measure.sending import add_up, send, share_out, split_in_two
from tuner.plugins import make_host
from tuner.ports import Argv, Completed, ConnectTime, Failures, FileState, Latency, LoadResult, Workload
from tuner.testing.fakes import MemoryHost, completed

BOOT_ID = PurePosixPath("/proc/sys/kernel/random/boot_id")
WORKLOAD = Workload(
    url="http://web1/", connections=100, keepalive=True, duration_s=5.0, threads=4, rate_rps=1000.0
)


def answering(**counted: object) -> Callable[[MemoryHost, Argv, bytes], Completed]:
    def run(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        counts = {"correct": 10 * int(argv[2])} | {k: v for k, v in counted.items() if k != "cpu_s"}
        return replace(completed(argv, stdout=json.dumps(counts).encode()), cpu_s=counted.get("cpu_s", 0.0))

    return run


def place(name: str = "load", *, run: Callable[..., Completed] | None = None, **facts: object) -> LoadPlace:
    host = MemoryHost(name=name, commands={"load": run or answering()})
    return LoadPlace(host=host, directory=PurePosixPath(f"/load/{name}"), **facts)


def commands(where: LoadPlace) -> list[Argv]:
    return where.host.ran


def lost(_host: MemoryHost, _argv: Argv, _stdin: bytes) -> Completed:
    raise TargetError("the connection was closed.")


@pytest.mark.parametrize(
    ("connections", "places", "given"),
    [(100, 1, [100]), (100, 3, [34, 33, 33]), (7, 2, [4, 3]), (2, 3, [1, 1]), (1, 4, [1])],
)
def test_connections_are_divided_and_none_is_lost(connections, places, given):
    shares = share_out(replace(WORKLOAD, connections=connections), [place() for _ in range(places)])

    assert [share.workload.connections for share in shares] == given
    assert sum(share.workload.rate_rps or 0 for share in shares) == pytest.approx(1000.0)
    assert all(share.workload.threads <= share.workload.connections for share in shares)


def test_without_a_rate_no_place_has_one():
    shares = share_out(replace(WORKLOAD, rate_rps=None), [place(), place()])

    assert [share.workload.rate_rps for share in shares] == [None, None]


@pytest.mark.parametrize(
    ("connections", "places", "given"),
    [(100, 1, [1001]), (100, 3, [340, 330, 331]), (7, 2, [572, 429]), (2, 3, [500, 501])],
)
def test_requests_are_divided_as_connections_are_and_none_is_lost(connections, places, given):
    workload = replace(WORKLOAD, connections=connections, requests_total=1001)

    shares = share_out(workload, [place() for _ in range(places)])

    assert [share.workload.requests_total for share in shares] == given


@pytest.mark.parametrize(
    "excess",
    [
        {"connections": 20_001},
        {"duration_s": 3600.5},
        {"rate_rps": 1e8},
        {"duration_s": float("nan")},
        {"requests_total": 10_000_001},
    ],
)
def test_load_beyond_all_bounds_is_refused_before_anything_is_sent(excess):
    with pytest.raises(UsageError, match="out of bounds"):
        share_out(replace(WORKLOAD, **excess), [place()])


def test_every_place_sends_its_share_from_its_own_directory():
    places = [place("one"), place("two")]

    sent = send(ScriptedGenerator(), share_out(WORKLOAD, places))

    assert [commands(each) for each in places] == [[("load", "5", "50", "500")]] * 2
    assert sent.result is not None
    assert sent.result.correct == 1000
    assert all(each.host.files[each.directory / "script.json"].content == b"50" for each in places)


def test_two_generators_of_one_place_write_into_different_directories():
    (share,) = share_out(WORKLOAD, [place("one")])

    first, second = split_in_two(share)

    assert (first.workload.connections, second.workload.connections) == (50, 50)
    assert first.workload.directory != second.workload.directory


def test_a_script_is_written_once_and_again_after_the_generator_failed():
    where = place("one")
    shares = share_out(WORKLOAD, [where])
    for _ in range(3):
        send(ScriptedGenerator(), shares)
    assert len(where.host.written) == 1

    where.host.commands["load"] = lambda _host, argv, _stdin: completed(argv, stdout=b"Segmentation fault")
    where.host.files.clear()
    failed = send(ScriptedGenerator(), shares)
    where.host.commands["load"] = answering()
    sent = send(ScriptedGenerator(), shares)

    assert failed.result is None
    assert "Segmentation" in (failed.problem or "")
    assert len(where.host.written) == 2
    assert sent.result is not None


def test_what_a_generator_writes_is_emptied_before_every_window():
    where = place("one")
    shares = share_out(WORKLOAD, [where])
    raw = where.directory / "raw.json"

    class WritesRaw(ScriptedGenerator):
        def files(self, _workload: Workload) -> dict[PurePosixPath, bytes]:
            return {raw: b""}

    send(WritesRaw(), shares)
    where.host.files[raw] = FileState(content=b'{"correct": 1}')
    send(WritesRaw(), shares)

    assert where.host.files[raw].content == b""
    assert where.host.written == [raw, raw]


def test_a_load_host_that_is_lost_is_named_and_its_window_has_no_result():
    places = [place("one", is_remote=True), place("two", is_remote=True, run=lost)]

    sent = send(ScriptedGenerator(), share_out(WORKLOAD, places))

    assert sent.result is None
    assert sent.problem is None
    assert sent.lost == "load host two: the connection was closed."


def test_what_cannot_be_lost_fails_as_ever():
    with pytest.raises(TargetError, match="the connection was closed"):
        send(ScriptedGenerator(), share_out(WORKLOAD, [place(run=lost)]))


def test_only_generators_on_the_targets_cpus_count_against_it():
    places = [place("a", run=answering(cpu_s=2.0), is_on_target=True), place("b", run=answering(cpu_s=3.0))]

    both = send(ScriptedGenerator(), share_out(WORKLOAD, places))
    apart = send(ScriptedGenerator(), share_out(WORKLOAD, places[1:]))

    assert both.target_cpu_s == 2.0
    assert apart.target_cpu_s is None


@pytest.mark.parametrize(
    ("cores", "cpus", "threads", "cpu_s", "busy"),
    [
        (8, frozenset(), 1, 4.9, 0.98),  # one thread is busy all the time, though seven CPUs are idle
        (8, frozenset(), 4, 4.9, 0.245),
        (2, frozenset({1}), 4, 4.9, 0.98),
        (8, frozenset(), 1, 20.0, 0.5),  # it does not keep to one thread: all CPUs are its own
    ],
)
def test_a_generator_is_as_busy_as_the_cpus_that_it_can_use(cores, cpus, threads, cpu_s, busy):
    where = place(run=answering(cpu_s=cpu_s), cores=cores, cpus=cpus)

    sent = send(ScriptedGenerator(), share_out(replace(WORKLOAD, threads=threads), [where]))

    assert sent.busy == pytest.approx(busy)


def test_the_busiest_place_decides_whether_the_generator_has_reserves():
    places = [place("a", run=answering(cpu_s=1.0)), place("b", run=answering(cpu_s=4.5))]

    assert send(ScriptedGenerator(), share_out(replace(WORKLOAD, threads=1), places)).busy == 0.9


def test_the_slowest_clock_decides():
    fast = LoadResult(duration_s=5.0, correct=1000, failures=Failures(read=1), bytes=10)
    slow = LoadResult(duration_s=5.5, correct=1200, failures=Failures(read=2, status=3), bytes=20)

    both = add_up([fast, slow])

    assert (both.duration_s, both.correct, both.bytes) == (5.5, 2200, 30)
    assert both.failures == Failures(read=3, status=3)
    assert both.goodput_rps == pytest.approx(400)
    assert both.goodput_rps < fast.goodput_rps + slow.goodput_rps


def test_response_times_are_those_of_all_requests_not_a_mean_of_quantiles():
    # 99 % of the first place's answers take 1 ms, all of the second's 9 ms: p99 of all is 9 ms, not 5 ms.
    near = Latency(quantiles_ms={0.99: 1.0}, samples=1000, histogram={1.0: 1000}, mean_ms=1.0, max_ms=1.0)
    far = Latency(quantiles_ms={0.99: 9.0}, samples=100, histogram={9.0: 100}, mean_ms=9.0, max_ms=9.0)
    results = [LoadResult(duration_s=1, correct=1, failures=Failures(), latency=each) for each in (near, far)]

    latency = add_up(results).latency

    assert latency is not None
    assert latency.quantiles_ms == {0.99: 9.0}
    assert latency.samples == 1100
    assert latency.mean_ms == pytest.approx(1900 / 1100)


def test_without_histograms_no_quantile_is_claimed():
    blunt = Latency(quantiles_ms={0.99: 4.0}, samples=10, mean_ms=2.0, max_ms=8.0)
    results = [LoadResult(duration_s=1, correct=10, failures=Failures(), latency=blunt)] * 2

    latency = add_up(results).latency

    assert latency is not None
    assert latency.quantiles_ms == {}
    assert (latency.mean_ms, latency.max_ms, latency.samples) == (2.0, 8.0, 20)


def test_what_one_generator_ran_out_of_spoils_the_window_of_all():
    fine = LoadResult(duration_s=5.0, correct=1000, failures=Failures())
    results = [
        fine,
        replace(fine, generator_fault="no local port was left"),
        replace(fine, aborted="it ended"),
    ]

    both = add_up(results)

    assert both.generator_fault == "no local port was left"
    assert both.aborted == "it ended"


def test_times_to_connect_keep_their_extremes():
    times = [ConnectTime(min_ms=1, mean_ms=2, max_ms=9), ConnectTime(min_ms=0.5, mean_ms=4, max_ms=5)]
    results = [LoadResult(duration_s=1, correct=1, failures=Failures(), connect_time=each) for each in times]

    assert add_up(results).connect_time == ConnectTime(min_ms=0.5, mean_ms=3, max_ms=9)


def load_host(
    name: str, *, version: str = "wrk 4.1.0", boot_id: str = "one", failing: str = ""
) -> MemoryHost:
    printed = {
        "wrk": f"{version} [epoll]\n", "nproc": "4\n", "sh": "77\n", "cat": f"{boot_id}\n",
        "mktemp": "/load/tuner-load.abc\n", "rm": "",
    }  # fmt: skip

    def run(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        failed = argv[0] == failing
        return completed(
            argv,
            stdout=printed[argv[0]].encode(),
            returncode=int(failed),
            stderr=b"no space" if failed else b"",
        )

    return MemoryHost(name=name, commands=dict.fromkeys(printed, run))


def test_load_hosts_with_the_same_generator_agree_on_its_version():
    assert find_generators(Wrk(), {"ssh://a": load_host("a"), "ssh://b": load_host("b")}) == "4.1.0"


def test_load_hosts_with_different_generators_are_refused_by_name():
    hosts = {"ssh://a": load_host("a"), "ssh://b": load_host("b", version="wrk 4.2.0")}

    with pytest.raises(
        TargetError, match=r"4\.1\.0 on ssh://a, 4\.2\.0 on ssh://b\. Install the same version"
    ):
        find_generators(Wrk(), hosts)


def test_a_load_host_without_the_generator_is_named_with_the_package():
    with pytest.raises(
        TargetError, match=r"wrk is not installed on ssh://b\. Install it: apt-get install wrk"
    ):
        find_generators(Wrk(), {"local": load_host("a"), "ssh://b": MemoryHost(name="b")})


def test_a_generator_without_a_package_says_how_it_is_installed():
    with pytest.raises(TargetError, match=r"oha is not installed .* cargo install oha --locked\."):
        find_generators(Oha(), {"local": MemoryHost()})


def test_a_host_that_cannot_be_reached_lacks_no_generator():
    nowhere = make_host("ssh://nobody@127.0.0.1:1")

    with pytest.raises(TargetError, match="the host cannot be reached: Connection refused") as refused:
        find_generators(Wrk(), {"local": nowhere})
    assert "apt-get" not in str(refused.value)


def test_a_target_that_sends_the_load_itself_is_not_called_this_machine():
    with pytest.raises(TargetError, match=r"wrk is not installed on web1\. Install it"):
        find_generators(Wrk(), {"local": MemoryHost(name="web1")})


def test_a_load_host_gets_a_directory_that_is_gone_in_the_end():
    target = MemoryHost(files={BOOT_ID: FileState(content=b"one\n")})
    hosts = {"local": load_host("local"), "ssh://b": load_host("b", boot_id="two")}

    with open_load_places(hosts, target, kept_on=frozenset({3})) as (here, there):
        assert (here.is_on_target, here.is_remote, here.cpus) == (True, False, {3})
        assert (there.is_on_target, there.is_remote, there.cpus) == (False, True, frozenset())
        assert (there.cores, there.session_pid) == (4, 77)

    assert all(host.ran[-1] == ("rm", "-rf", "--", "/load/tuner-load.abc") for host in hosts.values())


def test_a_load_host_has_as_many_cpus_as_its_quota_keeps_busy():
    host = load_host("b")
    limits = {
        "/proc/self/status": b"Cpus_allowed_list:\t0-3\n",
        "/proc/self/cgroup": b"0::/\n",
        "/sys/fs/cgroup/cpu.max": b"150000 100000\n",
    }
    host.files |= {PurePosixPath(path): FileState(content=content) for path, content in limits.items()}

    with open_load_places({"ssh://b": host}, MemoryHost()) as (place,):
        assert place.cores == 2


def test_a_load_host_that_cannot_be_made_ready_leaves_nothing_on_the_others():
    target = MemoryHost(files={BOOT_ID: FileState(content=b"one\n")})
    hosts = {"ssh://a": load_host("a"), "ssh://b": load_host("b", failing="mktemp")}

    with (
        pytest.raises(TargetError, match="ssh://b cannot be prepared: no space"),
        open_load_places(hosts, target),
    ):
        pass

    assert hosts["ssh://a"].ran[-1][0] == "rm"
