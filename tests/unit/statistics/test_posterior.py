"""The joint posterior of a campaign, on trials whose truth is known."""

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.unit.simulated_study import small_space
from tests.unit.simulation import TUNED, space_of, without_hints
from tests.unit.statistics.made_trials import BASE, make_trial
from tuner.optimize.sparse import draw_sparse
from tuner.records import Role, State
from tuner.space import Hint
from tuner.statistics.baseline_level import BaselineLevel
from tuner.statistics.posterior import HINT_GAIN, Posterior

SPACE = space_of(*TUNED)
DEFAULT = SPACE.default()
CACHED = SPACE.complete({"open_file_cache": 1000})
EAGER = SPACE.complete({"multi_accept": True})
COPIED = SPACE.complete({"sendfile": False})
SLOT_S = 5.0


def worth(config):
    """Log gain: two settings matter a lot, one a little."""
    return (
        (0.25 if config["open_file_cache"] else 0.0)
        - (0.0 if config["sendfile"] else 0.15)
        + 0.03 * math.log(config["worker_connections"] / DEFAULT["worker_connections"])
    )


class Bench:
    """Makes trials one after the other, with noise and a level that moves."""

    def __init__(self, seed=1, *, sigma_trial=0.02, sigma_window=0.02, walk=0.0, level=lambda _: 0.0):
        self.rng = Random(seed)  # noqa: S311 - no secret
        self.sigma_trial, self.sigma_window, self.walk, self.level = sigma_trial, sigma_window, walk, level
        self.walked = 0.0
        self.levels = []
        self.trials = []

    def measure(self, config=DEFAULT, role=None, *, extra=0.0):
        """Measure a trial of two windows."""
        number = len(self.trials)
        self.walked += self.rng.gauss(0, self.walk)
        self.levels.append(self.walked + self.level(number))
        own = self.levels[-1] + worth(config) + extra + self.rng.gauss(0, self.sigma_trial)
        role = role or (Role.BASELINE if dict(config) == dict(DEFAULT) else Role.SEARCH)
        logs = [own + self.rng.gauss(0, self.sigma_window) for _ in range(2)]
        self.trials.append(make_trial(logs, number=number, at_s=SLOT_S * number, role=role, config=config))
        return self

    def search(self, count, *, every=5):
        """Measure drawn configurations, with a baseline trial after every few."""
        for index in range(count):
            drawn = draw_sparse(SPACE.dimensions, SPACE.encode(DEFAULT), rng=self.rng)
            self.measure(SPACE.decode(drawn), Role.SEARCH)
            if index % every == every - 1:
                self.measure()
        return self

    def baselines(self, count):
        for _ in range(count):
            self.measure()
        return self

    def fit(self):
        return Posterior.fit(SPACE, self.trials)

    @property
    def tried(self):
        return [trial.config for trial in self.trials if trial.role is Role.SEARCH]


def shifted(trials, by):
    """Return trials whose every window is faster by so many log points, given by number."""
    return [
        replace(
            trial,
            windows=tuple(
                replace(window, correct=round(window.correct * math.exp(by(trial.number))))
                for window in trial.windows
            ),
        )
        for trial in trials
    ]


def test_a_host_that_is_faster_as_a_whole_gives_the_same_gains():
    bench = Bench().baselines(4).search(15)
    here = bench.fit().gains(bench.tried)
    there = Posterior.fit(SPACE, shifted(bench.trials, lambda _: 0.7)).gains(bench.tried)

    assert there[0] == pytest.approx(here[0], abs=1e-4)
    assert there[1].diagonal() == pytest.approx(here[1].diagonal(), rel=0.01, abs=1e-7)


def test_a_host_that_slows_down_steadily_gives_the_same_gains():
    """By 15 % in all; averages of candidates and baselines would carry that along."""
    bench = Bench(sigma_trial=0.005, sigma_window=0.005).baselines(4).search(20, every=4)
    here, _ = bench.fit().gains(bench.tried)
    slope = 0.15 / len(bench.trials)
    there, _ = Posterior.fit(SPACE, shifted(bench.trials, lambda n: -slope * n)).gains(bench.tried)

    assert there == pytest.approx(here, abs=0.025)


