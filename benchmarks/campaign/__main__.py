"""What quick studies find on drawn servers whose truth is known, with the real campaign on simulated time.

    python -m benchmarks.campaign --arm ours --out ours.jsonl [--servers 200] [--first 0] [--workers 1]
    python -m benchmarks.campaign --arm ours --optimizer tpe --out tpe.jsonl
    python -m benchmarks.campaign --arm ours --idle --servers 400 --out idle.jsonl     # no setting acts
    python -m benchmarks.campaign --compare benchmarks/campaign/today.jsonl ours.jsonl tpe.jsonl …

Results are appended to a file, one study a line; what is there is not played again. The first file of a
comparison is what the others are held against, on the servers that both have.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.campaign.play import OPTIMIZERS, Arm, Played, play
from benchmarks.campaign.table import compare

ARMS = {
    "ours": Arm(name="ours"),
    "ours-without-hints": Arm(name="ours-without-hints", knows_presets=False, knows_hints=False),
    "ours-without-liars": Arm(name="ours-without-liars", without_liars=True),
}


def read(path: Path) -> list[Played]:
    """Read results; none where there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Played(**json.loads(line)) for line in lines]


def run(arm: Arm, numbers: list[int], out: Path, *, idle: bool, workers: int) -> None:
    """Play the studies that the file lacks, and append what became of them."""
    kind = "idle" if idle else "drawn"
    known = {each.server for each in read(out) if (each.arm, each.kind) == (arm.name, kind)}
    left = [number for number in numbers if number not in known]
    with out.open("a") as file:
        for done, played in enumerate(_play_all(arm, left, idle=idle, workers=workers), 1):
            file.write(json.dumps(asdict(played)) + "\n")
            file.flush()
            print(f"{done}/{len(left)}  {_line(played)}", flush=True)


def _play_all(arm: Arm, numbers: list[int], *, idle: bool, workers: int) -> Iterator[Played]:
    if workers == 1:
        yield from (play(number, arm, idle=idle) for number in numbers)
        return
    with ProcessPoolExecutor(workers) as pool:
        for job in as_completed([pool.submit(play, number, arm, idle=idle) for number in numbers]):
            yield job.result()


def _line(played: Played) -> str:
    return (
        f"server {played.server}: {played.verdict}; gain {played.gain:.3f} of {played.best:.3f}, "
        f"{played.changes} changes, {played.idle} idle; {played.seconds:.0f} s, CPU {played.cpu_s:.1f} s"
    )


def main() -> int:
    """Play studies, or compare results; exit status 1 when a number to reach is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arm", choices=ARMS, default="ours")
    parser.add_argument("--label", help="name of the arm in the results")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="noisy-gp")
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--idle", action="store_true", help="servers whose settings do nothing")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+", metavar="FILE")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    if given.compare:
        return compare([(path.stem, read(path)) for path in given.compare])
    if given.out is None:
        parser.error("--out: name the file for the results")
    named = given.arm if given.optimizer == "noisy-gp" else f"{given.arm}, {given.optimizer}"
    arm = replace(ARMS[given.arm], name=given.label or named, optimizer=given.optimizer)
    numbers = list(range(given.first, given.first + given.servers))
    run(arm, numbers, given.out, idle=given.idle, workers=given.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
