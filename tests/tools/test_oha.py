"""oha, which `make tools` builds, against a server that misbehaves on purpose."""

import pytest

from tuner.adapters.loads.oha import Oha
from tuner.ports import LoadGenerator
from tuner.testing.loads import OwnFaultContract
from tuner.testing.misbehaving_server import serving

pytestmark = pytest.mark.tools


class TestOha(OwnFaultContract):
    too_few_open_files = 14

    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Oha()

    def test_a_new_connection_for_each_request(self, load: LoadGenerator):
        with serving("correct") as server:
            result = self.send(load, server, keepalive=False)

        assert result.failures.total == 0
        assert server.correct - 16 <= result.correct <= server.correct

    def test_a_fixed_rate_is_held(self, load: LoadGenerator):
        with serving("correct") as server:
            result = self.send(load, server, duration_s=1.0, rate_rps=100)

        assert result.failures.total == 0
        assert result.correct <= 110
