from dataclasses import replace

import pytest

from tests.unit.bench import Bench, Happening
from tests.unit.simulation import SMALL_PLAN
from tests.unit.trials import window
from tuner.deploy.asked import ResolvedLoad
from tuner.errors import Stalled
from tuner.measure import counters, trial
from tuner.measure import window as load_module
from tuner.measure.rounds import join
from tuner.measure.trial import NO_JUDGES, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.study import LoadSettings

PLAN = replace(SMALL_PLAN, windows=(3, 3))


@pytest.fixture
def bench(monkeypatch):
    made = Bench()
    for module in (counters, load_module, trial):
        monkeypatch.setattr(module, "time", made.clock)
    return made


def three_loads(bench):
    """Tell the loads by their connections: a has 1, b has 2, c has 3."""
    a, b, c = (
        replace(bench.load, name=name, shape=LoadSettings(connections=count))
        for count, name in enumerate("abc", start=1)
    )
    return replace(a, beside=(b, c))


def measure(bench, load):
    windows = []
    with bench.deployed() as deployment:
        measure_trial(deployment, load, PLAN, NO_JUDGES, RetryBudget(), windows.append)
    return windows


def test_every_load_has_its_turn_in_every_place(bench):
    windows = measure(bench, three_loads(bench))

    names = ["", "a", "b", "c"]
    order = "".join(names[int(argv[2])] for argv in bench.asked)
    warm_up, *rounds = (order[at : at + 3] for at in range(0, 12, 3))
    assert (warm_up, rounds) == ("abc", ["abc", "bca", "cab"])
    assert [list(each.parts) for each in windows] == [["a", "b", "c"]] * 3
    assert {argv[1] for argv in bench.asked} == {"1"}


def test_a_round_has_the_sums_of_its_parts(bench):
    bench.script = lambda _number, _seconds, connections: Happening(
        rate=1000.0 * connections, failures={"read": connections}
    )

    made, *_ = measure(bench, three_loads(bench))

    assert [part.correct for part in made.parts.values()] == [1000, 2000, 3000]
    assert (made.correct, made.failures.read, made.duration_s) == (6000, 6, 3.0)
    assert made.counters["elapsed_s"] == pytest.approx(3.0)


def test_each_load_asks_for_its_own_page(bench):
    asked = ResolvedLoad(url="http://127.0.0.1:8080/b", body_bytes=7, response_bytes=9)

    with bench.deployed() as deployment:
        several = replace(deployment, other_loads={"b": asked})

    assert several.under("b").load == asked
    assert several.under("a") == several


def test_a_server_that_does_not_bear_one_of_the_loads_bears_none(bench):
    bench.script = lambda _number, _seconds, connections: Happening(rate=0 if connections == 2 else 1000)

    with pytest.raises(Stalled, match="of load b: "):
        measure(bench, three_loads(bench))


def test_levels_are_averaged_over_the_time_and_counts_are_added_up():
    first = replace(window(1000), counters={"server_cpu_s": 1.0, "steal_share": 0.3, "only_here": 1.0})
    second = replace(window(100), duration_s=2.0, counters={"server_cpu_s": 0.5, "steal_share": 0.0})

    assert join({"a": first, "b": second}).counters == pytest.approx(
        {"server_cpu_s": 1.5, "steal_share": 0.1}
    )
