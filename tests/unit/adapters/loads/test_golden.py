from pathlib import Path

import pytest

from tests.unit.adapters.loads.golden import FOLDER, cases, expectation, load_of, read
from tuner.errors import LoadFailed


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_counts_are_read_from_what_the_real_program_printed(case: Path):
    completed, outputs, workload, expected = read(case)
    load = load_of(case)

    if "load_failed" in expected:
        with pytest.raises(LoadFailed) as failure:
            load.parse(completed, outputs, workload)
        assert str(failure.value).startswith(expected["load_failed"])
    else:
        assert expectation(load.parse(completed, outputs, workload)) == expected


# A custom command gives quantiles only.
WITH_HISTOGRAM = [case for case in cases() if case.parent.name != "command"]


@pytest.mark.parametrize("case", WITH_HISTOGRAM, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_a_histogram_holds_every_sample_and_ends_at_the_greatest(case: Path):
    completed, outputs, workload, expected = read(case)
    if "load_failed" in expected:
        return
    latency = load_of(case).parse(completed, outputs, workload).latency
    if latency is not None:
        assert sum(latency.histogram.values()) == latency.samples
        assert max(latency.histogram) == pytest.approx(latency.max_ms, rel=0.05)


def test_connections_that_were_all_closed_are_noticed_although_one_answer_took_most_of_the_window():
    case = FOLDER / "h2load" / "h2c_closed_after_50_requests.json"
    completed, outputs, workload, expected = read(case)
    (path,) = outputs
    start, status, _ = outputs[path].decode().splitlines()[0].split("\t")
    others = outputs[path].decode().split("\n", 1)[1]
    slow = f"{start}\t{status}\t{int(workload.duration_s * 0.9e6)}\n{others}".encode()

    result = load_of(case).parse(completed, {path: slow}, workload)

    assert result.aborted == expected["aborted"]
    assert result.failures.total == 0
