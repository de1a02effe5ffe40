"""A server that is hostile: what it can reach from inside a sandbox."""

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

from tests.integration.devices import require_devices
from tests.integration.everybody import AS_NOBODY, CHECKOUT, python_for_everybody
from tuner.adapters.hosts.isolation import KEPT_CAPABILITIES
from tuner.adapters.hosts.local import LocalHost

HERE = Path(__file__).parent
STATUS = ("cat", "/proc/self/status")
MASKED = 'mount -t tmpfs none /proc/tty && exec "$0" "$@"'


def achieved(ran: "subprocess.CompletedProcess[bytes]") -> dict[str, str]:
    """Read what worked; what did not is left out."""
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout, ran.stderr.decode()
    tried = json.loads(ran.stdout)
    assert len(tried) > 30
    return {name: result for name, result in tried.items() if result == "done"}


def test_a_hostile_server_of_root_gets_nowhere():
    ran = subprocess.run(
        [sys.executable, HERE / "hold_hostile_server.py", __file__],
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip

    assert achieved(ran) == {}


def test_a_hostile_server_of_an_ordinary_user_gets_nowhere(copy_for_everybody):
    program = copy_for_everybody / "hold_hostile_server.py"
    ran = subprocess.run(
        [*AS_NOBODY, python_for_everybody(), "-B", program, "/etc/hostname"],
        capture_output=True, check=False, cwd="/", env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip

    assert achieved(ran) == {}


def test_where_no_fresh_proc_is_permitted_the_hosts_stays_and_can_only_be_read(copy_for_everybody):
    """As in a container that hides a part of /proc from its users."""
    ran = subprocess.run(
        [
            "unshare", "--mount", "sh", "-c", MASKED,
            *AS_NOBODY, python_for_everybody(), "-B", copy_for_everybody / "use_sandbox_as_user.py",
        ],
        capture_output=True, check=False, cwd="/", env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr.decode()
    result = json.loads(ran.stdout)
    assert result["page"] == "hello"
    assert result["somaxconn"] == "777"
    assert result["sees_host"]


def test_a_server_has_few_of_roots_rights_and_gets_no_more():
    with LocalHost().sandbox() as sandbox:
        status = sandbox.run(STATUS, timeout_s=5).stdout.decode()

    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    kept = sum(1 << number for number in KEPT_CAPABILITIES.values())
    assert int(fields["CapEff"], 16) & ~kept == 0
    assert int(fields["CapBnd"], 16) & ~kept == 0
    assert int(fields["CapInh"], 16) == 0
    assert fields["NoNewPrivs"] == "1"


def test_a_server_may_still_become_another_user_listen_on_port_80_and_set_its_priority():
    code = "import os, socket; socket.create_server(('', 80)); os.nice(-5); os.setgid(33); os.setuid(33)"
    with LocalHost().sandbox() as sandbox:
        ran = sandbox.run([sys.executable, "-c", code], timeout_s=10)

    assert ran.stderr == b""
    assert ran.returncode == 0


def test_the_devices_that_every_program_needs_are_there():
    with LocalHost().sandbox() as sandbox:
        require_devices(sandbox, "echo b >/dev/stdout")


def test_the_controller_still_reads_about_processes_inside():
    with LocalHost().sandbox() as sandbox:
        process = sandbox.start(["sleep", "600"])
        name = sandbox.read(PurePosixPath(f"/proc/{process.pid}/comm")).content
        numbers = sandbox.run(["sh", "-c", "echo $$ /proc/[0-9]*"], timeout_s=5).stdout.decode().split()

    assert name is not None
    # Inside, its own processes alone are seen, under other numbers.
    assert "/proc/1" in numbers
    assert f"/proc/{os.getpid()}" not in numbers
