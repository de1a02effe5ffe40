"""Servers against each other, from the study files to the answer, on simulated hosts."""

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    Log,
    SimulatedHost,
    SimulatedRunner,
    make_campaign,
    make_setup,
    open_on_disk,
    space_of,
)
from tuner.campaign import interleaved
from tuner.campaign.campaign import calibrate
from tuner.campaign.stages.confirm import confirm
from tuner.commands.contests import compare as compare_module
from tuner.commands.contests import versus as module
from tuner.errors import TargetError, UsageError
from tuner.records import Failure, Metric, Role
from tuner.space import SpaceFacts, facts_to_json, load_space
from tuner.study import load_study
from tuner.study.facts import METRIC, PRESET, SPACE_FACTS, VERDICT
from tuner.study.lock import locked
from tuner.study.objective import Objective

FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1)},
)
STUDY = """\
study: %s
servers: [nginx]
space:
  - nginx
  - only: [worker_connections, multi_accept, sendfile, open_file_cache, access_log_buffer]
%s
load: {generator: wrk, connections: %d}
budget: {preset: quick}
optimizer: tpe
"""
STEPS = """\
  - presets:
      cached: {values: {open_file_cache: 1000}}
      cached, copied: {values: {open_file_cache: 1000, sendfile: off}}
"""


class ContestLog(Log):
    """Trials of a contest have no speedup of a study."""

    def trial_ends(self, trial, speedup):
        assert trial.role is not Role.CONTEST or speedup is None
        self.ended.append(trial)


@pytest.fixture
def host():
    return SimulatedHost()


@pytest.fixture
def level():
    """How fast each study's server is beside the others, as a logarithm."""
    return {"quick": 0.3, "slow": 0.0}


@pytest.fixture
def write(tmp_path):
    def write(name, *, more="", connections=100, file=None):
        path = tmp_path / f"{file or name}.yaml"
        path.write_text(STUDY % (name, more, connections))
        return load_study(path)

    return write


@pytest.fixture(autouse=True)
def started(monkeypatch, host, level):
    """Let contests be measured on a simulated host; returns their runners."""
    runners = []

    def prepare(settings):
        space = load_space(settings.space, facts=FACTS, base=settings.path.parent)
        target = SimpleNamespace(hold=lambda _: nullcontext())
        return replace(make_setup(settings, space, cpus=host.cpus), target=target)

    def make_runner(**given):
        name = given["setup"].settings.name
        own = replace(host, worth=lambda config: host.worth(config) + level[name])
        own.clock, own.rng = host.clock, host.rng
        runners.append(SimulatedRunner(host=own, **given))
        return runners[-1]

    monkeypatch.setattr(compare_module, "prepare", prepare)
    monkeypatch.setattr(interleaved, "TrialRunner", make_runner)
    monkeypatch.setattr(interleaved, "time", host.clock)
    return runners


@pytest.fixture(autouse=True)
def tuned(monkeypatch, host):
    """Let studies be tuned on the simulated host, without a search; returns those that were."""
    names = []

    def run(settings, *, preset, **_):
        names.append(settings.name)
        tune(settings, host, preset)

    monkeypatch.setattr(module, "run", run)
    return names


def tune(settings, host, preset="quick"):
    """Confirm cached files on a host of its own and keep that as a finished study."""
    own = SimulatedHost(worth=host.worth)
    storage = open_on_disk(settings, own.clock)
    space = load_space(settings.space, facts=FACTS, base=settings.path.parent)
    campaign = make_campaign(settings, own, storage, plan=SMALL_PLAN, space=space)
    storage.claim(campaign.setup.fingerprint, definition=settings.definition(space))
    storage.remember(SPACE_FACTS, facts_to_json(FACTS, {}))
    storage.remember(PRESET, preset)
    calibrate(campaign)
    storage.remember(VERDICT, confirm(campaign, space.complete({"open_file_cache": 1000})))


def openings(runners):
    return [opening for runner in runners for opening in runner.openings]


