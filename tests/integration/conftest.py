from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.everybody import copied_for_everybody


@pytest.fixture
def copy_for_everybody() -> Iterator[Path]:
    with copied_for_everybody() as directory:
        yield directory
