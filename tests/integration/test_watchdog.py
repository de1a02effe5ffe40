"""Nobody is there any more, in all orders: the target puts itself back, once, and never without need."""

import contextlib
import itertools
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration import hold_lease
from tests.integration.private_machine import CONFIGURATION, DEMO, SETTING, PrivateHost, private_machine
from tests.integration.waiting import holding, wait_until
from tuner.errors import TargetError
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.keeper import requests
from tuner.restore.lease import Lease
from tuner.restore.recovery import confirm, restore_host

WATCHDOG_S = 1.0
LONG_S = 120.0
CHANGES: Files = {CONFIGURATION: b"demo 2\n", SETTING: b"512\n"}
RESTART = "/srv/demo stop; /srv/demo start"
KILL_BOTH = "kill -9 $(cat /var/lib/tuner/run/watchdog)"
NO_CRON = "mount -t tmpfs -o mode=755 tmpfs /usr/sbin"
CRON = f"{NO_CRON}; printf '#!/bin/sh' > /usr/sbin/cron; chmod 755 /usr/sbin/cron"
KILL_FIRST, KILL_SECOND = (
    f"set -- $(cat /var/lib/tuner/run/watchdog); kill -9 ${number}" for number in (1, 2)
)


def changed(
    machine: PrivateHost, journal: Journal, *, purpose: str = "run", watchdog_s: float = WATCHDOG_S
) -> Lease:
    lease = Lease(machine, journal=journal, purpose=purpose, study="s", watchdog_s=watchdog_s)
    lease.arm([DEMO])
    lease.note_changed(machine.run_all((lease.command_to_change(CHANGES),)))
    machine.sh(RESTART)
    if purpose == "apply":
        lease.await_confirmation()
    return lease


def controller(
    machine: PrivateHost, directory: Path
) -> contextlib.AbstractContextManager["subprocess.Popen[bytes]"]:
    """Start a controller that holds the machine, and leave it to the test to kill it."""
    return holding(hold_lease.__file__, machine.first_pid, directory, WATCHDOG_S)


def wait_until_back(machine: PrivateHost, before: str) -> None:
    wait_until(lambda: "everything is back" in machine.log())
    assert machine.everything() == before
    assert machine.log().count("restoring: ") == 1


@dataclass(frozen=True, kw_only=True)
class Kills:
    """What is killed, in this order; and how long nobody may have to wait."""

    first: str = ""
    then: str = ""
    noticed: str = ""
    """What the keeper writes down before the controller is killed."""
    restored_by_hand: bool = False


ORDERS = [
    Kills(),
    Kills(first=KILL_FIRST),
    Kills(first=KILL_SECOND),
    Kills(first=KILL_SECOND, noticed="the watchdog was killed; it goes on"),
    Kills(first=KILL_BOTH, noticed="the watchdog was gone; it is there again"),
    Kills(then=KILL_FIRST),
    Kills(then=KILL_SECOND),
    Kills(first=KILL_BOTH, restored_by_hand=True),
    Kills(then=KILL_BOTH, restored_by_hand=True),
]


def kill_in_order(kills: Kills, shell: str, directory: Path) -> None:
    with private_machine(shell) as machine:
        before = machine.everything()
        with controller(machine, directory) as process:
            if kills.restored_by_hand:
                process.send_signal(signal.SIGSTOP)  # no heartbeat may come in between
            machine.sh(kills.first)
            wait_until(lambda: kills.noticed in machine.log())
            process.kill()
        machine.sh(kills.then)
        if kills.restored_by_hand:
            with Journal(directory) as journal:
                assert set(restore_host(machine, journal)) == set(CHANGES)
        wait_until_back(machine, before)


