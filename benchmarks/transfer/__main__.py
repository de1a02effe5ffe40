"""What a corpus of earlier studies is worth to a new one: true gain shipped with it, without, and with lies.

    python -m benchmarks.transfer --folder FOLDER [--servers 15] [--first 0] [--workers 1]
    python -m benchmarks.transfer --folder FOLDER --compare

For each drawn server twenty others are drawn that are alike to it, and a quick study of each is played on
simulated time and added to a corpus. Then the server itself is tuned by quick studies (300 seconds): without
the corpus; with the hints that `tuner init --corpus` takes from it; with those from a corpus in which every
gain is a loss and every loss a gain; and from that of another server of the same kind, which is presented as
alike. Two more begin with what five of the studies found, as `warm_start:` does, true and inverted. All of
them know what experts say; two more, with and without the corpus, do not. What is there is not played again.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.campaign.play import Arm, Played, as_it_is, play, run
from benchmarks.campaign.servers import draw_server
from benchmarks.campaign.spaces import FAMILIES, find_facts
from benchmarks.transfer.servers import draw_alike
from tuner import __version__
from tuner.campaign.experiment import Experiment
from tuner.campaign.stages.confirm import read_gain
from tuner.campaign.warm_start import SHARE
from tuner.corpus.collect import collect
from tuner.corpus.corpus_study import CorpusStudy, Tried
from tuner.corpus.files import read_corpus, write_corpus_study
from tuner.corpus.proposals import HintProposal, find_alike, propose
from tuner.corpus.surrogate import Surrogate, observe_study
from tuner.errors import UsageError
from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.optimizer import Earlier, Point
from tuner.space import Hint, Space, facts_to_json
from tuner.space.fitting import fit_into
from tuner.study.facts import CONFIRMATION

EARLIER = 20
"""Studies of a corpus."""
RESULTS = "results.jsonl"
WITHOUT, WITH, INVERTED, UNRELATED = "without", "with", "inverted", "unrelated"
WARM, WARM_INVERTED = "warm start", "warm start, inverted"
BLIND, BLIND_WITH = "no experts, without", "no experts, with"
BASES = {
    WITH: WITHOUT, INVERTED: WITHOUT, UNRELATED: WITHOUT, WARM: WITHOUT, WARM_INVERTED: WITHOUT,
    BLIND_WITH: BLIND,
}  # fmt: skip
"""Arm → the one without a corpus that it is held against."""
WANTED = {WITH: 1.15, INVERTED: 0.97, UNRELATED: 0.97}
"""Arm → mean gain that it ships at the least, over that without a corpus."""
ARMS = (WITHOUT, WITH, INVERTED, UNRELATED, WARM, WARM_INVERTED, BLIND, BLIND_WITH)
WARM_STUDIES = 5
"""That a study begins with: the best of each is tried, and nobody names twenty."""
RESAMPLES = 10_000


def play_earlier(target: int, number: int, folder: Path) -> str:
    """Play a study of a server that is alike, and add it to the corpus of the target."""
    server = draw_alike(draw_server(target), number)
    experiment, verdict, _ = run(server, Arm(name="earlier"))
    storage, setup = experiment.storage, experiment.setup
    planned = storage.recall(CONFIRMATION)
    gain = read_gain(storage, storage.trials(), setup.space.default(), setup.settings.constraints)
    told = f"server {target}, alike {number}"
    try:
        study = collect(
            setup.settings, setup.space, storage, setup.fingerprint,
            facts_to_json(find_facts(server.family), {}),
            gain=gain, winner=planned.config if planned else None, version=__version__,
        )  # fmt: skip
    except UsageError as error:  # its host was too noisy to measure the default
        return f"{told}: {error}"
    write_corpus_study(replace(study, id=_name(target, number)), folder / f"{target}")
    return f"{told}: {verdict}"


def _name(target: int, number: int) -> str:
    """Return what a study is called in the corpus, the same each time."""
    return f"{target:06x}{number:06x}"


def fill(targets: Iterable[int], folder: Path, *, workers: int) -> None:
    """Play the earlier studies that the folder lacks."""
    lacking = [
        (target, number)
        for target in targets
        for number in range(EARLIER)
        if not any((folder / f"{target}").glob(f"*-{_name(target, number)}.json"))
    ]
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(play_earlier, target, number, folder) for target, number in lacking]
        for done, job in enumerate(as_completed(jobs), 1):
            print(f"{done}/{len(lacking)}  {job.result()}", flush=True)


# The studies themselves


def play_arm(target: int, arm: str, folder: Path, servers: int) -> Played:
    """Play a study of the target with what an arm knows of it; `servers` are there in all."""
    tuner = Arm(name=arm, knows_hints=arm not in {BLIND, BLIND_WITH})
    if arm in {WARM, WARM_INVERTED}:
        corpus = read_corpus(folder / f"{target}")[:WARM_STUDIES]
        studies = [*map(invert, corpus)] if arm == WARM_INVERTED else [*corpus]
        return play(target, tuner, equip=partial(_warm, studies))
    return play(target, tuner, advise=_adviser(target, arm, folder, servers))


def _adviser(target: int, arm: str, folder: Path, servers: int) -> Callable[[Space], Space]:
    if arm in {WITHOUT, BLIND}:
        return as_it_is
    source = (target + len(FAMILIES)) % servers if arm == UNRELATED else target
    corpus = read_corpus(folder / f"{source}")
    return partial(_advise, [*map(invert, corpus)] if arm == INVERTED else corpus)


def _advise(corpus: Sequence[CorpusStudy], space: Space) -> Space:
    """Return a space with the hints that a corpus gives to a host like those in it."""
    alike = find_alike(corpus, corpus[0].surroundings, corpus[0].metric, space)
    return with_proposals(space, propose(alike, space))


def with_proposals(space: Space, proposals: Sequence[HintProposal]) -> Space:
    """Return a space with these hints in place of its own of the same parameters."""
    told = {each.parameter: Hint(odds=each.odds, value=each.value, source="corpus") for each in proposals}
    parameters = tuple(
        replace(each, hint=told[each.name], is_told=True, own_hint=each.hint) if each.name in told else each
        for each in space.parameters
    )
    free = space.unguarded
    return replace(space, parameters=parameters, unguarded=free and with_proposals(free, proposals))


def _warm(studies: Sequence[CorpusStudy], experiment: Experiment) -> None:
    """Let a study begin with what others found."""
    space = experiment.setup.space
    earlier = [each for study in studies if (each := _as_earlier(study, space)) is not None]
    default = space.encode(space.default())
    experiment.optimizer = make_optimizer(experiment.setup.settings.optimizer, default, earlier=earlier)


def _as_earlier(study: CorpusStudy, space: Space) -> Earlier | None:
    """Return what a study offers, by what its trials showed; None where nothing beat its default."""
    better = [each for each in study.tried if each.is_feasible and (each.log_gain or 0.0) > 0]
    better.sort(key=lambda each: -(each.log_gain or 0.0))
    configs = [fit_into(space, {**study.defaults, **each.changes}) for each in better]
    if not configs:
        return None
    surrogate = Surrogate.of(space, observe_study(study, space))

    def predict(points: Sequence[Point]) -> np.ndarray:
        return surrogate.gains([space.decode(point) for point in points], space.default())[0]

    good = configs[: max(1, round(SHARE * len(study.tried)))]
    return Earlier(good=tuple(map(space.encode, good)), likeness=1.0, predict=predict)


def invert(study: CorpusStudy) -> CorpusStudy:
    """Return a study that swears by what was worst in it."""
    return replace(study, tried=tuple(map(_invert, study.tried)), shipped=None)


def _invert(tried: Tried) -> Tried:
    return replace(tried, log_gain=None if tried.log_gain is None else -tried.log_gain)


def play_arms(targets: Sequence[int], folder: Path, servers: int, *, workers: int) -> None:
    """Play the studies of the targets that the results lack."""
    known = {(each.server, each.arm) for each in read_results(folder)}
    lacking = [(each, arm) for each in targets for arm in ARMS if (each, arm) not in known]
    with ProcessPoolExecutor(workers) as pool, (folder / RESULTS).open("a") as file:
        jobs = [pool.submit(play_arm, target, arm, folder, servers) for target, arm in lacking]
        for done, job in enumerate(as_completed(jobs), 1):
            played = job.result()
            file.write(json.dumps(asdict(played)) + "\n")
            file.flush()
            told = f"server {played.server}, {played.arm}: {played.verdict}"
            print(f"{done}/{len(lacking)}  {told}; gain {played.gain:.3f} of {played.best:.3f}", flush=True)


def read_results(folder: Path) -> list[Played]:
    """Read results; none where there is no file."""
    path = folder / RESULTS
    return [Played(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


# What came of it


def compare(results: Sequence[Played]) -> int:
    """Print the table over the servers that all arms have; return 1 when a number to reach is missed."""
    gains: dict[int, dict[str, Played]] = {}
    for each in results:
        gains.setdefault(each.server, {})[each.arm] = each
    whole = [arms for arms in gains.values() if len(arms) == len(ARMS)]
    if not whole:
        print("No server has all arms yet.")
        return 1
    print(f"{len(whole)} servers, {EARLIER} earlier studies each\n")
    print("| corpus | log gain shipped | of the best | over without [95 %] | wanted | claims | idle lines |")
    print("|---|---|---|---|---|---|---|")
    rows = {arm: [arms[arm] for arms in whole] for arm in ARMS}
    missed = [arm for arm in WANTED if _compare_arm(rows[arm], rows[BASES[arm]])[0] < WANTED[arm]]
    for arm, own in rows.items():
        print(_row(arm, own, rows[BASES[arm]] if arm in BASES else None))
    return int(bool(missed))


def _row(arm: str, own: Sequence[Played], base: Sequence[Played] | None) -> str:
    shipped, best = (sum(getattr(each, name) for each in own) for name in ("gain", "best"))
    ratio = "" if base is None else "{:.2f} [{:.2f}, {:.2f}]".format(*_compare_arm(own, base))
    wanted = f"≥ {WANTED[arm]:.2f}" if arm in WANTED else ""
    claimed = sum(each.claimed for each in own)
    idle = sum(each.idle for each in own) / max(1, claimed)
    cells = (
        arm, f"{shipped / len(own):.3f}", f"{shipped / best:.0%}", ratio, wanted,
        f"{claimed} of {len(own)}", f"{idle:.2f}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _compare_arm(own: Sequence[Played], base: Sequence[Played]) -> tuple[float, float, float]:
    return ratio_of_means([each.gain for each in own], [each.gain for each in base])


def ratio_of_means(shipped: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of two means over the same servers, with its 95 % interval by resampling servers."""
    own, other = np.array(shipped), np.array(base)
    rows = np.random.default_rng(0).integers(len(own), size=(RESAMPLES, len(own)))
    ratios = own[rows].mean(axis=1) / np.maximum(other[rows].mean(axis=1), 1e-9)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(own.mean() / max(other.mean(), 1e-9)), float(low), float(high)


def main() -> int:
    """Play studies, or compare results; exit status 1 when a number to reach is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--servers", type=int, default=15)
    parser.add_argument("--first", type=int, default=0, help="only the servers from here on are played")
    parser.add_argument("--last", type=int, help="and up to here")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--fill", action="store_true", help="play the earlier studies alone")
    parser.add_argument("--compare", action="store_true", help="play nothing")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    targets = range(given.first, given.servers if given.last is None else given.last + 1)
    if not given.compare:
        fill(range(given.servers) if not given.fill else targets, given.folder, workers=given.workers)
    if not given.compare and not given.fill:
        play_arms(targets, given.folder, given.servers, workers=given.workers)
    return compare(read_results(given.folder))


if __name__ == "__main__":
    sys.exit(main())
