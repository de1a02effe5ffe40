"""The report as a browser shows it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.browser import Page, open_browser
from tests.more import leave_to_more
from tests.unit.advice.samples import make_hostile
from tests.unit.export.test_pasted_patch import BEFORE, apply_patch, change, make_page
from tests.unit.report.test_contest import RATES, make_contest
from tests.unit.report.test_curve import DEFAULT_RATES, WINNER_RATES, make_curve, rates
from tests.unit.report.test_robustness import EVERYWHERE
from tests.unit.report.test_sweep import make_sweep
from tests.unit.simulated_study import make_summary
from tuner.records import Failure, State
from tuner.report.advice import advice_page
from tuner.report.contest.page import render_contest
from tuner.report.curve.page import render_curve
from tuner.report.markup import SCRIPT, embed_script, read_script
from tuner.report.page import render_report
from tuner.report.summary import Summary
from tuner.report.sweep.page import render_sweep
from tuner.statistics.feasibility import Assessment

WIDTHS = (1280, 390)
THEMES = ("light", "dark")
WINDOWS = [
    (1280, "light"),
    (390, "dark"),
    *(pytest.param(each, marks=pytest.mark.more) for each in ((390, "light"), (1280, "dark"))),
]
UNDRAWN = """
[...document.querySelectorAll(".plot")].filter((place) => {
  if (place.closest("details:not([open])")) return false;
  const picture = place.querySelector("svg.main-svg");
  const marks = place.querySelectorAll(".trace path, .trace .point");
  return !picture || picture.getBoundingClientRect().width < 100 || !marks.length;
}).map((place) => place.id)
"""
OPEN_ALL = 'document.querySelectorAll("details").forEach((each) => { each.open = true; })'
SHOW_ALL = """
new Promise((done) => {
  const places = [...document.querySelectorAll(".plot")];
  places.forEach((place) => drawn.has(place) || draw(place));
  requestAnimationFrame(() => requestAnimationFrame(done));
})
"""
OVERFLOWING = """
[...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const isOut = box.width && box.right > document.documentElement.clientWidth + 1;
  return isOut && !element.closest(".scroll, .plot, pre");
}).map((element) => element.outerHTML.slice(0, 80))
"""
CUT_OFF = """
[...document.querySelectorAll(".xtick text, .ytick text")].filter((label) => {
  if (label.closest(".wide")) return false;
  const box = label.getBoundingClientRect();
  return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth);
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
COMMANDS = [("Apply it", "tuner apply nginx.yaml"), ("Undo it", "tuner apply nginx.yaml --undo")]
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
FIVE = {
    "sendfile": False, "open_file_cache": 2000, "keepalive_requests": 100000, "worker_processes": 1,
    "listen_backlog": 2048,
}  # fmt: skip


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
    path.write_text(render_report(summary, [SWEEP], [CURVE], COMMANDS), encoding="utf-8")
    (path.parent / SCRIPT).write_text(read_script(), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=WINDOWS)
def page(browser: Page, report: Path, request: pytest.FixtureRequest) -> Page:
    width, theme = request.param
    browser.prefer(theme)
    browser.open(report, width=width, height=900)
    return browser


def test_every_figure_is_drawn_without_a_complaint_or_a_request(page: Page, report: Path) -> None:
    page.evaluate(OPEN_ALL)
    page.evaluate(SHOW_ALL)

    assert page.evaluate(UNDRAWN) == []
    assert page.evaluate('document.querySelectorAll(".plot").length') >= 10
    assert page.complaints == []
    assert page.requests == [report.as_uri(), report.with_name(SCRIPT).as_uri()]


def test_the_page_never_scrolls_sideways(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERFLOWING) == []


def test_labels_stay_in_the_window(page: Page) -> None:
    page.evaluate(OPEN_ALL)
    page.evaluate(SHOW_ALL)

    assert page.evaluate(CUT_OFF) == []


def test_every_text_stands_out_from_what_is_behind_it(page: Page) -> None:
    page.evaluate(OPEN_ALL)
    found = page.evaluate(FAINT)

    assert found["seen"] > 500
    assert found["faint"] == []


def test_axe_finds_no_violation_in_any_part(page: Page) -> None:
    page.evaluate(OPEN_ALL)

    assert page.violations() == []


OTHER_PAGES = {
    "advice": lambda: advice_page(make_hostile()),
    "sweep": lambda: render_sweep(SWEEP),
    "curve": lambda: render_curve(CURVE),
    "contest": lambda: render_contest(make_contest(RATES, notes=("h2o: tuned in 5 min 00 s, 60 trials",))),
}


@pytest.mark.parametrize("width", leave_to_more(WIDTHS, 390))
@pytest.mark.parametrize("name", OTHER_PAGES)
def test_the_pages_of_other_commands_are_accessible_and_fit_their_window(
    browser: Page, name: str, width: int, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(embed_script(OTHER_PAGES[name]()), encoding="utf-8")
    browser.open(path, width=width)
    for theme in THEMES:
        browser.prefer(theme)
        assert browser.violations() == [], theme
        assert browser.evaluate(FAINT)["faint"] == [], theme

    assert browser.evaluate(OVERFLOWING) == []
    browser.evaluate(SHOW_ALL)
    assert browser.evaluate(UNDRAWN) == []
    assert browser.evaluate(CUT_OFF) == []
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.evaluate("window.hacked ?? 0") == 0


def test_verdict_change_and_commands_are_in_the_first_screen(browser: Page, report: Path) -> None:
    browser.open(report, width=1280, height=900)
    bottoms = browser.evaluate(
        '[".verdict", "#diff", "#commands"]'
        ".map((name) => document.querySelector(name).getBoundingClientRect().bottom)"
    )

    assert max(bottoms) <= 900


def test_titles_of_the_first_tables_stay_on_one_line(browser: Page, report: Path) -> None:
    browser.open(report, width=1280, height=900)
    heights = browser.evaluate(
        '[...document.querySelectorAll(".tight thead tr")].map((each) => each.getBoundingClientRect().height)'
    )

    assert heights
    assert max(heights) < 36


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a study with five changed settings, check loads and constraints."""
    made = make_summary(searches=40, pairs=11, winning=FIVE)
    assert made.winner is not None
    checks = replace(EVERYWHERE, config=made.winner.config)
    bound = Assessment(
        constraint="failure_rate <= default", metric="failure_rate", limit=None, probability=0.999, seen=None,
        of_default=None, finding="fails 0 % [0 %, 0.0034 %] of its requests",
        finding_of_default="fails 0 % [0 %, 0.0027 %] of its requests",
    )  # fmt: skip
    summary = replace(made, robustness=(checks,), assessments=(bound, bound))
    path = tmp_path_factory.mktemp("whole") / "report.html"
    path.write_text(render_report(summary, commands=COMMANDS), encoding="utf-8")
    (path.parent / SCRIPT).write_text(read_script(), encoding="utf-8")
    return path


def test_the_page_of_five_settings_is_a_few_screens_long_and_prints_on_six_sheets(
    browser: Page, whole: Path
) -> None:
    browser.prefer("light")
    browser.open(whole, width=1280)
    browser.evaluate(SHOW_ALL)

    assert browser.evaluate("document.documentElement.scrollHeight") <= 4000
    assert browser.count_sheets() <= 6


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

    # The page is told of the other theme before its next frame, and names the button then.
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => done()))")
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


def test_figures_take_the_colours_of_the_theme(browser: Page, report: Path) -> None:
    colour = 'getComputedStyle(document.querySelector("#effects .xtick text")).fill'
    browser.prefer("light")
    browser.open(report, width=1280)
    browser.evaluate(SHOW_ALL)
    light = browser.evaluate(colour)
    browser.evaluate('document.getElementById("theme").click()')

    assert (light, browser.evaluate(colour)) == ("rgb(83, 96, 105)", "rgb(165, 178, 190)")
    browser.evaluate("localStorage.clear()")


def test_without_its_script_the_page_has_every_table(browser: Page, summary: Summary, tmp_path: Path) -> None:
    path = tmp_path / "alone.html"
    path.write_text(render_report(summary), encoding="utf-8")

    browser.open(path, width=1280)

    assert browser.evaluate('getComputedStyle(document.querySelector(".plot")).display') == "none"
    assert browser.evaluate('document.querySelectorAll("#effects, table").length') > 10


def test_hostile_strings_are_shown_and_never_run(browser: Page, summary: Summary, tmp_path: Path) -> None:
    failure = Failure(kind=HOSTILE, reason=HOSTILE)
    trials = tuple(
        replace(trial, state=State.FAILED, windows=(), failure=failure) if trial.number == 6 else trial
        for trial in summary.trials
    )
    path = tmp_path / "hostile.html"
    hostile = replace(summary, study=HOSTILE, workload=HOSTILE, trials=trials)
    path.write_text(embed_script(render_report(hostile)), encoding="utf-8")

    browser.open(path, width=1280)

    assert browser.evaluate("window.hacked ?? 0") == 0
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    cells = "[...document.querySelectorAll('th')].map((each) => each.textContent)"
    assert HOSTILE in browser.evaluate(cells)
    assert browser.complaints == []


def test_the_button_copies_a_patch_that_applies(browser: Page, tmp_path: Path) -> None:
    before = b"".join(BEFORE.values())
    path = tmp_path / "page.html"
    path.write_text(embed_script(make_page(before, change(before))), encoding="utf-8")
    browser.open(path, width=1280)

    copied = browser.evaluate(
        "new Promise((done) => {"
        "navigator.clipboard.writeText = async (text) => done(text);"
        "document.querySelector('[data-copy=diff]').click(); })"
    )

    assert apply_patch(copied, before, tmp_path / "host") == change(before)


def test_an_unfinished_study_is_drawn_too(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "unfinished.html"
    page = embed_script(render_report(make_summary(searches=5, pairs=0)))
    path.write_text(page, encoding="utf-8")

    browser.open(path, width=390)
    browser.evaluate(SHOW_ALL)

    assert browser.evaluate(UNDRAWN) == []
    assert browser.complaints == []
