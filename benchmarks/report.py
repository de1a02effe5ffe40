"""How long the page of a finished study takes to be made and to be shown: `make bench-report`.

    python -m benchmarks.report [STUDY] [--repeats 5]

Without a study, one is played whole on a simulated host and stored as a run stores it. Each command is a
process of its own and is timed from its beginning to its end, in turn with the others, so that whatever else
the machine does meets all of them alike. The first paint is what Chromium itself says of the page, and of the
documentation where `make docs` has built it, in a window of 1280 × 900. The page is printed on A4 as well.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import draw_server
from benchmarks.campaign.spaces import find_facts
from benchmarks.figures import Figure
from tests.integration.browser import Page, open_browser
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import open_on_disk
from tuner.campaign.campaign import run_campaign
from tuner.commands.page import NAME as PAGE
from tuner.commands.page import REPORT
from tuner.explain.cache import NAME as EXPLANATION
from tuner.space import facts_to_json
from tuner.study import Study, load_study
from tuner.study.cache import FOLDER
from tuner.study.facts import PRESET, SPACE_FACTS, VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS

SERVER = 0
"""A drawn one whose study finds a winner."""
PRESET_NAME = "standard"
MINUTES, TRIALS = 100, 160
"""More than the preset has: with these it makes about 200 trials."""
MOST_SHEETS = 6
TUNER = str(Path(sys.executable).with_name("tuner"))
SITE = Path(__file__).parents[1] / "site"
FIRST_PAINT = """
new Promise((resolve) => new PerformanceObserver((seen) => {
  for (const each of seen.getEntriesByName("first-contentful-paint")) resolve(each.startTime / 1000);
}).observe({type: "paint", buffered: true}))
"""
SILENT = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command, timed again and again."""

    name: str
    arguments: tuple[str, ...]
    forgets: tuple[str, ...] = ()
    """What is taken from the study's cache before."""
    most_s: float = math.inf
    """What it should take at the most."""
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


def play(folder: Path, number: int) -> Study:
    """Play the study of a drawn server and store it as a run does."""
    server = draw_server(number)
    host, plan = (
        DrawnHost(server=server, seed=number),
        PRESETS[PRESET_NAME].fit(minutes=MINUTES, trials=TRIALS),
    )
    experiment = set_up(server, Arm(name="ours"), host, folder, plan=plan, open_empty=open_on_disk)
    setup, storage = experiment.setup, experiment.storage
    storage.claim(FINGERPRINT, definition=setup.settings.definition(setup.space))
    storage.remember(SPACE_FACTS, facts_to_json(find_facts(server.family), {}))
    storage.remember(PRESET, PRESET_NAME)
    storage.remember(VERDICT, run_campaign(experiment))
    return setup.settings


def time_once(case: Case, study_folder: Path) -> None:
    """Run the command of a case and keep what it took."""
    for name in case.forgets:
        (study_folder / FOLDER / name).unlink(missing_ok=True)
    begun_s = time.perf_counter()
    process = os.posix_spawn(TUNER, (TUNER, *case.arguments), os.environ, file_actions=SILENT)
    _, status, used = os.wait4(process, 0)
    case.wall_s.append(time.perf_counter() - begun_s)
    case.cpu_s.append(used.ru_utime + used.ru_stime)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"tuner {' '.join(case.arguments)} failed. Run it by hand to see why.")


def measure(study: Study, repeats: int) -> Sequence[Case]:
    """Time each case so many times, in turn."""
    path = str(study.path)
    report, explain = ("report", path), ("explain", path, "--json")
    cases = (
        Case(name="tuner --version", arguments=("--version",)),
        Case(name="report, nothing kept", arguments=report, forgets=(PAGE, EXPLANATION)),
        Case(name="report, explanation kept", arguments=report, forgets=(PAGE,)),
        Case(name="report, as after a run", arguments=report, most_s=1.0),
        Case(name="explain --json, nothing kept", arguments=explain, forgets=(EXPLANATION,), most_s=2.0),
        Case(name="explain --json, as after a run", arguments=explain, most_s=2.0),
    )
    for _ in range(repeats):
        for case in cases:
            time_once(case, study.folder)
    return cases


def time_paint(browser: Page, page: Path, repeats: int) -> float:
    """Return the median time until the browser shows the first text or picture of a page."""
    times: list[float] = []
    for _ in range(repeats):
        browser.open(page, width=1280)
        times.append(browser.evaluate(FIRST_PAINT))
    return median(times)


def main() -> int:
    """Time the commands and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", nargs="?", type=Path, help="file of a finished study")
    parser.add_argument("--keep", type=Path, help="folder in which the played study stays")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="report-") as folder:
        kept = given.keep or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        study = load_study(given.study) if given.study else play(kept, SERVER)
        trials = open_storage(study.storage_url, study.name, create=False).trials()
        cases = measure(study, given.repeats)
        page = study.folder / REPORT
        print(f"{len(trials)} trials; medians of {given.repeats}; load {os.getloadavg()[0]:.1f} at the end\n")
        for case in cases:
            print(Figure(name=f"{case.name}, wall", seen=median(case.wall_s), unit="s", most=case.most_s))
            print(Figure(name=f"{case.name}, processor", seen=median(case.cpu_s), unit="s", most=case.most_s))
        print(Figure(name="page", seen=page.stat().st_size / 2**20, unit="MiB", most=3.0))
        with open_browser(Path(folder) / "profile") as browser:
            shown = [page, *filter(Path.exists, (SITE / "index.html", SITE / "reference/spaces/nginx.html"))]
            for each in shown:
                seen = time_paint(browser, each, given.repeats)
                print(Figure(name=f"first paint of {each.name}", seen=seen, unit="s", most=1.0))
            browser.open(page, width=1280)
            print(Figure(name="printed page", seen=browser.count_sheets(), unit="sheets", most=MOST_SHEETS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
