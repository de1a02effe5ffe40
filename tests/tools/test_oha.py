"""oha, which `make tools` builds, against a server that misbehaves on purpose."""

import pytest

from tests.contract.new_connections import NewConnectionContract
from tuner.adapters.loads.oha import Oha
from tuner.ports import LoadGenerator
from tuner.testing.loads import RateContract

pytestmark = pytest.mark.tools


class TestOha(NewConnectionContract, RateContract):
    too_few_open_files = 14

    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Oha()
