"""The process of a worker."""

import signal
import threading

import pytest

from tuner.commands.fleet.worker import MainThreadExecutor
from tuner.interrupts import signals_interrupt


def test_a_signal_that_does_not_wake_the_main_thread_ends_its_wait_for_tasks():
    tasks = MainThreadExecutor()
    begins_again = threading.Timer(30.0, tasks.submit, [print])
    begins_again.start()

    def interrupt_elsewhere() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    threading.Timer(1.0, interrupt_elsewhere).start()
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), signals_interrupt():
        tasks.next()

    assert not begins_again.finished.is_set(), "only the next task woke it"
    begins_again.cancel()
