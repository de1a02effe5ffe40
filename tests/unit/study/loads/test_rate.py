"""`rate:` and `peak_rps:` of a load, and what is minimized at a rate."""

import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.records import Metric
from tuner.study import load_study

P99 = "objective: minimize latency_p99_ms\n"


@pytest.fixture
def study(tmp_path):
    def read(load: str, more: str = P99):
        path = tmp_path / "study.yaml"
        path.write_text(f"study: test\nservers: [nginx]\nspace: [nginx]\n{load}\n{more}")
        return load_study(path)

    return read


@pytest.mark.parametrize(
    ("load", "rate_rps"),
    [
        ("{rate: 3500}", 3500.0),
        ("{rate: 0.5}", 0.5),
        ("{rate: peak, peak_rps: 12.5}", 12.5),
        ("{rate: 2 × peak, peak_rps: 12.5}", 25.0),
        ("{rate: 1.5x peak, peak_rps: 10}", 15.0),
        ("{rate: 3 * peak, peak_rps: 10}", 30.0),
    ],
)
def test_a_rate_is_a_number_or_a_multiple_of_the_peak_of_a_log(study, load, rate_rps):
    assert study(f"load: {load}").load.rate_rps == rate_rps


def test_without_a_rate_the_peak_of_a_log_changes_nothing(study):
    assert study("load: {peak_rps: 12.5}", "").load == study("load: {}", "").load


def test_another_rate_is_another_study(study):
    space = space_of("sendfile")
    slow, quick = study("load: {rate: 3500}"), study("load: {rate: 3600}")

    assert slow.definition(space) != quick.definition(space)
    assert "3,500 requests/s" in slow.describe_load()


def test_at_a_rate_a_metric_is_minimized(study):
    assert study("load: {rate: 10}").objective.metric is Metric.LATENCY_P99
    of_cpu = study("load: {rate: 10}", "objective: minimize cpu_us_per_request\n")
    assert of_cpu.objective.metric is Metric.CPU
    of_memory = study("load: {rate: 10}", "objective: minimize memory_mib\n")
    assert of_memory.objective.metric is Metric.MEMORY
    assert str(of_cpu.objective) in of_cpu.definition(space_of("sendfile"))["objective"]


def test_the_mixes_of_robustness_checks_are_sent_without_a_rate(study):
    found = study("load: {rate: 10}", f"{P99}check_loads: [{{name: old, requests: [{{path: /a}}]}}]\n")

    assert [each.load.rate_rps for each in found.check_loads] == [None]


@pytest.mark.parametrize(
    ("load", "more", "said"),
    [
        ("load: {rate: 0}", P99, r"load\.rate: '0' is no rate"),
        ("load: {rate: fast}", P99, r"'fast' is no rate\. Write requests per second as 3500, `peak` or"),
        ("load: {rate: peak}", P99, r"load\.rate: the peak of the log is not known\. Write `peak_rps:`"),
        ("load: {rate: 100000000}", P99, "is no rate"),
        ("load: {generator: h2load, rate: 10, requests_total: 1000}", P99, "cannot be combined"),
        ("load: {rate: 10}", "", r"the same goodput\. Write `objective: minimize latency_p99_ms` or `obj"),
        ("load: {}", P99, r"objective: `minimize latency_p99_ms` as the only objective needs a fixed rate"),
        (
            "loads: [{name: a, path: /a}, {name: b, path: /b, rate: 10}]",
            "",
            "tuner compares several loads by their goodput",
        ),
    ],
)
def test_a_rate_that_cannot_be_is_refused_with_the_line_and_what_to_write(study, load, more, said):
    with pytest.raises(UsageError, match=rf"study\.yaml:\d+: .*{said}"):
        study(load, more)
