from dataclasses import replace

import pytest

from tuner.kit.bodies import Totals, has_wrong_bodies, has_wrong_responses
from tuner.ports import Body, Workload

WORKLOAD = Workload(
    url="http://x/", connections=10, keepalive=True, duration_s=5, body_bytes=1000, response_bytes=1250
)
ALL_RIGHT = Totals(answered=1000, refused=0, broken=0, received_bytes=1_250_000)


def test_responses_of_the_probed_length_are_right():
    assert not has_wrong_responses(ALL_RIGHT, WORKLOAD)


@pytest.mark.parametrize("header_change_bytes", [-37, -2, 10, 37])
def test_a_header_may_vary_a_little(header_change_bytes: int):
    received = ALL_RIGHT.received_bytes + 1000 * header_change_bytes

    assert not has_wrong_responses(replace(ALL_RIGHT, received_bytes=received), WORKLOAD)


def test_a_tenth_missing_of_every_body_is_noticed():
    assert has_wrong_responses(replace(ALL_RIGHT, received_bytes=1_150_000), WORKLOAD)


def test_a_fifth_of_empty_bodies_is_noticed():
    assert has_wrong_responses(replace(ALL_RIGHT, received_bytes=1_050_000), WORKLOAD)


def test_bodies_that_are_too_long_are_noticed():
    assert has_wrong_responses(replace(ALL_RIGHT, received_bytes=1_400_000), WORKLOAD)


def test_responses_under_way_at_the_end_are_no_wrong_bodies():
    large = replace(WORKLOAD, body_bytes=10**6, response_bytes=10**6 + 250)
    totals = Totals(answered=20, refused=0, broken=0, received_bytes=28 * (10**6 + 250))

    assert not has_wrong_responses(totals, large)


def test_error_pages_of_any_size_hide_no_short_bodies():
    totals = Totals(answered=500, refused=500, broken=0, received_bytes=500 * 900)

    assert has_wrong_responses(totals, WORKLOAD)


def test_error_pages_do_not_make_the_others_wrong():
    totals = Totals(answered=500, refused=500, broken=0, received_bytes=500 * 1250 + 500 * 4000)

    assert not has_wrong_responses(totals, WORKLOAD)


def test_without_a_probe_the_body_is_the_least():
    unprobed = replace(WORKLOAD, response_bytes=None)

    assert has_wrong_responses(replace(ALL_RIGHT, received_bytes=1_000_000), unprobed)
    assert not has_wrong_responses(replace(ALL_RIGHT, received_bytes=2_000_000), unprobed)


def test_bodies_alone_are_counted_to_the_byte():
    totals = replace(ALL_RIGHT, received_bytes=1_000_000)

    assert not has_wrong_bodies(totals, WORKLOAD)
    assert has_wrong_bodies(replace(totals, received_bytes=999_999), WORKLOAD)


def test_bodies_of_unknown_length_are_never_wrong():
    assert not has_wrong_bodies(replace(ALL_RIGHT, received_bytes=5), replace(WORKLOAD, body_bytes=None))


def test_bodies_of_any_length_may_still_not_be_empty():
    varying = replace(WORKLOAD, body_bytes=None, response_bytes=None, body=Body(least_bytes=1))

    assert has_wrong_bodies(replace(ALL_RIGHT, received_bytes=ALL_RIGHT.answered - 1), varying)
    assert not has_wrong_bodies(replace(ALL_RIGHT, received_bytes=ALL_RIGHT.answered), varying)
    assert has_wrong_responses(replace(ALL_RIGHT, received_bytes=17 * ALL_RIGHT.answered), varying)
