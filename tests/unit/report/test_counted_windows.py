"""What is shown of a study whose windows end after so many requests."""

from dataclasses import replace

import pytest

from tests.unit.simulated_study import make_summary
from tests.unit.trials import baseline, window
from tuner.ports import ConnectTime, Latency
from tuner.report.rows import response_rows
from tuner.report.summary import gather_arm
from tuner.report.summary_json import summary_json

LATENCY = Latency(
    quantiles_ms={0.5: 1.0, 0.9: 4.0, 0.99: 9.0, 0.999: 20.0}, samples=3000, max_ms=35.0,
    histogram={1.0: 1500, 4.0: 1200, 9.0: 270, 35.0: 30},
)  # fmt: skip
CONNECT = ConnectTime(min_ms=0.0, mean_ms=1.0, max_ms=64.0)


@pytest.fixture(scope="module")
def summary():
    return make_summary(searches=6)


@pytest.fixture
def arm():
    seen = replace(window(3000.0), latency=LATENCY, connect_time=CONNECT)
    lasting = (replace(seen, duration_s=lasted) for lasted in (0.5, 0.7, 4.0))
    return gather_arm({}, [baseline(1, windows=tuple(lasting))])


def test_the_time_for_so_many_requests_is_shown_with_response_times_and_connection_times(arm, summary):
    shown = dict(response_rows(replace(summary, default=arm, winner=None, requests_total=3000)))

    assert shown["time for 3,000 requests of the default, median"] == "0.7 s"
    assert shown["response times of the default, p50 / p90 / p99 / max"].endswith(" / 35.0 ms")
    assert shown["connection establishment of the default, min / mean / max"] == "0.00 ms / 1.00 ms / 64.0 ms"


def test_windows_by_time_are_shown_as_before(arm, summary):
    shown = dict(response_rows(replace(summary, default=arm, winner=None)))

    assert list(shown) == ["connection establishment of the default, min / mean / max"]


def test_scripts_get_the_length_of_windows_and_all_usual_quantiles(arm, summary):
    told = summary_json(replace(summary, default=arm))["default"]

    assert told["window_s"] == 0.7
    assert list(told["latency_ms"]) == ["p50", "p90", "p99", "max"]
    assert told["connect_ms"] == {"min": 0.0, "mean": 1.0, "max": 64.0}
