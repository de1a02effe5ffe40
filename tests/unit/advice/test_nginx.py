"""The limit of connections of nginx is seen in the sockets of a worker, and in warnings."""

import pytest

from tuner.advice.findings import Finding, Level, SeenServer, judge
from tuner.advice.log_lines import LogLine
from tuner.advice.rules import FOLDER, read_rules

RULES = read_rules(FOLDER / "nginx.yaml")
REUSING = "20 worker_connections are not enough, reusing connections"


def find(sockets: int, *log: str, worker_connections: int = 20) -> Finding | None:
    """Return what is found of the limit of connections, with two workers."""
    seen = SeenServer(
        server="nginx", rules=RULES, current={}, kernel={}, files={}, kernel_log=(), now_s=0.0, started_s=0.0,
        scope={"sockets": sockets, "workers": 2, "worker_connections": worker_connections},
        log=[LogLine(text=each, source="/var/log/nginx/error.log", at_s=0.0, message=each) for each in log],
    )  # fmt: skip
    return {each.rule: each for each in judge(seen)}.get("nginx.worker_connections")


@pytest.mark.parametrize(
    ("sockets", "worker_connections", "level"),
    [
        (21, 20, Level.NOW),
        (19, 20, Level.NOW),
        (18, 20, Level.NEXT),
        (17, 20, None),
        (1024, 1024, Level.NOW),
        (900, 1024, Level.NEXT),
        (500, 1024, None),
    ],
)
def test_sockets_of_a_worker_show_the_limit_of_connections(sockets, worker_connections, level):
    found = find(sockets, worker_connections=worker_connections)

    assert (found and found.level) == level
    assert found is None or len(found.evidence) == 1


def test_idle_connections_that_are_closed_early_are_a_limit_now():
    found = find(3, REUSING)

    assert found is not None
    assert found.level is Level.NOW
    assert "closed idle keep-alive connections early" in found.evidence[0].text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("20 worker_connections are not enough", "and closed new connections"),
        (
            "20 worker_connections are not enough while connecting to upstream, client: 192.0.2.7",
            "to an upstream server, and returned status 500",
        ),
    ],
)
def test_a_client_or_an_upstream_server_got_no_connection_slot(line: str, said: str):
    found = find(3, line)

    assert found is not None
    assert [said in each.text for each in found.evidence] == [True]
