"""Not everything can be put back: a restore stops nothing that serves then, and loses nothing."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tests.integration.test_keeper import IN_EACH_SHELL, LONG_S, armed, change
from tests.integration.waiting import wait_until
from tuner.errors import RestoreFailed, TargetError
from tuner.ports import ABSENT, Files
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.restore.recovery import accept_host, describe_use, restore_host

TUNER = Path(sys.executable).with_name("tuner")
CHECKED = replace(DEMO, check=("grep", "-q", "demo", str(CONFIGURATION)))
CHANGES: Files = {CONFIGURATION: b"demo 2\n", SERVED / "new.conf": b"more\n", SETTING: b"512\n"}
RESTART = "/srv/demo stop; /srv/demo start"


def changed(machine: PrivateHost, journal: Journal, *, watchdog_s: float = LONG_S) -> Lease:
    """Arm and change the machine; its service runs with what was changed."""
    lease = armed(machine, journal, CHECKED, watchdog_s=watchdog_s)
    change(lease, machine, CHANGES)
    machine.sh(RESTART)
    return lease


def pid_of_service(machine: PrivateHost) -> str:
    return machine.sh('pid=$(cat /srv/demo.pid); kill -0 "$pid"; echo "$pid"')


MADE_UNWRITABLE = {
    "a read-only mount": (
        f"mount --bind {SERVED} {SERVED}; mount -o remount,ro,bind {SERVED}",
        f"umount {SERVED}",
    ),
    "an immutable file": (f"chattr +i {CONFIGURATION}", f"chattr -i {CONFIGURATION}"),
}


@IN_EACH_SHELL
@pytest.mark.parametrize("how", MADE_UNWRITABLE)
def test_what_serves_is_left_serving_until_all_is_back_and_is_restarted_then(
    machine: PrivateHost, journal: Journal, how: str
):
    before = machine.everything()
    lease = changed(machine, journal, watchdog_s=1)
    break_it, mend_it = MADE_UNWRITABLE[how]
    machine.sh(break_it)
    pid = pid_of_service(machine)

    with pytest.raises(RestoreFailed, match=r"demo\.conf .*; demo \(it was left running"):
        lease.restore()

    assert pid_of_service(machine) == pid
    assert machine.read(SETTING).content == b"4096\n"
    machine.sh(mend_it)
    wait_until(lambda: "everything is back" in machine.log())  # the watchdog did it
    assert machine.everything() == before
    assert pid_of_service(machine) != pid


@IN_EACH_SHELL
def test_a_service_that_is_down_is_started_even_when_an_original_is_not_back(
    machine: PrivateHost, journal: Journal
):
    lease = changed(machine, journal)
    break_it, mend_it = MADE_UNWRITABLE["a read-only mount"]
    machine.sh(f"{break_it}; /srv/demo stop")

    with pytest.raises(RestoreFailed, match=r"demo\.conf"):
        lease.restore()

    pid_of_service(machine)
    machine.sh(mend_it)
    lease.restore()
    assert machine.sh("cat /srv/in-force") == "demo 1\n"


@IN_EACH_SHELL
def test_a_service_whose_check_refuses_its_own_original_is_not_stopped(
    machine: PrivateHost, journal: Journal
):
    machine.sh(f"echo broken > {CONFIGURATION}")  # while the process serves on with what it had read
    lease = changed(machine, journal)
    pid = pid_of_service(machine)

    with pytest.raises(RestoreFailed, match=r"demo \(it was left running .* its own check refuses"):
        lease.restore()

    assert machine.read(CONFIGURATION).content == b"broken\n"
    assert pid_of_service(machine) == pid
    machine.sh(f"echo demo 1 > {CONFIGURATION}")
    with pytest.raises(RestoreFailed, match=r"demo\.conf"):  # that is neither ours nor the original
        restore_host(machine, journal)
    assert machine.sh("cat /srv/in-force") == "demo 1\n"
    assert pid_of_service(machine) != pid


@IN_EACH_SHELL
def test_a_state_directory_that_became_read_only_is_noticed_before_anything_is_stopped(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = changed(machine, journal, watchdog_s=2)
    pid = pid_of_service(machine)
    # Over it, for the watchdog has a file open for writing there.
    machine.sh("mount --bind /var/lib /var/lib; mount -o remount,ro,bind /var/lib")

    with pytest.raises(RestoreFailed, match=r"/var/lib/tuner/run \(it is a read-only file system\)"):
        lease.restore()

    assert pid_of_service(machine) == pid
    machine.sh("umount /var/lib")
    wait_until(lambda: "everything is back" in machine.log())
    assert machine.everything() == before


@IN_EACH_SHELL
def test_what_somebody_else_wrote_is_not_overwritten_and_both_versions_are_named(
    machine: PrivateHost, journal: Journal
):
    lease = changed(machine, journal)
    machine.sh(f"echo demo of the operator > {CONFIGURATION}.tmp; mv {CONFIGURATION}.tmp {CONFIGURATION}")

    with pytest.raises(
        RestoreFailed, match=r"demo\.conf \(somebody else .*its original is /var/lib/tuner/run/journal/10001"
    ):
        lease.restore()

    assert machine.read(CONFIGURATION).content == b"demo of the operator\n"
    assert machine.read(SERVED / "new.conf") == ABSENT
    assert machine.read(SETTING).content == b"4096\n"
    assert machine.sh("cat /var/lib/tuner/run/journal/10001/content") == "demo 1\n"
    assert machine.sh("cat /srv/in-force") == "demo of the operator\n"  # nobody wants the trial's
    pid = pid_of_service(machine)

    back, (of_target, of_controller) = accept_host(machine, journal)

    assert back == ()
    assert "leaves /srv/served/demo.conf as it is (somebody else has changed it" in of_target
    assert machine.sh(f"cat {of_target.split()[-1].rstrip('.')}/content") == "demo 1\n"
    assert Path(of_controller.split()[-1].rstrip(".")).exists()
    assert machine.read(CONFIGURATION).content == b"demo of the operator\n"
    assert pid_of_service(machine) == pid
    assert describe_use(machine) == ()
    armed(machine, journal).restore()


@IN_EACH_SHELL
def test_what_cannot_be_put_back_is_let_go_by_consent_and_kept_aside(machine: PrivateHost, journal: Journal):
    lease = changed(machine, journal)
    break_it, mend_it = MADE_UNWRITABLE["an immutable file"]
    machine.sh(break_it)
    with pytest.raises(RestoreFailed, match=r"tuner restore --accept"):
        lease.restore()

    _, told = accept_host(machine, journal)

    assert len(told) == 3  # the file, its service, and the copy here
    (kept,) = machine.sh("echo /var/lib/tuner/kept/*/*").split()
    assert kept in told[0]
    assert machine.sh(f"cat {kept}/content; head -n 1 {kept}/meta") == f"demo 1\n{CONFIGURATION}\n"
    machine.sh(mend_it)
    assert restore_host(machine, journal) == ()
    assert describe_use(machine) == ()
    assert machine.read(CONFIGURATION).content == b"demo 2\n"


def test_nothing_to_restore_is_said_after_all_was_let_go_and_not_before(machine: PrivateHost, tmp_path: Path):
    with Journal(tmp_path) as journal:
        changed(machine, journal)._heartbeat.stop()
    machine.sh(f"/srv/demo stop; rm -r {SERVED} /srv/demo; echo 4096 > {SETTING}")
    restore = ("env", f"TUNER_STATE={tmp_path}", str(TUNER), "restore")

    accepted = machine.run([*restore, "--accept", "--yes"], timeout_s=30)
    after = machine.run(restore, timeout_s=30)

    assert (accepted.returncode, accepted.stdout) == (0, b"")
    assert b"leaves demo as it is" in accepted.stderr
    assert b"Nothing to restore" not in accepted.stderr
    assert (after.returncode, b"Nothing to restore" in after.stderr) == (0, True)


@IN_EACH_SHELL
def test_a_package_that_was_purged_does_not_keep_the_machine_for_ever(machine: PrivateHost, journal: Journal):
    lease = changed(machine, journal)
    machine.sh(f"/srv/demo stop; rm -r {SERVED} /srv/demo")

    with pytest.raises(RestoreFailed, match=r"demo\.conf .*; demo \(it does not start"):
        lease.restore()
    _, told = accept_host(machine, journal)

    assert any("leaves demo as it is (it does not start" in sentence for sentence in told)
    assert machine.read(SETTING).content == b"4096\n"
    assert describe_use(machine) == ()


@IN_EACH_SHELL
def test_a_setting_that_has_vanished_is_let_go_by_consent(machine: PrivateHost, journal: Journal):
    lease = changed(machine, journal)
    # As when a module was unloaded.
    machine.sh("mount -t tmpfs -o ro tmpfs /proc/sys/net/core")

    with pytest.raises(RestoreFailed, match=r"somaxconn"):
        lease.restore()
    _, told = accept_host(machine, journal)

    assert "somaxconn as it is" in told[0]
    machine.sh("umount /proc/sys/net/core")
    assert restore_host(machine, journal) == ()
    assert machine.read(CONFIGURATION).content == b"demo 1\n"


@IN_EACH_SHELL
def test_a_pipe_in_place_of_a_pid_file_is_not_read_for_ever(machine: PrivateHost, journal: Journal):
    lease = armed(machine, journal, replace(DEMO, stop=("true",), start=("true",)))
    machine.sh("mv /srv/demo.pid /srv/pid; mkfifo /srv/demo.pid")

    with pytest.raises(RestoreFailed, match=r"demo \(it was started and does not run"):
        lease.restore()

    machine.sh("rm /srv/demo.pid; mv /srv/pid /srv/demo.pid")
    lease.restore()


def test_accepting_where_nothing_is_left_does_nothing(machine: PrivateHost, journal: Journal):
    assert accept_host(machine, journal) == ((), ())
    changed(machine, journal).restore()
    assert accept_host(machine, journal) == ((), ())


def test_a_service_is_not_stopped_while_a_file_that_it_needs_cannot_be_read(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)
    machine.sh(RESTART)
    pid = pid_of_service(machine)
    # Whoever reads it from its begin gets EIO; see proc_pid_mem(5).
    machine.sh(f"mount --bind /proc/1/mem {CONFIGURATION}; ! cat {CONFIGURATION} 2> /dev/null")

    (restarted,) = machine.run_all([lease.command_to_activate("restart", "demo")])
    assert (restarted.returncode, b"was left running" in restarted.stderr) == (22, True), restarted
    with pytest.raises(RestoreFailed, match=r"demo \(it was left running .*Input/output error"):
        lease.restore()
    assert pid_of_service(machine) == pid

    machine.sh(f"umount --lazy {CONFIGURATION}")
    lease.restore()
    assert machine.everything() == before


class Renamed:
    """A host under another name, as the same address written in another way."""

    def __init__(self, host: PrivateHost, name: str) -> None:
        self._host, self.name = host, name

    def __getattr__(self, name: str) -> object:
        return getattr(self._host, name)


def test_a_restore_under_another_name_does_not_end_a_run_from_the_same_machine(
    machine: PrivateHost, journal: Journal
):
    lease = armed(machine, journal, watchdog_s=4)
    change(lease, machine, CHANGES)
    changed = machine.everything()

    with (
        Journal(journal.directory) as same_side,
        pytest.raises(TargetError, match="another tuner is at work"),
    ):
        restore_host(Renamed(machine, "ssh://root@web1"), same_side)
    with (
        Journal(journal.directory.parent / "other") as other,
        pytest.raises(TargetError, match="A tuner is at"),
    ):
        restore_host(Renamed(machine, "ssh://root@web1"), other)

    assert machine.everything() == changed
    lease.restore()


def test_originals_are_found_under_another_name_of_the_machine_and_of_no_other_machine(
    machine: PrivateHost, journal: Journal
):
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)
    lease._heartbeat.stop()
    journal.close()
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog); rm -r /var/lib/tuner")

    with Journal(journal.directory) as later:
        assert set(restore_host(Renamed(machine, "ssh://root@web1"), later)) >= set(CHANGES)
    assert not list(journal.directory.glob("*.journal"))


def test_originals_of_a_machine_are_not_put_on_another_one_that_got_its_name(
    machine: PrivateHost, journal: Journal
):
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)
    lease._heartbeat.stop()
    journal.close()
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog); rm -r /var/lib/tuner")
    machine.sh("echo 0123456789abcdef0123456789abcdef > /srv/id; mount --bind /srv/id /etc/machine-id")
    there = machine.everything()

    with Journal(journal.directory) as later, pytest.raises(TargetError, match="belong to another machine"):
        restore_host(machine, later)

    assert machine.everything() == there
