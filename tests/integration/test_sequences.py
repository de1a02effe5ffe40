"""What may happen to a host in any order: commands of tuner, edits, signals and losses.

Short sequences with a fixed seed; `make bench-faults` plays 2,000 long ones.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults.sequences.__main__ import play
from benchmarks.faults.sequences.servers import SERVERS
from benchmarks.faults.sequences.world import template
from tests.more import leave_to_more

SEED = 60
FEWEST, SEQUENCES, STEPS = 2, 6, 4
SEQUENCES_OF_OTHERS = 2
"""Each takes ten seconds and more."""
OTHERS = sorted(SERVERS.keys() - {"nginx"})


@pytest.fixture(scope="module")
def nginx() -> Iterator[Path]:
    with template() as made:
        yield made


@pytest.mark.parametrize(
    ("number", "sequences"),
    leave_to_more([(0, FEWEST), (0, SEQUENCES), (1, SEQUENCES), (2, SEQUENCES)]),
    ids=["the first of local", "local", "systemd", "ssh"],
)
def test_no_sequence_loses_an_edit_or_a_site(nginx: Path, number: int, sequences: int):
    require_none("nginx", nginx, SEED + number, sequences)


@pytest.mark.more
@pytest.mark.parametrize("server", OTHERS)
def test_no_sequence_loses_an_edit_or_a_site_of_another_server(server: str):
    with template(SERVERS[server]) as made:
        for number in range(3):
            require_none(server, made, SEED + number, SEQUENCES_OF_OTHERS)


def require_none(server: str, folder: Path, seed: int, sequences: int) -> None:
    """Play some sequences, and fail with the first that broke a rule."""
    played, trouble = play(server, folder, seed, STEPS, sequences, shrinks=False)

    assert not trouble
    assert played >= sequences
