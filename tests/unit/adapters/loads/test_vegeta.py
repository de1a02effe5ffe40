"""vegeta: what it is asked, and what its log tells; the logs here are written by hand."""

import base64
import json
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tuner.adapters.loads.vegeta import Vegeta
from tuner.errors import LoadFailed, UsageError
from tuner.ports import H2C, Completed, Failures, LoadResult, RequestKind, Workload

BEGAN_NS = 1_800_000_000_000_000_000
DONE = Completed(argv=("vegeta",), returncode=0, stdout=b"", stderr=b"", duration_s=1.0)
ONE = Workload(
    url="http://192.0.2.1:8080/a", connections=20, keepalive=True, duration_s=1.0, rate_rps=100.0,
    body_bytes=1000, directory=PurePosixPath("/load"),
)  # fmt: skip
MIX = replace(
    ONE,
    requests=(
        RequestKind(path="/a", weight=3, body_bytes=1000),
        RequestKind(path="/gone", method="HEAD", status=404, headers={"Host": "shop.test"}),
    ),
)
CSV = PurePosixPath("/load/vegeta.csv")


def line(
    number: int, *, late_ms: float = 0.0, took_ms: float = 2.0, status: int = 200, error: str = "",
    asked: str = "GET,http://192.0.2.1:8080/a", length: int | None = 1000,
) -> str:  # fmt: skip
    sent_ns = BEGAN_NS + number * 10_000_000 + round(late_ms * 1e6)
    headers = "Server: x\r\n" + ("" if length is None else f"Content-Length: {length}\r\n")
    packed = base64.b64encode(headers.encode()).decode()
    return f'{sent_ns},{status},{round(took_ms * 1e6)},0,0,"{error}",,,{number},{asked},{packed}\n'


def parse(lines: list[str], workload: Workload = ONE) -> LoadResult:
    return Vegeta().parse(DONE, {CSV: "".join(lines).encode()}, workload)


def test_a_rate_of_a_mix_is_in_the_command_and_its_requests_in_a_file():
    argv = Vegeta().command(MIX)
    written = Vegeta().files(MIX)[PurePosixPath("/load/vegeta.targets")]
    targets = [json.loads(each) for each in written.splitlines()]

    assert {"-rate=100000/1000s", "-duration=1.000s", "-max-workers=20", "-http2=false"} < set(argv)
    assert [each["method"] for each in targets] == ["GET", "GET", "HEAD", "GET"]
    assert targets[2] == {
        "method": "HEAD", "url": "http://192.0.2.1:8080/gone",
        "header": {"Accept-Encoding": ["identity"], "Host": ["shop.test"]},
    }  # fmt: skip


def test_what_is_asked_is_no_part_of_the_shell_script():
    script = Vegeta().command(replace(ONE, directory=PurePosixPath("/a b;c")))

    assert [each for each in script if ";" in each] == ["/a b;c/vegeta", "-targets=/a b;c/vegeta.targets"]


def test_without_a_rate_it_sends_as_fast_as_responses_come():
    argv = Vegeta().command(replace(ONE, rate_rps=None, keepalive=False, protocol="http/1.1", verifies=False))

    assert {"-rate=0", "-keepalive=false", "-insecure"} < set(argv)
    assert "-h2c" in Vegeta().command(replace(ONE, protocol=H2C))


def test_requests_in_time_have_their_own_latency():
    result = parse([line(number, late_ms=0.3) for number in range(100)])

    assert (result.correct, result.failures.total) == (100, 0)
    assert result.latency is not None
    assert result.latency.max_ms == 2.0
    assert result.bytes == 100_000


def test_a_stall_counts_in_each_request_that_was_due_meanwhile():
    """All 20 workers wait for 100 ms: what is due in that time is sent late."""
    late = {number: 100.0 - 10 * (number - 50) for number in range(50, 60)}

    result = parse([line(number, late_ms=late.get(number, 0.0)) for number in range(100)])

    assert result.latency is not None
    assert result.latency.max_ms == pytest.approx(102.0)
    assert result.latency.quantiles_ms[0.95] == pytest.approx(52.0, abs=11)


def test_what_was_due_long_before_the_end_and_not_sent_has_failed():
    sixty = [line(number) for number in range(60)]

    assert parse(sixty).failures == Failures(timeout=15)
    assert parse(sixty, replace(ONE, timeout_s=0.5)).failures.total == 0


def test_each_request_is_judged_by_its_own_status_and_length():
    gone = "HEAD,http://192.0.2.1:8080/gone"
    result = parse(
        [
            line(0), line(1, length=900), line(2, status=404, error="404 Not Found", asked=gone, length=None),
            line(3, status=200, asked=gone), line(4, length=None), line(5, status=503, error="503 x"),
            line(6, status=0, error="Get: EOF"), line(7, status=0, error="context deadline exceeded"),
            line(8, status=0, error="dial tcp: connect: connection refused"),
            line(9, status=0, error="dial tcp: socket: too many open files"),
        ],
        replace(MIX, duration_s=0.1),
    )  # fmt: skip

    assert (result.correct, result.sent) == (3, (8, 2))
    assert result.failures == Failures(length=1, status=2, read=1, timeout=1, connect=1, other=1)
    assert result.generator_fault == "Too many open files"


@pytest.mark.parametrize("log", ["1,2,3\n", line(0).replace("GET", "PUT"), "\x00", line(0)[:-4]])
def test_a_log_that_is_none_gives_no_result(log: str):
    with pytest.raises(LoadFailed):
        parse([log])


def test_what_its_log_cannot_tell_apart_is_refused():
    twice = (RequestKind(path="/a"), RequestKind(path="/a", headers={"Host": "shop.test"}))

    with pytest.raises(UsageError, match=r"same method and path \(GET /a\)"):
        Vegeta().command(replace(ONE, requests=twice))


def test_the_version_is_its_own_and_not_that_of_go():
    printed = replace(DONE, stdout=b"Version: \nCommit: \nRuntime: go1.24.1 linux/amd64\n")

    assert Vegeta().read_version(printed) == ""
    assert Vegeta().read_version(replace(DONE, stdout=b"Version: 12.13.0\nRuntime: go1.24\n")) == "12.13.0"
