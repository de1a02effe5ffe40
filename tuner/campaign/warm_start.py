"""What earlier studies of the same servers found, for a new one to begin with."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tuner.corpus.collect import describe_surroundings
from tuner.corpus.corpus_study import Surroundings
from tuner.corpus.likeness import likeness
from tuner.errors import UsageError
from tuner.optimize.optimizer import Earlier, Point
from tuner.space import Space
from tuner.space.fitting import fit_into
from tuner.statistics.observations import Array
from tuner.statistics.posterior import Posterior
from tuner.statistics.ranking import rank
from tuner.study import Study, load_study
from tuner.study.facts import FINGERPRINT, SPACE_FACTS
from tuner.study.folder import require_own
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage

SHARE = 0.2
"""Of the configurations of an earlier study, so many of the best are good."""


def read_earlier(
    settings: Study,
    space: Space,
    *,
    here: Surroundings | None = None,
) -> tuple[Earlier, ...]:
    """Read the earlier studies that a study names; the most alike first.

    Their values are pulled into today's bounds; parameters and choices that this space lacks are left out.
    A study that found nothing better than its default has nothing to offer.

    Args:
        settings: the study.
        space: that it searches.
        here: its host and load; None counts every earlier study as alike.

    Raises:
        UsageError: an earlier study cannot be read, is of other servers, or is this one.
    """
    found = []
    for path in settings.warm_start:
        where = f"{settings.path}: warm_start: {path}"
        earlier = load_earlier(settings, path)
        if path.resolve() == settings.path.resolve():
            raise UsageError(
                f"{where}: this entry names your study itself. Leave this entry out: a run resumes its own "
                "study anyway."
            )
        strange = sorted(set(earlier.servers) - set(settings.servers))
        if strange:
            raise UsageError(
                f"{where}: the study in this entry tuned {', '.join(strange)}, which your study does not "
                "tune. Leave this entry out."
            )
        read = _read(earlier, space, here)
        found += [] if read is None else [read]
    return tuple(sorted(found, key=lambda each: -each.likeness))


def load_earlier(settings: Study, path: Path) -> Study:
    """Load the file of an earlier study. Raises UsageError where it is not there, or is none."""
    if not path.exists():
        raise UsageError(
            f"{settings.path}: warm_start: {path}: the file does not exist. Name the file of an earlier "
            "study, or leave this entry out."
        )
    return load_study(path)


def _read(earlier: Study, space: Space, here: Surroundings | None) -> Earlier | None:
    """Return what a study offers, by posterior mean; None where nothing beat its default."""
    require_own(earlier.folder)
    storage = open_storage(earlier.storage_url, earlier.name, create=False)
    trials = [replace(trial, config=fit_into(space, trial.config)) for trial in storage.trials()]
    entries = rank(space, trials, earlier.constraints).entries
    better = [entry.config for entry in entries if entry.posterior.log_ratio > 0]
    # What experts say of the new space is no finding of the old study.
    posterior = Posterior.fit(space, trials)
    if not better or posterior is None:
        return None
    good = better[: max(1, round(SHARE * len(entries)))]
    return Earlier(
        good=tuple(map(space.encode, good)),
        likeness=_compare_hosts(storage, here),
        predict=partial(_predict, space, posterior),
    )


def _compare_hosts(storage: Storage, here: Surroundings | None) -> float:
    """Return how alike a study's host and load are; 1 where that is not known."""
    fingerprint, facts = storage.recall(FINGERPRINT), storage.recall(SPACE_FACTS)
    if here is None or fingerprint is None or facts is None:
        return 1.0
    return likeness(describe_surroundings(fingerprint, facts), here)


def _predict(space: Space, posterior: Posterior, points: Sequence[Point]) -> Array:
    """Return the mean log gains of points (m,)."""
    means, _ = posterior.gains([space.decode(point) for point in points])
    return means
