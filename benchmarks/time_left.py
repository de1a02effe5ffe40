"""How well a running study tells when it will end, on drawn servers with the real campaign on simulated time.

    python -m benchmarks.time_left [--servers 40] [--first 0] [--preset quick] [--idle] [--workers 1]

After the first fifth of a study, and at every trial that follows, the end that was told is held against the
real one: an error of 20 % means that a study of 300 s was expected to end 60 s earlier or later.
"""

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import draw_idle_server, draw_server
from tests.unit.simulation import Log, SimulatedClock
from tuner.campaign.campaign import run_campaign
from tuner.study.presets import PRESETS

SETTLED = 0.2
"""Share of a study after which what it tells is held against the truth."""
ALLOWED = 0.2
"""Error of the told end, as a share of the whole study."""


class Told(Log):
    """Writes down when the end was told for when, in seconds since the beginning."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self.clock, self.begun_s = clock, clock.monotonic()
        self.ends: list[tuple[float, float]] = []

    def time_left(self, seconds: float) -> None:
        now_s = self.clock.monotonic() - self.begun_s
        self.ends.append((now_s, now_s + seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What one study told of its end."""

    server: int
    verdict: str
    seconds: float
    budget_s: float
    errors: tuple[float, ...] = field(repr=False)
    """At each trial after the first fifth: told end over real one, less 1."""

    @property
    def first(self) -> float:
        """Return the error right after the first fifth."""
        return self.errors[0]

    @property
    def worst(self) -> float:
        """Return the greatest error from there on."""
        return max(self.errors, key=abs)

    @property
    def by_budget(self) -> float:
        """Return the error of taking the budget for the end."""
        return self.budget_s / self.seconds - 1


def play(number: int, *, preset: str, idle: bool) -> Foretold:
    """Play one study and read what it told."""
    logging.disable(logging.WARNING)
    server = draw_idle_server(number) if idle else draw_server(number)
    host, plan = DrawnHost(server=server, seed=number), PRESETS[preset]
    told = Told(host.clock)
    with TemporaryDirectory(prefix="time-left-") as folder:
        experiment = set_up(server, Arm(name="ours"), host, Path(folder), plan=plan)
        experiment.progress = told
        verdict = run_campaign(experiment)
    seconds = host.clock.monotonic() - told.begun_s
    errors = tuple(end / seconds - 1 for now_s, end in told.ends if now_s >= SETTLED * seconds)
    return Foretold(
        server=number, verdict=verdict, seconds=seconds, budget_s=60 * plan.minutes, errors=errors
    )  # fmt: skip


def print_table(studies: Sequence[Foretold]) -> None:
    """Print how many studies told their end well enough, and the errors."""
    rows = (
        ("told after the first fifth", [each.first for each in studies]),
        ("worst told from then on", [each.worst for each in studies]),
        ("the budget taken for the end", [each.by_budget for each in studies]),
    )
    print(f"\n| of {len(studies)} studies | within {ALLOWED:.0%} | median error | 90th percentile | worst |")
    print("|---|---|---|---|---|")
    for name, errors in rows:
        sizes = sorted(abs(each) for each in errors)
        within = sum(each <= ALLOWED for each in sizes)
        high = sizes[int(0.9 * (len(sizes) - 1))]
        print(f"| {name} | {within} | {median(sizes):.0%} | {high:.0%} | {sizes[-1]:.0%} |")


def main() -> int:
    """Play studies and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--idle", action="store_true", help="servers whose settings do nothing")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.servers)
    with ProcessPoolExecutor(given.workers) as pool:
        played = pool.map(partial(play, preset=given.preset, idle=given.idle), numbers)
        print_table(list(_each_printed(played)))
    return 0


def _each_printed(studies: Iterable[Foretold]) -> Iterable[Foretold]:
    for each in studies:
        print(
            f"server {each.server}: {each.verdict[:40]}; {each.seconds:.0f} s, told after a fifth "
            f"{each.first:+.0%}, worst {each.worst:+.0%}",
            flush=True,
        )
        yield each


if __name__ == "__main__":
    sys.exit(main())