def test_the_target_puts_itself_back_in_whatever_order_controller_and_watchdog_are_killed(tmp_path: Path):
    # All at once, for it is mostly waiting; in both shells by turns.
    with ThreadPoolExecutor(len(ORDERS)) as pool:
        ended = [
            pool.submit(kill_in_order, kills, shell, tmp_path / str(number))
            for number, (kills, shell) in enumerate(zip(ORDERS, itertools.cycle(["dash", "bash"])))
        ]
    for kills, each in zip(ORDERS, ended, strict=True):
        assert each.exception() is None, kills


@pytest.mark.parametrize("content", [b"demo 3\n", CHANGES[CONFIGURATION]], ids=["another", "the same"])
def test_nothing_is_changed_any_more_after_the_watchdog_has_fired(
    machine: PrivateHost, journal: Journal, content: bytes
):
    lease = changed(machine, journal)
    delayed = (lease.command_to_change({**CHANGES, CONFIGURATION: content}),)
    lease._heartbeat.stop()
    wait_until(lambda: "everything is back" in machine.log())
    machine.sh(f"echo demo of the operator > {CONFIGURATION}")
    mine = machine.everything()

    with pytest.raises(TargetError, match=r"This session has ended \(no heartbeat of the controller"):
        lease.note_changed(machine.run_all(delayed))
    lease.restore()

    assert machine.everything() == mine
    assert machine.log().count("restoring: ") == 1


def test_a_lease_learns_from_its_heartbeat_that_it_was_given_up(machine: PrivateHost, journal: Journal):
    lease = changed(machine, journal, watchdog_s=LONG_S)
    with Journal(journal.directory / "other") as other:
        other_lease = Lease(machine, journal=other, study="s")
        lease.check_alive()
        machine.sh(KILL_BOTH)
        restore_host(machine, other)
        with pytest.raises(TargetError):
            lease._beat(1)

        with pytest.raises(TargetError, match=r"This session has ended \(asked by hand\)"):
            lease.check_alive()

        other_lease.arm([DEMO])
        assert lease.restore() == ()  # that is the other's now
        other_lease.note_changed(machine.run_all((other_lease.command_to_change(CHANGES),)))
        other_lease.restore()


def test_a_healthy_controller_is_never_given_up_whatever_the_clock_says(
    machine: PrivateHost, journal: Journal
):
    # Whoever asks for the time of day gets another year each time.
    machine.sh(
        r"""
        cp "$(command -v date)" /srv/date
        cat > /srv/jumping << 'END'
#!/bin/sh
exec /srv/date -d "$(($(/srv/date +%N | sed 's/^0*//') / 1000000)) years" "$@"
END
        chmod 755 /srv/jumping
        mount --bind /srv/jumping "$(command -v date)"
        """
    )
    lease = changed(machine, journal)

    deadline = time.monotonic() + 3 * WATCHDOG_S
    while time.monotonic() < deadline:
        lease.check_alive()
        time.sleep(WATCHDOG_S / 8)

    assert "restoring" not in machine.log()
    assert machine.read(CONFIGURATION).content == b"demo 2\n"
    lease.restore()


def test_a_target_that_slept_waits_for_the_controller_again(machine: PrivateHost, journal: Journal):
    lease = changed(machine, journal)
    lease._heartbeat.stop()

    machine.sh("kill -STOP $(cat /var/lib/tuner/run/watchdog)")
    time.sleep(2 * WATCHDOG_S)
    machine.sh("kill -CONT $(cat /var/lib/tuner/run/watchdog)")
    lease._beat(2)

    assert "restoring" not in machine.log()
    lease.restore()


