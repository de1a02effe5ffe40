"""Check loads on a machine in memory, and what generators say that they can send."""

from dataclasses import replace

import pytest

from tests.unit.bench import Bench, Happening
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.command import Command
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.asked import ExpectedLoad
from tuner.measure import check_loads, counters
from tuner.measure import window as load_module
from tuner.measure.check_loads import SLOW_CLIENTS, choose_check_loads, measure_check_loads
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load
from tuner.ports import Completed, RequestKind
from tuner.study import LoadSettings
from tuner.study.settings import NamedLoad

FEWER, MORE, CLOSE, KEPT = "25 connections", "400 connections", "Connection: close", "keep-alive"
PYTHON = "a-python"
OWN_COMMAND = ["load", "{url}", "{connections}", "{duration_s}"]
SLOW = f"{SLOW_CLIENTS} slow clients"


def load_of(generator, **shape):
    return Load(generator=generator, shape=LoadSettings(**shape), interrupt_threads=())


def chosen(generator, *, is_private=True, **shape):
    found, left_out = choose_check_loads(load_of(generator, **shape), is_private=is_private)
    return [each.name for each in found], left_out


@pytest.mark.parametrize("generator", [Wrk(), Ab()])
def test_a_load_generator_that_can_send_everything_meets_all_check_loads(generator):
    assert chosen(generator) == ([FEWER, MORE, CLOSE, SLOW], {})
    assert chosen(generator, keepalive=False)[0] == [FEWER, MORE, KEPT, SLOW]


def test_what_a_generator_cannot_send_is_left_out_with_the_reason():
    assert chosen(H2load()) == ([FEWER, MORE, SLOW], {CLOSE: "h2load cannot send this load"})


def test_a_command_that_has_no_place_for_a_change_is_not_asked_for_it():
    names, left_out = chosen(Command(command=OWN_COMMAND, result={"json": {"correct": "/ok"}}))

    assert names == [FEWER, MORE, SLOW]
    assert left_out == {CLOSE: "command would send the same load as the study"}


def test_bounds_of_ports_and_of_one_connection_leave_check_loads_out():
    assert chosen(Wrk(), connections=8000)[1] == {
        "32000 connections": "a load host has too few local ports for this load"
    }
    assert chosen(Wrk(), connections=1)[1] == {"1 connection": "this load is the study's own load"}


def test_installed_services_get_no_slow_clients():
    names, left_out = chosen(Wrk(), is_private=False)

    assert names == [FEWER, MORE, CLOSE]
    assert list(left_out) == [SLOW]


@pytest.fixture
def bench(monkeypatch):
    made = Bench()
    for module in (counters, load_module, check_loads):
        monkeypatch.setattr(module, "time", made.clock)
    made.host.commands["sh"] = lambda _host, argv, _stdin: Completed(
        argv=argv, returncode=0, stdout=b"a-python\n", stderr=b"", duration_s=0.0
    )
    made.host.programs[PYTHON] = lambda *given: setattr(given[-1], "printed", b"ready 60\n")
    return made


ALL = choose_check_loads(load_of(Wrk()), is_private=True)[0]


def measure(bench, wanted=ALL):
    kept = []
    with bench.deployed() as deployment:
        measure_check_loads(deployment, bench.load, wanted, 1.0, RetryBudget(), kept.append)
    return kept


def test_every_check_load_gets_a_window_that_bears_its_name(bench):
    kept = measure(bench)

    assert [window.check_load for window in kept] == [FEWER, MORE, CLOSE, SLOW]
    # The warm-up has the study's own load.
    assert [int(argv[2]) for argv in bench.asked] == [100, 25, 400, 100, 100]


def test_check_loads_have_no_rate(bench):
    bench.load = replace(bench.load, rate_rps=500.0)

    measure(bench)

    assert {argv[3] for argv in bench.asked} == {""}


def test_a_spoiled_window_is_measured_again_under_its_check_load(bench):
    bench.script = lambda number, *_: Happening(stolen=0.2 if number == 2 else 0.0)

    kept = measure(bench)

    assert [(window.check_load, window.is_valid) for window in kept][:3] == [
        (FEWER, True), (MORE, False), (MORE, True),
    ]  # fmt: skip


def test_slow_clients_stand_beside_the_load_on_its_cpus_and_are_ended(bench):
    during = []
    bench.script = lambda *_: during.append(slow_of(bench)) or Happening()

    measure(bench)

    assert [len(each) for each in during] == [0, 0, 0, 0, 1]
    (process,) = slow_of(bench)
    assert process.argv[:3] == (PYTHON, "-I", "-S")
    assert process.argv[6:8] == ("--clients", "60")
    assert process.cpus == bench.site.placement.generator_cpus
    assert process.status is not None


def slow_of(bench):
    return [
        process
        for sandbox in bench.host.sandboxes
        for process in sandbox.started
        if process.argv[0] == PYTHON
    ]


