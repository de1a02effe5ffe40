from dataclasses import replace

import pytest

from tests.unit.bench import CONFIG, Bench, Happening
from tests.unit.simulation import SMALL_PLAN
from tuner.errors import Stalled
from tuner.measure import calibrate as calibrate_module
from tuner.measure import counters
from tuner.measure import trial as trial_module
from tuner.measure import window as load_module
from tuner.measure.calibrate import MOST_CONNECTIONS, calibrate, size_confirmation
from tuner.records import Metric
from tuner.statistics.noise import Noise
from tuner.study import LoadSettings
from tuner.study.presets import PRESETS


@pytest.fixture
def bench(monkeypatch):
    made = Bench()
    for module in (calibrate_module, counters, load_module, trial_module):
        monkeypatch.setattr(module, "time", made.clock)
    return made


def run(bench, *, connections=100, plan=SMALL_PLAN):
    told = []
    load = replace(bench.load, shape=LoadSettings(connections=connections))
    found = calibrate(bench.site, CONFIG, load, plan, lambda *done: told.append(done))
    assert told == [(number, plan.calibration_trials) for number in range(plan.calibration_trials)]
    return found


def saturating(at, rate=1000.0):
    """Let goodput grow with the connections up to so many."""
    return lambda _number, _seconds, connections: Happening(rate=rate * min(connections, at) / at)


def test_a_quiet_machine_can_prove_small_gains(bench):
    bench.script = saturating(100)

    found = run(bench)

    assert found.noise.sigma_window < 0.025
    assert 0 < found.provable_gain < 0.1
    assert found.lines()[0].startswith("noise      this host can prove gains of ")
    assert found.as_json()["provable_gain"] == found.provable_gain


def test_a_noisy_machine_is_told_so_with_what_to_do(bench):
    rates = [700, 1300, 900, 1500, 600]
    bench.script = lambda number, *_: Happening(rate=rates[number % 5])

    found = run(bench)

    assert found.provable_gain > 0.1
    assert "stop other programs" in found.lines()[0]


def test_connections_from_which_on_goodput_does_not_grow_are_found(bench):
    bench.script = saturating(50)

    found = run(bench)

    assert found.plateau == 50
    assert list(found.by_connections) == [25, 50, 100, 200]


def test_a_single_connection_is_enough_to_calibrate(bench):
    bench.script = saturating(1)

    assert list(run(bench, connections=1).by_connections) == [1, 2]


@pytest.mark.parametrize("connections", [MOST_CONNECTIONS, 10_000, 20_000])
def test_as_many_connections_as_a_study_may_have_are_looked_at(bench, connections):
    bench.script = saturating(connections)

    found = run(bench, connections=connections)

    assert connections in found.by_connections
    assert max(found.by_connections) <= max(MOST_CONNECTIONS, connections)


def test_two_generators_that_get_more_than_one_show_that_it_is_too_small(bench):
    bench.script = lambda *_: Happening(rate=1000.0)

    found = run(bench)

    assert found.second_generator == pytest.approx(2.0)
    assert "one generator is too small; give the generator more threads" in found.lines()[2]


def test_two_generators_that_share_what_the_server_gives_show_reserves(bench):
    bench.script = saturating(100)

    found = run(bench)

    assert found.second_generator == pytest.approx(1.0)
    assert "the generator has reserves" in found.lines()[2]


def test_a_generator_that_uses_its_cpus_up_is_told_so(bench):
    bench.script = lambda _n, _s, connections: Happening(
        rate=10.0 * min(connections, 100), generator_busy=0.96
    )

    found = run(bench)

    assert "the generator is the limit" in found.lines()[2]
    assert found.as_json()["metric"] == "goodput_per_cpu"


def test_a_default_that_stalls_cannot_be_calibrated(bench):
    bench.script = lambda *_: Happening(rate=0)

    with pytest.raises(Stalled):
        run(bench)


def test_the_time_of_the_confirmation_is_planned_from_the_noise():
    quick = PRESETS["quick"]

    pairs, windows = size_confirmation(Noise.PRIOR, quick, 0.3)

    assert pairs >= quick.pairs
    assert 2 * pairs * (0.3 + quick.warmup_s + windows * quick.window_s) <= quick.confirm_s


def test_the_calibration_plans_the_confirmation_that_the_run_will_make(bench):
    """A trial costs its deployment and its warm-up once, not twice."""
    quick = PRESETS["quick"]

    found = run(bench, plan=quick)

    assert (found.pairs, found.windows) == size_confirmation(found.noise, quick, 0.001)


def test_with_less_time_left_the_confirmation_is_shorter_but_never_below_its_least():
    quick = PRESETS["quick"]

    assert size_confirmation(Noise.PRIOR, quick, 0.3, seconds=5) == (quick.pairs, quick.windows[0])
    assert (
        size_confirmation(Noise.PRIOR, quick, 0.3, seconds=60)[0]
        < size_confirmation(Noise.PRIOR, quick, 0.3)[0]
    )


def test_a_preset_without_a_time_for_the_confirmation_keeps_to_its_pairs():
    standard = PRESETS["standard"]

    assert size_confirmation(Noise.PRIOR, standard, 0.3) == (standard.pairs, standard.windows[1])


def test_at_a_rate_neither_a_second_generator_nor_other_connections_are_tried(bench):
    load = replace(bench.load, shape=LoadSettings(connections=100, rate_rps=500.0), rate_rps=500.0)
    bench.script = lambda *_: Happening(rate=500)

    found = calibrate(bench.site, CONFIG, load, SMALL_PLAN, lambda *_: None, metric=Metric.CPU)

    assert {argv[2] for argv in bench.asked} == {"100"}
    assert "or more in cpu_us_per_request (" in found.lines()[0]
    assert found.lines()[-1] == "load       requests/s by connections: 100: 500; 500 requests/s were due"
    assert found.as_json()["metric"] == "cpu_us_per_request"
