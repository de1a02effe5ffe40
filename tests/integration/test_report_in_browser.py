"""The report as a browser shows it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.browser import Page, open_browser
from tests.unit.report.test_contest import RATES, make_contest
from tests.unit.report.test_curve import DEFAULT_RATES, WINNER_RATES, make_curve, rates
from tests.unit.report.test_sweep import make_sweep
from tests.unit.simulated_study import make_summary
from tuner.records import Failure, State
from tuner.report.contest.page import render_contest
from tuner.report.curve.page import render_curve
from tuner.report.page import render_report
from tuner.report.summary import Summary
from tuner.report.sweep.page import render_sweep

WIDTHS = (1280, 390)
THEMES = ("light", "dark")
UNDRAWN = """
[...document.querySelectorAll("figure.chart, figure.bars")].filter((figure) => {
  const pictures = [...figure.querySelectorAll(".plot > svg, td.bar svg")];
  const marks = figure.querySelectorAll("svg [data-trial], svg [data-tip], td.bar rect, td.bar use");
  const isSmall = (picture) => picture.getBoundingClientRect().width < 100;
  const isEmpty = (mark) => { const box = mark.getBoundingClientRect(); return !box.height; };
  return !pictures.length || pictures.some(isSmall) || !marks.length || [...marks].some(isEmpty);
}).map((figure) => figure.id)
"""
OVERFLOWING = """
[...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const isOut = box.width && box.right > document.documentElement.clientWidth + 1;
  return isOut && !element.closest(".scroll, .plot svg, .sweep svg");
}).map((element) => element.outerHTML.slice(0, 80))
"""
OVERLAPPING = """
[...document.querySelectorAll(".plot > svg, th.bar svg, .sweep svg")].flatMap((picture) => {
  const labels = [...picture.querySelectorAll(".grid text, .sweep text")]
    .map((each) => [each, each.getBoundingClientRect()]);
  return labels.flatMap(([one, a], index) => labels.slice(index + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
    .map(([other]) => `${one.textContent} over ${other.textContent}`));
})
"""
CUT_OFF = """
[...document.querySelectorAll(".plot:not(.wide) text, th.bar text, .sweep text")].filter((label) => {
  const box = label.getBoundingClientRect();
  return box.left < 0 || box.right > document.documentElement.clientWidth;
}).map((label) => label.textContent)
"""
FAINT = """
(() => {
  const read = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (value) => value <= 10.3 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = read(getComputedStyle(each).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = new Set();
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, title, [hidden]")) continue;
    const style = getComputedStyle(element);
    const colour = read(element.closest("svg") ? style.fill : style.color);
    const [high, low] = [luminance(colour), luminance(ground(element))].sort((a, b) => b - a);
    seen += 1;
    const isFaint = (high + 0.05) / (low + 0.05) < 4.5;
    if (isFaint) faint.add(`${walker.currentNode.data.trim().slice(0, 40)}: ${colour}`);
  }
  return {seen, faint: [...faint]};
})()
"""
SWEEP = make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000, 6000: 14_750, 12000: 9_000})
CURVE = make_curve({"default": rates(DEFAULT_RATES, (1000, 10_000)), "winner": rates(WINNER_RATES)})
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
    path.write_text(render_report(summary, [SWEEP], [CURVE]), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[(width, theme) for theme in THEMES for width in WIDTHS])
def page(browser: Page, report: Path, request: pytest.FixtureRequest) -> Page:
    width, theme = request.param
    browser.prefer(theme)
    browser.open(report, width=width, height=900)
    return browser


def test_every_figure_is_drawn_without_a_complaint_or_a_request(page: Page, report: Path) -> None:
    assert page.evaluate(UNDRAWN) == []
    assert page.evaluate('document.querySelectorAll("figure.chart, figure.bars").length') >= 13
    assert page.complaints == []
    assert page.requests == [report.as_uri()]


def test_the_page_never_scrolls_sideways(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOWING) == []


def test_labels_neither_overlap_nor_leave_the_window(page: Page) -> None:
    assert page.evaluate(OVERLAPPING) == []
    assert page.evaluate(CUT_OFF) == []


def test_every_text_stands_out_from_what_is_behind_it(page: Page) -> None:
    page.evaluate('document.querySelectorAll("details").forEach((each) => { each.open = true; })')
    found = page.evaluate(FAINT)

    assert found["seen"] > 500
    assert found["faint"] == []


def test_axe_finds_no_violation_in_any_part(page: Page) -> None:
    page.evaluate('document.querySelectorAll("details").forEach((each) => { each.open = true; })')

    assert page.violations() == []


OTHER_PAGES = {
    "sweep": lambda: render_sweep(SWEEP),
    "curve": lambda: render_curve(CURVE),
    "contest": lambda: render_contest(make_contest(RATES, notes=("h2o: tuned in 5 min 00 s, 60 trials",))),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", OTHER_PAGES)
def test_the_pages_of_other_commands_are_accessible_and_fit_their_window(
    browser: Page, name: str, width: int, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(OTHER_PAGES[name](), encoding="utf-8")
    browser.open(path, width=width)
    for theme in THEMES:
        browser.prefer(theme)
        assert browser.violations() == [], theme
        assert browser.evaluate(FAINT)["faint"] == [], theme

    assert browser.evaluate(OVERFLOWING) == []
    assert browser.evaluate(OVERLAPPING) == []
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]


def test_verdict_and_sides_are_in_the_first_screen(page: Page) -> None:
    bottoms = page.evaluate(
        '[".verdict", "table"].map((name) => document.querySelector(name).getBoundingClientRect().bottom)'
    )
    assert max(bottoms) <= 900
    assert page.evaluate('document.querySelector("#conclude").getBoundingClientRect().bottom') <= 900


def test_the_page_has_the_theme_of_the_system_until_the_reader_chooses_another(
    browser: Page, report: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.prefer("dark")
    browser.open(report, width=1280)
    dark = browser.evaluate(ground)
    browser.prefer("light")
    light = browser.evaluate(ground)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(17, 23, 29)")

    browser.press("Tab")
    assert browser.evaluate("document.activeElement.textContent") == "Dark theme"
    browser.press("Enter")

    assert browser.evaluate(ground) == dark
    assert browser.evaluate("document.activeElement.textContent") == "Light theme"
    browser.open(report, width=1280)
    assert browser.evaluate(ground) == dark
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(ground) == light
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.evaluate("localStorage.clear()")


def test_points_are_read_with_the_keyboard(browser: Page, report: Path) -> None:
    browser.open(report, width=390)
    shown = 'document.querySelector("#tip:not([hidden])")?.textContent ?? ""'
    browser.evaluate('document.querySelector("#timeline .plot").focus()')
    assert browser.evaluate(shown) == ""

    browser.press("ArrowRight")
    first = browser.evaluate(shown)
    browser.press("ArrowRight")

    assert first.startswith("trial 0, control, complete")
    assert browser.evaluate(shown).startswith("trial 1,")
    browser.press("Escape")
    assert browser.evaluate(shown) == ""


def test_a_point_is_described_where_the_mouse_is_near(browser: Page, report: Path) -> None:
    browser.open(report, width=1280)
    at = browser.evaluate("""(() => {
      const point = document.querySelector("#slice-0 use[data-trial]");
      point.scrollIntoView({block: "center"});
      const box = point.getBoundingClientRect();
      return [box.x + 4, box.y + 4];
    })()""")

    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])

    assert browser.evaluate('document.querySelector("#tip:not([hidden])").textContent').startswith("trial ")


def test_figures_follow_the_window(browser: Page, report: Path) -> None:
    browser.open(report, width=1280)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False
    )

    assert browser.evaluate(CUT_OFF) == []
    assert browser.evaluate(OVERLAPPING) == []


def test_hostile_strings_are_shown_and_never_run(browser: Page, summary: Summary, tmp_path: Path) -> None:
    failure = Failure(kind=HOSTILE, reason=HOSTILE)
    trials = tuple(
        replace(trial, state=State.FAILED, windows=(), failure=failure) if trial.number == 6 else trial
        for trial in summary.trials
    )
    path = tmp_path / "hostile.html"
    hostile = replace(summary, study=HOSTILE, workload=HOSTILE, trials=trials)
    path.write_text(render_report(hostile), encoding="utf-8")

    browser.open(path, width=1280)

    assert browser.evaluate("window.hacked ?? 0") == 0
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    cells = "[...document.querySelectorAll('th')].map((each) => each.textContent)"
    assert HOSTILE in browser.evaluate(cells)
    assert browser.complaints == []


def test_an_unfinished_study_is_drawn_too(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "unfinished.html"
    path.write_text(render_report(make_summary(searches=5, pairs=0)), encoding="utf-8")

    browser.open(path, width=390)

    assert browser.evaluate(UNDRAWN) == []
    assert browser.complaints == []
