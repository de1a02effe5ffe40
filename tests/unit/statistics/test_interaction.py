"""What configurations give differently from host to host, and what a winner gives on all of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.statistics.test_posterior import CACHED, COPIED, DEFAULT, SPACE, Bench, shifted
from tuner.optimize.encoding import Encoding
from tuner.optimize.replay import shared
from tuner.records import State
from tuner.records.blend import AcrossHosts, Hosts
from tuner.statistics.interaction import USUAL_SD, Effect, Interaction, estimate_sd
from tuner.statistics.observations import Observations, encode
from tuner.statistics.posterior import Posterior
from tuner.statistics.ranking import rank

NAMES = ("web1", "web2", "web3")
BOTH = SPACE.complete({"open_file_cache": 1000, "sendfile": False})


def measured(unlike=0.0, *, repeats=3):
    """Return trials of two configurations on three hosts; caching is worth so much less on the last one."""
    trials = []
    for index, host in enumerate(NAMES):
        bench = Bench(index + 1, sigma_trial=0.004, sigma_window=0.004).baselines(6)
        for _ in range(repeats):
            there = -unlike if host == "web3" else 0.0
            bench.measure(CACHED, extra=there).measure(COPIED).measure(BOTH, extra=there)
        trials += [replace(trial, host=host) for trial in shifted(bench.trials, lambda _, by=index: by / 5)]
    trials.sort(key=lambda trial: trial.started_s)
    return [replace(trial, number=number) for number, trial in enumerate(trials)]


def effects(*logs, variance=1e-5):
    return {name: Effect(log_ratio=log, variance=variance) for name, log in zip("abc", logs, strict=False)}


def test_alike_hosts_shrink_it_to_nearly_nothing_and_unlike_ones_are_believed():
    alike = estimate_sd([effects(0.1, 0.102, 0.099), effects(-0.05, -0.049, -0.052)])
    unlike = estimate_sd([effects(0.1, 0.3, -0.2), effects(-0.05, 0.1, 0.2)])

    assert alike < USUAL_SD / 2
    assert 0.1 < unlike < 0.4
    assert estimate_sd([]) == pytest.approx(USUAL_SD, rel=0.2)
    assert estimate_sd([effects(0.3)]) == estimate_sd([]), "one host says nothing of others"


def interaction():
    encoding = Encoding(shared(SPACE.dimensions))
    points = encode(SPACE, encoding, [DEFAULT, CACHED, COPIED, BOTH])
    return Interaction(sd=0.1, default=points[:1], is_choice=encoding.is_choice), points


def test_what_two_configurations_change_alike_they_share_on_a_host():
    found, points = interaction()
    here = found.covariances(points, ["a"] * 4, points, ["a"] * 4) / found.sd**2

    assert here[0] == pytest.approx(0), "the default has nothing of its own"
    assert here.diagonal()[1:] == pytest.approx(1)
    assert here[1, 2] == 0
    # A cache is a switch and a size, the copying a switch alone.
    assert here[1, 3] == pytest.approx(math.sqrt(2 / 3))
    assert np.linalg.eigvalsh(here).min() > -1e-9


def test_hosts_share_nothing_and_what_holds_for_all_has_no_part_in_it():
    found, points = interaction()

    assert not found.covariances(points, ["a"] * 4, points, ["b"] * 4).any()
    assert not found.covariances(points, [None] * 4, points, ["a"] * 4).any()


def test_each_host_has_its_own_gain_and_the_worst_or_the_mean_counts():
    trials = measured(0.35)
    gains = {}
    for across in AcrossHosts:
        hosts = Hosts(names=NAMES, across=across)
        posterior = Posterior.fit(SPACE, trials, hosts=hosts)
        gains[across] = posterior.gain(CACHED).log_ratio
        on = [each[0].log_ratio for each in posterior.gains_on([CACHED], NAMES)]
    assert on == pytest.approx([0.25, 0.25, -0.10], abs=0.05)
    assert gains[AcrossHosts.WORST] == pytest.approx(on[2])
    assert gains[AcrossHosts.MEAN] == pytest.approx(sum(on) / 3)


def test_on_alike_hosts_a_gain_is_known_about_as_well_as_from_one():
    trials = measured()
    worst = Posterior.fit(SPACE, trials, hosts=Hosts(names=NAMES, across=AcrossHosts.WORST))
    together = Posterior.fit(SPACE, trials)

    assert worst.seen.interaction.sd < USUAL_SD
    assert worst.gain(CACHED).log_ratio == pytest.approx(together.gain(CACHED).log_ratio, abs=0.01)


def test_a_trial_tells_most_on_the_host_that_is_in_doubt():
    # That hosts differ is known from one configuration; the other one was not measured on web3.
    trials = [each for each in measured(0.35) if each.host != "web3" or dict(each.config) != dict(BOTH)]
    posterior = Posterior.fit(SPACE, trials, hosts=Hosts(names=NAMES, across=AcrossHosts.MEAN))

    seem_equal, _ = posterior.gains([BOTH, CACHED])

    def worth(host):
        return posterior.worth_of_a_trial(
            [BOTH, CACHED], at_s=200.0, windows=2, host=host, bonus=-seem_equal
        )[0]

    assert worth("web3") > 2 * worth("web1")


@pytest.mark.parametrize("host", ["", "ssh://web1"])
def test_a_study_of_one_host_is_bit_for_bit_what_it_was(host):
    bench = Bench().baselines(4).search(6)
    one = [replace(trial, host=host) for trial in bench.trials]
    hosts = Hosts(names=("ssh://web1", "ssh://web2"), across=AcrossHosts.WORST) if host else None
    seen = Observations.of(SPACE, one)
    posterior, plain = Posterior.fit(SPACE, one, hosts=hosts), Posterior.fit(SPACE, bench.trials)

    assert seen.interaction is None
    assert (posterior.seen.interaction, posterior.compared) == (None, None)
    # As it was before there were hosts: contrasts of the process itself.
    points = encode(SPACE, plain.seen.encoding, [DEFAULT, CACHED, COPIED])
    means, covariances = plain.process.joint(points, is_rough=True)
    contrast = np.hstack([-np.ones((2, 1)), np.eye(2)])
    gains, uncertain = posterior.gains([CACHED, COPIED])
    assert np.array_equal(gains, contrast @ means)
    assert np.array_equal(uncertain, contrast @ covariances @ contrast.T)


def test_a_configuration_that_hosts_see_differently_is_not_unstable_but_bad_on_the_worst():
    hosts = Hosts(names=NAMES, across=AcrossHosts.WORST)
    entries = {entry.key: entry for entry in rank(SPACE, measured(0.5), (), hosts).entries}

    (cached,) = [entry for entry in entries.values() if dict(entry.config) == dict(CACHED)]
    assert cached.posterior.log_ratio < -0.1


def test_what_fails_on_one_host_is_ruled_out():
    hosts = Hosts(names=NAMES, across=AcrossHosts.WORST)
    trials = measured()
    failing = [
        replace(trial, state=State.FAILED, windows=())
        if trial.host == "web2" and trial.config == CACHED
        else trial
        for trial in trials
    ]
    known = rank(SPACE, failing, (), hosts).feasibility

    assert known.is_ruled_out(CACHED)
    assert known.within("web1").may_ship(CACHED)
    assert not known.is_ruled_out(COPIED)
