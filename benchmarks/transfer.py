"""What a corpus of earlier studies is worth to a new one: true gain shipped with it, without, and with lies.

    python -m benchmarks.transfer --folder FOLDER [--servers 15] [--first 0] [--workers 1]
    python -m benchmarks.transfer --folder FOLDER --compare

For each drawn server twenty others are drawn that are alike to it, and a quick study of each is played on
simulated time and added to a corpus. Then the server itself is tuned by quick studies: without the corpus;
with the hints that `tuner init --corpus` takes from it; with those from a corpus in which all effects are
inverted; and from that of another server of the same kind, which is presented as alike.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.campaign_play import Arm, Played, play, run
from benchmarks.campaign_servers import draw_server
from benchmarks.campaign_spaces import find_facts
from benchmarks.transfer_servers import draw_alike
from tuner.campaign.confirm import read_gain
from tuner.corpus.collect import collect
from tuner.corpus.corpus_study import CorpusStudy
from tuner.corpus.files import read_corpus, write_corpus_study
from tuner.errors import UsageError
from tuner.space import facts_to_json
from tuner.study.facts import CONFIRMATION

EARLIER = 20
"""Studies of a corpus."""
FAMILIES = 5
"""After so many drawn servers comes one of the same kind."""
WITHOUT = "without"


def play_earlier(target: int, number: int, folder: Path) -> str:
    """Play a study of a server that is alike, and add it to the corpus of the target."""
    server = draw_alike(draw_server(target), number)
    experiment, verdict, _ = run(server, Arm(name="earlier"))
    storage, setup = experiment.storage, experiment.setup
    planned = storage.recall(CONFIRMATION)
    gain = read_gain(storage, storage.starts(), setup.space.default(), setup.settings.constraints)
    try:
        study = collect(
            setup.settings, setup.space, storage, setup.fingerprint,
            facts_to_json(find_facts(server.family), {}),
            gain=gain, winner=planned.config if planned else None,
        )  # fmt: skip
    except UsageError as error:  # a host that was too noisy to end a study
        return f"server {target}, alike {number}: {error}"
    study = replace(study, id=f"{target:06x}{number:06x}")
    write_corpus_study(study, folder / f"{target}")
    return f"server {target}, alike {number}: {verdict}"


def fill(targets: Sequence[int], folder: Path, *, workers: int) -> None:
    """Play the earlier studies that the folder lacks."""
    lacking = [
        (target, number)
        for target in targets
        for number in range(EARLIER)
        if not any((folder / f"{target}").glob(f"*-{target:06x}{number:06x}.json"))
    ]
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(play_earlier, target, number, folder) for target, number in lacking]
        for done, job in enumerate(as_completed(jobs), 1):
            print(f"{done}/{len(lacking)}  {job.result()}", flush=True)


def main() -> int:
    """Play studies, or compare results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--servers", type=int, default=15)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    targets = range(given.first, given.first + given.servers)
    fill(targets, given.folder, workers=given.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