def test_what_is_not_tuned_is_tuned_and_all_defaults_and_winners_measured_against_each_other(
    write, host, tuned
):
    slow, quick = write("slow"), write("quick")
    tune(slow, host)
    log = ContestLog()

    found = module.versus([slow, quick], progress=log)

    assert log.notes[0] == (
        "to tune: quick 5 min 00 s; then a comparison of up to 4 configurations, about 2 min 14 s; in all "
        "about 7 min 14 s"
    )
    assert tuned == ["quick"]
    assert found.labels == ("slow default", "slow tuned", "quick default", "quick tuned")
    ratio = found.ratio("quick tuned", "slow tuned")
    assert ratio.low < math.exp(0.3) < ratio.high
    assert found.leaders == (3,)
    assert found.ratio("slow tuned", "slow default").low > 1.1
    assert found.changes(1)["open_file_cache"] == (0, 1000)
    assert found.blocks == 8


def test_every_block_holds_all_entrants_in_an_order_of_its_own(write, started):
    module.versus([write("slow", more=STEPS), write("quick")], with_presets=True, blocks=4)

    trials = started[0].storage.trials()
    blocks = [[each.arm for each in trials if each.block == block] for block in range(4)]
    assert all(sorted(block) == sorted(blocks[0]) for block in blocks)
    assert len(blocks[0]) == 4
    assert len({tuple(block) for block in blocks}) > 1
    assert {each.role for each in trials} == {Role.CONTEST}


def test_a_server_for_which_nothing_was_proven_runs_with_its_default(write, host):
    host.worth = lambda config: -0.05 * len(space_of(*TUNED).changes(config))

    found = module.versus([write("slow"), write("quick")], blocks=4)

    assert found.labels == ("slow default", "quick default")
    assert len([note for note in found.plan.notes if "no configuration is proven better" in note]) == 2
    assert found.leaders == (1,)


def test_presets_of_the_files_are_measured_and_nothing_is_tuned(write, host, tuned):
    host.worth = lambda config: (
        (0.2 if config["open_file_cache"] else 0.0) - (0 if config["sendfile"] else 0.1)
    )

    found = module.versus([write("slow", more=STEPS), write("quick")], with_presets=True, blocks=5)

    assert tuned == []
    assert found.labels == ("slow default", "slow cached", "slow cached, copied", "quick default")
    step = found.ratio("slow cached, copied", "slow cached")
    assert step.low < math.exp(-0.1) < step.high < 1


def test_the_presets_of_a_single_study_can_be_measured(write):
    found = module.versus([write("slow", more=STEPS)], with_presets=True, blocks=3)

    assert found.labels == ("default", "cached", "cached, copied")


def test_a_preset_that_does_not_fit_the_host_is_left_out_with_the_reason(write):
    steps = STEPS + "      nothing: {values: {keepalive_requests: 500}}\n"

    found = module.versus([write("slow", more=steps)], with_presets=True, blocks=3)

    assert "nothing" not in found.labels
    (note,) = found.plan.notes
    reason = "none of its settings is tuned (keepalive_requests: not named by `only:`)"
    assert note == f"slow nothing is left out: {reason}"


def test_an_interrupted_contest_resumes_and_a_finished_one_is_read(write, host, started):
    studies = [write("slow", more=STEPS), write("quick")]
    calls = iter(range(1000))

    def fault(_):
        if next(calls) == 10:
            raise KeyboardInterrupt

    host.fault = fault
    with pytest.raises(KeyboardInterrupt):
        module.versus(studies, with_presets=True)
    before = len(openings(started))
    host.fault = lambda _: None

    found = module.versus(studies, with_presets=True)
    made = len(openings(started))
    again = module.versus(studies, with_presets=True)

    assert before == 11
    assert found.blocks == again.blocks == 8
    assert len(openings(started)) == made
    assert again.pairs == found.pairs
    assert len(list((studies[0].folder / "contests").glob("*.db"))) == 1


def test_more_blocks_go_on_with_the_same_contest(write, started):
    studies = [write("slow", more=STEPS)]
    module.versus(studies, with_presets=True, blocks=3)

    found = module.versus(studies, with_presets=True, blocks=5)

    assert found.blocks == 5
    assert len(openings(started)) == 15


