"""Signals end a run, and never in the middle of what must come to its end."""

import os
import signal
import threading

import pytest

from tuner.interrupts import STOPPING, signals_interrupt, uninterrupted


@pytest.mark.parametrize("number", STOPPING)
def test_a_polite_signal_interrupts(number: signal.Signals):
    with pytest.raises(KeyboardInterrupt, match=number.name), signals_interrupt():
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOPPING)
def test_what_must_come_to_its_end_does_and_is_interrupted_afterwards(number: signal.Signals):
    done = []

    def put_back() -> None:
        with signals_interrupt(), uninterrupted():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            done.append("put back")

    with pytest.raises(KeyboardInterrupt, match=number.name):
        put_back()

    assert done == ["put back"]


def test_an_error_on_the_way_out_is_not_hidden_by_an_interruption():
    def fail() -> None:
        with signals_interrupt(), uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("not put back")

    with pytest.raises(ValueError, match="not put back"):
        fail()


def test_the_handlers_of_before_are_there_again():
    before = [signal.getsignal(number) for number in STOPPING]

    with signals_interrupt(), uninterrupted():
        pass

    assert [signal.getsignal(number) for number in STOPPING] == before


def test_another_thread_may_use_both():
    done = []

    def work() -> None:
        with signals_interrupt(), uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [True]
