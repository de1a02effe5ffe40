"""What it costs to tune over SSH: starts of an installed nginx, here and over links of 1 and 100 ms.

    python -m benchmarks.ssh_overhead [--starts 12] [--preset quick | standard]

The same random configurations are started and loaded in the same way each time; the load comes from this
machine. Printed are the seconds of a start, its load included, and its requests over SSH (round trips).
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
CHECKS = 3


def make_starts(study: Path, count: int) -> dict[str, float]:
    """Make starts as a run makes them; give the figures."""
    from tuner.plan import PRESETS
    from tuner.records import Role
    from tuner.rig import prepare
    from tuner.settings import load_study
    from tuner.starter import Starter
    from tuner.storage import Opening, open_storage

    settings = load_study(study)
    settings.folder.mkdir(exist_ok=True)
    rng = Random(1)  # noqa: S311 - no secret
    rig = prepare(settings)
    storage = open_storage("sqlite://", settings.name)
    starter = Starter(rig=rig, plan=PRESETS[settings.preset], storage=storage, session="overhead")
    seconds, deploys, asked = [], [], []
    with rig.target.hold(print):
        for _ in range(count):
            point = {
                each.name: rng.choice(each.choices)
                if each.kind == "categorical"
                else each.low + (each.high - each.low) * rng.random()
                if each.kind == "float"
                else rng.randint(int(each.low), int(each.high))
                for each in rig.space.dimensions
            }
            config = rig.space.decode(point)
            before, began_s = requests_of(rig.host), time.monotonic()
            start = starter.make(Opening(role=Role.SEARCH, config=config, point=rig.space.encode(config)))
            # Noise makes windows be measured again: they are counted out.
            planned = starter.plan.windows[1]
            extra_s = sum(window.duration_s for window in start.windows[planned:])
            seconds.append(time.monotonic() - began_s - extra_s)
            windows = max(1, len(start.windows))
            asked.append((requests_of(rig.host) - before) * (planned + 1) / (windows + 1))
            deploys.append(start.timing.deploy_s)
    return {"start_s": median(seconds), "deploy_s": median(deploys), "requests": median(asked)}


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


def measure(study: Path, starts: int, home: Path, through: tuple[str, ...] = ()) -> dict[str, float]:
    """Make the starts in a process of their own."""
    command = [*through, sys.executable, "-m", "benchmarks.ssh_overhead", "--study", str(study)]
    environment = {**os.environ, "HOME": str(home), "TUNER_STATE": str(study.parent / "state")}
    done = subprocess.run(
        [*command, "--starts", str(starts)], env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all links one after the other."""
    parser = argparse.ArgumentParser(description="Measure what tuning over SSH costs.")
    parser.add_argument("--starts", type=int, default=12)
    parser.add_argument("--preset", default="quick", choices=("quick", "standard"))
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.study:
        print(json.dumps(make_starts(arguments.study, arguments.starts)))
        return
    own = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
    with study_file("local", arguments.preset) as study:
        local = measure(study, arguments.starts, Path.home(), (*own, "sh", "-euc", OWN_MACHINE, "own"))
    print(f"local           {local['start_s']:6.2f} s a start, deployed in {local['deploy_s']:.2f} s")
    for link_ms in (1, 100):
        with open_testbed() as bed:
            host = bed.add_host("web")
            host.install_nginx()
            bed.delay(host, round_trip_ms=link_ms)
            with study_file(host.ssh_url, arguments.preset) as study:
                took = check_s(study, {**os.environ, "HOME": str(bed.home)})
                found = measure(study, arguments.starts, bed.home)
        more_s = found["start_s"] - local["start_s"]
        print(
            f"SSH, {link_ms:3d} ms     {found['start_s']:6.2f} s a start, "
            f"deployed in {found['deploy_s']:.2f} s, "
            f"{found['requests']:.0f} requests; {more_s:+.2f} s a start ({more_s / local['start_s']:+.1%}); "
            f"tuner check {took:.2f} s"
        )


if __name__ == "__main__":
    main()
