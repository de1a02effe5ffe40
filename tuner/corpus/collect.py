"""Takes from a finished study what others may know of it."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tuner.corpus.corpus_study import TEXT, CorpusStudy, Shipped, Surroundings, Tried
from tuner.errors import UsageError
from tuner.ports import Config, Scalar
from tuner.records import Fingerprint, Role, State, Trial
from tuner.shell_words import write_command
from tuner.space import Space
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.observations import LEARNS_FROM
from tuner.statistics.ranking import DEFAULT_ARM, LIKELY, as_baselines, config_key, rank
from tuner.study import Study
from tuner.study.storage import Storage

KERNEL_VERSION = re.compile(r"[0-9]+(\.[0-9]+){1,2}")
UNKNOWN_DEVIATION = 1.0
"""Log points, of what gave no measurement."""
FACTS = ("connections",)
"""Facts of the space that are of the load."""


def collect(  # noqa: PLR0913 - what a study is made of
    settings: Study,
    space: Space,
    storage: Storage,
    fingerprint: Fingerprint,
    space_facts: Mapping[str, Any],
    *,
    gain: Gain | None,
    winner: Config | None,
    version: str,
) -> CorpusStudy:
    """Return a finished study as a corpus keeps it.

    Args:
        settings: the study.
        space: as it was searched.
        storage: of the study.
        fingerprint: of its host.
        space_facts: what the space was loaded with, as JSON values.
        gain: what its confirmation gave; None without one.
        winner: what was confirmed; None without one.
        version: of the tuner that collects.

    Raises:
        UsageError: its default was never measured.
    """
    trials = storage.trials()
    tried = _tell_tried(settings, space, trials)
    private = _find_private(space)
    is_shown = gain is not None and gain.is_proven and winner is not None
    changes = space.chosen(winner) if is_shown and winner is not None else {}
    return CorpusStudy(
        id=_identify(settings, trials),
        tuner=version,
        finished=datetime.fromtimestamp(trials[-1].started_s, UTC).strftime("%Y-%m-%d"),
        metric=str(storage.metric),
        surroundings=describe_surroundings(fingerprint, space_facts),
        defaults={name: value for name, value in space.default().items() if name not in private},
        tried=tuple(each for each in tried if not private & each.changes.keys()),
        shipped=None
        if gain is None or not is_shown or private & changes.keys()
        else Shipped(
            changes=changes, log_gain=math.log(gain.ratio), low=math.log(gain.low), high=math.log(gain.high)
        ),
    )


def _identify(settings: Study, trials: Sequence[Trial]) -> str:
    """Return what stays when a study is added again, and tells nobody its name."""
    made = f"{settings.name} {trials[0].started_s!r}"
    return hashlib.sha256(made.encode()).hexdigest()[:12]


def describe_surroundings(fingerprint: Fingerprint, space_facts: Mapping[str, Any]) -> Surroundings:
    """Return a host and a load without their names.

    Args:
        fingerprint: of the host.
        space_facts: what the space was loaded with, as JSON values.
    """
    kernel = KERNEL_VERSION.match(fingerprint.kernel)
    names = space_facts.get("names", {})
    load = {**space_facts.get("load", {}), **{name: names[name] for name in FACTS if name in names}}
    return Surroundings(
        cpu=re.sub(r"[^A-Za-z0-9 _.()-]", " ", fingerprint.cpu)[:100],
        cores=fingerprint.cores,
        memory_mib=fingerprint.memory_mib,
        kernel=kernel[0] if kernel else "",
        co_located=fingerprint.co_located,
        servers=dict(fingerprint.servers),
        workload={name: value for name, value in load.items() if _may_be_told(value)},
    )


def _may_be_told(value: Scalar) -> bool:
    return not isinstance(value, str) or re.fullmatch(TEXT, value) is not None


def _find_private(space: Space) -> frozenset[str]:
    """Return the settings of which some value may name a file or a host."""
    default = space.default()
    return frozenset(
        item.name
        for item in (*space.parameters, *space.derived)
        if not all(map(_may_be_told, (*getattr(item, "choices", ()), default.get(item.name, 0))))
    )


def _tell_tried(settings: Study, space: Space, trials: Sequence[Trial]) -> list[Tried]:
    """Return every configuration that was tried under the study's own load, with what its trials gave.

    Raises UsageError where the default was never measured.
    """
    ranking = rank(space, trials, settings.constraints)
    posterior = ranking.posterior
    if posterior is None:
        raise UsageError(
            f"{settings.path}: the default of this study was never measured. Finish the study: "
            f"{write_command('tuner', 'run', settings.path)}"
        )
    default, groups = config_key(space.default()), dict[str, list[Trial]]()
    for trial in as_baselines(trials):
        key = config_key(trial.config)
        is_told = trial.role in {*LEARNS_FROM, Role.CONFIRM} and trial.arm != DEFAULT_ARM
        if (
            is_told
            and trial.role is not Role.BASELINE
            and trial.state is not State.INVALID
            and key != default
        ):
            groups.setdefault(key, []).append(trial)
    found = []
    for group in groups.values():
        counted = [trial for trial in group if trial.counts and trial.log_value is not None]
        config = group[0].config
        seen = posterior.speedups(counted)
        weights = [1 / each.variance for each in seen]
        mean = (
            sum(w * each.log_ratio for w, each in zip(weights, seen, strict=True)) / sum(weights)
            if seen
            else None
        )
        found.append(
            Tried(
                changes=space.chosen(config),
                log_gain=mean,
                deviation=sum(weights) ** -0.5 if seen else UNKNOWN_DEVIATION,
                starts=len(group),
                is_feasible=bool(seen) and ranking.feasibility.probability(config) >= LIKELY,
            )
        )
    return found
