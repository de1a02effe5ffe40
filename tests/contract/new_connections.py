"""What holds for load generators that can open a new connection for each request."""

from tuner.ports import LoadGenerator
from tuner.testing.loads import UNDER_WAY, OwnFaultContract
from tuner.testing.misbehaving_server import serving


class NewConnectionContract(OwnFaultContract):
    """The contract of every load generator, and what it counts without keep-alive."""

    def test_a_new_connection_for_each_request(self, load: LoadGenerator):
        with serving("correct") as server:
            result = self.send(load, server, keepalive=False)

        assert result.failures.total == 0
        assert server.correct - UNDER_WAY <= result.correct <= server.correct
