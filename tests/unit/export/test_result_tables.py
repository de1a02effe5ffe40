import csv
import io
from dataclasses import replace

from tests.unit.simulated_study import make_summary
from tuner.export.result_tables import result_as_markdown, trials_as_csv

SUMMARY = make_summary(searches=12)


def test_markdown_has_the_verdict_both_sides_and_what_changed() -> None:
    text = result_as_markdown(SUMMARY)

    assert SUMMARY.gain is not None
    assert text.startswith(f"### nginx-static: {SUMMARY.gain.ratio:.2f}× \\[")
    assert "|  | requests/s | p99, corrected | failures | trials |\n| --- | ---: |" in text
    assert f"| default | {SUMMARY.default.goodput_rps:,.0f} |" in text
    assert "| sendfile | on | off |" in text
    assert "- host: web1" in text


def test_nothing_in_markdown_is_markup_that_a_name_brought() -> None:
    text = result_as_markdown(replace(SUMMARY, study="a|b<script>`x`", reason="*all* [is](lost)"))

    assert "### a\\|b\\<script\\>\\`x\\`: " in text
    assert "\\*all\\* \\[is\\](lost)" in text


def test_csv_has_a_line_for_each_trial_with_its_settings() -> None:
    rows = list(csv.DictReader(io.StringIO(trials_as_csv(SUMMARY))))

    assert [int(row["number"]) for row in rows] == [trial.number for trial in SUMMARY.trials]
    first, failed = rows[0], next(row for row in rows if row["state"] == "failed")
    assert (first["role"], first["sendfile"], first["worker_processes"]) == ("baseline", "on", "auto")
    assert float(first["goodput_rps"]) > 0
    assert (failed["goodput_rps"], failed["speedup"]) == ("", "")
    assert failed["failed"] in {"rejected", "not ready"}
