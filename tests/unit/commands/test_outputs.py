import json
import os
from dataclasses import replace

import pytest

from tests.unit.simulated_study import make_summary, small_space
from tests.unit.simulation import make_setup, write_study
from tuner.commands.outputs import find_results, write_export, write_results
from tuner.commands.page import make_page, write_page
from tuner.commands.session import Reading
from tuner.errors import TargetError, UsageError
from tuner.export import without_winner
from tuner.report.summary import Found
from tuner.statistics.baseline_level import Speedup


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def reading(settings):
    setup = make_setup(settings, small_space())
    return Reading(settings=settings, space=setup.space, summary=make_summary(searches=6), setup=setup)


@pytest.fixture
def unfinished(reading):
    return replace(reading, summary=make_summary(searches=6, pairs=0))


def test_report_and_exports_are_written_beside_the_study(reading, settings):
    results = write_results(reading)

    assert results.report == str(settings.folder / "report.html")
    exports = settings.folder / "exports"
    assert set(results.exports) == {str(exports / "tuner.json"), str(exports / "tuner-undo.json")}
    winner = json.loads((settings.folder / "exports" / "tuner.json").read_text())
    assert "sendfile" in json.dumps(winner)


def test_an_export_of_what_was_not_proven_says_so(reading, tmp_path):
    warned = []
    write_export(reading, "json", tmp_path, warn=warned.append)
    assert warned == []

    gain = replace(reading.summary.gain, verdict="not proven")
    unproven = replace(reading, summary=replace(reading.summary, gain=gain))
    write_export(unproven, "json", tmp_path, warn=warned.append)
    assert warned == ["not proven: for tests, not for service"]


def test_without_a_winner_there_is_a_report_and_nothing_to_export(unfinished, settings):
    results = write_results(unfinished)

    assert results.exports == ()
    assert (settings.folder / "report.html").is_file()
    assert not (settings.folder / "exports").exists()


def test_what_was_written_is_found_again(reading, settings):
    assert find_results(settings).report is None
    assert find_results(settings).exports == ()

    written = write_results(reading)

    found = find_results(settings)
    assert (found.report, set(found.exports)) == (written.report, set(written.exports))


def test_the_files_of_a_candidate_are_found_again(reading, settings):
    summary = reading.summary
    estimate = Speedup(log_ratio=0.3, variance=0.01)
    found = Found(config=summary.winner.config, speedup=estimate, reason="it fails")
    written = write_results(replace(reading, summary=replace(summary, winner=None, gain=None, found=found)))

    with pytest.raises(UsageError, match=r"files of the rejected candidate are in `exports/candidate/`\.$"):
        raise without_winner(replace(summary, winner=None, gain=None, found=found), "export")
    assert len(written.exports) > 1
    assert set(find_results(settings).exports) == set(written.exports)


def test_a_report_may_be_written_anywhere(reading, settings, tmp_path):
    path = write_page(settings, make_page(reading), tmp_path / "new" / "page.html")

    assert path.read_bytes().startswith(b"<!DOCTYPE html>")


def test_a_report_goes_through_a_link_and_into_a_pipe(reading, settings, tmp_path):
    real, link, pipe = (tmp_path / name for name in ("real.html", "link.html", "pipe"))
    real.write_text("old")
    link.symlink_to(real)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    small = b"x" * 100

    write_page(settings, make_page(reading), link)
    write_page(settings, small, pipe)

    assert link.is_symlink()
    assert real.read_bytes().startswith(b"<!DOCTYPE html>")
    assert os.read(reader, 200) == small
    assert pipe.is_fifo()
    os.close(reader)


def test_an_export_without_a_winner_is_refused(unfinished):
    with pytest.raises(UsageError):
        write_export(unfinished, "json", None)


def test_an_unknown_format_is_refused_before_anything_is_rendered(reading, tmp_path):
    with pytest.raises(UsageError, match="jsn"):
        write_export(reading, "jsn", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_format_of_a_server_that_is_not_tuned_is_refused(reading):
    with pytest.raises(UsageError, match="nginx"):
        write_export(reading, "nginx", None)


def test_a_folder_that_cannot_be_written_is_said(reading, settings, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(TargetError, match=r"file/out/tuner.json: cannot be written"):
        write_export(reading, "json", tmp_path / "file" / "out")
    with pytest.raises(TargetError, match=r"cannot be written \(Is a directory\)"):
        write_page(settings, b"", tmp_path)
