"""What may happen to a host in any order: commands of tuner, edits, signals and losses.

Short sequences with a fixed seed; `make bench-faults` plays 2,000 long ones.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults.sequences.__main__ import play
from benchmarks.faults.sequences.world import template

SEED = 20
SEQUENCES = 8
STEPS = 4


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with template() as made:
        yield made


@pytest.mark.parametrize("number", range(3))
def test_no_sequence_loses_an_edit_or_a_site(folder: Path, number: int):
    played, trouble = play("nginx", folder, SEED * 3 + number, STEPS, SEQUENCES, shrinks=False)

    assert not trouble
    assert played >= SEQUENCES
