"""What an earlier study is worth to a new one: true regret with and without it.

    python -m benchmarks.warm_start [--seeds N]

Each recording is split in two, every other line, and a forest fitted to each half: the same server twice,
with other luck. A study searches one half; another one, of the other half, begins with what the first found.
A liar's study swears by what was worst in it.
"""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optuna

from benchmarks.peers import Ours
from benchmarks.surfaces import FOLDER, Recorded
from tuner.campaign.warm_start import SHARE
from tuner.optimize import NoisyGPSampler

TRIALS = 40
LOOKS = (5, 10, 20, 40)
KINDS = ("nothing", "best first", "mixed", "liar: best first", "liar: mixed")
"""What the later study knows: nothing; what was best, which it tries first; all that was good as well."""
SURFACES: dict[tuple[Path, int], Recorded] = {}


def surface_of(path: Path, half: int) -> Recorded:
    """Give the surface of every other line of a recording."""
    if (path, half) not in SURFACES:
        SURFACES[path, half] = Recorded(path, first=half, every=2)
    return SURFACES[path, half]


def search(
    surface: Recorded, seed: int, *, first: Sequence[Mapping[str, Any]] = (), warm: Sequence[Any] = ()
) -> tuple[optuna.Study, list[float]]:
    """Search a surface; give the study and the regret after every trial."""
    ours = Ours(surface, NoisyGPSampler(seed=seed, warm=warm))
    for params in first:
        ours.study.enqueue_trial(params)
    rng, best = np.random.default_rng((seed, 1)), -np.inf
    regrets = []
    for _ in range(TRIALS):
        outcome = surface.start(dict(ours.ask()), rng, best)
        ours.tell(outcome)
        best = max(best, -np.inf if outcome.value is None else outcome.value)
        regrets.append(surface.best - surface.truth(ours.recommend() or {}))
    return ours.study, regrets


def play(path: Path, half: int, seed: int) -> list[list[float]]:
    """Search one half, then the other with each kind of knowledge; give the regrets of each kind."""
    study, _ = search(surface_of(path, half), 1000 + seed)
    ranked = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.value or -np.inf, reverse=True)
    count = round(SHARE * len(ranked))
    good = [trial.params for trial in ranked[:count]]
    bad = [trial.params for trial in ranked[-count:]]
    other = surface_of(path, 1 - half)
    known: list[Mapping[str, Any]] = [
        {}, {"first": good[:1]}, {"first": good[:1], "warm": good},
        {"first": bad[-1:]}, {"first": bad[-1:], "warm": bad},
    ]  # fmt: skip
    return [search(other, seed, **each)[1] for each in known]


def main() -> int:
    """Play all games and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.disable(logging.WARNING)
    paths = sorted(FOLDER.glob("*.jsonl"))
    for path in paths:
        for half in range(2):
            _ = surface_of(path, half).best  # before the workers are forked
    print(f"| known | {' | '.join(f'{look} trials' for look in LOOKS)} | ratio after 20 | after 40 |")
    print(f"|{'---|' * (len(LOOKS) + 3)}")
    with ProcessPoolExecutor() as workers:
        jobs = [
            workers.submit(play, path, half, seed)
            for seed in range(seeds)
            for path in paths
            for half in range(2)
        ]
        regrets = np.array([job.result() for job in jobs])
    logs = np.log(np.maximum(regrets, 1e-3))[:, :, [look - 1 for look in LOOKS]]
    for number, kind in enumerate(KINDS):
        means = [f"{mean:.3f}" for mean in np.exp(logs[:, number].mean(axis=0))]
        ratios = [_ratio(logs[:, number, look] - logs[:, 0, look]) for look in (-2, -1)]
        print(f"| {kind} | {' | '.join([*means, *ratios])} |", flush=True)
    return 0


def _ratio(differences: np.ndarray) -> str:
    """Give the ratio of geometric means with its 95 % interval, paired by seed."""
    middle, error = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
    low, high = np.exp([middle - 1.96 * error, middle + 1.96 * error])
    return f"{np.exp(middle):.2f} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
