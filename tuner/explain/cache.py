"""The explanation of a finished study, computed once and kept beside it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from tuner.explain.explanation import Explanation
from tuner.explain.study import explain
from tuner.ports import Config
from tuner.records import Trial
from tuner.space import Space
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.study import Study
from tuner.study.cache import keep, look_up, make_key

NAME = "explanation.json"
_TRIALS = TypeAdapter(tuple[Trial, ...])
_EXPLANATIONS = TypeAdapter(Explanation)


def explain_study(
    settings: Study,
    space: Space,
    trials: Sequence[Trial],
    config: Config | None,
    *,
    metric: str,
    gain: Gain | None,
    is_finished: bool,
) -> Explanation:
    """Return what `explain` says of a study; of a finished one, it is computed once."""
    cost, seed = settings.objective.cost, settings.seed
    rules = space.rules
    known = (
        rules.facts, rules.order, sorted(rules.hidden), rules.constraints, rules.figures, rules.guard,
        space.dimensions, config, metric, gain, cost, seed,
    )  # fmt: skip
    key = make_key(_TRIALS.dump_json(tuple(trials)), repr(known).encode())
    kept = look_up(settings.folder, NAME, key) if is_finished else None
    found = None if kept is None else _read(kept, space)
    if found is None:
        found = explain(space, trials, config, metric=metric, gain=gain, cost=cost, seed=seed)
        if is_finished:
            keep(settings.folder, NAME, key, json.dumps(asdict(found)).encode())
    return found


def _read(kept: bytes, space: Space) -> Explanation | None:
    """Return what was kept; None for what no tuner has written of this space."""
    try:
        found = _EXPLANATIONS.validate_python(json.loads(kept))
    except (ValidationError, ValueError, RecursionError):
        return None
    return found if set(_name_parameters(found)) <= {each.name for each in space.parameters} else None


def _name_parameters(found: Explanation) -> Iterator[str]:
    yield from (setting.parameter for setting in found.settings)
    yield from (other.parameter for other in found.others)
    yield from (tolerance.parameter for tolerance in found.tolerances)
    for pair in found.interactions:
        yield from pair.parameters
    if found.beside is not None:
        yield from _name_parameters(found.beside)
