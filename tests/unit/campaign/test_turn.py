"""The turn: of the threads that each drive one host, one at a time decides."""

import threading

import pytest

from tuner.campaign.turn import Turn

PATIENCE_S = 30.0


def run(*works):
    """Run functions in threads of their own to their end; return what they raised."""
    raised = []

    def catch(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for it
            raised.append(error)

    threads = [threading.Thread(target=catch, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    return raised


def test_one_at_a_time_decides_and_others_do_while_it_measures():
    turn, decided, is_measuring, may_end = Turn(), [], threading.Event(), threading.Event()

    def measure():
        with turn.taken():
            decided.append("first")
            with turn.others_turn():
                is_measuring.set()
                may_end.wait(PATIENCE_S)
            decided.append("first again")

    def decide():
        is_measuring.wait(PATIENCE_S)
        with turn.taken():
            decided.append("second")
            may_end.set()
            decided.append("second still")

    assert run(measure, decide) == []
    assert decided == ["first", "second", "second still", "first again"]


def test_who_waits_is_woken_when_a_trial_has_ended():
    turn, waits, ended = Turn(), threading.Event(), []

    def wait():
        with turn.taken():
            waits.set()
            while not ended:
                turn.wait(PATIENCE_S)

    def measure():
        waits.wait(PATIENCE_S)
        with turn.taken():
            with turn.others_turn():
                pass
            ended.append("a trial")
            turn.wait(0.0)

    assert run(wait, measure) == []


def test_a_study_that_is_stopped_ends_for_all_with_the_first_error():
    turn, is_measuring = Turn(), threading.Event()

    def measure():
        with turn.taken(), turn.others_turn():
            is_measuring.set()
            while not turn.is_stopped:
                pass

    def wait():
        with turn.taken():
            while True:
                turn.wait(PATIENCE_S)

    def stop():
        is_measuring.wait(PATIENCE_S)
        turn.stop(ValueError("first"))
        turn.stop(ValueError("second"))

    raised = run(measure, wait, stop)

    assert list(map(str, raised)) == ["first", "first"]
    with pytest.raises(ValueError, match="first"), turn.taken():
        pass