def test_candidates_help_the_baselines_to_track_a_host_that_drifts():
    by_baselines, by_all = [], []
    for seed in range(8):
        bench = Bench(seed, sigma_trial=0.01, sigma_window=0.01, walk=0.03).baselines(4)
        for _ in range(3):
            for config in (CACHED, EAGER, COPIED) * 3:
                bench.measure(config, Role.REPEAT)
            bench.measure()
        posterior = bench.fit()
        baselines = [trial for trial in bench.trials if trial.role is Role.BASELINE]
        alone = BaselineLevel.fit(baselines, posterior.seen.noise)
        for trial, level in zip(bench.trials, bench.levels, strict=True):
            if trial.role is Role.REPEAT:
                by_baselines.append(alone.at(trial.started_s)[0] - BASE - level)
                by_all.append(posterior.level(trial.started_s)[0] - BASE - level)

    assert np.std(by_all) < 0.8 * np.std(by_baselines)


def test_the_intervals_of_gains_hold_as_often_as_they_say():
    held = []
    for seed in range(30):
        rng = Random(seed)  # noqa: S311 - no secret
        noise = {"sigma_trial": rng.uniform(0.01, 0.06), "sigma_window": rng.uniform(0.01, 0.06)}
        bench = Bench(seed, **noise, walk=rng.uniform(0, 0.01)).baselines(4).search(16)
        means, covariances = bench.fit().gains(bench.tried)
        true = np.array([worth(config) for config in bench.tried])
        held += [*(np.abs(means - true) <= 1.96 * np.sqrt(covariances.diagonal()))]

    assert 0.90 <= np.mean(held) <= 0.99


def test_the_default_gains_nothing_with_certainty():
    means, covariances = Bench().baselines(4).search(8).fit().gains([DEFAULT, CACHED])

    assert means[0] == pytest.approx(0.0, abs=1e-9)
    assert covariances[0] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert covariances[1, 1] > 0


def test_repeats_shrink_the_variance():
    bench = Bench().baselines(6).search(8).measure(CACHED)
    once = bench.fit().gain(CACHED)
    for _ in range(5):
        bench.measure(CACHED, Role.REPEAT)
    often = bench.fit().gain(CACHED)

    assert often.variance < 0.6 * once.variance
    assert often.log_ratio == pytest.approx(worth(CACHED), abs=0.03)


def test_what_is_alike_is_known_from_its_neighbours():
    """None of these was measured, and three settings of a neighbour were."""
    bench = Bench().baselines(4).search(25)
    unseen = SPACE.complete({"open_file_cache": 1234, "sendfile": False})
    assert dict(unseen) not in [dict(config) for config in bench.tried]

    assert bench.fit().gain(unseen).log_ratio == pytest.approx(worth(unseen), abs=0.06)


@pytest.mark.parametrize("stalled", [-0.8, -3.0])
def test_one_stalled_trial_among_repeats_hardly_moves_the_gain(stalled):
    bench = Bench().baselines(5).search(6)
    for _ in range(4):
        bench.measure(CACHED, Role.REPEAT)
    before = bench.fit().gain(CACHED)

    after = bench.measure(CACHED, Role.REPEAT, extra=stalled).fit().gain(CACHED)

    assert after.log_ratio == pytest.approx(before.log_ratio, abs=0.05)


def test_a_jump_of_the_host_is_no_gain_of_what_was_measured_behind_it():
    bench = Bench(level=lambda number: 0.0 if number < 14 else -0.4)
    bench.baselines(4).measure(EAGER).measure(COPIED).baselines(2).measure(EAGER).measure(COPIED).baselines(4)
    for _ in range(3):
        bench.measure(CACHED).measure().measure(EAGER, Role.REPEAT).measure()
    posterior = bench.fit()

    assert len(posterior.seen.walks.jumps) == 1
    for config in (CACHED, EAGER, COPIED):
        assert posterior.gain(config).log_ratio == pytest.approx(worth(config), abs=0.08)
    assert posterior.level(SLOT_S * 2)[0] - BASE == pytest.approx(0.0, abs=0.04)
    assert posterior.level(SLOT_S * 22)[0] - BASE == pytest.approx(-0.4, abs=0.04)


def test_a_parameter_that_is_off_does_not_matter():
    """Without sendfile nobody asks for tcp_nopush: two points are one configuration."""
    space = small_space()
    off = space.encode(space.default()) | {"sendfile": False}
    one, other = (space.decode(off | {"tcp_nopush": is_on}) for is_on in (True, False))
    baselines = [make_trial(0.01 * n, number=n, at_s=10.0 * n, config=space.default()) for n in range(4)]
    tried = [
        make_trial(0.2, number=10 + n, at_s=50.0 + 10 * n, role=Role.SEARCH, config=one) for n in range(3)
    ]
    posterior = Posterior.fit(space, [*baselines, *tried])

    assert posterior.gain(one) == posterior.gain(other)
    assert posterior.gain(one).log_ratio > 0.1
    # What was measured without sendfile says little of tcp_nopush beside it.
    beside = posterior.gain(space.complete({"tcp_nopush": False}))
    assert abs(beside.log_ratio) < posterior.gain(one).log_ratio / 2
    assert beside.variance > 4 * posterior.gain(one).variance


