"""A mix that h2load sends: one round of URLs, and what the sum of their lengths tells."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tuner.adapters.loads.h2load import H2load, has_wrong_mix
from tuner.errors import UsageError
from tuner.kit.bodies import Totals
from tuner.ports import H2, Body, BodyCheck, RequestKind, Workload

PAGE = RequestKind(path="/page", body_bytes=1000, weight=3, headers={"Host": "shop.test"})
IMAGE = RequestKind(path="/a.jpg", body_bytes=9000, headers={"Host": "shop.test"})
MIX = Workload(
    url="https://192.0.2.1:444/page", connections=4, keepalive=True, duration_s=1.0, protocol=H2,
    requests=(PAGE, IMAGE), directory=PurePosixPath("/load"),
)  # fmt: skip


def count(received: int, *, refused: int = 0) -> Totals:
    return Totals(answered=1000, refused=refused, broken=0, received_bytes=received)


def test_one_round_of_the_mix_is_in_a_file_and_its_headers_in_the_command():
    files = H2load().files(MIX)
    argv = H2load().command(MIX)

    assert files[PurePosixPath("/load/h2load.urls")].split() == [
        b"https://192.0.2.1:444/page", b"https://192.0.2.1:444/page",
        b"https://192.0.2.1:444/a.jpg", b"https://192.0.2.1:444/page",
    ]  # fmt: skip
    assert argv[-1] == "--input-file=/load/h2load.urls"
    assert argv[argv.index("--header") + 1] == "Host: shop.test"


@pytest.mark.parametrize(
    ("received", "is_wrong"),
    [(3_000_000, False), (3_030_000, False), (2_970_000, False), (1_000_000, True), (9_000_000, True)],
)
def test_lengths_are_judged_by_their_sum(received: int, is_wrong: object):
    assert has_wrong_mix(count(received), MIX) is is_wrong


def test_error_pages_of_refused_requests_are_no_wrong_lengths():
    assert not has_wrong_mix(count(3_900_000, refused=100), MIX)


def test_nothing_is_said_of_lengths_that_are_not_known():
    unknown = replace(MIX, requests=(PAGE, replace(IMAGE, body_bytes=None)))

    assert not has_wrong_mix(count(1), unknown)


@pytest.mark.parametrize(
    "other",
    [
        replace(IMAGE, method="POST"),
        replace(IMAGE, headers={"Host": "img.test"}),
        replace(IMAGE, status=404),
        replace(IMAGE, body=Body(check=BodyCheck.CONTAINS, contains="x")),
    ],
)
def test_what_h2load_cannot_send_or_judge_is_refused(other: RequestKind):
    with pytest.raises(UsageError, match=r"load generator h2load: .*Use wrk over HTTP/1\.1"):
        H2load().command(replace(MIX, requests=(PAGE, other)))
