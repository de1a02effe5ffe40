"""A signal that shall end a run ends it, wherever it comes."""

import signal
import time

import pytest

from tuner.interrupts import signals_interrupt


class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def finalize_and_wait() -> None:
    with signals_interrupt():
        Finalized()
        time.sleep(10)


def test_a_signal_that_comes_in_a_finalizer_is_not_lost():
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        finalize_and_wait()
