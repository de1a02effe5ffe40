"""Studies of several loads, from the first baseline trial to what is shown."""

import math
from dataclasses import dataclass, field, replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import (
    TUNED,
    SimulatedHost,
    make_campaign,
    open_in_memory,
    space_of,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.measure.rounds import join
from tuner.ports import Failures
from tuner.records import Role
from tuner.records.blend import Across
from tuner.report.page import describe_verdict
from tuner.report.rows import load_rows
from tuner.report.summary import summarize
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.study import LoadSettings
from tuner.study.facts import BLEND, PRESET, VERDICT
from tuner.study.settings import NamedLoad

SPACE = space_of(*TUNED)


def both(config):
    return 0.2 if config["open_file_cache"] else 0.0


def only_images(config):
    """Lose with what gains under the other load."""
    return -0.1 if config["open_file_cache"] else 0.0


def unchanged(_config):
    return 0.0


@dataclass(kw_only=True)
class HostOfLoads(SimulatedHost):
    """A host on which configurations are worth something else under each load."""

    worth_under: dict = field(default_factory=dict)
    failing_under: dict = field(default_factory=dict)
    """Load → share of failed requests with `open_file_cache`."""

    def window(self, config, own, duration_s, rate_rps=None):
        luck = own - self.worth(config)
        return join(
            {
                name: self._fail(
                    name,
                    config,
                    SimulatedHost.window(self, config, luck + worth(config), duration_s, rate_rps),
                )
                for name, worth in self.worth_under.items()
            }
        )

    def _fail(self, name, config, window):
        share = self.failing_under.get(name, 0.0) if config["open_file_cache"] else 0.0
        failed = round(share * window.correct)
        return replace(window, correct=window.correct - failed, failures=Failures(read=failed))


@pytest.fixture
def run(tmp_path):
    def run_study(worth_under, across=Across.WEIGHTED, **given):
        host = HostOfLoads(worth=unchanged, worth_under=worth_under, **given)
        loads = tuple(NamedLoad(name=name, weight=1.0, load=LoadSettings()) for name in worth_under)
        settings = replace(write_study(tmp_path), loads=loads, across=across)
        storage = open_in_memory(host.clock)
        storage.claim(FINGERPRINT, definition={"study": "test"})
        storage.remember(PRESET, "quick")
        storage.remember(BLEND, settings.blend)
        campaign = make_campaign(settings, host, storage)
        load, *beside = (replace(campaign.setup.load, name=name) for name in worth_under)
        campaign.setup = replace(campaign.setup, load=replace(load, beside=tuple(beside)))
        storage.remember(VERDICT, run_campaign(campaign))
        return campaign, summarize(settings, SPACE, storage, running=False, version="1")

    return run_study


def show(summary):
    console = Console(file=StringIO(), width=80, highlight=False)
    console.print(final_screen(summary))
    return console.file.getvalue()


def test_a_gain_under_every_load_is_confirmed_and_shown_for_each(run):
    _, summary = run({"pages": both, "images": both})

    assert summary.gain.verdict == "improved"
    assert summary.winner.config["open_file_cache"]
    assert {each.gain.verdict for each in summary.by_load} == {"improved"}
    for each in summary.by_load:
        assert each.gain.ratio == pytest.approx(math.exp(0.2), rel=0.03)
    told = summary_json(summary)
    assert told["across_loads"] == "weighted mean of 2 loads"
    assert [each["name"] for each in told["loads"]] == ["pages", "images"]
    assert set(told["gain"]["by_load"]) == {"pages", "images"}
    assert set(told["trials"][0]["windows"][0]["by_load"]) == {"pages", "images"}
    text = show(summary)
    assert "weighted mean of 2 loads" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_winner_that_loses_under_another_load_is_overfitted_and_no_improvement(run):
    _, summary = run({"pages": both, "images": only_images})

    assert summary.gain.verdict == "overfitted"
    assert summary.gain.low > 1
    assert [each.gain.verdict for each in summary.by_load] == ["improved", "worse"]
    assert summary.reason.startswith("It is overfitted to pages: it loses under images 0.9")
    assert summary_json(summary)["verdict"] == "overfitted"
    assert "overfitted" in show(summary)
    assert describe_verdict(summary).text.startswith("Keep the default. It is overfitted to pages")
    assert [row[-1] for row in load_rows(summary)] == ["improved", "worse"]


def test_by_the_worst_ratio_nothing_wins_that_loses_under_any_load(run):
    campaign, summary = run({"pages": both, "images": only_images}, Across.WORST)

    assert campaign.storage.blend.levels.keys() == {"pages", "images"}
    best = summary.incumbent
    assert best is None or not best[0]["open_file_cache"] or best[1].ratio < 1
    assert summary.gain is None or summary.gain.verdict not in {"improved", "overfitted"}


def test_the_worst_ratio_is_that_of_the_load_that_gains_least(run):
    _, summary = run({"pages": both, "images": lambda config: both(config) / 2}, Across.WORST)

    assert summary.gain.verdict == "improved"
    assert summary.gain.ratio == summary.gain.by_load["images"].ratio
    assert summary.gain.ratio == pytest.approx(math.exp(0.1), rel=0.03)
    assert "worst ratio of 2 loads" in show(summary)


def test_failures_under_one_load_are_not_made_up_for_by_the_others(run):
    _, summary = run({"pages": both, "images": both}, failing_under={"images": 0.02})

    assert summary.gain is None or summary.gain.verdict != "improved"
    chosen = summary.winner.config if summary.winner else {}
    assert not chosen.get("open_file_cache")


def test_the_time_of_a_trial_is_planned_with_all_its_loads(run):
    campaign, _ = run({"pages": both, "images": both})
    load, plan = campaign.setup.load, campaign.plan

    schedule = campaign.schedule
    assert (schedule.window_s(), schedule.warmup_s()) == (2 * plan.window_s, 2 * plan.warmup_s)
    campaign.setup = replace(campaign.setup, load=replace(load, requests_total=1000, beside=()))
    # As long as the default's own windows were seen to be: rounds of two windows of a second.
    assert campaign.schedule.window_s() == 2.0


def test_every_trial_has_every_load(run):
    campaign, _ = run({"pages": both, "images": both})

    trials = [trial for trial in campaign.trials if trial.role is not Role.ROBUSTNESS and trial.windows]
    assert all(set(window.parts) == {"pages", "images"} for trial in trials for window in trial.windows)
