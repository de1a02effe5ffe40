"""Rows of Optuna's tables, read and written together: object by object takes a hundred times as long.

Of a study with many workers only what is new is read, and whoever decides writes in milliseconds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import bindparam, text

NEW = text("""
SELECT number, state, key, value_json
FROM trials JOIN trial_user_attributes USING (trial_id)
WHERE study_id = :study AND (number > :last OR (number IN :running AND state <> 'RUNNING'))
ORDER BY number
""").bindparams(bindparam("running", expanding=True))
ADD_PARAM = text("""
INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)
VALUES (:trial, :name, :value, :distribution)
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial, as far as a start is kept in it."""

    number: int
    has_ended: bool
    attributes: Mapping[str, Any]


def as_row(trial: FrozenTrial) -> TrialRow:
    """Return what is kept in a trial that Optuna has read."""
    return TrialRow(
        number=trial.number,
        has_ended=trial.state.is_finished(),
        attributes=trial.user_attrs,
    )


@dataclass(kw_only=True)
class TrialRows:
    """All trials of a study; each is read when it is new, and once more when it has ended."""

    storage: optuna.storages.RDBStorage
    study: int
    """Its identity in the storage."""
    _rows: dict[int, TrialRow] = field(default_factory=dict, init=False)
    """By number."""
    _running: set[int] = field(default_factory=set, init=False)

    def read(self) -> Sequence[TrialRow]:
        """Return all trials, in the order of their numbers; of those that run, as they began."""
        values = {"study": self.study, "last": max(self._rows, default=-1), "running": [*self._running]}
        with self.storage.engine.connect() as connection:
            found = connection.execute(NEW, values).all()
        for row in _join(found):
            self._rows[row.number] = row
            (self._running.discard if row.has_ended else self._running.add)(row.number)
        return [self._rows[number] for number in sorted(self._rows)]

    def write_params(
        self, identity: int, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        """Write the parameters of a trial that has none yet."""
        rows = [
            {
                "trial": identity,
                "name": name,
                "value": distributions[name].to_internal_repr(value),
                "distribution": distribution_to_json(distributions[name]),
            }
            for name, value in params.items()
        ]
        with self.storage.engine.begin() as connection:
            connection.execute(ADD_PARAM, rows)


def _join(found: Iterable[Sequence[Any]]) -> Iterator[TrialRow]:
    """Return one row for each trial, from one for each of its attributes."""
    for (number, state), attributes in groupby(found, lambda row: tuple(row[:2])):
        yield TrialRow(
            number=number,
            has_ended=TrialState[state].is_finished(),
            attributes={row[2]: json.loads(row[3]) for row in attributes},
        )
