"""vegeta, which `make tools` builds, against a server that misbehaves on purpose."""

import pytest

from tests.contract.new_connections import NewConnectionContract
from tuner.adapters.loads.vegeta import Vegeta
from tuner.ports import LoadGenerator
from tuner.testing.loads import RateContract

pytestmark = pytest.mark.tools


class TestVegeta(NewConnectionContract, RateContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Vegeta()
