"""Hosts whose services systemd keeps: its units, its limits, its watchdog, and a power cut in the middle."""

import signal
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.integration import hold_target
from tests.integration.waiting import holding, wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.commands.apply import SYSCTL_FILE
from tuner.deploy.managed import ManagedTarget
from tuner.ports import Service
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.restore.recovery import confirm, find_applied, restore_host, undo
from tuner.space import Space
from tuner.study import load_study

STUDY = """\
study: units
servers: [nginx, sysctl]
space: [nginx, sysctl-net]
target: {{host: "{url}", mode: managed, watchdog_s: {watchdog_s}}}
load: {{path: /}}
"""
SOMAXCONN = "net.core.somaxconn"
CHANGES = {"worker_processes": 3, "worker_connections": 4000, SOMAXCONN: 5000}


@pytest.fixture
def web(own_bed: Testbed) -> TestHost:
    """A host on which systemd keeps an nginx that may open few files, and starts it at boot."""
    host = own_bed.add_host("web", systemd=True)
    host.limit_open_files("nginx", 2000)
    host.run(["systemctl", "enable", "--quiet", "nginx"])
    host.install_nginx()
    return host


def find(host: TestHost, folder: Path, watchdog_s: int = 10) -> tuple[ManagedTarget, Space]:
    path = folder / "units.yaml"
    path.write_text(STUDY.format(url=host.ssh_url, watchdog_s=watchdog_s))
    found = find_target(load_study(path), plugins.make_host(host.ssh_url))
    target, space = found.target, found.space
    return target, space


def open_files_of(host: TestHost) -> int:
    pid = host.show_unit("nginx", "MainPID")
    limits = host.run(["sed", "-n", "s/^Max open files *//p", f"/proc/{pid}/limits"]).stdout
    return int(limits.split()[1])


def is_watched(host: TestHost) -> bool:
    return host.show_unit("tuner-watchdog-run", "ActiveState") == "active"


def test_a_unit_is_stopped_started_and_given_more_files_by_a_drop_in(web: TestHost, tmp_path: Path):
    before = look_at(web)
    first = web.show_unit("nginx", "MainPID")
    target, space = find(web, tmp_path)

    with target.hold(print):
        assert is_watched(web)
        with target.deploy(space.complete(CHANGES)) as deployment:
            assert deployment.effective["worker_processes"] == 3
            assert web.show_unit("nginx", "MainPID") != first
            assert "zz-tuner.conf" in web.show_unit("nginx", "DropInPaths")
            assert open_files_of(web) > 4000
            assert web.show_unit("nginx", "NeedDaemonReload") == "no"

    assert look_at(web) == before
    assert web.show_unit("nginx", "ActiveState") == "active"
    assert open_files_of(web) == 2000
    assert web.show_unit("nginx", "NeedDaemonReload") == "no"
    assert not is_watched(web)
    ours = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "tuner*"]
    wait_until(lambda: web.run(ours).stdout == b"")


