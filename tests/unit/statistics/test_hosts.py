"""Several hosts in one model: each has a level of its own, and what others are at leaves less to learn."""

from dataclasses import replace

import pytest

from tests.unit.statistics.test_posterior import CACHED, COPIED, SPACE, Bench, shifted
from tuner.records import Role, State
from tuner.statistics.baseline_level import HostLevels
from tuner.statistics.noise import estimate_noise
from tuner.statistics.posterior import Posterior
from tuner.statistics.ranking import rank

MOST_APART = 0.03


def on(host, trials):
    return [replace(trial, host=host) for trial in trials]


def divided(bench, *, apart):
    """Divide the trials between two hosts, of which the second is faster by so many log points."""
    here = on("web1", bench.trials[0::2])
    there = on("web2", shifted(bench.trials[1::2], lambda _: apart))
    return sorted([*here, *there], key=lambda trial: trial.number)


@pytest.mark.parametrize("apart", [0.0, 0.3, -1.2])
def test_what_a_host_is_faster_by_is_no_gain(apart):
    bench = Bench(sigma_trial=0.005, sigma_window=0.005).baselines(6).search(18, every=3)
    alone, _ = bench.fit().gains([CACHED, COPIED])
    both, _ = Posterior.fit(SPACE, divided(bench, apart=apart)).gains([CACHED, COPIED])
    assert both == pytest.approx(alone, abs=MOST_APART)


def test_each_host_has_its_own_level():
    bench = Bench(sigma_trial=0.005, sigma_window=0.005).baselines(8).search(6)
    posterior = Posterior.fit(SPACE, divided(bench, apart=0.4))
    levels = [posterior.level(30.0, host)[0] for host in ("web1", "web2")]
    assert levels[1] - levels[0] == pytest.approx(0.4, abs=MOST_APART)
    assert posterior.level(30.0, "web3")[1] > 10 * posterior.level(30.0, "web1")[1]


def test_a_jump_of_one_host_is_none_of_the_other():
    bench = Bench(sigma_trial=0.005, sigma_window=0.005).baselines(24)
    trials = divided(bench, apart=0.0)
    jumped = shifted(trials, lambda number: 0.3 if number > 12 and number % 2 else 0.0)
    levels = HostLevels.fit(jumped, estimate_noise(jumped)).by_host
    assert [len(levels[host].jumps) for host in ("web1", "web2")] == [0, 1]


def test_neighbours_of_two_hosts_are_no_noise():
    bench = Bench(sigma_trial=0.005, sigma_window=0.005).baselines(16)
    noise = estimate_noise(divided(bench, apart=0.5))
    assert noise.sigma_trial < 0.05


def test_a_trial_on_a_host_without_baseline_has_no_speedup_yet():
    bench = Bench().baselines(4)
    trial = on("web2", Bench().measure(CACHED, Role.SEARCH).trials)[0]
    trials = [*on("web1", bench.trials), replace(trial, number=9)]
    assert 9 not in rank(SPACE, trials, ()).speedups


def test_what_another_worker_is_at_is_worth_less():
    both = SPACE.complete({"open_file_cache": 1000, "multi_accept": True})
    bench = Bench().baselines(4).measure(CACHED).measure(both).baselines(1)
    posterior = Posterior.fit(SPACE, bench.trials)
    running = replace(bench.trials[-1], config=both, role=Role.RACE, state=State.RUNNING, windows=())
    before = posterior.worth_of_a_trial([CACHED, both], at_s=40.0, windows=2)
    after = posterior.worth_of_a_trial([CACHED, both], at_s=40.0, windows=2, pending=[running])
    assert after[1] < 0.8 * before[1]
