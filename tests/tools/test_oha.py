"""oha, which `make tools` builds, against a server that misbehaves on purpose."""

import pytest

from tests.contract.new_connections import NewConnectionContract
from tuner.adapters.loads.oha import Oha
from tuner.ports import LoadGenerator
from tuner.testing.misbehaving_server import serving

pytestmark = pytest.mark.tools


class TestOha(NewConnectionContract):
    too_few_open_files = 14

    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Oha()

    def test_a_fixed_rate_is_held(self, load: LoadGenerator):
        with serving("correct") as server:
            result = self.send(load, server, duration_s=1.0, rate_rps=100)

        assert result.failures.total == 0
        assert result.correct <= 110
