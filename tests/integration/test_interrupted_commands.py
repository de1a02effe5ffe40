"""Commands that change the own machine, interrupted while root stops a service that takes its time."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults.forked import TUNER, Forked
from benchmarks.faults.sequences import verdict
from benchmarks.faults.sequences.servers import NGINX
from benchmarks.faults.sequences.world import World, open_world, template
from tests.integration.waiting import wait_until
from tests.more import leave_to_more

# Stops when it may; it says before that it is about to.
SLOW = """\
#!/bin/sh
case $1 in
    start) exec nginx ;;
    stop)
        [ ! -e /srv/slow ] || { touch /srv/stopping; until [ -e /srv/go ]; do sleep 0.01; done; }
        pid=$(cat /run/nginx.pid) && kill "$pid" && while [ -d "/proc/$pid" ]; do sleep 0.01; done
        ;;
esac
"""


@pytest.fixture(scope="module")
def study() -> Iterator[Path]:
    with template() as made:
        yield made


@pytest.fixture
def world(study: Path) -> Iterator[World]:
    """A machine on which tuner runs as root."""
    with open_world(study, NGINX, is_local=True) as opened:
        script = opened.host.root / "etc/init.d/nginx"
        script.write_text(SLOW)
        script.chmod(0o755)
        yield opened


@pytest.mark.parametrize(
    ("command", "number"),
    leave_to_more(
        [
            (("apply", "--undo"), signal.SIGINT),
            (("apply", "--undo"), signal.SIGHUP),
            (("apply",), signal.SIGINT),
            (("apply",), signal.SIGHUP),
            (("restore",), signal.SIGINT),
            (("restore",), signal.SIGHUP),
        ]
    ),
)
def test_what_root_has_begun_comes_to_its_end_and_the_page_is_served(
    world: World, command: tuple[str, ...], number: signal.Signals
):
    apply = ("apply", f"{world.folder}/study.yaml", "--host", "local", "--url", world.page, "--yes")
    argv = command if command == ("restore",) else (*apply, *command[1:])
    before = verdict.fingerprint(world)
    if command != ("apply",):
        assert world.tuner(*apply).code == 0
    (world.host.root / "srv/slow").touch()

    process = Forked([TUNER, *argv], world.environment(), world.output)
    wait_until((world.host.root / "srv/stopping").exists)
    os.killpg(process.pid, number)
    (world.host.root / "srv/go").touch()
    code = process.wait(60)
    world.await_quiet()

    said = process.read_output()
    assert code == 130, said
    assert (
        "finishes the restore by itself" in said
        or "tuner has restored all changes, or the host restores them" in said
    )
    assert list(verdict.judge(world)) == []
    assert verdict.fingerprint(world) == before
    assert "Nothing to restore" in world.tuner("restore").said
