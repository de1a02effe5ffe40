"""The report as a browser shows it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.browser import Page, open_browser
from tests.unit.simulated_study import make_summary
from tuner.records import Failure, State
from tuner.report.page import render_report
from tuner.report.summary import Summary

WIDTHS = (1280, 390)
UNDRAWN = """
[...document.querySelectorAll("[data-figure]")].filter((holder) => {
  const box = holder.querySelector("svg.main-svg")?.getBoundingClientRect();
  const marks = holder.querySelectorAll(".trace path, .trace .point, .bars .point, .point path").length;
  return !box || box.width < 100 || box.height < 50 || !marks;
}).map((holder) => holder.id)
"""
OVERFLOWING = """
[...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const isOut = box.width && box.right > document.documentElement.clientWidth + 1;
  return isOut && !element.closest(".scroll, svg, .plot");
}).map((element) => element.outerHTML.slice(0, 80))
"""
FITTING = """
new Promise((done) => {
  const pictures = [...document.querySelectorAll(".plot:not(.wide) svg.main-svg")];
  const look = () => pictures.every((picture) => picture.getBoundingClientRect().right <= innerWidth)
    ? done(true) : setTimeout(look, 50);
  look();
})
"""
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def summary() -> Summary:
    return make_summary(searches=40)


@pytest.fixture(scope="module")
def report(summary: Summary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(summary), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=WIDTHS)
def page(browser: Page, report: Path, request: pytest.FixtureRequest) -> Page:
    browser.open(report, width=request.param, height=900)
    return browser


def test_every_figure_is_drawn_without_a_complaint_or_a_request(page: Page, report: Path) -> None:
    assert page.evaluate(UNDRAWN) == []
    assert page.evaluate('document.querySelectorAll("[data-figure]").length') >= 14
    assert page.complaints == []
    assert page.requests == [report.as_uri()]


def test_the_page_never_scrolls_sideways(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOWING) == []


def test_verdict_sides_and_changes_are_in_the_first_screen(page: Page) -> None:
    bottoms = page.evaluate(
        '[".verdict", "table", "table.diff"].map((name) => '
        "document.querySelector(name).getBoundingClientRect().bottom)"
    )
    assert max(bottoms) <= 900


def test_text_is_dark_on_light(page: Page) -> None:
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 39, 51)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_figures_follow_the_window(browser: Page, report: Path) -> None:
    browser.open(report, width=1280)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False
    )

    assert browser.evaluate(FITTING)


def test_hostile_strings_are_shown_and_never_run(browser: Page, summary: Summary, tmp_path: Path) -> None:
    failure = Failure(kind=HOSTILE, reason=HOSTILE)
    starts = tuple(
        replace(start, state=State.FAILED, windows=(), failure=failure) if start.number == 6 else start
        for start in summary.starts
    )
    path = tmp_path / "hostile.html"
    hostile = replace(summary, study=HOSTILE, workload=HOSTILE, starts=starts)
    path.write_text(render_report(hostile), encoding="utf-8")

    browser.open(path, width=1280)

    assert browser.evaluate("window.hacked ?? 0") == 0
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    label = "[...document.querySelectorAll('#failures .ytick text')].map((each) => each.textContent)"
    assert any("</script>" in text for text in browser.evaluate(label))
    assert browser.complaints == []


def test_an_unfinished_study_is_drawn_too(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "unfinished.html"
    path.write_text(render_report(make_summary(searches=5, pairs=0)), encoding="utf-8")

    browser.open(path, width=390)

    assert browser.evaluate(UNDRAWN) == []
    assert browser.complaints == []
