"""A sweep from the plan to the answer, on a simulated host."""

import json
import math

import pytest

from tests.unit.commands.simulated import simulate
from tests.unit.simulation import (
    TUNED,
    Log,
    SimulatedHost,
    SimulatedRunner,
    open_on_disk,
    space_of,
    write_study,
)
from tuner.campaign import interleaved
from tuner.commands.contests import sweep as module
from tuner.commands.contests.compare import compare
from tuner.errors import TargetError, UsageError
from tuner.records import Failure, Metric, Role
from tuner.report.sweep import read_sweeps, sweep_json
from tuner.study.facts import CONFIRMATION, METRIC, Confirmation
from tuner.study.side_storages import SWEEPS

NAME = "worker_connections"
PEAK = 2000


class SweepLog(Log):
    """Trials of a sweep have no speedup of a study."""

    def trial_ends(self, trial, speedup):
        assert speedup is None
        self.ended.append(trial)


def peaked(config):
    """Log speedup that is 0.3 at the peak and 0 a factor of eight away from it."""
    return 0.3 * math.exp(-0.5 * (math.log(config[NAME] / PEAK) / 0.8) ** 2)


@pytest.fixture
def host():
    return SimulatedHost(worth=peaked)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture(autouse=True)
def started(monkeypatch, host):
    """Let sweeps be measured on a simulated host; returns the runners that they used."""
    return simulate(monkeypatch, host)


def openings(runners):
    return [opening for runner in runners for opening in runner.openings]


def test_the_best_value_is_found_and_what_is_as_good_beside_it(settings):
    found = module.sweep(settings, NAME, values=[500, 1000, 1800, 2200, 4000, 16000])

    assert found.best in {1800, 2200}
    assert set(found.tolerated) == {1800, 2200}
    assert found.baseline == 768
    assert found.advice.startswith(f"Set {NAME} to {found.best}: 1.")
    by_value = dict(zip(found.values, found.estimates, strict=True))
    truth = math.exp(peaked({NAME: 4000}) - peaked({NAME: 768}))
    assert by_value[4000].low < truth < by_value[4000].high
    assert by_value[768].ratio == by_value[768].low == by_value[768].high == 1


def test_a_sweep_ends_within_its_minutes_and_says_them_beforehand(settings, host):
    log, begun_s = SweepLog(), host.clock.now_s

    found = module.sweep(settings, NAME, minutes=2, progress=log)

    assert host.clock.now_s - begun_s <= 120
    assert "at most 2 min 00 s" in log.notes[0]
    assert found.seconds <= 120


def test_every_block_begins_with_all_values_in_an_order_of_its_own(settings, started):
    found = module.sweep(settings, NAME, values=[500, 1000, 2000])

    made = openings(started)
    count = len(found.values)
    blocks = [[each.arm for each in made if each.block == block] for block in range(3)]
    assert all(sorted(block) == sorted(blocks[0]) for block in blocks)
    assert len(blocks[0]) == count == 4
    assert len({tuple(block) for block in blocks}) > 1
    assert {each.role for each in made} == {Role.SWEEP}


def test_the_study_itself_learns_nothing_of_a_sweep(settings, host):
    open_on_disk(settings, host.clock)

    module.sweep(settings, NAME, values=[500, 1000], minutes=1)

    assert open_on_disk(settings, host.clock).trials() == ()
    assert len(list((settings.folder / SWEEPS).glob("*.db"))) == 1


def test_an_interrupted_sweep_resumes_with_a_block_of_its_own(settings, host, started):
    host.cut_at = 41
    with pytest.raises(KeyboardInterrupt):
        module.sweep(settings, NAME, values=[500, 1000, 2000])
    before = len(openings(started))
    host.cut_at = None

    found = module.sweep(settings, NAME, values=[500, 1000, 2000])

    made = openings(started)
    assert before > 4
    assert {each.block for each in made[before:]}.isdisjoint(each.block for each in made[:before])
    assert found.trials == len(made) - 1
    assert len(list((settings.folder / SWEEPS).glob("*.db"))) == 1


def test_the_same_sweep_again_is_read_and_not_measured(settings, started):
    first = module.sweep(settings, NAME, values=[500, 2000], minutes=1)
    made = len(openings(started))

    again = module.sweep(settings, NAME, values=[500, 2000], minutes=1)

    assert len(openings(started)) == made
    assert again.best == first.best


