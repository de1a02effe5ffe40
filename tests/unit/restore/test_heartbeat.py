import threading

import pytest

from tuner.errors import TargetError
from tuner.restore.lease import Heartbeat


def test_numbers_grow_until_it_is_stopped():
    delivered: list[int] = []
    three = threading.Event()

    def deliver(number: int) -> None:
        delivered.append(number)
        if number == 3:
            three.set()

    heartbeat = Heartbeat(deliver, every_s=0.001)
    heartbeat.start()
    assert three.wait(10)
    heartbeat.stop()

    assert delivered == list(range(1, len(delivered) + 1))
    assert heartbeat.error is None


@pytest.mark.parametrize("refusal", [TargetError("web1: no route to host"), ValueError("unforeseen")])
def test_what_does_not_arrive_is_remembered_and_tried_again(refusal: Exception):
    again = threading.Event()
    silences: list[float] = []

    def deliver(number: int) -> None:
        silences.append(heartbeat.silent_s)
        if number == 3:
            again.set()
        raise refusal

    heartbeat = Heartbeat(deliver, every_s=0.001)
    heartbeat.start()
    assert again.wait(10)
    heartbeat.stop()

    assert heartbeat.error is refusal
    assert silences == sorted(silences)  # no failed delivery made it shorter


def test_one_that_never_began_can_be_stopped():
    Heartbeat(lambda _: None, every_s=1).stop()
