"""A managed run without an end: one trial after the other, of random configurations, until it is stopped.

    python -m benchmarks.faults.run STUDY

It is what `tuner run` is between its decisions: the same lock, target, lease, trials and storage. Noise of
the machine does not end it, so that many can run side by side.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

from tuner.campaign.prepare import prepare
from tuner.campaign.trial_runner import TrialRunner
from tuner.errors import TunerError
from tuner.interrupts import signals_interrupt
from tuner.records import Role
from tuner.study import load_study
from tuner.study.lock import locked
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS
from tuner.study.storage import Opening


def main() -> None:
    """Run the study that the command line names; end as `tuner` does."""
    try:
        make_trials(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
    except TunerError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def make_trials(path: Path) -> None:
    """Make trials until somebody or something ends it."""
    settings = load_study(path)
    rng = Random(os.getpid())  # noqa: S311 - no secret
    with locked(settings), signals_interrupt():
        setup = prepare(settings)
        storage = open_storage(settings.storage_url, settings.name)
        storage.claim(setup.fingerprint, definition=settings.definition(setup.space))
        # Short, for nobody looks at what is measured: more changes and more windows are at stake.
        plan = replace(
            PRESETS["quick"].fit(minutes=1, trials=1), window_s=0.4, warmup_s=0.4, warmup_max_s=0.8
        )
        session = f"{int(time.time())}-{os.getpid()}"
        runner = TrialRunner(setup=setup, plan=plan, storage=storage, session=session)
        with setup.target.hold(print):
            while True:
                point = {
                    each.name: rng.choice(each.choices)
                    if each.kind == "categorical"
                    else _draw(rng, each.low, each.high, whole=each.kind == "int")
                    for each in setup.space.dimensions
                }
                config = setup.space.decode(point)
                opening = Opening(role=Role.SEARCH, config=config, point=setup.space.encode(config))
                trial = runner.make(opening)
                print(trial.state, trial.failure, len(trial.windows), flush=True)


def _draw(rng: Random, low: float, high: float, *, whole: bool) -> int | float:
    return rng.randint(int(low), int(high)) if whole else rng.uniform(low, high)


if __name__ == "__main__":
    main()
