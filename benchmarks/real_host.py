"""How far measurements on this very machine can be trusted: A/A tests, a busy neighbour.

Needs a machine on which nothing else runs, and about 35 minutes.
"""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from tuner import Study, load_study, read, run
from tuner.campaign.campaign import calibrate
from tuner.campaign.experiment import Experiment
from tuner.campaign.prepare import prepare
from tuner.campaign.progress import NullProgress
from tuner.campaign.stages.confirm import confirm, read_gain
from tuner.optimize.catalogue import make_optimizer
from tuner.records import Blame, Trial, Window
from tuner.report.wording import say_gain
from tuner.statistics.confirmation.paired_gain import Gain, judge_pairs
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS

TUNER = Path(sys.executable).with_name("tuner")
STUDY = """\
study: {name}
servers: [nginx]
space: [nginx, {{only: {parameters}}}]
load: {{generator: wrk, connections: 100, keepalive: true}}
budget: {{preset: quick}}
seed: {seed}
"""
HOG = """\
import time
time.sleep({wait_s})
end = time.monotonic() + {lasts_s}
while time.monotonic() < end: pass
"""
FEW = "[open_file_cache, open_file_cache_inactive, access_log_buffer, sendfile]"
ONE = "[open_file_cache]"
"""With one parameter every study ends with the same winner in effect, so that only measuring can differ: a
search that loses a third of its time finds less, which is no error of measurement."""
ITSELF_MINUTES = 3.0
HOG_BEGINS_S = 60.0
HOG_LASTS_S = PRESETS["quick"].minutes * 60 / 3


def write_study(folder: Path, name: str, *, parameters: str = FEW, seed: int = 1) -> Study:
    """Write a small study of nginx and load it."""
    path = folder / f"{name}.yaml"
    path.write_text(STUDY.format(name=name, parameters=parameters, seed=seed), encoding="utf-8")
    return load_study(path)


def confirm_itself(settings: Study) -> tuple[Gain, Sequence[Trial]]:
    """Calibrate, then confirm the default as if it had won."""
    settings.folder.mkdir()
    setup = prepare(settings)
    storage = open_storage(settings.storage_url, settings.name)
    storage.claim(setup.fingerprint, definition=settings.definition(setup.space))
    optimizer = make_optimizer(settings.optimizer, setup.space.encode(setup.space.default()))
    plan = PRESETS["quick"].fit(minutes=ITSELF_MINUTES, trials=None)
    campaign = Experiment(setup, plan, storage, optimizer, NullProgress(), session="itself")
    calibrate(campaign)
    confirm(campaign, campaign.default)
    gain = read_gain(storage, campaign.trials, campaign.default, settings.constraints)
    if gain is None:
        message = f"{settings.name}: the confirmation has no result. Is anything else running here?"
        raise SystemExit(message)
    return gain, campaign.trials


def measure_real_claims(times: int) -> Iterator[Figure]:
    """Run A/A tests on this machine, and count what the checks found."""
    claims = held = 0
    windows: list[Window] = []
    with tempfile.TemporaryDirectory(prefix="tuner-bench-") as folder:
        for seed in range(times):
            gain, trials = confirm_itself(write_study(Path(folder), f"itself-{seed}", seed=seed))
            claims += gain.verdict == "improved"
            held += gain.low <= 1 <= gain.high
            windows += [window for trial in trials for window in trial.windows]
            print(
                f"        A/A test: {gain.ratio:.3f}× [{gain.low:.3f}, {gain.high:.3f}], "
                f"{gain.pairs} pairs, {gain.verdict}",
                flush=True,
            )
    yield Figure(name=f'{times} real A/A confirmations that say "improved"', seen=claims, most=0)
    yield Figure(name=f"{times} real A/A intervals that hold 1", seen=held)
    share = 100 * sum(is_spoiled(window) for window in windows) / len(windows)
    yield Figure(name=f"of {len(windows)} real windows the environment spoiled", seen=share, unit="%", most=1)


def is_spoiled(window: Window) -> bool:
    """Say whether a check blames the environment."""
    return any(verdict.blame is Blame.ENVIRONMENT for verdict in window.verdicts)


def run_beside_hog(settings: Study) -> tuple[float, float]:
    """Run a study while another program uses all the CPU it can get for a third of the time.

    The study runs in a process of its own: what this one trials must not look like the tuner's. Returns when
    the hog began and ended, in seconds since the epoch.
    """
    began_s = time.time() + HOG_BEGINS_S
    with subprocess.Popen(
        [sys.executable, "-c", HOG.format(wait_s=HOG_BEGINS_S, lasts_s=HOG_LASTS_S)]
    ) as hog:
        try:
            subprocess.run([TUNER, "run", settings.path], check=False, stdout=subprocess.DEVNULL)
        finally:
            hog.kill()
    return began_s, began_s + HOG_LASTS_S


def measure_busy_neighbour(times: int) -> Iterator[Figure]:
    """Compare undisturbed studies with the same beside a program that hogs a CPU for a third of each.

    The pairs of all repetitions are judged together: of two honest 95 % intervals as wide as each other, one
    holds the middle of the other no more than 83 times of a hundred.
    """
    undisturbed: list[float] = []
    beside: list[float] = []
    windows: list[Window] = []
    with tempfile.TemporaryDirectory(prefix="tuner-bench-") as folder:
        for number in range(times):
            quiet = write_study(Path(folder), f"quiet-{number}", parameters=ONE)
            run(quiet)
            busy = write_study(Path(folder), f"busy-{number}", parameters=ONE)
            began_s, ended_s = run_beside_hog(busy)
            undisturbed += log_ratios(quiet)
            beside += log_ratios(busy)
            windows += [
                window
                for trial in read(busy).summary.trials
                for window in trial.windows
                if began_s < window.started_s < ended_s - window.duration_s
            ]
    if not undisturbed or not beside:
        yield Figure(name="studies beside a hog without a confirmed gain", seen=1, most=0)
        return
    caught = 100 * sum(map(is_spoiled, windows)) / len(windows) if windows else 100.0
    name = f"of {len(windows)} windows beside a hog the checks spoiled"
    yield Figure(name=name, seen=caught, unit="%", least=90)
    expected, gain = (judge_pairs([(0.0, each) for each in logs]) for logs in (undisturbed, beside))
    print(f"        undisturbed {say_gain(expected)}; beside a hog {say_gain(gain)}", flush=True)
    yield Figure(
        name="gain confirmed beside a hog, within the undisturbed interval", seen=gain.ratio,
        least=expected.low, most=expected.high,
    )  # fmt: skip


def log_ratios(settings: Study) -> list[float]:
    """Give the log ratio of every pair of a study's confirmation, and print what it says."""
    summary = read(settings, with_explanation=False).summary
    print(f"        {settings.name}: {say_gain(summary.gain) if summary.gain else 'nothing confirmed'}")
    return [math.log(ratio) for ratio in summary.pair_ratios.values()]
