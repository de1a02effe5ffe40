import json
import re

import pytest

from tuner.adapters.loads.command import Command
from tuner.errors import LoadFailed, UsageError
from tuner.ports import Completed, Failures, LoadResult, Workload

ARGV = ["my-load", "{url}", "{duration_s}"]
WORKLOAD = Workload(url="http://127.0.0.1/", connections=4, keepalive=True, duration_s=2)


def read(result: dict[str, object], output: str, *, returncode: int = 0) -> LoadResult:
    completed = Completed(
        argv=("my-load",), returncode=returncode, stdout=output.encode(), stderr=b"", duration_s=2.0
    )
    load = Command(command=ARGV, result=result)
    return load.parse(completed, dict.fromkeys(load.outputs(WORKLOAD), output.encode()), WORKLOAD)


def test_counts_are_found_by_json_pointers():
    names = {"correct": "/requests/0/ok", "failures_status": "/requests/0/http~1errors", "bytes": "/bytes"}

    result = read({"json": names}, json.dumps({"requests": [{"ok": 7, "http/errors": 2}], "bytes": 900}))

    assert result.correct == 7
    assert result.failures == Failures(status=2)
    assert result.bytes == 900
    assert result.duration_s == 2


def test_counts_are_found_by_named_groups_of_several_expressions():
    result = read(
        {"regex": [r"^ok: (?P<correct>\d+)$", r"time: (?P<duration_s>[\d.]+) s"]}, "ok: 12\ntime: 1.98 s\n"
    )

    assert result.correct == 12
    assert result.duration_s == 1.98


def test_correct_responses_may_be_what_failures_leave_of_the_requests():
    result = read({"json": {"requests": "/n", "failures_other": "/bad"}}, '{"n": 10, "bad": 3}')

    assert result.correct == 7


def test_times_are_brought_to_our_units():
    names = {"correct": "/n", "latency_p50_ms": "/p50", "latency_p99_9_ms": "/p999", "duration_s": "/ms"}
    scale = {"latency_p50_ms": 1000, "latency_p99_9_ms": "1e3", "duration_s": "0.001"}

    result = read({"json": names, "scale": scale}, '{"n": 10, "p50": 0.002, "p999": 0.5, "ms": 2010}')

    assert result.latency is not None
    assert result.latency.quantiles_ms == {0.5: 2.0, 0.999: 500.0}
    assert result.duration_s == pytest.approx(2.01)


def test_a_result_can_be_read_from_a_file():
    result = read({"json": {"correct": "/n"}, "file": "result.json"}, '{"n": 5}')

    assert result.correct == 5


def test_the_file_of_a_result_is_emptied_before_each_window():
    load = Command(command=ARGV, result={"json": {"correct": "/n"}, "file": "result.json"})

    assert load.files(WORKLOAD) == dict.fromkeys(load.outputs(WORKLOAD), b"")


def test_connect_times_are_taken_together():
    names = {"correct": "/n", "connect_min_ms": "/a", "connect_mean_ms": "/b", "connect_max_ms": "/c"}

    result = read({"json": names}, '{"n": 5, "a": 1, "b": 2, "c": 3}')

    assert result.connect_time is not None
    assert (result.connect_time.min_ms, result.connect_time.mean_ms, result.connect_time.max_ms) == (1, 2, 3)


@pytest.mark.parametrize(
    ("result", "output", "message"),
    [
        ({"json": {"correct": "/n"}}, '{"m": 5}', "no value at /n"),
        ({"json": {"correct": "/n"}}, '{"n": "many"}', "correct: 'many' is not a number"),
        ({"json": {"correct": "/n"}}, '{"n": -1}', "is not a quantity"),
        ({"json": {"correct": "/n"}}, '{"n": 1.5}', "is not a count"),
        ({"json": {"correct": "/n", "requests": "/m"}}, '{"n": 5, "m": 4}', "5 correct responses to 4"),
        ({"json": {"requests": "/n", "failures_other": "/m"}}, '{"n": 3, "m": 4}', "is not a count"),
        ({"json": {"correct": "/n", "duration_s": "/s"}}, '{"n": 5, "s": 0}', "is not a duration"),
        ({"json": {"correct": "/n"}}, '{"n": 5', "cannot be read"),
        ({"regex": r"ok (?P<correct>\d+)"}, "failed 3\n", "nothing matches"),
        ({"regex": r"ok (?P<correct>\d+)"}, "ok 12", "may be cut short"),
    ],
    ids=str,
)
def test_a_result_that_cannot_be_read_is_a_failed_load(result: dict[str, object], output: str, message: str):
    with pytest.raises(LoadFailed, match=re.escape(message)):
        read(result, output)


def test_a_command_that_fails_is_a_failed_load_that_quotes_it():
    with pytest.raises(LoadFailed, match=r"my-load failed \(exit status 3\)\. It printed: out of luck"):
        read({"json": {"correct": "/n"}}, "out of luck", returncode=3)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "is no command"),
        ("my-load {url} {duration_s}", "is no command"),
        (["my-load", "{url}"], "{duration_s} is missing"),
        (["my-load", "{duration_s}"], "{url} is missing"),
        (["my-load", "{url}", "{duration_s}", "{colour}"], "{colour} is no known placeholder"),
    ],
    ids=str,
)
def test_a_command_that_cannot_be_directed_is_refused(command: list[str], message: str):
    with pytest.raises(UsageError, match=re.escape(message)):
        Command(command=command, result={"json": {"correct": "/n"}})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "load.result: the key is missing"),
        ({}, "load.result: the key is missing"),
        ({"jason": {}}, "load.result.jason: this key is not known"),
        ({"json": {"correct": "/n"}, "regex": "x"}, "needs either `json:` or `regex:`"),
        ({"scale": {}}, "needs either `json:` or `regex:`"),
        ({"json": ["/n"]}, "is not a mapping of names"),
        ({"json": {"correct": "n"}}, "'n' is no JSON pointer"),
        ({"json": {"corect": "/n"}}, "Did you mean 'correct'?"),
        ({"json": {"requests": "/n"}}, "does not contain the number of correct responses"),
        ({"json": {"correct": "/n", "connect_min_ms": "/c"}}, "'connect_min_ms' is not enough"),
        ({"regex": "(?P<correct>"}, "is no regular expression"),
        ({"regex": r"(\d+)"}, "has no named group"),
        ({"regex": [r"(?P<correct>\d+)", r"(?P<correct>\d+)"]}, "'correct' is given twice"),
        ({"json": {"correct": "/n"}, "scale": {"correct": 2}}, "no measured quantity has this name"),
        ({"json": {"correct": "/n", "duration_s": "/d"}, "scale": {"duration_s": "-1"}}, "is no factor"),
        ({"json": {"correct": "/n", "duration_s": "/d"}, "scale": {"duration_s": "9e999"}}, "is no factor"),
        ({"json": {"correct": "/n"}, "scale": 5}, "is not a mapping"),
        ({"json": {"correct": "/n"}, "file": "/etc/passwd"}, "is not a file in {directory}"),
        ({"json": {"correct": "/n"}, "file": "../result"}, "is not a file in {directory}"),
        ({"json": {"correct": "/n"}, "file": ".."}, "is not a file in {directory}"),
    ],
    ids=str,
)
def test_a_result_section_that_cannot_be_used_is_refused(result: dict[str, object] | None, message: str):
    with pytest.raises(UsageError, match=re.escape(message)):
        Command(command=ARGV, result=result)
