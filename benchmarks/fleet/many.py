"""What does a controller of 1,000 hosts take? `make bench-fleet` counts memory and what is lost.

    python -m benchmarks.fleet.many [--hosts 1000] [--seconds 120]

One controller drives simulated targets over the real engine: each measures the default, and configurations
that a model chooses. Exit status 1 where it takes more memory than wanted, or a trial is lost.
"""

import argparse
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from benchmarks.fleet.scaling import PATIENCE_S, SERVER, drive, form
from benchmarks.fleet.targets import name_hosts, open_targets
from tuner.commands.fleet.engine import open_engine
from tuner.records import State
from tuner.study.open_storage import open_storage

MOST_MIB = 600.0


def main() -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    hosts = name_hosts(options.hosts)
    with tempfile.TemporaryDirectory() as folder, open_engine(PATIENCE_S) as engine:
        team, lanes = form(engine, hosts, Path(folder), "standard", there=0)
        with open_targets(engine, hosts, SERVER):
            connected_mib = peak_mib()
            driving = threading.Thread(target=drive, args=(team, lanes))
            driving.start()
            time.sleep(options.seconds)
            team.stop(KeyboardInterrupt())
            driving.join()
        trials = open_storage(f"sqlite:///{folder}/study.db", "fleet", create=False).trials()
    ended = Counter(trial.host for trial in trials if trial.counts)
    lost = [trial for trial in trials if trial.state is State.RUNNING]
    print(
        f"{len(hosts)} hosts: {len(ended)} have measured, {sum(ended.values())} trials in "
        f"{options.seconds:.0f} s; controller {connected_mib:.0f} MiB with all connected, "
        f"{peak_mib():.0f} at the most; {len(lost)} trials without an outcome"
    )
    return int(peak_mib() > MOST_MIB or bool(lost))


def peak_mib() -> float:
    """Return the memory of this process, at the most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
