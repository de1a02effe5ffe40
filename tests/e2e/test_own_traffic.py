"""From the log of a site that is elsewhere to a study whose load is as the log says."""

import json
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here
from tuner.study import load_study

LINE = '192.0.2.{} - alice [12/Mar/2026:10:00:{:02} +0000] "GET {} HTTP/1.1" {} {} "-" "Mozilla/5.0"\n'
REQUESTS = (
    *[("/", 200, 5120)] * 30,
    *[("/style.css?v=77", 200, 20_000)] * 25,
    *[("/item/{}", 200, 9000)] * 20,
    *[("/photo/{}.jpg", 200, 150_000)] * 15,
    *[("/style.css", 304, 0)] * 5,
    *[("/blog", 301, 178)] * 3,
    *[("/wp-login.php", 404, 153)] * 2,
)


def write_log(path: Path, *more: tuple[str, int, int]) -> None:
    lines = (
        LINE.format(number % 200, number % 60, target.format(number), status, size)
        for number, (target, status, size) in enumerate([*more, *REQUESTS * 5])
    )
    path.write_text("".join(lines))


def test_a_log_becomes_a_study_that_sends_what_the_log_says(tmp_path: Path):
    write_log(tmp_path / "access.log")
    write_log(tmp_path / "yesterday.log", *[("/gone", 200, 70)] * 100)
    logs = ("--from", "access.log", "--check-log", "yesterday.log")
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        made = tuner.call("init", "nginx", *logs, "--stand-in", "-o", "own.yaml")
        checked = tuner.run("check", "own.yaml", "--json")

    assert made.returncode == 0, made.stderr
    assert "6 kinds cover 100.0% of 500 requests" in made.stderr
    assert "alice" not in (tmp_path / "own.yaml").read_text()
    assert checked.returncode == 0, checked.stderr
    found = json.loads(checked.stdout)
    assert found["default"]["failures"] == 0
    assert found["mix"][""]["kinds"] == 6
    assert found["mix"][""]["largest_difference"] < 0.02
    assert found["mix"][""]["match"] > 0.95
    check_load = found["mix"]["requests of yesterday.log"]
    assert check_load["kinds"] == 7
    assert check_load["as_expected"] > 0.99
    wanted = (30 * 5120 + 30 * 20_000 + 20 * 9000 + 15 * 150_000) / 100
    assert wanted < found["mix"][""]["received_bytes"] < wanted + 1000


def test_the_right_size_of_a_log_is_the_least_memory_at_twice_its_peak(tmp_path: Path):
    write_log(tmp_path / "access.log")
    tuner = CommandLine(tmp_path)

    refused = tuner.call("init", "nginx", "--for", "capacity")
    made = tuner.call("init", "nginx", "--from", "access.log", "--stand-in", "--for", "capacity")

    assert refused.returncode == 2
    assert "--for capacity: the rate to size the server for comes from a log" in refused.stderr
    assert made.returncode == 0, made.stderr
    study = load_study(tmp_path / "nginx.yaml")
    # 500 requests in the busiest minute
    assert study.load.rate_rps == pytest.approx(2 * 500 / 60, rel=1e-3)
    assert str(study.objective) == "minimize memory_mib"
    assert [each.metric for each in study.constraints] == ["failure_rate", "latency_p99_ms"]
    assert study.space[-1].data == {"allow": ["capacity"]}


def test_a_log_without_a_site_is_refused_with_the_ways_to_have_one(tmp_path: Path):
    write_log(tmp_path / "access.log")
    tuner = CommandLine(tmp_path)

    refused = tuner.call("init", "nginx", "--from", "access.log")

    assert refused.returncode == 2
    for option in ("--content", "--stand-in", "--managed"):
        assert option in refused.stderr
    assert not (tmp_path / "nginx.yaml").exists()