def test_after_a_reboot_files_are_put_back_and_settings_left_to_the_kernel(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = changed(machine, journal, watchdog_s=LONG_S)
    lease._heartbeat.stop()
    boot = requests.step("boot", "run")
    assert (
        machine.run(boot.argv, timeout_s=10).stdout == b"nothing\nend\t2\n"
    )  # this boot is the one that it knows
    assert machine.read(CONFIGURATION).content == b"demo 2\n"
    machine.sh(
        f"{KILL_BOTH}; /srv/demo stop; echo another-boot > /var/lib/tuner/run/boot_id; echo 999 > {SETTING}"
    )

    assert machine.run(boot.argv, timeout_s=10).returncode == 0

    assert machine.everything() == before.replace("\n4096\n", "\n999\n")
    assert restore_host(machine, journal) == ()


def test_after_a_reboot_an_unconfirmed_apply_is_undone_in_the_kernel_too(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    changed(machine, journal, purpose="apply", watchdog_s=LONG_S)
    # As sysctl.d sets it at boot, from the file that was applied with it.
    machine.sh(f"{KILL_BOTH.replace('/run/', '/apply/')}; echo another-boot > /var/lib/tuner/apply/boot_id")
    assert machine.read(SETTING).content == CHANGES[SETTING]

    assert machine.run(requests.step("boot", "apply").argv, timeout_s=10).returncode == 0

    assert machine.everything() == before
    assert "everything is back" in machine.log()


def test_without_systemd_cron_guards_a_reboot_or_it_is_said_that_nobody_does(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    machine.sh(NO_CRON)
    lease = Lease(machine, journal=journal, study="s", watchdog_s=LONG_S)
    assert any("nothing guards a reboot here" in each for each in lease.arm([DEMO]))
    lease.restore()

    machine.sh(CRON)
    changed(machine, journal, watchdog_s=LONG_S)._heartbeat.stop()
    machine.sh(f"{KILL_BOTH}; /srv/demo stop; echo another-boot > /var/lib/tuner/run/boot_id")
    machine.sh(f"echo 4096 > {SETTING}; /srv/demo start")
    machine.sh("sed -n 's/^@reboot root //p' /etc/cron.d/tuner-restore | sh")

    assert machine.everything() == before


def test_a_container_that_was_restarted_is_put_back_although_the_boot_is_the_same(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = changed(machine, journal, watchdog_s=LONG_S)
    lease._heartbeat.stop()
    machine.sh(KILL_BOTH)

    assert machine.run(requests.step("boot", "run").argv, timeout_s=10).returncode == 0

    assert machine.everything() == before
    assert restore_host(machine, journal) == ()


def test_an_apply_whose_controller_dies_before_it_is_in_force_is_taken_back_at_once(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = Lease(machine, journal=journal, purpose="apply", study="s", watchdog_s=LONG_S)
    lease.arm([DEMO])
    lease.note_changed(machine.run_all((lease.command_to_change(CHANGES),)))
    lease._heartbeat.stop()
    assert machine.sh("cat /var/lib/tuner/apply/ticking") == "6 20 30\n"
    machine.sh("cd /var/lib/tuner/apply; echo '0.05 5 1' > ticking; read -r _ pid < watchdog; kill -9 $pid")

    wait_until_back(machine, before)

    assert "no heartbeat of the controller" in machine.log()


def test_a_watchdog_ends_with_all_that_is_tuners_when_somebody_has_removed_what_it_watches(
    machine: PrivateHost, journal: Journal
):
    machine.sh(CRON)
    lease = changed(machine, journal, watchdog_s=LONG_S)
    lease._heartbeat.stop()
    assert machine.sh("ls /etc/cron.d") == "tuner-restore\n"

    machine.sh("read -r _ pid < /var/lib/tuner/run/watchdog; rm -r /var/lib/tuner; kill -9 $pid")

    wait_until(lambda: "keeper" not in machine.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true"))
    assert machine.sh("ls /etc/cron.d") == ""


def test_an_apply_that_nobody_confirms_is_taken_back(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    changed(machine, journal, purpose="apply", watchdog_s=4)
    with (
        Journal(journal.directory / "other") as other,
        pytest.raises(TargetError, match=r"An apply waits for `tuner confirm`: .*, study s, since"),
    ):
        Lease(machine, journal=other, study="s").arm([DEMO])

    wait_until_back(machine, before)

    assert "it was not confirmed in time" in machine.log()
    with pytest.raises(TargetError, match=r"Nothing waits to be confirmed \(it was not confirmed in time\)"):
        confirm(machine, journal)
