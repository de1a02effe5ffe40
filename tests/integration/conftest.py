"""Fixtures of the tests with real programs: private machines and what a guard needs.

Test hosts over SSH come from tests/conftest.py, installed services from tests/installed.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.everybody import copied_for_everybody
from tests.integration.private_machine import PrivateHost, private_machine
from tuner.restore.journal import Journal


@pytest.fixture
def copy_for_everybody() -> Iterator[Path]:
    with copied_for_everybody() as directory:
        yield directory


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> Iterator[PrivateHost]:
    """A private machine; parametrized indirectly, its /bin/sh is the shell of that name."""
    with private_machine(getattr(request, "param", "dash")) as host:
        yield host


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "state") as opened:
        yield opened
