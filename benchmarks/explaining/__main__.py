"""Explains quick studies of drawn servers whose truth is known, and counts what is true of it.

    python -m benchmarks.explaining --out explained.jsonl [--servers 200] [--first 0] [--keep DIR]
    python -m benchmarks.explaining --table explained.jsonl

Results are appended to a file, one study a line; what is there is not played again. With --keep the trials of
played studies are kept in a folder, so that explaining them anew takes a second each.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.explaining.judge import Judged, judge
from benchmarks.explaining.table import tell


def read(path: Path) -> list[Judged]:
    """Read results; none where there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Judged(**json.loads(line)) for line in lines]


def run(numbers: list[int], out: Path, *, workers: int, keep: Path | None) -> None:
    """Explain the studies that the file lacks, and append what is true of it."""
    known = {each.server for each in read(out)}
    left = [number for number in numbers if number not in known]
    with out.open("a") as file:
        for done, judged in enumerate(_judge_all(left, workers, keep), 1):
            file.write(json.dumps(asdict(judged)) + "\n")
            file.flush()
            print(f"{done}/{len(left)}  server {judged.server}: CPU {judged.cpu_s:.2f} s", flush=True)


def _judge_all(numbers: list[int], workers: int, keep: Path | None) -> Iterator[Judged]:
    if workers == 1:
        yield from (judge(number, keep) for number in numbers)
        return
    with ProcessPoolExecutor(workers) as pool:
        for job in as_completed([pool.submit(judge, number, keep) for number in numbers]):
            yield job.result()


def main() -> int:
    """Explain studies, or count; exit status 1 when a number to reach is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, metavar="FILE")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    if given.table:
        return tell(read(given.table))
    if given.out is None:
        parser.error("--out: name the file for the results")
    run(
        list(range(given.first, given.first + given.servers)),
        given.out,
        workers=given.workers,
        keep=given.keep,
    )
    return tell(read(given.out))


if __name__ == "__main__":
    sys.exit(main())
