from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.commands.test_session import open_begun_on_disk
from tests.unit.simulated_study import FAILURES, make_summary
from tests.unit.simulation import write_study
from tuner.cli.study_commands import (
    Preset,
    describe_ahead,
    explain,
    export,
    refuse_unmeasured,
    report,
    settle_length,
    show,
)
from tuner.commands.session import RunForecast
from tuner.errors import UsageError
from tuner.records import State
from tuner.study.facts import PRESET
from tuner.study.open_storage import open_storage

STUDY = Path("nginx.yaml")
MEASURED = make_summary(searches=2, pairs=0)


def test_a_study_in_which_nothing_was_measured_has_nothing_to_show():
    begun = replace(MEASURED, trials=(replace(MEASURED.trials[0], windows=(), state=State.RUNNING),))

    refuse_unmeasured(STUDY, MEASURED)
    with pytest.raises(
        UsageError,
        match=r"^nginx.yaml: the study has no measurements yet, and is stopped. Resume with: tuner run",
    ):
        refuse_unmeasured(STUDY, begun)
    with pytest.raises(UsageError, match=r"and is running. Run this command again later"):
        refuse_unmeasured(STUDY, replace(begun, state="running"))


def test_why_nothing_was_measured_is_said():
    failed = replace(MEASURED.trials[0], windows=(), state=State.FAILED, failure=FAILURES[0])

    with pytest.raises(UsageError, match=r"The last trial failed \(rejected\): nginx: \[emerg\] bad value"):
        refuse_unmeasured(STUDY, replace(MEASURED, trials=(failed,)))


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (RunForecast(preset="standard", minutes=75, is_begun=False), "about 1 h 15 min. "),
        (
            RunForecast(preset="standard", minutes=75, is_begun=False),
            "For a shorter run, use --preset quick.",
        ),
        (RunForecast(preset="quick", minutes=5, is_begun=False), "preset quick, about 5 min 00 s. "),
        (RunForecast(preset="standard", minutes=75, is_begun=True), "about 1 h 15 min in all. "),
    ],
)
def test_how_long_a_run_takes_is_said_first(ahead, said):
    told = describe_ahead(STUDY, ahead)

    assert said in told
    assert ("--preset quick" in told) is (ahead.preset != "quick" and not ahead.is_begun)


def test_a_stopped_study_is_shown_with_how_it_resumes(tmp_path, capsys):
    settings = write_study(tmp_path)
    open_begun_on_disk(settings)

    show(settings.path)

    said = [f"All details: tuner show {settings.path} --all", f"Next: tuner run {settings.path}"]
    assert capsys.readouterr().err.splitlines() == said
    show(settings.path, show_all=True)
    assert capsys.readouterr().err.splitlines() == said[1:]


def test_measurements_go_on_with_the_preset_of_the_run_and_say_so(tmp_path, capsys):
    settings = write_study(tmp_path)
    assert settle_length(settings, None) == "quick"
    open_begun_on_disk(settings)
    open_storage(settings.storage_url, settings.name).remember(PRESET, "standard")

    assert settle_length(settings, Preset.THOROUGH) == "thorough"
    assert capsys.readouterr().err == ""
    assert settle_length(settings, None) == "standard"
    said = capsys.readouterr().err
    assert (
        "uses the preset standard, as this study was run with it. To choose another preset, use --preset."
        in said
    )


@pytest.mark.parametrize("command", [show, explain, report])
def test_whatever_shows_an_edited_study_says_so(tmp_path, capsys, command):
    open_begun_on_disk(write_study(tmp_path))
    edited = write_study(tmp_path, more="content: /srv/www\n").path

    command(edited)

    assert "content was 'builtin', is '/srv/www'" in capsys.readouterr().err


def test_an_export_of_an_edited_study_says_so_before_anything_else(tmp_path, capsys):
    open_begun_on_disk(write_study(tmp_path))
    edited = write_study(tmp_path, more="content: /srv/www\n").path

    with pytest.raises(UsageError, match="no winner to export"):
        export(edited, form="json")

    assert "content was 'builtin', is '/srv/www'" in capsys.readouterr().err
