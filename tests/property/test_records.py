import json
import math
from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from tuner.ports import ConnectTime, Failures, Latency
from tuner.records import Blame, Failure, Fingerprint, Role, State, Timing, Trial, Verdict, Window
from tuner.records.as_json import (
    END,
    ending_to_json,
    opening_to_json,
    trial_from_json,
    window_from_json,
    window_key,
    window_to_json,
)
from tuner.study.facts import FINGERPRINT

numbers = st.floats(-(2**60), 2**60)
positive = st.floats(0, 1e12)
counts = st.integers(0, 2**53)
texts = st.text(max_size=40)
failures = st.builds(
    Failures, connect=counts, read=counts, write=counts, timeout=counts, status=counts, length=counts,
    other=counts,
)  # fmt: skip
latencies = st.builds(
    Latency,
    quantiles_ms=st.dictionaries(st.floats(0, 1), positive, max_size=5),
    samples=counts,
    corrected=st.booleans(),
    mean_ms=st.none() | positive,
    max_ms=st.none() | positive,
    histogram=st.dictionaries(positive, counts, max_size=8),
)
verdicts = st.builds(Verdict, check=texts, blame=st.sampled_from(Blame), reason=texts)
windows = st.builds(
    Window,
    started_s=positive,
    duration_s=positive,
    correct=counts,
    failures=failures,
    bytes=counts,
    latency=st.none() | latencies,
    connect_time=st.none() | st.builds(ConnectTime, min_ms=positive, mean_ms=positive, max_ms=positive),
    generator_cpu=positive,
    counters=st.dictionaries(texts, st.integers(-(2**50), 2**50).map(lambda number: number / 64), max_size=8),
    verdicts=st.lists(verdicts, max_size=3).map(tuple),
)
scalars = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-(2**60), 2**60) | st.text()
endings = st.builds(
    Trial,
    number=counts, role=st.sampled_from(Role), state=st.sampled_from(State),
    config=st.dictionaries(texts, scalars, max_size=5), started_s=positive,
    failure=st.none() | st.builds(Failure, kind=texts, reason=texts), steady=st.booleans(),
    timing=st.builds(Timing, suggest_s=positive, deploy_s=positive, load_s=positive, store_s=positive),
)  # fmt: skip
fingerprints = st.builds(
    Fingerprint,
    host=texts, kernel=texts, cpu=texts, cores=counts, memory_mib=counts,
    servers=st.dictionaries(texts, texts, max_size=3), generator=texts, co_located=st.booleans(),
    server_cpus=st.lists(counts, max_size=4).map(tuple),
    generator_cpus=st.lists(counts, max_size=4).map(tuple),
)  # fmt: skip


def through_text(data):
    """Write JSON and read it, as every storage does."""
    return json.loads(json.dumps(data))


@given(windows)
def test_every_window_is_read_back_as_it_was_written(window):
    read = window_from_json(through_text(window_to_json(window)))

    # Counters are kept to a millionth.
    assert replace(read, counters={}) == replace(window, counters={})
    assert read.counters.keys() == window.counters.keys()
    assert all(abs(read.counters[name] - value) <= 1e-6 for name, value in window.counters.items())


@given(windows)
def test_what_was_read_back_is_written_the_same(window):
    read = window_from_json(through_text(window_to_json(window)))

    assert window_from_json(through_text(window_to_json(read))) == read


@given(windows)
def test_a_window_says_the_same_before_and_after(window):
    read = window_from_json(through_text(window_to_json(window)))

    assert read.log_goodput == window.log_goodput
    assert read.failure_rate == window.failure_rate
    assert read.is_valid == window.is_valid


@given(windows, st.sampled_from([math.inf, -math.inf, math.nan]))
def test_numbers_that_are_none_survive(window, odd):
    odd_window = replace(
        window, generator_cpu=odd, counters={"odd": odd},
        latency=Latency(quantiles_ms={0.5: odd}, samples=1, mean_ms=odd, histogram={math.inf: 3}),
    )  # fmt: skip

    read = window_from_json(through_text(window_to_json(odd_window)))

    assert repr(read.generator_cpu) == repr(read.counters["odd"]) == repr(odd)
    assert read.latency is not None
    assert repr(read.latency) == repr(odd_window.latency)


@given(endings)
def test_a_trial_is_read_back_as_it_was_written(trial):
    kept = {window_key(index): window_to_json(window) for index, window in enumerate(trial.windows)}
    kept |= opening_to_json(trial) | {END: ending_to_json(trial)}

    read = trial_from_json(through_text(kept), number=trial.number, has_ended=True)

    assert read == trial
    # 1, 1.0 and true are equal, and mean different things to a server.
    assert list(map(type, read.config.values())) == list(map(type, trial.config.values()))


@given(endings)
def test_a_trial_that_has_not_ended_runs(trial):
    read = trial_from_json(through_text(opening_to_json(trial)), number=trial.number, has_ended=False)

    assert (read.role, read.state, read.windows) == (trial.role, State.RUNNING, ())


@given(fingerprints)
def test_every_fingerprint_is_read_back_as_it_was_written(fingerprint):
    assert FINGERPRINT.from_json(through_text(asdict(fingerprint))) == fingerprint


def test_a_window_of_nothing_takes_little_room():
    window = Window(started_s=1.0, duration_s=2.0, correct=3, failures=Failures())

    assert window_to_json(window).keys() == {
        "started_s", "duration_s", "correct", "bytes", "generator_cpu",
    }  # fmt: skip
    assert window_from_json(window_to_json(window)) == window
