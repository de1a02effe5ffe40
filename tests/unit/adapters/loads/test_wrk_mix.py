from collections import Counter
from dataclasses import replace
from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.adapters.loads._wrk_mix import order_of, read_mix, write_script
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.wrk import Wrk
from tuner.errors import UsageError
from tuner.ports import Body, Failures, RequestKind, Workload

PAGE = RequestKind(path="/a", body_bytes=10, weight=3)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_whole_weights_are_kept_exactly_in_one_round(weights: list[int]):
    order = order_of(weights)

    assert [Counter(order)[index] for index in range(len(weights))] == weights


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=9))
def test_every_share_is_kept_all_along(weights: list[float]):
    order, total = order_of(weights), sum(weights)

    for length in (10, 100, 1000):
        counts = Counter(islice(cycle(order), length))
        for index, weight in enumerate(weights):
            assert abs(counts[index] - length * weight / total) <= len(weights)


def test_no_more_responses_of_a_sort_are_correct_than_were_asked_for():
    correct, failures = read_mix({"sent": [30, 10], "got": [33, 6], "wrong": [2, 1]})

    assert correct == 30 + 6
    assert failures == Failures(status=2, length=1 + 3)


@pytest.mark.parametrize("values", [{}, {"sent": [1], "got": [1, 2], "wrong": [0, 0]}, [], {"sent": "1"}])
def test_counts_of_another_shape_are_refused(values: object):
    with pytest.raises((ValueError, KeyError)):
        read_mix(values)


def test_a_text_of_a_study_is_no_lua():
    kind = RequestKind(path='/a"]]\\b\u00e9', headers={"X": '" .. os.execute("x") .. "'}, body_bytes=1)

    script = write_script([kind])

    assert 'path = "/a\\034]]\\092b\\195\\169"' in script
    assert '["X"] = "\\034 .. os.execute(\\034x\\034) .. \\034"' in script


def test_kinds_of_one_status_and_length_are_one_sort_and_any_length_takes_all_of_its_status():
    same = write_script([PAGE, RequestKind(path="/b", body_bytes=10)])
    open_kind = write_script([PAGE, RequestKind(path="/b"), RequestKind(path="/c", status=404, body_bytes=0)])

    assert "local sorts = {[200] = {[10] = 1}}" in same
    assert "local sorts = {[200] = {[-1] = 1}, [404] = {[0] = 2}}" in open_kind


def test_a_load_generator_of_one_kind_of_request_refuses_a_mix():
    workload = Workload(
        url="http://127.0.0.1/", connections=1, keepalive=True, duration_s=1.0, requests=(PAGE,)
    )

    assert Wrk().command(workload)
    with pytest.raises(UsageError, match=r"ab: it sends one kind of request, not a mix\. Use wrk, or h2load"):
        Ab().command(workload)


def varying(**more: object) -> RequestKind:
    return RequestKind(path="/a", body=Body(varies=True, **more))


@pytest.mark.parametrize(
    ("kinds", "tests"),
    [
        ([varying()], "{{}}"),
        ([varying(least_bytes=1, contains='a"b')], '{{{least = 1, text = "a\\034b"}}}'),
        ([varying(least_bytes=1), PAGE], "{{{least = 1}, {length = 10}}}"),
        ([varying(least_bytes=1), RequestKind(path="/b")], "{{}}"),
        ([replace(PAGE, body=Body(content=b"\0"))], '{{{content = "\\000"}}}'),
    ],
)
def test_a_body_of_any_length_has_to_pass_a_test(kinds: list[RequestKind], tests: str):
    assert f"local tests = {tests}\n" in write_script(kinds)


def test_a_page_that_varies_is_sent_by_its_path_and_looked_at():
    workload = Workload(
        url="http://a/b?c=d", connections=1, keepalive=True, duration_s=1.0, body=Body(varies=True)
    )
    (script,) = Wrk().files(workload).values()

    assert b'path = "/b?c=d"' in script
    assert b"function response(" in script
    assert b"function response(" not in b"".join(Wrk().files(replace(workload, body=Body())).values())
