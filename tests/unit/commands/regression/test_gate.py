"""A gate on a simulated host: what passes, what does not, and what cannot be told."""

import json
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from tests.unit.commands.simulated import simulate
from tests.unit.simulation import (
    STUDY,
    TUNED,
    SimulatedHost,
    SimulatedRunner,
    space_of,
    write_study,
)
from tuner.campaign import interleaved
from tuner.commands.regression.gate import gate
from tuner.errors import TargetError, UsageError
from tuner.records import Failure
from tuner.report.regression.forms import non_inferiority_json, non_inferiority_markdown
from tuner.report.regression.screen import non_inferiority_screen
from tuner.study import load_study

SPACE = space_of(*TUNED)
FASTER, SLOWER = {"open_file_cache": 2000}, {"sendfile": False}


@pytest.fixture
def host():
    return SimulatedHost()


@pytest.fixture
def settings(tmp_path, monkeypatch, host):
    """A study whose trials are simulated, and any other study as well."""
    simulate(monkeypatch, host)
    return write_study(tmp_path)


def gate_once(folder: Path, new):
    """Return a study, and what a gate of its default against a configuration finds; not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        simulate(patch, SimulatedHost())
        settings = write_study(folder)
        return settings, gate(settings, "default", new=new)


@pytest.fixture(scope="module")
def passed(tmp_path_factory):
    return gate_once(tmp_path_factory.mktemp("passed"), FASTER)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    return gate_once(tmp_path_factory.mktemp("failed"), SLOWER)


def draw(found, width: int = 80) -> str:
    text = StringIO()
    Console(file=text, width=width, highlight=False, markup=False).print(non_inferiority_screen(found))
    return text.getvalue()


def test_what_is_as_quick_passes_and_early_when_it_is_clear(passed):
    _, found = passed

    assert found.finding == "no slower"
    assert found.measured.comparison.gain.pairs == 5
    assert found.changes == {"open_file_cache": (0, 2000)}


def test_what_is_slower_fails(failed):
    _, found = failed

    assert found.finding == "slower"
    assert found.measured.comparison.gain.high < 0.97
    assert found.reason == "The whole interval lies below 0.97×."


def test_a_wider_margin_lets_it_pass(settings):
    assert gate(settings, "default", new=SLOWER, margin=0.2).finding == "no slower"


def test_without_a_decision_all_planned_pairs_are_measured(settings, host):
    host.sigma_trial, host.rng = 0.3, Random(2)  # noqa: S311 - no secret

    found = gate(settings, "default", new="default", pairs=8)

    assert found.finding == "cannot tell"
    assert found.measured.comparison.gain.pairs == 8
    assert "Use more --pairs" in found.reason


def test_what_breaks_a_bound_does_not_pass_however_quick_it_is(settings, host):
    host.failure_rate = lambda config: 0.05 if config["open_file_cache"] else 0.0

    found = gate(settings, "default", new=FASTER)

    assert found.finding == "slower"
    assert "fails 5 %" in found.reason
    assert "failure_rate <= default" in found.reason
    assert "does not pass" in found.headline


def test_what_does_not_start_does_not_pass(settings, host):
    broken = Failure(kind="crashed", reason="it ended by itself with status 1")
    host.fault = lambda config: broken if config["open_file_cache"] else None

    found = gate(settings, "default", new=FASTER)

    assert found.finding == "slower"
    assert "ended by itself" in found.reason
    assert "ended by itself" in draw(found)


def test_a_baseline_that_does_not_start_is_no_measure(settings, host):
    broken = Failure(kind="crashed", reason="it ended by itself with status 1")
    host.fault = lambda config: broken if config["open_file_cache"] else None

    with pytest.raises(TargetError, match="baseline: it ended by itself"):
        gate(settings, FASTER, new="default")


def test_two_studies_are_two_builds_also_under_one_name(settings, tmp_path, host):
    (tmp_path / "old").mkdir()
    old = write_study(tmp_path / "old", seed=2)
    # The configurations are the same: a failure of one program is none of the other.
    trials = []
    host.fault = lambda _: trials.append(1) or None

    found = gate(settings, old)

    assert found.sides["baseline"] == str(old.path)
    assert found.finding in {"no slower", "cannot tell"}
    assert found.changes == {}
    assert len(trials) == 2 * found.measured.comparison.gain.pairs


def test_a_failing_program_is_told_from_one_with_the_same_configuration(settings, tmp_path, monkeypatch):
    (tmp_path / "old").mkdir()
    old = write_study(tmp_path / "old", seed=2)
    hosts = {settings.path: SimulatedHost(failure_rate=lambda _: 0.05), old.path: SimulatedHost(seed=3)}
    monkeypatch.setattr(
        interleaved, "TrialRunner",
        lambda **given: SimulatedRunner(host=hosts[given["setup"].settings.path], **given),
    )  # fmt: skip

    assert "fails 5 %" in gate(settings, old).reason
    assert gate(old, settings).finding == "no slower"


def test_studies_under_other_loads_are_refused(settings, tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text((STUDY % (", ".join(TUNED), "tpe", 1)).replace("connections: 100", "connections: 50"))

    with pytest.raises(UsageError, match="these studies cannot be compared: load is"):
        gate(settings, load_study(path))


def test_a_study_is_no_baseline_of_itself_and_installed_services_of_two_are_not_compared(settings, tmp_path):
    with pytest.raises(UsageError, match="is the study itself"):
        gate(settings, settings)
    path = tmp_path / "managed.yaml"
    path.write_text(STUDY % (", ".join(TUNED), "tpe", 1) + "target: {mode: managed}\n")
    with pytest.raises(UsageError, match="only with private instances"):
        gate(settings, load_study(path))


@pytest.mark.parametrize("given", [{"margin": 3}, {"margin": -0.1}, {"margin": math.nan}, {"pairs": 0}])
def test_what_every_side_would_pass_is_refused_before_anything_runs(settings, given):
    with pytest.raises(UsageError, match=r"^(margin|pairs): .*\. Give "):
        gate(settings, "default", **given)
    assert not settings.folder.exists()


def test_screen_markdown_and_json_say_the_same(failed):
    _, found = failed
    screen, markdown = draw(found), non_inferiority_markdown(found)
    told = json.loads(json.dumps(non_inferiority_json(found)))

    assert max(map(len, screen.splitlines())) <= 80
    assert told["verdict"] == "slower"
    assert told["bound"] == 0.97
    assert math.isclose(told["gain"]["ratio"], found.measured.comparison.gain.ratio)
    assert told["headline"] in screen
    assert markdown.startswith("### ❌ ")
    assert "| sendfile | on | off |" in markdown
    assert "| sendfile" not in screen
    assert "sendfile" in screen


def test_foreign_names_do_not_steer_a_terminal_or_markdown(passed):
    _, found = passed
    found = replace(found, sides={"baseline": "a|`b", "new": "c\x1b[31m<d>"})

    assert "\x1b[31m" not in draw(found)
    assert "a\\|\\`b" in non_inferiority_markdown(found)
    assert "\\<d\\>" in non_inferiority_markdown(found)


def test_nothing_of_it_is_kept_among_the_trials_of_the_study(passed):
    settings, _ = passed

    assert not (Path(settings.folder) / "study.db").exists()
    assert list((settings.folder / "comparisons").glob("*.db"))
