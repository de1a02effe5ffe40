"""Clients that wait in vain: when they are looked for, and how they are counted."""

import socket
from dataclasses import replace
from pathlib import PurePosixPath
from threading import Event

import pytest

from tests.unit.bench import ScriptedGenerator
from tuner import plugins
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.wrk import Wrk
from tuner.hosts.load_places import LoadPlace
from tuner.measure.sending import Share, send
from tuner.measure.unanswered import (
    LEAST_CONNECTIONS,
    add_unanswered,
    count_unanswered,
    is_watched,
    patience_s,
)
from tuner.ports import Failures, LoadResult, Workload
from tuner.testing.fakes import MemoryHost, completed


class Asking(ScriptedGenerator):
    """Always has a request under way."""

    keeps_asking = True


def workload(connections: int = 1000, **more: object) -> Workload:
    given = {"url": "http://127.0.0.2:8080/", "keepalive": True, "duration_s": 0.6, **more}
    return Workload(connections=connections, directory=PurePosixPath("/load"), **given)


def place(printed: bytes) -> LoadPlace:
    host = MemoryHost(
        commands={
            "sh": lambda _host, argv, _stdin: completed(argv, stdout=printed),
            "load": lambda _host, argv, _stdin: completed(argv, stdout=b'{"correct": 900}'),
        }
    )
    return LoadPlace(host=host, directory=PurePosixPath("/load"))


@pytest.mark.parametrize("generator", [Wrk(), Ab(), H2load(), Asking()])
def test_many_connections_that_always_ask_are_watched(generator):
    assert is_watched(generator, workload())
    assert not is_watched(generator, workload(LEAST_CONNECTIONS - 1))
    assert not is_watched(generator, workload(rate_rps=100.0))
    assert not is_watched(generator, workload(duration_s=0.5))


def test_a_generator_that_may_pause_is_not_watched():
    assert not is_watched(ScriptedGenerator(), workload())


def test_the_connections_of_this_generator_alone_are_counted_and_only_late_ones():
    where = place(b"37\n")

    assert count_unanswered(where, workload(), Event()) == 37
    (asked,) = where.host.ran
    assert asked[-2:] == ("dport = :8080 and dst 127.0.0.2", "262")


@pytest.mark.parametrize(
    ("url", "condition"),
    [("http://web1/page", "dport = :80"), ("https://10.0.0.7/", "dport = :443 and dst 10.0.0.7")],
)
def test_a_name_is_not_resolved_for_that(url, condition):
    where = place(b"0\n")

    count_unanswered(where, workload(url=url), Event())

    assert where.host.ran[0][-2] == condition


def test_the_kernel_tells_who_has_heard_nothing_for_so_long():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        clients = [socket.create_connection(address) for _ in range(6)]
        served, _ = server.accept()

        class Served(Event):
            """Just before the look, one client is answered."""

            def wait(self, timeout: float | None = None) -> bool:
                return super().wait(timeout) or not served.send(b"x")

        here = LoadPlace(host=plugins.make_host("local"), directory=PurePosixPath("/load"))
        asked = workload(url=f"http://127.0.0.1:{address[1]}/", timeout_s=1.0, duration_s=1.35)
        counted = count_unanswered(here, asked, Served())
        for each in (served, *clients):
            each.close()

    assert counted == 5


def test_after_the_generator_has_ended_there_is_nothing_to_count():
    ended, where = Event(), place(b"37\n")
    ended.set()

    assert count_unanswered(where, workload(), ended) == 0
    assert where.host.ran == []


@pytest.mark.parametrize("printed", [b"", b"awk: not found\n"])
def test_a_host_that_cannot_tell_counts_none(printed):
    assert count_unanswered(place(printed), workload(), Event()) == 0


def test_what_the_generator_has_noticed_itself_is_not_counted_twice():
    noticed = LoadResult(duration_s=1.0, correct=10, failures=Failures(timeout=20, connect=5, read=7))

    assert add_unanswered(noticed, 25) == noticed
    assert add_unanswered(noticed, 40).failures == Failures(timeout=35, connect=5, read=7)


def test_a_window_that_is_over_before_the_look_has_none():
    # The generator in memory takes no time, so the look never comes.
    where = place(b"37\n")

    sent = send(Asking(), [Share(place=where, workload=workload(duration_s=60.0))])

    assert sent.result is not None
    assert sent.result.failures == Failures()


def test_a_timeout_that_a_study_sets_is_what_clients_wait_for_however_few_they_are():
    usual = workload(10, duration_s=5.0, response_s=0.5)
    assert not is_watched(Wrk(), usual)

    asked = replace(usual, timeout_s=3.0)

    assert is_watched(Wrk(), asked)
    assert patience_s(asked) == 3.0
    assert not is_watched(Wrk(), replace(asked, timeout_s=5.0))  # nobody can have waited for so long
    assert "--timeout=3s" in Wrk().command(asked)
    assert "--timeout=7s" in Wrk().command(usual)


def test_a_slow_window_counts_those_in_vain_as_timeouts():
    where = place(b"37\n")
    looked = Event()

    def count(_host, argv, _stdin):
        looked.set()
        return completed(argv, stdout=b"37\n")

    def load(_host, argv, _stdin):
        assert looked.wait(10)
        return completed(argv, stdout=b'{"correct": 900}')

    where.host.commands |= {"sh": count, "load": load}

    sent = send(Asking(), [Share(place=where, workload=workload())])

    assert sent.result is not None
    assert sent.result.failures == Failures(timeout=37)


def test_clients_of_a_slow_application_have_patience():
    """Four usual response times: in a window that is no longer, nobody has waited in vain."""
    assert not is_watched(Wrk(), workload(duration_s=3.0, response_s=1.0))
    assert is_watched(Wrk(), workload(duration_s=6.0, response_s=1.0))
