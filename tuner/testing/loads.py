"""The contract of a load generator: what it must count, whatever the server does to it.

class TestMine(LoadContract):
    @pytest.fixture
    def load(self) -> LoadGenerator:
        return Mine()
"""

from pathlib import Path, PurePosixPath

import pytest

from tuner.errors import UsageError
from tuner.plugins import make_host
from tuner.ports import FileState, LoadGenerator, LoadResult, Workload
from tuner.testing.misbehaving_server import BODY, SLOW_S, Running, refusing, response_bytes, serving

CONNECTIONS = 8
UNDER_WAY = 2 * CONNECTIONS
"""Responses that may be sent and not counted, because the window ended."""
ENOUGH = 8 * UNDER_WAY
"""Requests from which on what was under way is the smaller part."""
LONGEST_S = 4.0
"""A window of that length is not made longer."""
GRACE_S = 8.0
"""A command may take so long beyond its window; the core kills it after 10 s."""


class LoadContract:
    """For every load generator; a subclass has a fixture `load`."""

    duration_s = 0.3

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.directory = PurePosixPath(tmp_path)

    def send(
        self,
        load: LoadGenerator,
        server: Running,
        *,
        keepalive: bool = True,
        duration_s: float | None = None,
        rate_rps: float | None = None,
        requests_total: int | None = None,
        open_files: int | None = None,
    ) -> LoadResult:
        """Run one window as the core does; the command must end before its deadline."""
        workload = Workload(
            url=server.url,
            connections=CONNECTIONS,
            keepalive=keepalive,
            duration_s=max(duration_s or 0, self.duration_s),
            rate_rps=rate_rps,
            requests_total=requests_total,
            body_bytes=len(BODY),
            response_bytes=response_bytes(keepalive=keepalive),
            directory=self.directory,
        )
        host = make_host("local")
        for path, content in load.files(workload).items():
            host.write(path, FileState(content=content))
        completed = host.run(
            load.command(workload), timeout_s=workload.duration_s + GRACE_S, open_files=open_files
        )
        assert not completed.timed_out
        outputs = {path: host.read(path).content or b"" for path in load.outputs(workload)}
        return load.parse(completed, outputs, workload)

    def send_enough(self, load: LoadGenerator, behaviour: str) -> tuple[Running, LoadResult]:
        """Run a window that is long enough for far more requests than can be under way.

        A machine that stands still for the length of a short window leaves all clients without an answer.
        """
        duration_s = self.duration_s
        while True:
            with serving(behaviour) as server:
                result = self.send(load, server, duration_s=duration_s)
            if server.requests >= ENOUGH or duration_s > LONGEST_S:
                return server, result
            duration_s *= 2

    def test_every_correct_response_counts_once(self, load: LoadGenerator) -> None:
        server, result = self.send_enough(load, "correct")

        assert result.failures.total == 0
        assert result.aborted is None
        assert result.generator_fault is None
        assert server.correct - UNDER_WAY <= result.correct <= server.correct
        assert result.latency is not None

    def test_a_server_that_answers_503_has_no_goodput(self, load: LoadGenerator) -> None:
        _, result = self.send_enough(load, "busy")

        assert result.correct == 0
        assert result.failures.status > 0
        assert result.latency is None

    def test_a_page_that_is_missing_is_not_served(self, load: LoadGenerator) -> None:
        _, result = self.send_enough(load, "missing")

        assert result.correct == 0
        assert result.failures.status > 0

    def test_a_redirection_is_not_the_page_and_is_not_followed(self, load: LoadGenerator) -> None:
        with serving("correct") as elsewhere, serving("moved", location=elsewhere.url) as server:
            result = self.send(load, server)

        assert result.correct == 0
        assert result.failures.total > 0
        assert elsewhere.requests == 0

    def test_a_body_of_another_length_is_not_the_page(self, load: LoadGenerator) -> None:
        _, result = self.send_enough(load, "short")

        assert result.correct == 0
        assert result.failures.length > 0

    def test_a_response_that_ends_early_is_a_failure(self, load: LoadGenerator) -> None:
        with serving("closing_early") as server:
            result = self.send(load, server)

        assert result.correct == 0
        assert result.failures.total > 0

    def test_connections_that_are_reset_are_failures(self, load: LoadGenerator) -> None:
        with serving("resetting") as server:
            result = self.send(load, server)

        assert result.correct == 0
        assert result.failures.total > 0

    def test_a_server_that_never_answers_is_left_in_time_and_seen(self, load: LoadGenerator) -> None:
        with serving("silent") as server:
            result = self.send(load, server, duration_s=1.0)

        assert result.correct == 0
        assert result.failures.total > 0

    def test_a_server_that_falls_silent_keeps_what_it_answered_before(self, load: LoadGenerator) -> None:
        with serving("stalling") as server:
            result = self.send(load, server, duration_s=1.0)

        assert 0 < result.correct <= server.correct

    def test_a_refused_connection_is_a_failure_of_the_server_alone(self, load: LoadGenerator) -> None:
        with refusing() as server:
            result = self.send(load, server)

        assert result.correct == 0
        assert result.failures.total > 0
        assert result.generator_fault is None

    def test_slow_answers_are_correct_and_their_latency_is_seen(self, load: LoadGenerator) -> None:
        with serving("slow") as server:
            result = self.send(load, server, duration_s=1.0)

        assert 0 < result.correct <= server.correct
        assert result.failures.total == 0
        assert result.latency is not None
        slowest_ms = max(*result.latency.quantiles_ms.values(), result.latency.max_ms or 0)
        assert slowest_ms >= SLOW_S * 1000

    def test_of_half_refused_requests_only_the_other_half_counts(self, load: LoadGenerator) -> None:
        server, result = self.send_enough(load, "half_busy")

        busy = server.requests - server.correct
        assert server.correct - UNDER_WAY <= result.correct <= server.correct
        assert busy - UNDER_WAY <= result.failures.status <= busy

    def test_of_half_reset_requests_at_most_the_other_half_counts(self, load: LoadGenerator) -> None:
        with serving("half_resetting") as server:
            result = self.send(load, server)

        assert 0 < result.correct <= server.correct
        assert result.failures.total > 0

    def test_of_half_wrong_bodies_at_most_the_other_half_counts(self, load: LoadGenerator) -> None:
        server, result = self.send_enough(load, "half_short")

        assert result.correct <= server.correct
        assert result.failures.length > 0

    def test_a_number_of_requests_is_sent_or_refused_and_never_ignored(self, load: LoadGenerator) -> None:
        with serving("correct") as server:
            try:
                result = self.send(load, server, requests_total=ENOUGH, duration_s=1.0)
            except UsageError:
                return

        assert result.correct + result.failures.total == ENOUGH

    def test_nothing_of_the_window_before_is_counted_again(self, load: LoadGenerator) -> None:
        with serving("correct") as server:
            self.send(load, server)
        with serving("busy") as server:
            result = self.send(load, server)

        assert result.correct == 0
        assert result.failures.status <= server.requests


