"""Renew the pictures of the documentation: `make pictures STUDY=FILE`.

    python -m benchmarks.pictures STUDY                  # writes docs/images
    python -m benchmarks.pictures --to FOLDER STUDY …    # writes the first screen of each study's page

Each study is finished. The page and the dashboard show the study; the sweep and the live display
show figures that the tests invent.
"""

import argparse
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.e2e.play_live import OLDER
from tests.e2e.test_terminal import LOWEST, playing
from tests.integration.browser import Page, open_browser
from tests.integration.test_dashboard import SHOWN
from tests.integration.test_report_in_browser import SHOW_ALL
from tests.unit.report.test_sweep import make_sweep
from tuner.report.markup import embed_script
from tuner.report.sweep.page import render_sweep

IMAGES = Path(__file__).parents[1] / "docs/images"
TUNER = str(Path(sys.executable).with_name("tuner"))
SCREEN = (1280, 900)
TERMINAL = (100, 40)
SIGN_PX, LINE_PX, EDGE_PX = 8.43, 18, 16
SETTLED = "new Promise((done) => setTimeout(done, 2000))"
RATES = {768: 10_000, 1500: 12_000, 3000: 15_000, 6000: 14_750, 12_000: 9_000}
TERMINAL_PAGE = f"""\
<!doctype html><meta charset="utf-8">
<style>
body {{{{ margin: {EDGE_PX}px; color: {{foreground}}; background: {{background}}; }}}}
pre {{{{ margin: 0; font: 14px/{LINE_PX}px "DejaVu Sans Mono", monospace; }}}}
{{stylesheet}}
</style>
<pre>{{code}}</pre>
"""


def write_page(study: Path, folder: Path) -> Path:
    """Let tuner write the page of a study, where the study has a short path."""
    page = folder / f"{study.stem}.html"
    argv = (TUNER, "report", study.name, "-o", page)
    subprocess.run(argv, cwd=study.parent, check=True, stdout=subprocess.DEVNULL)
    return page


def photograph_page(browser: Page, page: Path, to: Path) -> None:
    """Save what a page shows before anybody scrolls."""
    browser.open(page, width=SCREEN[0], height=SCREEN[1])
    browser.evaluate(SHOW_ALL)
    browser.photograph(to)


def photograph_dashboard(browser: Page, study: Path, to: Path) -> None:
    """Save what the dashboard of a study shows first."""
    dashboard = subprocess.Popen(
        (TUNER, "dashboard", study, "--port", "0", "--json"), stdout=subprocess.PIPE, text=True
    )
    try:
        text = "".join(dashboard.stdout.readline() for _ in range(3)) if dashboard.stdout else ""
        browser.go(json.loads(text)["url"], width=SCREEN[0], height=SCREEN[1])
        browser.evaluate(SHOWN)
        browser.evaluate(SETTLED)
        browser.photograph(to)
    finally:
        dashboard.terminate()
        dashboard.wait()


def photograph_lines(browser: Page, lines: list[str], folder: Path, to: Path) -> None:
    """Save lines of a terminal, with the codes of their colours."""
    console = Console(record=True, width=TERMINAL[0], file=StringIO())
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    page = folder / "terminal.html"
    page.write_text(console.export_html(theme=MONOKAI, inline_styles=True, code_format=TERMINAL_PAGE))
    width, height = TERMINAL[0] * SIGN_PX + 2 * EDGE_PX, len(lines) * LINE_PX + 2 * EDGE_PX
    browser.open(page, width=round(width), height=round(height))
    browser.photograph(to)


def read_live_display(folder: Path) -> list[str]:
    """Return what the live display shows in a search."""
    with playing(folder, TERMINAL, "quiet") as (terminal, trials):
        trials.write("\n")
        terminal.wait_for("1 of 20 trials", LOWEST)
        return [line for line in terminal.read("-e") if OLDER not in line]


def renew(browser: Page, study: Path, folder: Path) -> None:
    """Write the pictures of the documentation."""
    sweep = folder / "sweep.html"
    sweep.write_text(embed_script(render_sweep(make_sweep(RATES))))
    photograph_page(browser, write_page(study, folder), IMAGES / "report.png")
    photograph_page(browser, sweep, IMAGES / "sweep.png")
    photograph_dashboard(browser, study, IMAGES / "dashboard.png")
    photograph_lines(browser, read_live_display(folder), folder, IMAGES / "live.png")


def main() -> None:
    """Write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("studies", nargs="+", type=Path, metavar="STUDY", help="file of a finished study")
    parser.add_argument("--to", type=Path, help="folder for first screens, in place of docs/images")
    given = parser.parse_args()
    studies = [Path(os.path.realpath(study)) for study in given.studies]
    with TemporaryDirectory(prefix="pictures-") as name, open_browser(Path(name) / "profile") as browser:
        browser.prefer("light")
        if given.to is None:
            renew(browser, studies[0], Path(name))
            return
        given.to.mkdir(parents=True, exist_ok=True)
        for number, study in enumerate(studies, 1):
            photograph_page(browser, write_page(study, Path(name)), given.to / f"{number}-{study.stem}.png")


if __name__ == "__main__":
    main()
