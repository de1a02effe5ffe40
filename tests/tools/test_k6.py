"""k6, which `make tools` builds, against a server that misbehaves on purpose, and with scripts."""

from pathlib import Path

import pytest

from tests.contract.new_connections import NewConnectionContract
from tests.tools.websocket_server import echoing
from tuner.adapters.loads.k6 import K6
from tuner.errors import LoadFailed
from tuner.ports import LoadGenerator
from tuner.testing.misbehaving_server import serving

pytestmark = pytest.mark.tools

WEBSOCKET = """
import { WebSocket } from 'k6/websockets';

export default function ({ url }) {
  return new Promise((resolve) => {
    const socket = new WebSocket(url.replace('http', 'ws'));
    socket.onopen = () => socket.send('hello');
    socket.onmessage = (message) => { socket.close(); resolve(message.data === 'EXPECTED'); };
    socket.onerror = () => resolve(false);
  });
}
"""
THROWS = "export default function () { throw new Error('no'); }"


class TestK6(NewConnectionContract):
    duration_s = 1.0
    too_few_open_files = 13

    @pytest.fixture
    def load(self) -> LoadGenerator:
        return K6()

    def test_a_rate_that_cannot_be_held_leaves_failures(self, load: LoadGenerator):
        with serving("slow") as server:
            result = self.send(load, server, rate_rps=200)

        assert 0 < result.correct <= server.correct
        assert result.failures.other > result.correct

    def test_websocket_messages_are_counted_by_a_script(self, tmp_path: Path):
        script = tmp_path / "echo.js"
        script.write_text(WEBSOCKET.replace("EXPECTED", "hello"))

        with echoing() as server:
            result = self.send(K6(script=script), server)

        assert result.failures.total == 0
        assert 0 < result.correct <= server.correct
        assert result.latency is not None

    @pytest.mark.parametrize("text", [WEBSOCKET.replace("EXPECTED", "something else"), THROWS])
    def test_a_script_that_is_not_content_or_throws_has_no_goodput(self, tmp_path: Path, text: str):
        script = tmp_path / "script.js"
        script.write_text(text)

        with echoing() as server:
            result = self.send(K6(script=script), server)

        assert result.correct == 0
        assert result.failures.other > 0

    def test_a_script_that_is_no_javascript_is_a_failed_load_that_says_so(self, tmp_path: Path):
        script = tmp_path / "broken.js"
        script.write_text("export default function (")

        with echoing() as server, pytest.raises(LoadFailed, match=r"script\.js: Line 1"):
            self.send(K6(script=script), server)
