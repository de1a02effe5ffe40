"""Effects of settings on drawn studies whose truth is known: they multiply to the confirmed gain."""

import math
from random import Random

import pytest

from tests.more import leave_to_more
from tests.unit.simulated_study import make_trials, small_space
from tuner.explain.study import explain
from tuner.records import Role
from tuner.statistics.confirmation.paired_gain import judge_pairs

WINNING = {"sendfile": False, "open_file_cache": 2000, "keepalive_requests": 100_000, "aio": "threads"}
GAINS = (0.5, 0.9, 1.04, 1.3, 2.0, 4.0, 9.2, 30.0, 100.0)
NOISE = 0.15
"""Log points by which an effect may be off: settings are tried together, and some hardly ever."""


class DrawnServer:
    """Settings that share a gain among them, two of which interact."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)  # noqa: S311 - no secret
        self.log_gain = math.log(GAINS[seed % len(GAINS)])
        weights = [rng.random() ** 2 for _ in range(3)]
        names = rng.sample([*WINNING], 3)
        self.shares = {name: each / sum(weights) for name, each in zip(names, weights, strict=True)}
        self.pair = tuple(rng.sample(names, 2))
        self.together = rng.uniform(-0.2, 0.2)

    def log_worth(self, config) -> float:
        moved = {name for name in self.shares if config.get(name) == WINNING[name]}
        lone = sum(self.shares[name] for name in moved) * (1 - self.together)
        return self.log_gain * (lone + self.together * moved.issuperset(self.pair))


def judge(trials):
    sides = [
        [trial.log_goodput for trial in trials if trial.role is Role.CONFIRM and trial.arm == arm]
        for arm in ("default", "winner")
    ]
    return judge_pairs(list(zip(*sides, strict=True)))


@pytest.mark.parametrize("seed", leave_to_more(range(len(GAINS)), 0, len(GAINS) - 1))
def test_the_effects_of_all_settings_multiply_to_the_confirmed_gain(seed):
    space, server = small_space(), DrawnServer(seed)
    winner = space.complete(WINNING)
    trials = make_trials(space, searches=30, pairs=5, winner=winner, seed=seed, worth=server.log_worth)
    gain = judge(trials)

    found = explain(space, trials, winner, metric="goodput_rps", gain=gain)

    assert (found.gain.ratio, found.gain.low, found.gain.high) == (gain.ratio, gain.low, gain.high)
    assert math.log(gain.ratio) == pytest.approx(server.log_gain, abs=0.05)
    assert sum(setting.effect.log for setting in found.settings) == pytest.approx(
        math.log(gain.ratio), abs=1e-6
    )
    for setting in found.settings:
        assert setting.effect.low <= setting.effect.ratio <= setting.effect.high


def test_a_gain_that_one_setting_makes_is_its_effect_however_large_it_is():
    space, winner = small_space(), small_space().complete(WINNING)
    for log_gain in map(math.log, (0.5, 3.0, 9.2, 100.0)):

        def effect(config, log_gain=log_gain):
            return log_gain if config.get("aio") == "threads" else 0.0

        trials = make_trials(space, searches=30, pairs=5, winner=winner, worth=effect)

        found = explain(space, trials, winner, metric="goodput_rps", gain=judge(trials))

        effects = {setting.parameter: setting.effect.log for setting in found.settings}
        assert effects.pop("aio") == pytest.approx(log_gain, abs=NOISE), log_gain
        assert all(abs(each) < NOISE for each in effects.values()), log_gain
