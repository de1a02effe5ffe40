import csv
import io
from dataclasses import replace

from tests.unit.simulated_study import make_summary
from tuner.export.result_tables import result_as_markdown, trials_as_csv
from tuner.report.summary import Found
from tuner.statistics.baseline_level import Speedup

SUMMARY = make_summary(searches=12)


def test_markdown_has_the_verdict_both_sides_and_what_changed() -> None:
    text = result_as_markdown(SUMMARY)

    assert SUMMARY.gain is not None
    assert text.startswith(f"### nginx-static: {SUMMARY.gain.ratio:.2f}× \\[")
    assert "|  | requests/s | p99, corrected | failures | trials |\n| --- | ---: |" in text
    assert f"| default | {SUMMARY.default.goodput_rps:,.0f} |" in text
    assert "| sendfile | on | off |" in text
    assert "- host: web1" in text


def test_markdown_of_a_candidate_calls_it_so_and_has_its_figures() -> None:
    assert SUMMARY.gain is not None
    assert SUMMARY.winner is not None
    found = Found(
        config=SUMMARY.winner.config, speedup=Speedup(log_ratio=0.3, variance=0.01), reason="it fails"
    )
    for summary in (
        replace(SUMMARY, gain=replace(SUMMARY.gain, verdict="not proven")),
        replace(SUMMARY, winner=None, gain=None, found=found),
    ):
        text = result_as_markdown(summary)

        assert "| setting | default | candidate |" in text
        assert "| candidate | " in text
        assert "Do not compare these p99" in text
        assert "winner" not in text.lower().replace("candidate, not a winner", "")


def test_a_finished_study_that_found_nothing_shows_no_setting() -> None:
    nothing = replace(SUMMARY, winner=None, gain=None)
    assert nothing.incumbent is not None

    assert "| setting |" not in result_as_markdown(nothing)
    assert "| setting | default | best so far |" in result_as_markdown(replace(nothing, state="stopped"))


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