@pytest.fixture
def controller(web: TestHost, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that has changed the host and holds it so."""
    path = tmp_path / "units.yaml"
    path.write_text(STUDY.format(url=web.ssh_url, watchdog_s=5))
    with holding(hold_target.__file__, path, CHANGES) as process:
        yield process


def test_systemd_brings_a_killed_watchdog_back_and_it_restores_without_controller_and_ssh(
    web: TestHost, controller: "subprocess.Popen[bytes]"
):
    log = web.root / "var/lib/tuner/log"
    first = web.show_unit("tuner-watchdog-run", "MainPID")
    web.run(["systemctl", "kill", "--signal=KILL", "tuner-watchdog-run"])
    wait_until(lambda: is_watched(web) and web.show_unit("tuner-watchdog-run", "MainPID") != first)

    controller.kill()
    web.kill_sshd()

    wait_until(lambda: "everything is back" in log.read_text())
    assert log.read_text().count("restoring: ") == 1
    assert open_files_of(web) == 2000
    assert web.show_unit("nginx", "ActiveState") == "active"
    wait_until(lambda: not is_watched(web))


def test_a_power_cut_in_the_middle_ends_with_the_original_before_the_service_starts(
    own_bed: Testbed, web: TestHost, controller: "subprocess.Popen[bytes]", tmp_path: Path
):
    before_run = (web.root / "etc/nginx/nginx.conf").read_bytes()

    assert b"worker_connections 4000" in before_run  # as it is changed
    controller.kill()
    web = own_bed.restart(web)

    original = Path("/etc/nginx/nginx.conf").read_bytes()
    assert (web.root / "etc/nginx/nginx.conf").read_bytes() == original
    assert not (web.root / "etc/systemd/system/nginx.service.d/zz-tuner.conf").exists()
    assert not (web.root / "etc/systemd/system/tuner-restore.service").exists()
    web.wait_until_it_answers(80)
    assert open_files_of(web) == 2000
    assert web.show_unit("nginx", "NRestarts") == "0"
    assert (web.root / "var/lib/tuner/log").read_text().count("restoring: the machine was restarted") == 1
    with Journal(tmp_path / "state") as journal:
        assert restore_host(plugins.make_host(web.ssh_url), journal) == ()


@pytest.mark.more
def test_what_is_applied_outlives_a_restart_once_it_was_confirmed(
    own_bed: Testbed, web: TestHost, tmp_path: Path
):
    before = look_at(web)
    target, space = find(web, tmp_path)
    config = space.complete(CHANGES)
    with Journal(tmp_path / "state") as journal:
        lease = Lease(target.host, journal=journal, purpose="apply", study="units", watchdog_s=60)
        lease.arm(target.services, urls=target.urls)
        lasting = {SYSCTL_FILE: f"{SOMAXCONN} = 5000\n".encode()}
        with target.held_by(lease), target.deploy(config, files={**target.files(config), **lasting}):
            lease.await_confirmation()
        assert web.show_unit("tuner-watchdog-apply", "ActiveState") == "active"
        confirm(target.host, journal)

    web = own_bed.restart(web)

    web.wait_until_it_answers(80)
    assert open_files_of(web) > 4000
    assert web.run(["sysctl", "-n", SOMAXCONN]).stdout == b"5000\n"
    host = plugins.make_host(web.ssh_url)
    with Journal(tmp_path / "state") as journal:
        applied = find_applied(host, journal)
        assert applied is not None
        assert undo(host, journal, applied) != ()
    assert look_at(web) == before
    assert open_files_of(web) == 2000


DEPENDENT = """\
[Unit]
{word}=nginx.service
After=nginx.service
[Service]
ExecStart=/bin/sleep infinity
Restart=always
"""
SOCKET = """\
[Unit]
PartOf=nginx.service
[Socket]
ListenStream=/run/nginx-extra.sock
Service=nginx.service
"""
DEPENDENTS = ("Requires", "PartOf", "BindsTo", "Requisite")


def states_of(host: TestHost, units: Iterable[str]) -> dict[str, str]:
    return {unit: host.show_unit(unit, "ActiveState") for unit in units}


def test_units_that_depend_on_the_server_run_in_every_trial_and_afterwards(web: TestHost, tmp_path: Path):
    units = [f"{word.lower()}.service" for word in DEPENDENTS]
    for word, unit in zip(DEPENDENTS, units, strict=True):
        (web.root / "etc/systemd/system" / unit).write_text(DEPENDENT.format(word=word))
    (web.root / "etc/systemd/system/of-one.service").write_text(
        DEPENDENT.format(word="PartOf").replace("nginx", "requires")
    )
    (web.root / "etc/systemd/system/nginx.socket").write_text(SOCKET)
    units += ["of-one.service", "nginx.socket"]
    for argv in (["daemon-reload"], ["stop", "nginx.service"], ["start", "nginx.socket", *units]):
        web.run(["systemctl", *argv])
    alive = dict.fromkeys(units, "active")
    target, space = find(web, tmp_path)
    web.run(["touch", "-d", "+1 minute", "/etc/nginx/mime.types"])
    conflicts = [str(each) for each in target.refuse_conflicts()]
    named = [each for each in conflicts if "depend on nginx" in each]
    assert any(
        "has not loaded the latest edits" in each and "/etc/nginx/mime.types" in each for each in conflicts
    )
    assert not any(
        "has not loaded the latest edits" in each and "/etc/nginx/nginx.conf" in each for each in conflicts
    )
    assert len(named) == 1
    assert all(unit in named[0] for unit in units)

    with target.hold(print):
        with target.deploy(space.complete(CHANGES)):
            wait_until(lambda: states_of(web, units) == alive)
        # As after a trial that did not start, which takes them down.
        web.run(["systemctl", "stop", "nginx"])
        assert states_of(web, units) == dict.fromkeys(units, "inactive")
        with target.deploy(space.complete({"worker_processes": 2})):
            wait_until(lambda: states_of(web, units) == alive)
        web.run(["systemctl", "stop", "nginx"])

    assert states_of(web, units) == alive
    assert web.show_unit("nginx", "ActiveState") == "active"


SLOW = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'until [ -e /run/go ]; do sleep 0.05; done'
"""


@pytest.mark.more
def test_a_service_that_is_just_starting_is_waited_for_and_taken_for_running(web: TestHost, tmp_path: Path):
    (web.root / "etc/systemd/system/slow.service").write_text(SLOW)
    web.run(["systemctl", "daemon-reload"])
    web.run(["systemctl", "start", "--no-block", "slow"])
    service = Service(
        name="slow", check=None, stop=("systemctl", "stop", "slow"), start=("systemctl", "start", "slow"),
        reload=None, is_systemd=True,
    )  # fmt: skip
    with Journal(tmp_path / "state") as journal, ThreadPoolExecutor() as pool:
        lease = Lease(plugins.make_host(web.ssh_url), journal=journal, study="s")
        armed = pool.submit(lease.arm, [service])
        wait_until((web.root / "var/lib/tuner/run/services/slow").exists)
        assert web.show_unit("slow", "ActiveState") == "activating"
        (web.root / "run/go").touch()
        armed.result()

        assert "ran yes" in (web.root / "var/lib/tuner/run/services/slow").read_text()
        lease.restore()
    assert web.show_unit("slow", "ActiveState") == "active"


@pytest.mark.more
@pytest.mark.parametrize("damage", [": > /var/lib/tuner/keeper", "truncate -s 20000 /var/lib/tuner/keeper"])
def test_at_boot_a_damaged_keeper_is_a_failed_unit(
    web: TestHost, controller: "subprocess.Popen[bytes]", damage: str
):
    controller.send_signal(signal.SIGSTOP)
    web.run(["cp", "/var/lib/tuner/keeper", "/root/keeper"])
    web.run(["sh", "-c", damage])

    assert web.run(["systemctl", "start", "tuner-restore"], check=False).returncode != 0
    assert web.show_unit("tuner-restore", "Result") == "exit-code"

    web.run(["cp", "/root/keeper", "/var/lib/tuner/keeper"])
    assert web.run(["systemctl", "start", "tuner-restore"], check=False).returncode == 0
