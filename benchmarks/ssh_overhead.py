"""What it costs to tune over SSH: trials of an installed nginx, here and over links of 1 and 100 ms.

    python -m benchmarks.ssh_overhead [--trials 12] [--preset quick | standard]

The same random configurations are started and loaded in the same way each time; the load comes from this
machine. Printed are the seconds that a trial takes besides its load, what share of a trial that is more than
here with the windows of each preset, and the requests over SSH (round trips).
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

from tests.testbed.bed import open_testbed

STUDY = """\
study: overhead
servers: [nginx, sysctl]
space:
  - nginx
  - sysctl-net
  - {{only: [worker_processes, worker_connections, sendfile, keepalive_timeout, open_file_cache,
            net.core.somaxconn]}}
target: {{host: "{url}", mode: managed}}
load: {{generator: wrk, path: /, connections: 10}}
budget: {{preset: {preset}}}
"""
OWN_MACHINE = """
ip link set lo up
for directory in /etc/nginx /etc/systemd /etc/cron.d; do
  mount -t tmpfs copy /mnt && cp -a "$directory/." /mnt/ && mount --move /mnt "$directory"
done
mkdir -p /var/lib/tuner
for directory in /var/lib/tuner /var/log/nginx /var/lib/nginx /run; do mount -t tmpfs empty "$directory"; done
nginx
exec "$@"
"""
"""An installed nginx of its own in fresh mount, network and process namespaces: the local target."""
CHECKS = 5
WINDOW_S = 1.0


def make_trials(study: Path, count: int) -> dict[str, float]:
    """Make trials of so many windows as a run plans, whatever their noise; give medians."""
    from tuner.campaign.prepare import prepare
    from tuner.errors import TrialFailed
    from tuner.measure.window import run_window
    from tuner.study import load_study
    from tuner.study.presets import PRESETS

    settings = load_study(study)
    rng = Random(1)  # noqa: S311 - no secret
    setup = prepare(settings)
    windows = 1 + PRESETS[settings.preset].windows[1]
    outside, deploys, asked = [], [], []
    with setup.target.hold(print):
        while len(outside) < count:
            config = setup.space.decode(
                {
                    each.name: rng.choice(each.choices)
                    if each.kind == "categorical"
                    else each.low + (each.high - each.low) * rng.random()
                    if each.kind == "float"
                    else rng.randint(int(each.low), int(each.high))
                    for each in setup.space.dimensions
                }
            )
            before, began_s = requests_of(setup.host), time.monotonic()
            with contextlib.suppress(TrialFailed):
                with setup.target.deploy(config) as deployment:
                    deploys.append(time.monotonic() - began_s)
                    load_s = sum(
                        run_window(deployment, setup.load, WINDOW_S).duration_s for _ in range(windows)
                    )
                outside.append(time.monotonic() - began_s - load_s)
                asked.append(requests_of(setup.host) - before)
    return {
        "outside_s": median(outside), "deploy_s": median(deploys), "requests": median(asked),
        "windows": windows,
    }  # fmt: skip


def requests_of(host: object) -> int:
    """Tell how many requests went over SSH; a local host has none."""
    return int(getattr(host, "requests", 0))


def check_s(study: Path, environment: dict[str, str]) -> float:
    """Time `tuner check`, the quickest of a few."""
    tuner = Path(sys.executable).with_name("tuner")
    took = []
    for _ in range(CHECKS):
        began_s = time.monotonic()
        subprocess.run([tuner, "check", study], env=environment, check=True, capture_output=True)
        took.append(time.monotonic() - began_s)
    return min(took)


@contextlib.contextmanager
def study_file(url: str, preset: str) -> Iterator[Path]:
    """Write a study."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        path = Path(folder) / "overhead.yaml"
        path.write_text(STUDY.format(url=url, preset=preset))
        yield path


def measure(study: Path, trials: int, home: Path, through: tuple[str, ...] = ()) -> dict[str, float]:
    """Make the trials in a process of their own."""
    command = [*through, sys.executable, "-m", "benchmarks.ssh_overhead", "--study", str(study)]
    environment = {**os.environ, "HOME": str(home), "TUNER_STATE": str(study.parent / "state")}
    done = subprocess.run(
        [*command, "--trials", str(trials)], env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all links one after the other."""
    parser = argparse.ArgumentParser(description="Measure what tuning over SSH costs.")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--preset", default="quick", choices=("quick", "standard"))
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.study:
        print(json.dumps(make_trials(arguments.study, arguments.trials)))
        return
    own = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
    with study_file("local", arguments.preset) as study:
        local = measure(study, arguments.trials, Path.home(), (*own, "sh", "-euc", OWN_MACHINE, "own"))
    print(
        f"local           {local['outside_s']:.2f} s besides the load, deployed in {local['deploy_s']:.2f} s"
    )
    for link_ms in (1, 100):
        with open_testbed() as bed:
            host = bed.add_host("web")
            host.install_nginx()
            bed.delay(host, round_trip_ms=link_ms)
            with study_file(host.ssh_url, arguments.preset) as study:
                took = check_s(study, {**os.environ, "HOME": str(bed.home)})
                found = measure(study, arguments.trials, bed.home)
        more_s = found["outside_s"] - local["outside_s"]
        shares = ", ".join(
            f"{name} {more_s / (local['outside_s'] + trial_s):+.1%}" for name, trial_s in loads_s().items()
        )
        print(
            f"SSH, {link_ms:3d} ms     {found['outside_s']:.2f} s besides the load, "
            f"deployed in {found['deploy_s']:.2f} s; {more_s:+.2f} s a trial, {shares}; "
            f"{found['requests']:.0f} requests; tuner check {took:.2f} s",
            flush=True,
        )


def loads_s() -> dict[str, float]:
    """Tell for how long a trial is under load, by preset: warm-up and all its windows."""
    from tuner.study.presets import PRESETS

    return {
        name: PRESETS[name].warmup_s + PRESETS[name].windows[1] * PRESETS[name].window_s
        for name in ("quick", "standard")
    }


if __name__ == "__main__":
    main()