@pytest.mark.parametrize("is_missing", [True, False])
def test_where_slow_clients_cannot_be_there_is_no_window_beside_them(bench, is_missing):
    if is_missing:
        del bench.host.programs[PYTHON]
    else:
        bench.host.programs[PYTHON] = lambda *given: given[-1].end(1, b"no module")

    assert [window.check_load for window in measure(bench)] == [FEWER, MORE, CLOSE]


def test_a_server_that_answers_nothing_under_a_check_load_has_a_window_of_nothing(bench):
    bench.script = lambda number, *_: Happening(rate=0.0 if number == 2 else 1000.0)

    assert [window.correct for window in measure(bench)] == [1000, 0, 1000, 1000]


def test_a_response_in_the_other_mode_may_have_another_length(bench):
    asked = []
    of_bench = bench.load.generator.parse

    class Watching(type(bench.load.generator)):
        def parse(self, completed, outputs, workload):
            asked.append((workload.keepalive, workload.response_bytes))
            return of_bench(completed, outputs, workload)

    bench.load = replace(bench.load, generator=Watching())
    measure(bench, ALL[2:3])

    (own_mode, own_bytes), (other_mode, other_bytes) = asked
    assert (own_mode, other_mode) == (True, False)
    assert own_bytes is not None
    assert other_bytes is None


def beside_slow_clients(bench, *rates):
    """Return name and goodput of the windows beside slow clients, of a server that gives these in turn."""
    bench.script = lambda number, *_: Happening(
        rate=rates[min(number - 4, len(rates) - 1)] if number >= 4 else 1000.0
    )
    return [(window.check_load, window.correct) for window in measure(bench)[3:]]


def test_a_server_may_make_room_for_slow_clients_before_it_is_judged(bench):
    """Apache starts more processes once a second: it serves nobody, then some, then all."""
    seen = beside_slow_clients(bench, 0.0, 140.0, 700.0, 710.0)

    assert seen == [*((f"{SLOW} at first", served) for served in (0, 140, 700)), (SLOW, 710)]


def test_a_server_that_stays_without_an_answer_has_a_window_of_nothing(bench):
    assert beside_slow_clients(bench, 0.0) == [(f"{SLOW} at first", 0)] * 4 + [(SLOW, 0)]


def test_a_server_that_goes_on_at_less_is_waited_for_no_longer(bench):
    assert beside_slow_clients(bench, 300.0) == [(f"{SLOW} at first", 300), (SLOW, 300)]


def test_a_server_that_slow_clients_do_not_hold_up_is_looked_at_once(bench):
    assert beside_slow_clients(bench, 900.0) == [(SLOW, 900)]


PAGE = RequestKind(path="/b")
MIX = NamedLoad(
    name="requests of yesterday", weight=0.0,
    load=LoadSettings(requests=(PAGE,), connections=7, keepalive=False),
)  # fmt: skip
ALL_AND_MIX = choose_check_loads(load_of(Wrk()), (MIX,), is_private=True)[0]


def test_a_mix_of_the_study_is_one_more_check_load_where_the_generator_can_send_it():
    assert [each.name for each in ALL_AND_MIX] == [FEWER, MORE, CLOSE, SLOW, MIX.name]
    assert (ALL_AND_MIX[-1].connections, ALL_AND_MIX[-1].keepalive) == (7, False)
    left_out = choose_check_loads(load_of(Ab()), (MIX,), is_private=True)[1]
    assert left_out == {MIX.name: "ab cannot send this load"}


def measure_mix(bench, page):
    """Return the windows under the mix, and what the generator was asked for."""
    bench.site = replace(bench.site, check_loads={MIX.name: ExpectedLoad(page=page, requests=(page,))})
    asked = []
    of_bench = bench.load.generator.parse

    class Watching(type(bench.load.generator)):
        def parse(self, completed, outputs, workload):
            asked.append(workload)
            return of_bench(completed, outputs, workload)

    bench.load = replace(bench.load, generator=Watching())
    return measure(bench, ALL_AND_MIX[-1:]), asked


def test_a_mix_of_the_study_is_sent_with_the_correct_responses_of_this_trial(bench):
    (window,), (usual, mix) = measure_mix(bench, PAGE)

    assert (window.check_load, window.correct) == (MIX.name, 1000)
    assert not usual.requests
    assert mix.requests == (replace(PAGE, body_bytes=615),)
    assert (mix.connections, mix.keepalive) == (7, False)


def test_a_server_that_answers_a_mix_otherwise_has_a_window_of_nothing(bench):
    (window,), (usual,) = measure_mix(bench, replace(PAGE, status=404))

    assert (window.check_load, window.correct, window.failure_rate) == (MIX.name, 0, 1.0)
    assert window.is_valid
    assert not usual.requests
