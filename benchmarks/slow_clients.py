"""What the winner of a study serves beside slow clients, and without them, relative to the default.

    python -m benchmarks.slow_clients [--server apache] [--study FILE] [--pairs 6] [--least 0.8]

Without --study it runs a quick study first (five minutes). Then default and winner are started in pairs, in
balanced random order, pinned as in the study; each trial is loaded alone, beside 60 clients that send their
header a byte a second, beside 60 that read a big page slowly, and beside 500 idle kept connections. Exit
status 1 when the winner serves less than `--least` of the default beside slow clients.
"""

import argparse
import contextlib
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median

from tuner import Study, load_study, read
from tuner.campaign.prepare import Setup, prepare
from tuner.deploy.builtin_pages import BUILTIN_PAGE
from tuner.deploy.content import BUILTIN, INDEX
from tuner.deploy.deployment import Deployment
from tuner.deploy.sandbox import SandboxDeployment
from tuner.measure.window import run_window
from tuner.ports import Config
from tuner.statistics.confirmation.paired_gain import judge_pairs, pair_order

TOOL = Path(__file__).with_name("slow_load.py")
TUNER = Path(sys.executable).with_name("tuner")
SIDES = ("default", "winner")
BIG = "big.bin"
BIG_BYTES = 8 << 20
"""More than the kernel's buffers hold on both sides."""
LEAST_RPS = 1e-3
"""Stands for nothing, so that its logarithm exists."""
SETTLE_S = 2.0
"""For slow clients to take what they will hold."""
ALONE = "alone"

Goodput = Mapping[str, Sequence[Mapping[str, float]]]
"""Check load → pair by pair: side → requests per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """How many slow clients of each kind stand beside the load."""

    senders: int = 0
    readers: int = 0
    idle: int = 0

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the tool's options."""
        counts = {"--senders": self.senders, "--readers": self.readers, "--idle": self.idle}
        return tuple(word for name, count in counts.items() for word in (name, str(count)))


BESIDE: Mapping[str, Slow] = {
    ALONE: Slow(),
    "beside 60 slow senders": Slow(senders=60),
    "beside 60 slow readers": Slow(readers=60),
    "beside 500 idle connections": Slow(idle=500),
}


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description="Serve default and winner beside slow clients.")
    parser.add_argument("--server", default="apache")
    parser.add_argument("--study", type=Path, help="A finished study; a quick one is run when left out.")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--window", type=float, default=2.0, help="Seconds of each window.")
    parser.add_argument("--least", type=float, default=0.8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tuner-slow-") as folder:
        study = options.study or run_quick_study(options.server, Path(folder))
        settings = load_study(study)
        winner = read_winner(settings)
        if winner is None:
            print(f"{study}: nothing beat the default, so there is nothing to try beside slow clients")
            return 0
        setup = open_setup(settings, Path(folder))
        sides = {"default": setup.space.default(), "winner": winner}
        for name, config in sides.items():
            print(f"{name}: {'; '.join(setup.space.describe_capacity(config).values())}")
        found = measure(setup, sides, pairs=options.pairs, window_s=options.window)
    return judge(found, options.least)


def run_quick_study(server: str, folder: Path) -> Path:
    """Run one through the command line; exit 1 says that nothing beat the default."""
    study = folder / f"{server}.yaml"
    subprocess.run([TUNER, "init", server, "-o", study], check=True, stdout=subprocess.DEVNULL)
    completed = subprocess.run([TUNER, "run", study, "--preset", "quick"], check=False)
    if completed.returncode > 1:
        sys.exit(completed.returncode)
    return study


def read_winner(settings: Study) -> Config | None:
    """Return the confirmed configuration of a study."""
    winner = read(settings, with_explanation=False).summary.winner
    return None if winner is None else winner.config


def open_setup(settings: Study, folder: Path) -> Setup:
    """Prepare a study's target with a big page beside what it serves."""
    content = folder / "content"
    if settings.content == BUILTIN:
        content.mkdir()
        (content / INDEX).write_bytes(BUILTIN_PAGE)
    else:
        shutil.copytree(settings.path.parent / settings.content, content)
    (content / BIG).write_bytes(bytes(BIG_BYTES))
    return prepare(replace(settings, content=str(content)))


def measure(
    setup: Setup,
    sides: Mapping[str, Config],
    *,
    pairs: int,
    window_s: float,
    beside: Mapping[str, Slow] = BESIDE,
) -> Goodput:
    """Deploy both sides in pairs and load each trial under every check load."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in beside}
    for order in pair_order(pairs, Random(0), sides=tuple(sides)):  # noqa: S311 - an order, no secret
        pair = {side: measure_trial(setup, sides[side], window_s, beside) for side in order}
        for name, both in found.items():
            both.append({side: pair[side][name] for side in sides})
    return found


def measure_trial(
    setup: Setup, config: Config, window_s: float, beside: Mapping[str, Slow] = BESIDE
) -> dict[str, float]:
    """Return the goodput of one fresh trial under every check load."""
    goodput: dict[str, float] = {}
    with setup.target.deploy(config) as deployment:
        run_window(deployment, setup.load, window_s)
        for name, slow in beside.items():
            with slow_clients(deployment, slow, seconds=SETTLE_S + 10 * window_s):
                goodput[name] = run_window(deployment, setup.load, window_s).goodput_rps
    return goodput


@contextlib.contextmanager
def slow_clients(deployment: Deployment, slow: Slow, *, seconds: float) -> Iterator[None]:
    """Keep slow clients beside a deployment, on the load generator's CPUs; they end with the block."""
    if slow == Slow():
        yield
        return
    if not isinstance(deployment, SandboxDeployment):
        sys.exit("slow clients: they are for studies in a sandbox. Give one without `mode: managed`.")
    command = (sys.executable, "-I", "-S", str(TOOL), *slow.arguments, "--big", f"/{BIG}")
    process = deployment.sandbox.start(
        (*command, "--seconds", f"{seconds:g}"), cpus=deployment.load_places[0].cpus or None
    )
    try:
        time.sleep(SETTLE_S)
        if process.poll() is not None:
            sys.exit(f"slow clients: {process.output().decode(errors='replace')}")
        yield
    finally:
        process.stop(timeout_s=2.0)


def judge(found: Goodput, least: float) -> int:
    """Print goodput and ratios; return 1 when the winner serves too little beside slow clients."""
    print(f"{'':<28} {'default':>9} {'winner':>9}   winner/default")
    missed = False
    for name, pairs in found.items():
        default, winner = (median(pair[side] for pair in pairs) for side in SIDES)
        gain = judge_pairs([(log(pair["default"]), log(pair["winner"])) for pair in pairs])
        is_missed = name != ALONE and gain.ratio < least
        missed = missed or is_missed
        print(
            f"{name:<28} {default:>9,.0f} {winner:>9,.0f}   "
            f"{gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}]"
            + (f"  MISSED: less than {least:g}" if is_missed else "")
        )
    return int(missed)


def log(goodput_rps: float) -> float:
    """Return its logarithm; a server that answers nothing has one, too."""
    return math.log(max(goodput_rps, LEAST_RPS))


if __name__ == "__main__":
    sys.exit(main())