def test_a_value_that_fails_is_measured_no_more_and_not_named(settings, host, started):
    host.worth = lambda config: config[NAME] / 4000
    host.fault = lambda config: (
        Failure(kind="not ready", reason="it ended at once") if config[NAME] == 4000 else None
    )

    found = module.sweep(settings, NAME, values=[1000, 2000, 4000])

    assert found.best == 2000
    assert sum(each.config[NAME] == 4000 for each in openings(started)) == 2
    (said,) = [each["fault"] for each in sweep_json(found)["values"] if each["value"] == 4000]
    assert said == "it ended at once"


def test_a_value_that_breaks_a_constraint_is_not_named_best(tmp_path, host):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= 0.001]\n")
    host.failure_rate = lambda config: 0.05 if config[NAME] == 2000 else 0.0

    found = module.sweep(settings, NAME, values=[1000, 2000])

    assert found.best == 1000
    (fault,) = [each["fault"] for each in sweep_json(found)["values"] if each["value"] == 2000]
    assert "failure_rate <= 0.001" in fault


def test_a_baseline_that_fails_ends_the_sweep(settings, host):
    host.fault = lambda config: Failure(kind="not ready", reason="no port") if config[NAME] == 768 else None

    with pytest.raises(TargetError, match="the default failed twice in a row"):
        module.sweep(settings, NAME, values=[1000])


def test_special_values_and_choices_are_swept_too(settings, host):
    host.worth = lambda config: 0.2 if config["open_file_cache"] else 0.0

    found = module.sweep(settings, "open_file_cache", minutes=2)
    flags = module.sweep(settings, "sendfile", minutes=1)

    assert found.baseline == 0
    assert found.show(found.baseline) == "off"
    assert found.values[-1] == 0
    assert found.best != 0
    assert flags.values == (False, True)


@pytest.mark.parametrize(
    ("parameter", "values", "said"),
    [
        ("worker_conections", None, "worker_connections"),
        (NAME, ["8"], "is below its minimum"),
        (NAME, ["many"], "is not a number"),
        (NAME, ["768"], "is already the value at the default"),
        (NAME, list(range(1000, 1100)), "are too many"),
        ("sendfile", ["perhaps"], "neither on nor off"),
    ],
)
def test_what_cannot_be_swept_is_named_before_anything_runs(settings, started, parameter, values, said):
    with pytest.raises(UsageError, match=said):
        module.sweep(settings, parameter, values=values)

    assert not started


def test_too_little_time_is_refused_with_what_it_takes(settings):
    with pytest.raises(UsageError, match=r"minutes: 0.2 minutes are too few for 4 values.* at least 0\.\d"):
        module.sweep(settings, NAME, values=[500, 1000, 2000], minutes=0.2)


def test_there_is_nothing_around_a_winner_before_there_is_one(settings):
    with pytest.raises(UsageError, match="this storage has no study yet"):
        module.sweep(settings, NAME, around="winner")


def test_a_sweep_at_the_winner_leaves_its_other_settings_as_they_are(settings, host, started):
    winner = space_of(*TUNED).complete({"open_file_cache": 2000, NAME: 2000})
    confirmation = Confirmation(config=winner, pairs=4, windows=2, extend_to=4, looks=1)
    open_on_disk(settings, host.clock).remember(CONFIRMATION, confirmation)

    found = module.sweep(settings, NAME, around="winner", at="winner", minutes=2)

    assert found.baseline == 2000
    assert {each.config["open_file_cache"] for each in openings(started)} == {2000}
    assert 768 in found.values
    assert max(found.values) == 8000


def test_a_study_that_compares_what_the_server_costs_has_sweeps_that_do(settings, host):
    open_on_disk(settings, host.clock).remember(METRIC, Metric.PER_CPU)

    found = module.sweep(settings, NAME, values=[2000], minutes=1)

    assert found.metric is Metric.PER_CPU
    assert "CPU second" in found.advice or found.advice.startswith("Keep")


def test_sweeps_are_read_back_from_the_folder_alone(settings):
    module.sweep(settings, NAME, values=[500, 2000], minutes=1)
    module.sweep(settings, "sendfile", minutes=1)

    found = read_sweeps(settings, space_of(*TUNED))

    assert {each.parameter for each in found} == {NAME, "sendfile"}
    assert json.loads(json.dumps([sweep_json(each) for each in found]))


def test_a_comparison_is_no_sweep(settings, monkeypatch, host):
    monkeypatch.setattr(interleaved, "TrialRunner", lambda **given: SimulatedRunner(host=host, **given))
    compare(settings, "default", {"open_file_cache": 2000}, pairs=2)

    assert read_sweeps(settings, space_of(*TUNED)) == ()