class RequestCountContract(LoadContract):
    """For those that can end after so many requests: each of them is answered correctly, or has failed."""

    limit_s = 2.0

    def test_it_ends_when_all_requests_were_answered(self, load: LoadGenerator) -> None:
        with serving("correct") as server:
            result = self.send(load, server, requests_total=ENOUGH, duration_s=60.0)

        assert result.correct == ENOUGH == server.correct
        assert result.failures.total == 0
        assert result.latency is not None
        assert result.latency.samples == ENOUGH
        assert 0 < result.duration_s < LONGEST_S

    def test_of_so_many_requests_those_that_are_refused_have_failed(self, load: LoadGenerator) -> None:
        with serving("half_busy") as server:
            result = self.send(load, server, requests_total=ENOUGH, duration_s=60.0)

        assert (result.correct, result.failures.status) == (server.correct, ENOUGH - server.correct)

    def test_requests_that_are_left_at_the_time_limit_have_failed(self, load: LoadGenerator) -> None:
        with serving("stalling") as server:
            result = self.send(load, server, requests_total=ENOUGH, duration_s=self.limit_s)

        assert 0 < result.correct <= server.correct
        assert result.correct + result.failures.total == ENOUGH
        assert abs(result.duration_s - self.limit_s) < 1

    def test_no_request_is_missing_when_connections_are_reset(self, load: LoadGenerator) -> None:
        with serving("resetting_late") as server:
            result = self.send(load, server, requests_total=ENOUGH, duration_s=self.limit_s)

        assert 0 < result.correct <= server.correct
        assert result.correct + result.failures.total == ENOUGH

    def test_of_so_many_requests_to_nobody_all_have_failed(self, load: LoadGenerator) -> None:
        with refusing() as server:
            result = self.send(load, server, requests_total=ENOUGH, duration_s=self.limit_s)

        assert result.correct == 0
        assert result.failures.total >= ENOUGH


class OwnFaultContract(LoadContract):
    """For those that tell when they ran out of sockets themselves."""

    too_few_open_files = 9

    def test_running_out_of_sockets_is_the_generators_own_fault(self, load: LoadGenerator) -> None:
        with serving("correct") as server:
            result = self.send(load, server, open_files=self.too_few_open_files)

        assert result.generator_fault is not None


class RateContract(LoadContract):
    """For one that keeps a rate, and counts response times from when a request was due."""

    def test_at_a_rate_every_request_that_is_due_is_sent(self, load: LoadGenerator) -> None:
        with serving("correct") as server:
            result = self.send(load, server, duration_s=1.0, rate_rps=100)

        assert result.failures.total == 0
        assert 100 - UNDER_WAY <= server.requests <= 100 + UNDER_WAY

    def test_at_a_rate_the_wait_for_a_slow_server_counts(self, load: LoadGenerator) -> None:
        """It serves a quarter of the requests that are due."""
        with serving("slow") as server:
            result = self.send(load, server, duration_s=2.0, rate_rps=100)

        assert result.latency is not None
        assert result.latency.quantiles_ms[0.5] > 2 * 1000 * SLOW_S
