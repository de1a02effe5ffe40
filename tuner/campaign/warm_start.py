"""What earlier studies of the same servers found, for a new one to begin with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.errors import UsageError
from tuner.optimize.optimizer import Point
from tuner.ports import Config
from tuner.space import Space
from tuner.space.fitting import fit_into
from tuner.statistics.ranking import rank
from tuner.study import Study, load_study
from tuner.study.folder import require_own
from tuner.study.storage import open_storage

SHARE = 0.2
"""Of the configurations of an earlier study, so many of the best are good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """What is known beforehand."""

    first: tuple[Point, ...] = ()
    """The best of each earlier study, to be tried before anything else."""
    good: tuple[Point, ...] = ()
    """Points that were good, for the optimizer to mix with its own."""


def read_warmth(settings: Study, space: Space, paths: Sequence[Path] | None = None) -> Warmth:
    """Read the earlier studies that a study names, or some of them.

    Their values are pulled into today's bounds; parameters and choices that this space lacks are left out.

    Raises:
        UsageError: an earlier study cannot be read, is of other servers, or is this one.
    """
    first: list[Point] = []
    good: list[Point] = []
    for path in settings.warm_start if paths is None else paths:
        where = f"{settings.path}: warm_start: {path}"
        earlier = load_study(path)
        if path.resolve() == settings.path.resolve():
            raise UsageError(
                f"{where}: a study cannot begin with itself. Leave it out; it goes on by itself."
            )
        strange = sorted(set(earlier.servers) - set(settings.servers))
        if strange:
            raise UsageError(
                f"{where}: it tuned {', '.join(strange)}, which this study does not. Leave it out."
            )
        known = [space.encode(fit_into(space, config)) for config in _best_of(earlier, space)]
        first += known[:1]
        good += known
    return Warmth(first=tuple(first), good=tuple(good))


def _best_of(earlier: Study, space: Space) -> Sequence[Config]:
    """Return the best configurations of a study by posterior mean, best first; none below its default."""
    require_own(earlier.folder)
    storage = open_storage(earlier.storage_url, earlier.name, create=False)
    starts = [replace(start, config=fit_into(space, start.config)) for start in storage.starts()]
    entries = rank(space, starts, earlier.constraints).entries
    better = [entry.config for entry in entries if entry.posterior.log_ratio > 0]
    return better[: max(1, round(SHARE * len(entries)))]
