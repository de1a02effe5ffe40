"""Cases of a test that only `make test-more` runs."""

from collections.abc import Iterable

import pytest


def leave_to_more(cases: Iterable[object], *kept: object) -> list[object]:
    """Return cases for `parametrize`; all but those that are kept, or the first one, are marked `more`."""
    every = list(cases)
    here = kept or every[:1]
    return [each if each in here else _mark(each) for each in every]


def _mark(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.more)
