"""How well a mix was sent is the same number in the report, in its figure and for scripts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.report.test_terminal import show
from tests.unit.simulated_study import make_summary
from tuner.errors import UsageError
from tuner.figures import plot_mix
from tuner.ports import Failures, RequestKind
from tuner.records import Role, State, Trial, Window
from tuner.records.as_json import window_from_json, window_to_json
from tuner.report.fidelity import Fidelity, compare, read_fidelity
from tuner.report.figures.mixes import draw_mix
from tuner.report.page import render_report
from tuner.report.summary_json import summary_json
from tuner.study import load_study

KINDS = (RequestKind(path="/", weight=3, body_bytes=100), RequestKind(path="/<b>", weight=1, body_bytes=500))
STUDY = "study: a\nservers: [nginx]\nspace: [nginx]\n"
MIX = "{requests: [{path: /, weight: 3}, {path: /b}], connections: 5}"


def window(*sent: int, check_load: str = "", failed: int = 0) -> Window:
    return Window(
        started_s=0.0, duration_s=2.0, correct=sum(sent) - failed, failures=Failures(status=failed),
        bytes=30_000, counters={"passive_opens": 10.0}, sent=sent, check_load=check_load,
    )  # fmt: skip


def trial(*windows: Window, role: Role = Role.BASELINE) -> Trial:
    return Trial(number=0, role=role, config={}, state=State.COMPLETE, started_s=0.0, windows=windows)


def compared(*windows: Window) -> Fidelity:
    found = compare(KINDS, windows, connections=5)
    assert found is not None
    return found


def test_one_number_says_which_share_was_sent_as_asked():
    exact, half_off = compared(window(75, 25)), compared(window(50, 50))

    assert (exact.match, exact.largest) == (1.0, (0.0, "/<b>"))
    assert (half_off.match, half_off.largest) == (0.75, (0.25, "/<b>"))


def test_windows_are_taken_together_and_those_without_counts_are_left_out():
    found = compared(window(70, 30), window(80, 20, failed=10), replace(window(), correct=7))

    assert (found.requests, found.match, found.as_expected) == (200, 1.0, 0.95)
    assert (found.asked_bytes, found.received_bytes) == (200.0, 60_000 / 190)
    assert (found.rate_rps, found.opened) == (190 / 4, 20.0)
    assert str(found) == (
        "100 % of 200 requests of 2 kinds as asked, every share within 0.00 points (/<b>); 95 % had the "
        "expected status and body; asked 200 bytes, received 316 per response with its header; 47.5 "
        "responses/s over 5 connections, 10 requests on each"
    )


@pytest.mark.parametrize("windows", [[], [replace(window(), correct=5)], [window(0, 0)], [window(1, 2, 3)]])
def test_a_generator_that_does_not_count_by_kind_says_nothing(windows: list[Window]):
    assert compare(KINDS, windows, connections=5) is None
    assert compare((), [window(1, 2)], connections=5) is None


def test_each_load_of_a_study_is_compared_with_its_own_windows(tmp_path: Path):
    check = "check_loads: [{name: y, requests: [{path: /c}]}]\n"
    (tmp_path / "a.yaml").write_text(f"{STUDY}load: {MIX}\n{check}")
    settings = load_study(tmp_path / "a.yaml")
    trials = [trial(window(30, 10)), trial(window(7, check_load="requests of y"), role=Role.ROBUSTNESS)]

    found = read_fidelity(settings, trials)

    assert {name: each.sent for name, each in found.items()} == {"": (30, 10), "requests of y": (7,)}


def test_each_of_several_loads_is_compared_by_its_name(tmp_path: Path):
    loads = f"loads: [{{name: a, {MIX[1:]}, {{name: b, path: /x}}]\n"
    (tmp_path / "a.yaml").write_text(STUDY + loads)
    both = replace(window(), parts={"a": window(3, 1), "b": window()})

    found = read_fidelity(load_study(tmp_path / "a.yaml"), [trial(both)])

    assert {name: each.sent for name, each in found.items()} == {"a": (3, 1)}


def test_the_counts_of_a_window_are_kept():
    assert window_from_json(window_to_json(window(3, 1))).sent == (3, 1)
    assert "sent" not in window_to_json(window())


def test_the_number_is_the_same_on_the_page_in_the_figure_and_for_scripts():
    found = compared(window(7, 2))
    summary = replace(make_summary(searches=0, pairs=0), fidelity={"": found})

    page = render_report(summary)
    figure = json.dumps(draw_mix(found))

    assert f"{100 * found.match:.2f} % of 9 requests" in page
    assert f"Requests as asked: {100 * found.match:.2f} %" in figure
    assert summary_json(summary)["mix"][""]["match"] == found.match
    assert f"{100 * found.match:.2f} % of 9 requests" in " ".join(show(summary).split())
    assert "&lt;b&gt;" in page
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert "<b>" not in figure


def test_a_mix_is_a_figure_of_plotly():
    summary = replace(make_summary(searches=0, pairs=0), fidelity={"": compared(window(50, 50))})

    asked, sent = plot_mix(summary).data

    assert (list(asked.x), list(sent.x)) == ([75.0, 25.0], [50.0, 50.0])
    with pytest.raises(UsageError, match="the study has no mix 'b' with counted requests to plot"):
        plot_mix(summary, "b")


def test_a_page_without_a_mix_has_no_section_of_one():
    assert 'id="mixes"' not in render_report(make_summary(searches=0, pairs=0))
