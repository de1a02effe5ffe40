"""Cases of a test that only `make test-more` runs."""

import math
from collections.abc import Iterable

import pytest
from hypothesis import settings

ALL_EXAMPLES = 100
"""How many examples `make test-more` draws where a test says nothing else."""


def leave_to_more(cases: Iterable[object], *kept: object) -> list[object]:
    """Return cases for `parametrize`; all but those that are kept, or the first one, are marked `more`."""
    every = list(cases)
    here = kept or every[:1]
    return [each if each in here else _mark(each) for each in every]


def _mark(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.more)


def examples(most: int) -> int:
    """Return how many examples a test draws: all in `make test-more`, a quarter of them in `make test`."""
    return math.ceil(most * settings().max_examples / ALL_EXAMPLES)
