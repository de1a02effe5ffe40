"""Change an installed service as a study does, in a place of its own; prints what was found, as JSON.

python -m tests.integration.manage_installed SERVER CONFIG
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.plugins import make_server
from tuner.ports import Argv, Completed, FileState, Installation

HOST = LocalHost()


def manage(name: str, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Start it as it is and with the configuration, let it reload, stop it twice, and give its files back."""
    server: Any = make_server(name)
    installation: Installation = server.find(HOST)
    service = installation.service
    assert service is not None
    yield "service", list(service.start)
    yield "current", dict(installation.facts.current)
    yield "before", start(server, installation, installation.facts.current)
    run(service.stop)
    changed = server.rewrite(config, installation)
    for path, content in changed.items():
        HOST.write(path, FileState(content=content))
    yield "changed", sorted(map(str, changed))
    yield "refusals", list(server.refusals(run(service.check or ())))
    yield "after", start(server, installation, config)
    if service.reload:
        run(service.reload)
    yield "reloaded", answers(installation)
    run(service.stop)
    run(service.stop)
    yield "stopped", not run(("ss", "-ltnH", f"sport = :{installation.port}")).stdout


def start(server: Any, installation: Installation, config: Mapping[str, Any]) -> dict[str, Any]:
    """Start it and read back what is active."""
    assert installation.service is not None
    run(installation.service.start)
    wait_until(lambda: answers(installation))
    pid = pid_of(installation)
    found: dict[str, Any] = {}
    # Its processes and threads come one after the other.
    with contextlib.suppress(AssertionError):
        wait_until(lambda: is_in_force(found, server.in_force(HOST, HOST, config, installation, pid), config))
    return found


def is_in_force(found: dict[str, Any], now: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    found |= now
    return now.items() <= config.items()


def answers(installation: Installation) -> bool:
    url = f"http://127.0.0.1:{installation.port}/"
    return pid_of(installation) > 0 and HOST.run(("curl", "-s", "-m", "5", url), timeout_s=10).returncode == 0


def pid_of(installation: Installation) -> int:
    assert installation.service is not None
    return int((HOST.read(installation.service.pid_file).content or b"0").strip() or b"0")


def run(argv: Argv) -> Completed:
    completed = HOST.run(argv, timeout_s=20)
    assert completed.returncode == 0, (argv, completed)
    return completed


if __name__ == "__main__":
    print(json.dumps(dict(manage(sys.argv[1], json.loads(sys.argv[2])))))  # noqa: T201 - what the test reads
