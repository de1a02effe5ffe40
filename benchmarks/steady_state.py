"""How goodput changes with the age of a server: from which second on a window tells what lasts.

    python -m benchmarks.steady_state [--server nginx apache] [--trials 10] [--seconds 30] [--json FILE]

Starts the default and settings that are fast by turns, as a study does (same sandbox, same CPUs),
and loads each trial without a pause, in windows of one second from the first second on. Windows that the
environment or the load generator spoiled are left out. Printed is, for groups of ages, how many percent the
goodput of both sides, and their ratio, differ from those of the same trials in the last group, and the ratio
that a study would have found at those ages: geometric means with 95 % intervals over trials. The file has
every window; it is written after each trial.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import fmean, stdev

from scipy.special import stdtrit

from tuner import load_study
from tuner.campaign.prepare import Setup, prepare
from tuner.measure.window import run_window
from tuner.ports import Config
from tuner.statistics.confirmation.paired_gain import pair_order

TUNER = Path(sys.executable).with_name("tuner")
FAST: Mapping[str, Config] = {
    "nginx": {"open_file_cache": 1000, "access_log_buffer": 64, "keepalive_requests": 100_000},
    "apache": {
        "ThreadsPerChild": 64, "Processes": 3, "StartServers": 1, "MinSpareThreads": 1,
        "MaxSpareThreads": 256, "EnableSendfile": True,
    },
}  # fmt: skip
"""Stands for a winner of each server."""
SIDES = ("default", "fast")
WINDOW_S = 1.0
EDGES = (0, 1, 2, 3, 5, 10, 30)
"""Seconds between which ages are put together; what is older belongs to the last group."""
LEAST_TRIALS = 2
"""Without a second trial, no spread is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One window of a trial."""

    age_s: float
    """Seconds of load before it."""
    log_goodput: float
    spoiled: tuple[str, ...]
    """Why it is left out; empty when it counts."""


Series = Sequence[Sequence[Slice]]
"""The windows of each trial of a side, in order."""


def main() -> int:
    """Measure, keep and print, server by server."""
    parser = argparse.ArgumentParser(description="Goodput over the age of a server.")
    parser.add_argument("--server", default=list(FAST), choices=FAST, nargs="+")
    parser.add_argument("--trials", type=int, default=10, help="Trials of each side.")
    parser.add_argument("--seconds", type=int, default=30, help="Windows of each trial.")
    parser.add_argument("--json", type=Path, help="Keep every window here.")
    options = parser.parse_args()
    kept: dict[str, Mapping[str, Series]] = {}

    def keep(server: str, found: Mapping[str, Series]) -> None:
        kept[server] = found
        if options.json:
            options.json.write_text(json.dumps(kept, default=asdict))

    for server in options.server:
        found = measure(server, options.trials, options.seconds, keep)
        print(f"{server}, {options.trials} trials of each")
        print("\n".join(table(found)), flush=True)
    return 0


def measure(
    server: str, trials: int, windows: int, keep: Callable[[str, Mapping[str, Series]], None]
) -> Mapping[str, Series]:
    """Load every trial of both sides from its first second on; `keep` gets what there is after each."""
    found: dict[str, list[list[Slice]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="tuner-age-") as folder:
        study = Path(folder) / f"{server}.yaml"
        subprocess.run([TUNER, "init", server, "-o", study], check=True, stdout=subprocess.DEVNULL)
        setup = prepare(load_study(study))
        sides = {"default": setup.space.default(), "fast": setup.space.complete(FAST[server])}
        order = pair_order(trials, Random(0), sides=SIDES)  # noqa: S311 - an order, no secret
        for side in (side for pair in order for side in pair):
            found[side].append(measure_trial(setup, sides[side], windows))
            keep(server, found)
    return found


def measure_trial(setup: Setup, config: Config, windows: int) -> list[Slice]:
    """Return the windows of one fresh trial, second by second."""
    slices: list[Slice] = []
    age_s = 0.0
    with setup.target.deploy(config) as deployment:
        for _ in range(windows):
            window = run_window(deployment, setup.load, WINDOW_S)
            reasons = () if window.is_valid else tuple(verdict.check for verdict in window.verdicts)
            slices.append(Slice(age_s=age_s, log_goodput=window.log_goodput, spoiled=reasons))
            age_s += window.duration_s
    return slices


def table(found: Mapping[str, Series]) -> list[str]:
    """Return a line for each group of ages: changes of both sides and of their ratio, and the ratio."""
    sides = [[group_means(trial) for trial in found[side]] for side in SIDES]
    ratios = [subtract(fast, default) for default, fast in zip(*sides, strict=True)]
    last = max((group for trial in ratios for group in trial), default=-1)
    lines = [line("age, s", "default, %", "fast, %", "their ratio, %", "their ratio")]
    for group in range(last + 1):
        changes = [say_percent(differences(each, group, last)) for each in (*sides, ratios)]
        ratio = say_ratio([trial[group] for trial in ratios if group in trial])
        lines.append(line(f"{EDGES[group]}–{EDGES[group + 1]}", *changes, ratio))
    slices = [each for side in SIDES for trial in found[side] for each in trial]
    left_out = sum(bool(each.spoiled) for each in slices)
    return [*lines, f"{left_out} of {len(slices)} windows were spoiled and are left out"]


def line(age: str, *cells: str) -> str:
    """Return one line of the table."""
    return f"{age:<7}" + "".join(f"{cell:<22}" for cell in cells).rstrip()


def group_means(trial: Sequence[Slice]) -> dict[int, float]:
    """Return the mean log goodput of each group of ages in which a trial has a window that counts."""
    groups: dict[int, list[float]] = {}
    for each in trial:
        if not each.spoiled:
            groups.setdefault(group_of(each.age_s), []).append(each.log_goodput)
    return {group: fmean(logs) for group, logs in groups.items()}


def group_of(age_s: float) -> int:
    """Return the number of the group of an age; generators are some milliseconds off their second."""
    older = sum(round(age_s) >= edge for edge in EDGES) - 1
    return min(older, len(EDGES) - 2)


def subtract(fast: Mapping[int, float], default: Mapping[int, float]) -> dict[int, float]:
    """Return the log ratio of a pair in the groups that both of its trials have."""
    return {group: fast[group] - default[group] for group in fast.keys() & default.keys()}


def differences(trials: Sequence[Mapping[int, float]], group: int, last: int) -> list[float]:
    """Return how far a group is from the last, in each trial that has both."""
    return [trial[group] - trial[last] for trial in trials if group in trial and last in trial]


def estimate(logs: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the geometric mean of ratios with its 95 % interval (Student's t over trials)."""
    if len(logs) < LEAST_TRIALS:
        return None
    mean = fmean(logs)
    half = float(stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def say_percent(logs: Sequence[float]) -> str:
    """Write a change in percent: -3.1 [-5.0, -1.2]."""
    found = estimate(logs)
    if found is None:
        return "too few trials"
    mean, low, high = (100 * (each - 1) for each in found)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def say_ratio(logs: Sequence[float]) -> str:
    """Write a ratio: 1.31 [1.27, 1.35]."""
    found = estimate(logs)
    return "too few trials" if found is None else "{:.2f} [{:.2f}, {:.2f}]".format(*found)


if __name__ == "__main__":
    sys.exit(main())
