"""How goodput changes with the age of a server: from which second on a window tells what lasts.

    python -m benchmarks.steady_state [--server nginx] [--starts 10] [--seconds 30] [--json FILE]

Starts the default and a preset of the server's space by turns, as a study does (same sandbox, same CPUs),
and loads each start without a pause, in windows of one second. Printed is, by the age at which a window
begins, the goodput relative to the same start's later half (geometric mean, with 95 % intervals over starts),
and the gain that a study would have found at that age.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, stdev

from scipy.special import stdtrit

from tuner import load_study
from tuner.campaign.prepare import Setup, prepare
from tuner.measure.window import run_window
from tuner.ports import Config
from tuner.statistics.paired_gain import pair_order

TUNER = Path(sys.executable).with_name("tuner")
FAST: Mapping[str, Config] = {
    "nginx": {"open_file_cache": 1000, "access_log_buffer": 64, "keepalive_requests": 100_000},
    "apache": {
        "ThreadsPerChild": 64, "Processes": 3, "StartServers": 1, "MinSpareThreads": 1,
        "MaxSpareThreads": 256, "EnableSendfile": True,
    },
}  # fmt: skip
"""Stands for a winner of each server."""
SIDES = ("default", "preset")
WINDOW_S = 1.0

Series = Sequence[Sequence[float]]
"""Start by start: log goodput by age, in windows."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Goodput over the age of a server.")
    parser.add_argument("--server", default="nginx", choices=FAST)
    parser.add_argument("--starts", type=int, default=10, help="Starts of each side.")
    parser.add_argument("--seconds", type=int, default=30, help="Windows of each start.")
    parser.add_argument("--json", type=Path, help="Keep the goodputs here.")
    options = parser.parse_args()
    found = measure(options.server, options.starts, options.seconds)
    if options.json:
        options.json.write_text(json.dumps(found))
    show(found)
    return 0


def measure(server: str, starts: int, windows: int) -> Mapping[str, Series]:
    """Load every start of both sides from its first second on; side → goodputs."""
    found: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="tuner-age-") as folder:
        study = Path(folder) / f"{server}.yaml"
        subprocess.run([TUNER, "init", server, "-o", study], check=True, stdout=subprocess.DEVNULL)
        setup = prepare(load_study(study))
        sides = {"default": setup.space.default(), "preset": setup.space.complete(FAST[server])}
        order = pair_order(starts, Random(0), sides=SIDES)  # noqa: S311 - an order, no secret
        for side in (side for pair in order for side in pair):
            found[side].append(measure_start(setup, sides[side], windows))
    return found


def measure_start(setup: Setup, config: Config, windows: int) -> list[float]:
    """Return the log goodput of one fresh start, second by second."""
    with setup.target.deploy(config) as deployment:
        return [
            math.log(max(run_window(deployment, setup.load, WINDOW_S).goodput_rps, 1.0))
            for _ in range(windows)
        ]


def show(found: Mapping[str, Series]) -> None:
    """Print goodput by age, relative to the later half, and the gain by age."""
    print(f"{'age, s':>7}  {'default, of what lasts':<26}{'preset, of what lasts':<26}preset/default")
    for age in range(len(found["default"][0])):
        of_sides = [
            estimate([start[age] - fmean(start[len(start) // 2 :]) for start in found[side]])
            for side in SIDES
        ]
        pairs = zip(found["default"], found["preset"], strict=True)
        gain = estimate([preset[age] - default[age] for default, preset in pairs])
        print(f"{age:>7}  {of_sides[0]:<26}{of_sides[1]:<26}{gain}")


def estimate(logs: Sequence[float]) -> str:
    """Return the geometric mean of ratios with its 95 % interval (Student's t over starts)."""
    mean = fmean(logs)
    half = float(stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]"


if __name__ == "__main__":
    sys.exit(main())
