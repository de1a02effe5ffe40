"""Every load generator of the distribution against a server that misbehaves on purpose."""

import sys
from pathlib import Path

import pytest

from tests.contract.new_connections import NewConnectionContract
from tuner.adapters.loads.ab import Ab
from tuner.adapters.loads.command import Command
from tuner.adapters.loads.h2load import H2load
from tuner.adapters.loads.wrk import Wrk
from tuner.ports import LoadGenerator
from tuner.testing.loads import LoadContract, OwnFaultContract, RateContract, RequestCountContract
from tuner.testing.misbehaving_server import serving

OWN_LOAD = (
    *(sys.executable, str(Path(__file__).with_name("own_load.py")), "{url}"),
    *("--connections", "{connections}", "--seconds", "{duration_s}"),
)
OWN_RESULT = {
    "json": {
        "correct": "/right",
        **{
            f"failures_{kind}": f"/wrong/{kind}"
            for kind in ("status", "length", "read", "timeout", "connect")
        },
        "duration_s": "/seconds",
        "latency_p99_9_ms": "/slowest",
    },
    "scale": {"latency_p99_9_ms": 1000},
}


class TestWrk(NewConnectionContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Wrk()


class TestAb(NewConnectionContract, RequestCountContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Ab()

    def test_the_time_to_connect_is_known(self, load: LoadGenerator):
        with serving("correct") as server:
            assert self.send(load, server, keepalive=False).connect_time is not None

    def test_without_keepalive_no_misbehaviour_counts_as_goodput(self, load: LoadGenerator):
        for behaviour in ("busy", "short", "closing_early", "resetting"):
            with serving(behaviour) as server:
                result = self.send(load, server, keepalive=False)

            assert result.correct == 0, behaviour
            assert result.failures.total > 0, behaviour

    def test_an_error_as_the_first_response_does_not_turn_the_count_around(self, load: LoadGenerator):
        with serving("busy_first") as server:
            result = self.send(load, server)

        assert server.correct / 2 <= result.correct <= server.correct


class TestH2load(OwnFaultContract, RequestCountContract, RateContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return H2load()


class TestCommand(LoadContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Command(command=OWN_LOAD, result=OWN_RESULT)
