"""The documentation as `make docs` builds it: strict, whole, and as a browser shows it without a network."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

import tuner
from tests.integration.browser import Page, open_browser
from tuner.cli import COMMANDS
from tuner.space import describe_space
from tuner.space.sources import BUILT_IN

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
SPACES = sorted(path.stem for path in BUILT_IN.glob("*.yaml"))
SHOWN = ("index", "studies", "comparison", "reference/commands", "reference/python", "reference/spaces/caddy")
WIDTHS = (1280, 390)
THEMES = ("light", "dark")
FORGE = "https://forge.example/owner/tuner"
EARLIER = "0.1.0"
FOUND = """
new Promise((resolve) => {
  const look = () => {
    const links = [...document.querySelectorAll("#search-results li a")].map((link) => link.href);
    links.length ? resolve(links) : setTimeout(look, 50);
  };
  look();
})
"""
# Furo's boxes are seen as the icons beside them.
STOP = """
(() => {
  const stop = document.activeElement;
  if (stop === document.body) return null;
  const shown = stop.type === "checkbox" ? `label[for=${stop.id}] .icon` : ":focus";
  const icons = [...document.querySelectorAll(shown)];
  const isSeen = icons.some((each) => {
    const box = each.getBoundingClientRect();
    const isVisible = each.checkVisibility({visibilityProperty: true, opacityProperty: true});
    return isVisible && box.width && box.right > 0 && box.left < innerWidth;
  });
  return [stop.id || stop.className || stop.textContent, isSeen];
})()
"""
IS_IN_DRAWER = 'Boolean(document.activeElement.closest(".sidebar-drawer"))'


class Links(HTMLParser):
    """What a page has for others to link to, what it links to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page = page
        self.anchors = {""}
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        self.loaded += [found[name] for name in ("src", "srcset", "poster") if name in found]
        if tag == "link" and found.get("rel") in {"stylesheet", "icon", "preload", "preconnect"}:
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as it is published: beside that of an earlier version, with its sources on a forge."""
    folder = tmp_path_factory.mktemp("site")
    earlier = folder / EARLIER / "index.html"
    earlier.parent.mkdir()
    earlier.touch()
    argv = [sys.executable, "-m", "sphinx", "--builder", "html", "--quiet", "--fail-on-warning"]
    argv += ["--doctree-dir", folder / "doctrees", "docs", folder / "html"]
    variables = {**os.environ, "REPOSITORY": FORGE, "VERSIONS": f"{tuner.__version__} {EARLIER}"}
    built = subprocess.run(argv, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def leads_nowhere(page: Links, target: str, pages: dict[Path, Links]) -> bool:
    to = urlsplit(target)
    if to.scheme:
        return False
    file = (page.page.parent / unquote(to.path)).resolve() if to.path else page.page
    return not file.is_file() or (file in pages and unquote(to.fragment) not in pages[file].anchors)


def test_every_page_of_docs_is_on_the_site(site: Path):
    named = {path.stem for path in (ROOT / "docs").glob("*.md")}

    assert {path.stem for path in site.glob("*.html")} == {*named, "search"}


def test_every_link_leads_to_a_file_and_an_anchor_of_the_site(pages: dict[Path, Links]):
    wrong = [
        f"{path.name}: {target}"
        for path, page in pages.items()
        for target in page.targets
        if leads_nowhere(page, target, pages)
    ]

    assert wrong == []
    assert sum(len(page.targets) for page in pages.values()) > 1000


def test_pages_load_nothing_from_elsewhere(pages: dict[Path, Links]):
    loaded = {address for page in pages.values() for address in page.loaded}

    assert loaded
    assert [address for address in loaded if urlsplit(address).netloc] == []


@pytest.mark.parametrize("name", SPACES)
def test_the_reference_of_a_space_has_range_default_reason_and_source_of_every_setting(name: str, site: Path):
    sections = (site / f"reference/spaces/{name}.html").read_text().split("<h3>")[1:]
    told = {re.sub(r"<.*?>|¶", "", each.split("</h3>")[0]): each for each in sections}

    for row in describe_space(name):
        text = told[row["name"]]
        fields = {"Source"} | (set() if row["kind"] == "derived" else {"Range", "Default"})
        assert fields <= set(re.findall(r"<dt[^>]*>(\w+)<", text)), row["name"]
        assert re.search(r"<p>\w", text), row["name"]


def test_the_reference_has_all_commands(site: Path):
    text = (site / "reference/commands.html").read_text()

    assert [each.__name__ for each in COMMANDS if f"<h2>tuner {each.__name__}<" not in text] == []
    assert "--confirm-within" in text


def test_the_reference_has_all_that_scripts_import(site: Path):
    text = (site / "reference/python.html").read_text()

    assert [name for name in tuner.__all__ if f'id="tuner.{name}"' not in text] == []
    assert 'id="tuner.NonInferiority.finding"' in text
    assert " -- " not in text


def test_blocks_of_code_are_copied_and_of_a_console_only_what_is_typed(site: Path, browser: Page):
    browser.open(site / "index.html", width=1280)
    copy = """
    navigator.clipboard.writeText = async (text) => { window.copied = text; };
    document.querySelector(".highlight-console .copy").click();
    window.copied
    """

    assert browser.evaluate(copy).splitlines()[-1] == "make tune SERVER=nginx"
    assert "$" not in browser.evaluate("window.copied")
    assert browser.complaints == []


def test_the_catalogue_has_numbers_and_folds_formulas(site: Path):
    text = (site / "reference/spaces/nginx.html").read_text()
    (row,) = re.findall(r"<tr[^>]*>(?:(?!</tr>).)*#worker-connections.*?</tr>", text, re.DOTALL)

    shown = re.sub(r"<[^>]*>", "", row)
    assert re.search(r"\d+ to \d+", shown)
    assert not re.search(r"min\(|max\(", shown)
    assert re.search(r"<details><summary>show</summary>(?:(?!</details>).)*max\(", text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_is_accessible_in_both_themes_and_fits_its_window(
    name: str, width: int, site: Path, browser: Page
):
    browser.open(site / f"{name}.html", width=width)
    for theme in THEMES:
        browser.prefer(theme)
        assert browser.violations() == [], theme

    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints == []
    assert [address for address in browser.requests if not address.startswith(("file:", "data:"))] == []


def test_the_keyboard_opens_the_navigation_of_a_phone_and_leaves_it(site: Path, browser: Page):
    browser.open(site / "index.html", width=390)
    browser.press("Tab")
    assert browser.evaluate(STOP) == ["__navigation", True]

    browser.press(" ")
    assert browser.evaluate(IS_IN_DRAWER)
    assert browser.violations() == []
    browser.press("Escape")

    assert browser.evaluate(STOP) == ["__navigation", True]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_stop_of_the_keyboard_is_seen(width: int, site: Path, browser: Page):
    browser.open(site / "recipes.html", width=width)
    stops = []
    while len(stops) < 60:
        browser.press("Tab")
        stop = browser.evaluate(STOP)
        if stop is None:  # after the last one
            break
        stops.append(stop)

    assert len(stops) > 15
    assert [name for name, is_seen in stops if not is_seen] == []


def test_the_keyboard_skips_to_the_text_and_chooses_a_theme(site: Path, browser: Page):
    browser.prefer("light")
    browser.open(site / "studies.html", width=1280)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(ground)
    browser.evaluate('document.querySelector(".theme-toggle-content button").focus()')
    browser.press("Enter")
    assert browser.evaluate(ground) != before
    browser.evaluate("localStorage.clear()")

    browser.evaluate('document.querySelector(".skip-to-content").focus()')
    browser.press("Enter")
    browser.press("Tab")

    assert browser.evaluate('Boolean(document.activeElement.closest("#furo-main-content"))')


def test_the_search_finds_a_setting_without_a_network(site: Path, browser: Page):
    browser.complaints.clear()
    browser.call("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q=worker_cpu_affinity")

    assert any("reference/spaces/nginx.html" in link for link in browser.evaluate(FOUND))
    assert browser.violations() == []
    assert browser.complaints == []


@pytest.mark.parametrize(
    ("sought", "place"),
    [
        ("resume", "resume.html"),
        ("roll back", "roll-back.html"),
        ("SLO", "recipes.html#meet-an-slo"),
        ("upstream", "studies.html#put-servers-behind-each-other"),
        ("Ubuntu", "install.html#ubuntu"),
        ("confidence interval", "glossary.html#measuring"),
    ],
)
def test_the_search_finds_the_page_that_explains_a_word_first(
    sought: str, place: str, site: Path, pages: dict[Path, Links], browser: Page
):
    browser.open(site / "index.html", width=1280)  # the results of another search are gone
    browser.call("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q={quote(sought)}")

    assert browser.evaluate(FOUND)[0] == f"{site.as_uri()}/{place}"
    assert not leads_nowhere(pages[site / "search.html"], place, pages)


def test_pages_link_to_their_source_and_to_the_sites_of_other_versions(site: Path, pages: dict[Path, Links]):
    targets = {page.relative_to(site).as_posix(): links.targets for page, links in pages.items()}

    assert f"{FORGE}/edit/main/docs/studies.md" in targets["studies.html"]
    assert f"{FORGE}/edit/main/CHANGELOG.md" in targets["project/changelog.html"]
    assert [target for target in targets["reference/commands.html"] if "/edit/" in target] == []
    assert f"./../{EARLIER}/index.html" in targets["index.html"]
    assert f"../../{EARLIER}/index.html" in targets["reference/commands.html"]