def test_an_entrant_that_fails_is_measured_no_more_and_leads_nobody(write, host, started):
    host.fault = lambda config: (
        Failure(kind="crashed", reason="it crashed")
        if config["open_file_cache"] and config["sendfile"]
        else None
    )

    found = module.versus([write("slow", more=STEPS)], with_presets=True)

    assert found.faults == {1: "it crashed"}
    assert sum(each.arm == "slow: cached" for each in openings(started)) == 2
    assert found.blocks == 8
    assert found.ratio("cached", "default") is None
    assert 1 not in found.leaders


def test_a_study_that_compares_what_its_server_costs_makes_all_compare_that(write, host):
    slow, quick = write("slow"), write("quick", more=STEPS)
    open_on_disk(slow, host.clock).remember(METRIC, Metric.PER_CPU)

    found = module.versus([slow, quick], with_presets=True, blocks=3)

    assert found.metric is Metric.PER_CPU
    assert "the limit of slow" in found.plan.notes[0]


def test_studies_that_compare_different_metrics_are_refused(write):
    other = replace(write("quick"), objective=Objective(metric=Metric.CPU))

    with pytest.raises(UsageError, match="minimize cpu_us_per_request differs from maximize goodput_rps"):
        module.versus([write("slow"), other], with_presets=True)


def test_studies_under_different_loads_are_refused_with_the_difference(write, started, tuned):
    with pytest.raises(UsageError, match=r"load is '.*100 connections.*' and '.*200 connections") as refused:
        module.versus([write("slow"), write("quick", connections=200)])

    assert "constraints" not in str(refused.value)
    assert (started, tuned) == ([], [])


def test_studies_with_different_bounds_or_pages_are_refused(write):
    other = write("quick")
    stricter = replace(other, constraints=())
    page = replace(other, content="/srv/www")

    with pytest.raises(UsageError, match="constraints is 'failure_rate <= default' and ''"):
        module.versus([write("slow"), stricter])
    with pytest.raises(UsageError, match="content is 'builtin' and '/srv/www'"):
        module.versus([write("slow"), page])


def test_a_study_against_itself_is_refused(write):
    slow = write("slow")

    with pytest.raises(UsageError, match="this study file is given twice"):
        module.versus([slow, load_study(slow.path)])
    with pytest.raises(UsageError, match=r"has the same study name, 'slow'\."):
        module.versus([slow, write("slow", file="other")])


def test_one_study_alone_is_nothing_to_compare(write):
    with pytest.raises(UsageError, match="--presets"):
        module.versus([write("slow")])
    with pytest.raises(UsageError, match="the search space has no presets"):
        module.versus([write("slow")], with_presets=True)


def test_installed_services_are_refused(write):
    slow = write("slow")
    managed = replace(slow, target=slow.target.model_copy(update={"mode": "managed"}))

    with pytest.raises(UsageError, match="mode: sandbox"):
        module.versus([managed, write("quick")])


def test_unequal_budgets_are_refused(write, host):
    slow, quick = write("slow"), write("quick")
    tune(slow, host, preset="standard")
    tune(quick, host, preset="quick")

    with pytest.raises(UsageError, match=r"the presets of the studies differ \(slow standard, quick quick"):
        module.versus([slow, quick])
    with pytest.raises(UsageError, match=r"the minutes of the studies differ \(slow none, third 3"):
        module.versus([slow, replace(write("third"), minutes=3)])


def test_a_study_that_is_at_work_elsewhere_is_left_alone(write):
    slow, quick = write("slow", more=STEPS), write("quick")

    with locked(quick), pytest.raises(TargetError, match="another tuner is at work"):
        module.versus([slow, quick], with_presets=True)


def test_an_entrant_is_named_as_it_is_shown(write):
    found = module.versus([write("slow", more=STEPS)], with_presets=True, blocks=3)

    with pytest.raises(UsageError, match=r"'cachd' is no configuration of this comparison\..*cached"):
        found.ratio("cachd", "default")
