"""A second log becomes a load on which nothing is tuned."""

import json
from pathlib import Path

import pytest

from tuner.commands.logged_load import LoggedLoad, read_logs
from tuner.errors import UsageError
from tuner.study import load_study

LINE = '192.0.2.1 - - [12/Mar/2026:10:00:00 +0000] "GET {} HTTP/1.1" {} {} "-" "-"\n'
TIMED = '{} [12/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 100 {}\n'
HEAD = "study: a\nservers: [nginx]\nspace: [nginx]\ncontent: /srv\nload:\n  connections: 50\n  "


def write_log(path: Path, *requests: tuple[str, int, int]) -> str:
    path.write_text("".join(LINE.format(*each) for each in requests))
    return str(path)


def read(log: str, *check_logs: str, stands_in: bool = False, log_format: str | None = None) -> LoggedLoad:
    return read_logs(
        [log], check_logs=check_logs, log_format=log_format, takes_unsafe=False, stands_in=stands_in
    )


def as_study(load: LoggedLoad, folder: Path) -> str:
    text = f"{HEAD}{load.mix_as_yaml()}\n{load.check_loads_as_yaml()}"
    (folder / "a.yaml").write_text(text)
    return text


def test_a_second_log_is_a_check_load_of_the_study_under_the_name_of_its_file(tmp_path: Path):
    own = write_log(tmp_path / "access.log", ("/a", 200, 10))
    others = [
        write_log(tmp_path / name, ("/a", 200, 10), (f"/{name}", 404, 10))
        for name in ("yesterday.log", "Black Friday!.log")
    ]

    load = read(own, *others)
    as_study(load, tmp_path)
    study = load_study(tmp_path / "a.yaml")

    assert [each.name for each in study.check_loads] == [
        "requests of yesterday.log", "requests of Black-Friday-.log",
    ]  # fmt: skip
    assert [(each.path, each.status) for each in study.check_loads[0].load.requests] == [
        ("/a", 200), ("/yesterday.log", 404),
    ]  # fmt: skip
    assert [each.path for each in study.load.requests] == ["/a"]
    assert "check load yesterday.log:" in load.describe()
    told = json.loads(json.dumps(load.as_json()))["check_loads"]
    assert [(name, each["requests"]) for name, each in told.items()] == [
        ("yesterday.log", 2), ("Black-Friday-.log", 2),
    ]  # fmt: skip


def test_two_logs_of_one_name_are_told_apart(tmp_path: Path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
    logs = [write_log(tmp_path / folder / "x.log", ("/a", 200, 10)) for folder in "ab"]

    assert [each.name for each in read(logs[0], *logs).check_loads] == ["x.log", "x.log-2"]


def test_a_check_load_has_the_connections_that_its_own_log_shows(tmp_path: Path):
    (tmp_path / "a.log").write_text(TIMED.format(1, "20.0") * 5)
    (tmp_path / "b.log").write_text(TIMED.format(1, "30.0") * 5)
    timed = '$connection [$time_local] "$request" $status $body_bytes_sent $request_time'

    load = read(str(tmp_path / "a.log"), str(tmp_path / "b.log"), log_format=timed)
    as_study(load, tmp_path)
    (check,) = load_study(tmp_path / "a.yaml").check_loads

    assert (check.load.connections, check.load.keepalive) == (150, True)


def test_files_that_stand_for_a_site_answer_both_loads(tmp_path: Path):
    own = write_log(tmp_path / "a.log", ("/blog/1", 200, 1000), ("/old", 404, 10))
    other = write_log(tmp_path / "b.log", ("/blog", 200, 70), ("/blog/1", 200, 9), ("/old", 200, 10))

    load = read(own, other, stands_in=True)

    (check,) = load.check_loads
    assert [(each.path, each.status) for each in load.kinds] == [("/blog/1", 200), ("/old", 404)]
    assert {(each.path, each.status) for each in check.kinds} == {
        ("/2-blog", 200), ("/blog/1", 200), ("/old", 404),
    }  # fmt: skip
    assert [each.size for each in load.stand_ins if each.kind.path == "/blog/1"] == [1000]
    assert len(load.stand_ins) == 3


def test_a_check_log_without_a_usable_request_is_refused(tmp_path: Path):
    own = write_log(tmp_path / "a.log", ("/a", 200, 10))
    with pytest.raises(UsageError, match=r"b\.log: tuner can send no request of this log"):
        read(own, write_log(tmp_path / "b.log", ("/a", 500, 10)))


def test_a_rate_may_be_a_multiple_of_the_peak_of_the_log(tmp_path: Path):
    load = read(write_log(tmp_path / "access.log", *[("/a", 200, 10)] * 3))
    text = as_study(load, tmp_path)

    at_rate = text.replace("peak_rps:", "rate: 2 × peak\n  peak_rps:", 1)
    (tmp_path / "a.yaml").write_text(f"{at_rate}objective: minimize latency_p99_ms\n", encoding="utf-8")

    peak_rps = load.arrivals.peak_rps or 0.0
    assert load_study(tmp_path / "a.yaml").load.rate_rps == pytest.approx(2 * peak_rps, rel=1e-4)