def test_the_confirmation_and_what_was_spoiled_are_never_learned_from():
    bench = Bench().baselines(4).search(8).measure(CACHED)
    before = bench.fit().gain(CACHED)
    bench.measure(CACHED, Role.CONFIRM, extra=0.5).measure(CACHED, Role.LATENCY, extra=-2)
    bench.measure(CACHED, extra=1.0)
    bench.trials[-1] = replace(bench.trials[-1], state=State.INVALID)

    assert bench.fit().gain(CACHED) == before


def test_before_the_default_was_measured_nothing_is_known():
    assert Posterior.fit(SPACE, []) is None
    assert Posterior.fit(SPACE, [make_trial(0.1, role=Role.SEARCH, config=CACHED)]) is None


def test_after_one_trial_any_gain_is_possible_and_none_expected():
    posterior = Bench().baselines(1).fit()
    gain = posterior.gain(CACHED)

    assert gain.log_ratio == pytest.approx(0.0, abs=1e-6)
    assert 0 < gain.variance < math.inf
    assert posterior.worth_of_a_trial([CACHED, EAGER], at_s=10.0, windows=2).shape == (2,)


def test_a_trial_of_what_is_hardly_known_tells_more_than_one_of_what_is_known_well():
    bench = Bench().baselines(4).search(8).measure(EAGER)
    for _ in range(6):
        bench.measure(CACHED, Role.REPEAT)
    rival = SPACE.complete({"open_file_cache": 3000, "multi_accept": True})
    bench.measure(rival)

    worth_of = bench.fit().worth_of_a_trial([CACHED, rival, COPIED], at_s=SLOT_S * 40, windows=2)

    assert worth_of.argmax() == 1
    assert (worth_of >= -1e-9).all()


class TestHints:
    """One setting is hinted; nothing was seen of it yet, or much."""

    HINTED = replace(
        without_hints(SPACE),
        parameters=tuple(
            replace(each, hint=Hint(odds=3, value=True) if each.name == "multi_accept" else None)
            for each in SPACE.parameters
        ),
    )

    def gain(self, bench, config, *, asks_experts=True):
        return Posterior.fit(self.HINTED, bench.trials, asks_experts=asks_experts).gain(config)

    def test_what_was_not_tried_is_worth_what_is_expected_of_it(self):
        bench = Bench(3).baselines(6)
        expected = 0.75 * HINT_GAIN

        assert self.gain(bench, EAGER).log_ratio == pytest.approx(expected, abs=0.01)
        assert self.gain(bench, EAGER, asks_experts=False).log_ratio == pytest.approx(0.0, abs=0.01)
        assert self.gain(bench, DEFAULT).log_ratio == 0.0

    def test_what_was_measured_often_is_worth_what_was_seen(self):
        bench = Bench(3, sigma_trial=0.005, sigma_window=0.005).baselines(6)
        for _ in range(10):
            bench.measure(EAGER, Role.SEARCH).measure()

        assert self.gain(bench, EAGER).log_ratio == pytest.approx(worth(EAGER), abs=0.008)

    def test_the_level_and_what_trials_show_are_as_without_hints(self):
        bench = Bench(5).baselines(4).search(8)
        with_hints, without = (
            Posterior.fit(self.HINTED, bench.trials, asks_experts=each) for each in (True, False)
        )
        at_s = bench.trials[-1].started_s

        assert with_hints.level(at_s)[0] == pytest.approx(without.level(at_s)[0], abs=0.02)


@pytest.mark.parametrize("times", [3.0, 9.0, 50.0])
def test_a_large_gain_over_the_default_is_not_pulled_down(times):
    """Most of what was tried is far above the default, which is no disaster for that."""
    bench = Bench().baselines(5)
    for connections in (1000, 2000, 4000, 8000, 16000):
        config = SPACE.complete({"worker_connections": connections, "multi_accept": True})
        for _ in range(4):
            bench.measure(config, extra=math.log(times) - worth(config))

    gain = bench.fit().gain(config)

    assert gain.ratio == pytest.approx(times, rel=0.15)
