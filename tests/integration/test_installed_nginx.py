"""Installed services found, changed, started and stopped, on copies of what is installed here."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

MADE_UP = ("/run", "/var/log", "/var/lib/nginx")
NGINX: Mapping[str, Any] = {
    "worker_processes": 3, "worker_connections": 2000, "worker_rlimit_nofile": 5000, "listen_backlog": 300,
    "listen_reuseport": True, "open_file_cache": 500, "access_log_buffer": 64, "aio": "threads",
    "thread_pool_threads": 4,
}  # fmt: skip


def manage_apart(server: str, config: Mapping[str, Any], folder: Path, *hidden: str) -> dict[str, Any]:
    """Manage a server where its folder of /etc is a copy and some folders of the host are empty."""
    copy, original = folder / "etc", f"/etc/{server}"
    script = (
        f"cp -a {original} {copy}", f"mount --bind {copy} {original}",
        *(f"mount -t tmpfs tmpfs {place}" for place in (*MADE_UP, *hidden)),
        "mkdir -p /run/lock /var/log/nginx /var/log/h2o", "ip link set lo up",
        # The shell stays: daemons that end become its children, and it lets them go.
        '"$@"', "exit",
    )  # fmt: skip
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    apart = ("unshare", *user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    manage = (sys.executable, "-m", "tests.integration.manage_installed", server, json.dumps(config))
    done = subprocess.run(
        [*apart, "sh", "-euc", "\n".join(script), "sh", *manage],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": os.curdir},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("hidden", "start"),
    [((), "/etc/init.d/nginx start"), (("/etc/init.d",), "nginx -c /etc/nginx/nginx.conf")],
)
def test_the_installed_nginx_takes_a_configuration_reloads_and_stops(tmp_path: Path, hidden, start):
    found = manage_apart("nginx", NGINX, tmp_path, *hidden)

    assert " ".join(found["service"]) == f"setsid --wait {start}"
    assert found["before"].items() <= found["current"].items()
    assert {"worker_processes", "listen_backlog", "listen_reuseport"} <= found["before"].keys()
    assert found["changed"] == ["/etc/nginx/nginx.conf", "/etc/nginx/sites-enabled/default"]
    assert found["refusals"] == []
    assert found["after"] == {
        "worker_processes": 3, "worker_rlimit_nofile": 5000, "listen_backlog": 300, "listen_reuseport": True,
        "thread_pool_threads": 4,
    }  # fmt: skip
    assert found["reloaded"]
    assert found["stopped"]


@pytest.mark.parametrize(
    ("hidden", "start"),
    [((), "/etc/init.d/h2o start"), (("/etc/init.d",), "h2o -m daemon -c /etc/h2o/h2o.conf")],
)
def test_the_installed_h2o_takes_a_configuration_and_stops(tmp_path: Path, hidden, start):
    found = manage_apart("h2o", {"num-threads": 3, "max-connections": 2000}, tmp_path, *hidden)

    assert " ".join(found["service"]) == f"setsid --wait {start}"
    assert found["before"] == {"num-threads": os.cpu_count(), "max-connections": 1024}
    assert found["changed"] == ["/etc/h2o/h2o.conf"]
    assert found["refusals"] == []
    assert found["after"] == {"num-threads": 3, "max-connections": 2000}
    assert found["stopped"]
