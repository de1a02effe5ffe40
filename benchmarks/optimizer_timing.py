"""Times our suggestions after many trials and prints what they take, as JSON: a process of its own."""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import optuna

from benchmarks.surfaces import recorded_surfaces
from tuner.optimize import NoisyGPSampler
from tuner.optimize.history import VARIANCE

REPEATS = 5


def time_at(study: optuna.Study, space: dict[str, optuna.distributions.BaseDistribution]) -> float:
    """Give the median milliseconds of some suggestions; each is told a failure, to be asked anew."""
    took = []
    for _ in range(REPEATS):
        moment = time.process_time()
        trial = study.ask(space)
        took.append(time.process_time() - moment)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return 1000 * statistics.median(took)


def peak_kib() -> int:
    """Give the most memory that this program had; getrusage(2) counts its parent's before the exec, too."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main(counts: Sequence[int]) -> None:
    """Fill studies with random trials of the largest recorded space, and ask."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = dict(max((surface.space for surface in recorded_surfaces()), key=len))
    rng = np.random.default_rng(0)
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize")
    sampler = NoisyGPSampler(seed=0)
    before = peak_kib()
    found = {}
    for count in counts:
        while len(random.trials) < count:
            trial = random.ask(space)
            trial.set_user_attr(VARIANCE, 0.001)
            random.tell(trial, float(rng.standard_normal()))
        study = optuna.create_study(sampler=sampler, direction="maximize")
        study.add_trials(random.trials)
        found[str(count)] = time_at(study, space)
    mib = (peak_kib() - before) / 1024
    print(json.dumps({"ms": found, "mib": mib}))


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
