"""What the commands on results of earlier do before and after they measure."""

from pathlib import Path

import pytest

from tuner.cli.exit_codes import CANNOT_TELL, NOTHING_BETTER
from tuner.cli.regression_commands import Unclear, find_step_summary, gate_code, read_baseline, read_margin
from tuner.errors import UsageError
from tuner.report.regression import BASELINE, NEW, Measurement, NonInferiority
from tuner.statistics.arms.looks import Finding
from tuner.study import Study

STUDY = "study: web\nservers: [nginx]\nspace: [nginx]\n"


def found(finding: Finding) -> NonInferiority:
    measured = Measurement(finding=finding, comparison=None, fault="", most_pairs=20)
    return NonInferiority(
        study="web", sides={NEW: "new", BASELINE: "old"}, workload="wrk", margin=0.03, measured=measured
    )


@pytest.mark.parametrize(
    ("text", "share"),
    [("3%", 0.03), ("3 %", 0.03), ("0.03", 0.03), ("2.5%", 0.025), ("0", 0.0), ("50%", 0.5)],
)
def test_a_margin_is_a_percentage_or_a_share(text: str, share: float):
    assert read_margin(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "3", "51%", "-1%", "nan", "inf", "3%%", "٣%", "1e-2"])
def test_what_is_no_margin_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--margin: .*Write a share such as 3% or 0.03"):
        read_margin(text)


@pytest.mark.parametrize(
    ("finding", "unclear", "code"),
    [
        ("no slower", Unclear.FAIL, 0),
        ("slower", Unclear.PASS, NOTHING_BETTER),
        ("cannot tell", Unclear.OWN, CANNOT_TELL),
        ("cannot tell", Unclear.PASS, 0),
        ("cannot tell", Unclear.FAIL, NOTHING_BETTER),
    ],
)
def test_only_what_cannot_be_told_may_be_made_to_pass_or_fail(finding: Finding, unclear: Unclear, code: int):
    assert gate_code(found(finding), unclear) == code


def test_a_baseline_is_a_study_values_or_a_name(tmp_path: Path):
    study, values, exported = (tmp_path / name for name in ("old.yaml", "values.yaml", "tuner.json"))
    study.write_text(STUDY)
    values.write_text("sendfile: off\n")
    exported.write_text(
        '{"settings": {"nginx": {"sendfile": false}, "sysctl": {"net.core.somaxconn": 5000}}}'
    )

    old = read_baseline(str(study))
    assert isinstance(old, Study)
    assert old.name == "web"
    assert read_baseline(str(values)) == {"sendfile": "off"}
    assert read_baseline(str(exported)) == {"sendfile": "false", "net.core.somaxconn": "5000"}
    assert read_baseline("cached") == "cached"


def test_an_export_with_more_than_values_is_refused_with_its_place(tmp_path: Path):
    exported = tmp_path / "tuner.json"
    exported.write_text('{"settings": {"nginx": {"sendfile": [1, 2]}}}')

    with pytest.raises(UsageError, match=r"tuner.json:1: sendfile: .* is not one value"):
        read_baseline(str(exported))


def test_the_summary_of_a_step_is_where_github_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/tmp/step.md")  # noqa: S108 - it is not written
    assert find_step_summary() == Path("/tmp/step.md")  # noqa: S108

    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    with pytest.raises(UsageError, match=r"does not run in GitHub Actions. Use --summary FILE"):
        find_step_summary()
