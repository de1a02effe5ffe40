"""What a winner holds at once stands beside the default's wherever it is shown, and less does not ship."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path, PurePosixPath

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tests.unit.simulation import make_setup, write_study
from tests.unit.space.samples import facts
from tuner.adapters.servers.apache.builds import DEBIAN, write_place
from tuner.commands.apply import apply_winner
from tuner.commands.outputs import write_results
from tuner.commands.session import Reading
from tuner.errors import UsageError
from tuner.explain.explanation import Finding
from tuner.export import Rendered, export
from tuner.ports import Scalar
from tuner.report.page import render_report
from tuner.report.rows import describe_growth
from tuner.report.summary import Summary
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.space import Space, load_space

OUTAGE: Mapping[str, Scalar] = {"ThreadsPerChild": 25, "Processes": 1}
FAST: Mapping[str, Scalar] = {
    "ThreadsPerChild": 64, "Processes": 3, "StartServers": 1, "MaxKeepAliveRequests": 0,
    "EnableSendfile": True,
}  # fmt: skip
HUNGRY: Mapping[str, Scalar] = {**FAST, "MaxMemFree": 0}
GROWS = (
    "apache may take about 355 MiB of memory by default and about 1.6 GiB with these settings: 4.5 times as "
    "much (with MaxMemFree at its default: about 440 MiB)"
)
LESS = (
    "apache has capacity for 75 connections, the default for 450; apache has capacity for 25 requests at "
    "once, the default for 150"
)
RENDERED = {
    "apache": Rendered(
        default={PurePosixPath("/apache2.conf"): b"ThreadsPerChild 25\n"},
        winner={PurePosixPath("/apache2.conf"): b"ThreadsPerChild 64\n"},
        drop_in=write_place(DEBIAN, "apache"),
    )
}


@cache
def space_of(*, allows_less: bool = False) -> Space:
    refinements = [{"allow": ["capacity"]}] if allows_less else []
    return load_space(["apache-event", *refinements], facts=facts(), base=Path("/"))


@cache
def summary_of(*, less: bool, allows_less: bool = False) -> Summary:
    """Summarize a study with this winner, as a storage may have it from before there was a guard."""
    return summary_with(OUTAGE if less else FAST, allows_less=allows_less)


def summary_with(winning: Mapping[str, Scalar], *, allows_less: bool = False) -> Summary:
    space = space_of(allows_less=allows_less)
    made = make_summary(searches=0, pairs=4, winning=winning, space=space.open())
    return replace(made, space=space)


def screen_of(summary: Summary, width: int = 80) -> str:
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(final_screen(summary))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_last_screen_shows_what_default_and_winner_hold() -> None:
    lines = [" ".join(line.split()) for line in screen_of(summary_of(less=False), 120).splitlines()]

    default = "450 connections, 150 requests at once, 511 waiting connections, about 355 MiB at most"
    assert f"capacity default {default}" in lines
    assert any(line.startswith("candidate 576 connections, 192 requests at once") for line in lines)


def test_the_last_screen_lists_what_is_written_under_its_own_name() -> None:
    lines = [" ".join(line.split()) for line in screen_of(summary_of(less=False), 120).splitlines()]

    assert "ThreadsPerChild 25 → 64" in lines
    assert "MaxRequestWorkers 150 → 192 derived" in lines
    assert not any(line.startswith("Processes") for line in lines)
    after = lines[lines.index("EnableSendfile off → on") + 1]
    assert after.startswith("With `on`, a file that changes in place while it is sent may arrive mixed")


def test_eighty_columns_are_enough() -> None:
    for less in (False, True):
        assert max(map(len, screen_of(summary_of(less=less)).splitlines())) <= 80


def test_a_winner_with_less_is_called_so_wherever_it_is_shown() -> None:
    summary = summary_of(less=True)

    shown = " ".join(screen_of(summary).split())
    assert f"The candidate has less capacity than the default: {LESS}." in shown
    assert "neither exported nor applied without `allow: [capacity]`" in shown
    assert LESS in render_report(summary)
    assert summary_json(summary)["capacity"]["lacks"] == LESS.split("; ")


def test_a_winner_with_less_is_not_exported() -> None:
    for name in ("apache", "json"):
        with pytest.raises(UsageError, match=r"apache has capacity for 75 connections.* there is no export"):
            export(summary_of(less=True), name, rendered=RENDERED)


def test_a_winner_with_less_is_not_applied(tmp_path: Path) -> None:
    settings = write_study(tmp_path)
    reading = Reading(settings=settings, space=space_of(), summary=summary_of(less=True))

    with pytest.raises(UsageError, match=r"25 requests at once, the default for 150.* there is no apply"):
        apply_winner(reading, host_name=None, url=None, confirm_within_s=60)


def test_a_run_ends_with_its_report_when_its_winner_may_not_ship(tmp_path: Path) -> None:
    settings = write_study(tmp_path)
    setup = make_setup(settings, space_of())
    reading = Reading(settings=settings, space=setup.space, summary=summary_of(less=True), setup=setup)

    results = write_results(reading)

    assert results.exports == ()
    assert results.report is not None


def test_a_study_may_allow_it_and_every_file_says_so() -> None:
    files = export(summary_of(less=True, allows_less=True), "apache", rendered=RENDERED)

    head = files["tuner-apache.conf"].decode()
    assert (
        "# LESS CAPACITY than the default: apache has capacity for 25 requests at once, the default for 150"
        in head
    )
    assert "neither exported" not in screen_of(summary_of(less=True, allows_less=True))


def test_exports_say_what_is_held_and_what_else_changes() -> None:
    summary = summary_of(less=False)
    head = export(summary, "apache", rendered=RENDERED)["tuner-apache.conf"].decode()
    applied = json.loads(export(summary, "json", rendered={})["tuner.json"])

    assert "# capacity of apache by default: 450 connections, 150 requests at once" in head
    assert "# capacity of apache with these settings: 576 connections, 192 requests at once" in head
    assert "# EnableSendfile: With `on`, a file that changes in place" in head
    assert applied["capacity"]["winner"]["apache"]["requests"] == 192
    assert "EnableSendfile" in applied["also"]


def test_scripts_read_capacity_what_ships_and_what_else_it_does() -> None:
    shown = summary_json(summary_of(less=False))

    assert shown["capacity"]["default"]["apache"]["requests"] == 150
    assert shown["capacity"]["winner"]["apache"]["requests"] == 192
    assert shown["winner"]["ships"]["MaxRequestWorkers"] == [150, 192]
    assert "EnableSendfile" in shown["winner"]["also"]
    assert "Processes" in shown["winner"]["changes"], "what was chosen stays where scripts know it"


def test_memory_that_more_than_doubles_is_a_warning_wherever_the_winner_is_shown() -> None:
    summary = summary_with(HUNGRY)
    said = f"Memory grows: {GROWS}."

    assert said in " ".join(screen_of(summary).split())
    assert said in render_report(summary)
    assert f"# WARNING: {said}" in export(summary, "apache", rendered=RENDERED)["tuner-apache.conf"].decode()
    assert json.loads(export(summary, "json", rendered={})["tuner.json"])["capacity"]["grows"] == [GROWS]
    assert summary_json(summary)["capacity"]["grows"] == [GROWS]


def test_a_setting_that_takes_the_memory_and_is_not_shown_to_help_can_be_left_out() -> None:
    summary = summary_with(HUNGRY)
    explained = make_summary(searches=14).explanation
    assert explained is not None
    setting = replace(explained.settings[0], parameter="MaxMemFree")

    said = {
        finding: describe_growth(
            replace(summary, explanation=replace(explained, settings=(replace(setting, finding=finding),)))
        )
        for finding in (Finding.HELPS, Finding.UNKNOWN)
    }

    assert said[Finding.HELPS] == f"Memory grows: {GROWS}."
    assert said[Finding.UNKNOWN] == (
        f"Memory grows: {GROWS}. Not shown to help: MaxMemFree. To leave it out, write "
        "`- {without: [MaxMemFree]}` under `space:` in a new study."
    )


def test_memory_that_does_not_double_is_a_figure_and_no_warning() -> None:
    summary = summary_of(less=False)

    assert "Memory grows" not in screen_of(summary)
    assert "Memory grows" not in render_report(summary)
    assert summary_json(summary)["capacity"]["grows"] == []
