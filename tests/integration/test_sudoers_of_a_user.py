"""An ordinary user tunes the machine that it works at, and sudo allows just what the printed file says."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import Sudo, TestHost, User

pytestmark = pytest.mark.more

CHECKOUT = Path(__file__).parents[2]
SESSION = Path(__file__).with_name("manage_as_user.py")
TUNER = Path(sys.executable).with_name("tuner")
STUDY = """\
study: own
servers: [{server}, sysctl]
space: [{space}, sysctl-net]
target: {{host: local, mode: managed, watchdog_s: 20}}
load: {{generator: wrk, path: "http://127.0.0.1/", connections: 2}}
"""
SUDO_LOG = "/var/log/sudo-of-tests"
LOGGED = f"Defaults logfile={SUDO_LOG}, loglinelen=0\n".encode()
REFUSED = ("command not allowed", "password is required", "incorrect password", "not in sudoers", "no tty")
CASES = {
    "nginx": ("nginx", ["{'sendfile': False}", "{'sendfile': True}", "{'worker_connections': 900}"]),
    "apache": ("apache-event", ["{'KeepAliveTimeout': 7}", "{'ThreadsPerChild': 40}"]),
    "apache-prefork": ("apache-prefork", ["{'KeepAliveTimeout': 7}", "{'MaxRequestWorkers': 300}"]),
    "php-fpm": ("php-fpm", ["{'pm': 'static', 'pm.max_children': 7}"]),
}


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    with open_testbed() as opened:
        yield opened


def let_users_run_this_python(host: TestHost) -> None:
    """Show them the interpreter, which may be in a private home; what changes is the host's own."""
    for place in ("/root", "/home"):
        used = [path for path in map(Path, (sys.base_prefix, CHECKOUT)) if path.is_relative_to(place)]
        if used:
            host.run(["umount", "--lazy", place])
        for path in used:
            host.run(["chmod", "a+x", *(str(each) for each in (path, *path.parents) if str(each) != "/")])


def as_user(host: TestHost, *argv: object, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
    command = f"cd / && HOME=/srv/deploy exec {shlex.join(map(str, argv))}"
    ended = host.run(["su", "deploy", "-c", command], check=False, timeout_s=120)
    assert not check or ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()
    return ended


def allow_what_is_printed(host: TestHost, study: str) -> "subprocess.CompletedProcess[bytes]":
    printed = as_user(host, TUNER, "check", study, "--sudoers")
    host.run(["sh", "-c", "umask 337; cat > /etc/sudoers.d/testbed"], stdin=printed.stdout)
    return printed


@pytest.mark.parametrize("server", CASES)
def test_the_printed_file_is_all_that_a_study_of_the_own_machine_needs(bed: Testbed, server: str):
    space, changes = CASES[server]
    host = bed.add_host(server, user=User(name="deploy"))  # to whom sudo allows nothing yet
    let_users_run_this_python(host)
    host.run(["install", "-d", "-o", "deploy", "/srv/deploy"])
    if server == "php-fpm":
        host.install_php_fpm()
        host.install_nginx()
    else:
        host.install(server)
    (host.root / "srv/deploy/own.yaml").write_text(STUDY.format(server=server, space=space))
    study = "/srv/deploy/own.yaml"
    host.run(["chown", "deploy", study])

    printed = allow_what_is_printed(host, study)
    if server == "php-fpm":  # whose configuration nobody but root can have tested
        assert b"this sudoers file is incomplete" in printed.stderr
        printed = allow_what_is_printed(host, study)
    assert printed.stderr == b""
    host.run(
        ["sh", "-c", f"umask 337; echo 'Defaults logfile={SUDO_LOG}, loglinelen=0' > /etc/sudoers.d/logged"]
    )
    assert host.run(["visudo", "-c"], check=False).returncode == 0
    assert as_user(host, "sudo", "-n", "id", check=False).returncode != 0
    host.run(["rm", "-f", SUDO_LOG])
    before = look_at(host)

    checked = as_user(host, TUNER, "check", study)
    said = as_user(host, sys.executable, "-B", SESSION, study, *changes).stdout
    restored = as_user(host, TUNER, "restore")

    logged = (host.root / SUDO_LOG.removeprefix("/")).read_text()
    assert b"ready" in checked.stdout
    assert b"cannot be read" not in said
    assert b"Nothing to restore" in restored.stderr
    assert logged.count("COMMAND=") > 5
    assert [line for line in logged.splitlines() if any(each in line for each in REFUSED)] == []
    assert look_at(host) == before


RUN_FOR_A_SECOND = """
import sys
from tuner.adapters.hosts.local import LocalHost
print(LocalHost().run(["sh", "-c", sys.argv[1]], timeout_s=1, as_root=True).timed_out)
"""


def test_what_root_runs_is_ended_in_time_or_said_to_run_on(bed: Testbed):
    host = bed.add_host("slow", user=User(name="deploy", sudo=Sudo.FREELY))
    let_users_run_this_python(host)
    python = (sys.executable, "-B", "-c", RUN_FOR_A_SECOND)

    obedient = as_user(host, *python, "exec sleep 60")
    left = host.processes("sleep")
    stubborn = as_user(host, *python, "trap '' TERM; exec sleep 61", check=False)

    assert obedient.stdout == b"True\n"
    assert left == []
    assert b"still runs, because this user may not end the command" in stubborn.stderr
    assert len(host.processes("sleep")) == 1
