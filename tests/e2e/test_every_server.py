"""One short study of every row of `make bench-servers`, from its study file to a confirmed winner.

Each begins with one setting so bad that almost any other value is several times better: seconds prove that
on any machine.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from benchmarks.servers.rows import ROWS, Row
from benchmarks.servers.run import run_study, write_study
from tests.testbed.processors import idle_processors_here

BUDGET = ("--preset", "quick", "--minutes", "0.6", "--trials", "4")
NEW_CONNECTIONS = {"MaxKeepAliveRequests": {"low": 2, "default": 2}}
NEW_GARBAGE = {"GOMEMLIMIT": {"low": 256, "special": {"tiny": 1}, "default": "tiny"}}
NEW_PHP = {"pm.max_requests": {"low": 1, "default": 1}}
POOR: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "apache-prefork": NEW_CONNECTIONS,
    "apache-worker": {"MaxConnectionsPerChild": {"low": 4, "default": 4}},
    "apache-event": NEW_CONNECTIONS,
    "nginx": {"keepalive_requests": {"low": 2, "default": 2}},
    # All of them are woken for each new connection (lib/core/socket/evloop/epoll.c.h: level-triggered).
    "h2o": {"num-threads": {"high": 400, "default": 400}},
    # It looks at the network again after each task.
    "haproxy-before-nginx": {"tune.runqueue-depth": {"low": 50, "special": {"one": 1}, "default": "one"}},
    "caddy": NEW_GARBAGE,
    "caddy-before-nginx": NEW_GARBAGE,
    "php-fpm-behind-nginx": NEW_PHP,
    "php-fpm-behind-apache": NEW_PHP,
    "nginx-before-h2o": {"keepalive_requests": {"low": 2, "default": 2}},
    "websocket-behind-nginx": {"timer_resolution": {"low": 1, "default": 1}},
    "websocket-behind-apache": {"MaxConnectionsPerChild": {"low": 100, "default": 100}},
}
"""Row → the one setting that is searched, with the default that holds requests up."""
BESIDE: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    # Each of them is interrupted at each tick of its timer.
    "websocket-behind-nginx": {"worker_processes": {"high": 60, "default": 60}},
}
"""Row → what else is set for that, and not searched."""
LOADS: Mapping[str, Mapping[str, object]] = {
    "h2o": {"keepalive": False},
    # No more than the processes that it starts with.
    "apache-prefork": {"keepalive": True, "connections": 4},
    "websocket-behind-apache": {"keepalive": False},
}
"""What else the load has to be for that."""


def hold_up(row: Row, study: Path) -> None:
    """Search one setting of a row's study, from a default that holds requests up."""
    written = yaml.safe_load(study.read_text())
    changed = {**POOR[row.name], **BESIDE.get(row.name, {})}
    written["space"] += [{"parameters": changed}, {"only": list(POOR[row.name])}]
    written["load"] |= {"connections": 20, **LOADS.get(row.name, {})}
    study.write_text(yaml.safe_dump(written))


@pytest.mark.servers
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_study_of_the_row_ends_with_a_confirmed_winner(row: Row, tmp_path: Path):
    study = tmp_path / f"{row.name}.yaml"
    assert write_study(row, study) == ""
    hold_up(row, study)

    with idle_processors_here() as through:
        result = run_study(row, study, BUDGET, through=through)

    assert result.verdict == "improved", result.reason
    assert result.lines.keys() == POOR[row.name].keys()
    assert result.gain is not None
    assert result.gain["low"] > 1
