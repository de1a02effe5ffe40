"""What counts as drift, and what a winner still is on a host that has changed."""

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.simulation import space_of
from tuner.commands.regression.in_force import find_wanted, read_installed, try_out
from tuner.errors import ConfigRejected
from tuner.ports import Config, Facts
from tuner.space import Space, SpaceFacts, load_space

SPACE = space_of("worker_connections", "sendfile", "listen_reuseport")
SERVERS = dict.fromkeys(
    ("worker_connections", "sendfile", "listen_reuseport", "worker_rlimit_nofile"), "nginx"
)


def want(space: Space = SPACE, **values: Any):
    reading: Any = SimpleNamespace(space=SPACE)
    return find_wanted(reading, SPACE.complete(values), space)


def space_with(version: tuple[int, ...], most: str = "65536") -> Space:
    """Return the same space as it is on another host."""
    facts = SpaceFacts(
        names={
            "cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
        },
        versions={"nginx": version},
    )  # fmt: skip
    narrowed = {"parameters": {"worker_connections": {"high": most}, "listen_reuseport": {"since": "1.9.1"}}}
    return load_space(["nginx", narrowed], facts=facts, base=Path("/"))


def look(running: Config, in_files: Config, **values: Any) -> Mapping[str, str]:
    """Return setting → drift on a host where that is found."""
    target: Any = SimpleNamespace(read_back=lambda _: running)
    facts = {"nginx": Facts(version=(1, 22, 1), current=in_files)}
    found = read_installed(target, facts, want(**values), SERVERS)
    return {each.name: each.drift for each in found if each.name in values}


@pytest.mark.parametrize(
    ("running", "in_files", "drift"),
    [
        ({"worker_connections": 4000}, {"worker_connections": 4000}, ""),
        ({}, {"worker_connections": 4000}, ""),
        ({"worker_connections": 4000}, {}, ""),
        ({}, {}, ""),
        ({"worker_connections": 768}, {"worker_connections": 768}, "another value is active"),
        ({}, {"worker_connections": 768}, "another value is active"),
        (
            {"worker_connections": 768},
            {"worker_connections": 4000},
            "the files have this value, but the running server does not. Restart nginx",
        ),
        (
            {"worker_connections": 4000},
            {"worker_connections": 768},
            "the files have 768, so the active value is lost at the next restart",
        ),
    ],
)
def test_what_runs_counts_and_so_do_the_files(running: Config, in_files: Config, drift: str):
    assert look(running, in_files, worker_connections=4000) == {"worker_connections": drift}


def test_what_is_wanted_is_what_is_written_with_what_follows():
    wanted = want(worker_connections=4000)

    assert wanted.settings["worker_connections"] == 4000
    assert wanted.settings["worker_rlimit_nofile"] == wanted.config["worker_rlimit_nofile"] > 4000
    assert wanted.lost == {}


def test_a_value_that_is_out_of_range_here_is_wanted_all_the_same():
    wanted = want(space_with((1, 22, 1), most="2000"), worker_connections=4000)

    assert wanted.settings["worker_connections"] == 4000
    assert wanted.config["worker_connections"] == 2000


def test_a_setting_that_the_server_does_not_have_any_more_drifted():
    wanted = want(space_with((1, 0, 1)), listen_reuseport=True, sendfile=False)
    target: Any = SimpleNamespace(read_back=lambda _: {"sendfile": False})
    facts = {"nginx": Facts(version=(1, 0, 1), current={})}

    found = {each.name: each for each in read_installed(target, facts, wanted, SERVERS)}

    assert wanted.chosen == {"sendfile": False}
    assert not found["sendfile"].drift
    assert found["listen_reuseport"].drift.startswith(
        "listen_reuseport: this parameter is not available on this host: it exists since"
    )


def test_a_winner_that_does_not_start_any_more_says_why():
    @contextmanager
    def deploy(_: Config):
        raise ConfigRejected("nginx: the configuration is refused: unknown directive.")
        yield

    target: Any = SimpleNamespace(deploy=deploy)
    settings, failure = try_out(target, want(sendfile=False), SERVERS)

    assert failure == "nginx: the configuration is refused: unknown directive."
    assert [each.name for each in settings] == ["sendfile"]
