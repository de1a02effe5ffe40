"""The target has lost what it kept: the controller gives it keeper, plan and originals again."""

from pathlib import Path

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tests.integration.test_keeper import IN_EACH_SHELL, armed, change
from tests.more import leave_to_more
from tuner.errors import RestoreFailed, TargetError
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.restore.recovery import restore_host

NEW = SERVED / "new.d" / "limits" / "tuner.conf"
CHANGES: Files = {CONFIGURATION: b"demo 2, longer\n", NEW: b"more\n", SETTING: b"512\n"}
ACL = "system.posix_acl_access"
GRANTED = "02000000" + "".join(
    f"{tag:02x}00{may:02x}00{who:08x}"
    for tag, may, who in [
        (0x01, 6, 0xFFFFFFFF),
        (0x02, 4, 0x09000000),
        (0x04, 4, 0xFFFFFFFF),
        (0x10, 4, 0xFFFFFFFF),
        (0x20, 0, 0xFFFFFFFF),
    ]
)
"""An access list by which the user 9 may read the file, as the kernel takes it (acl(5))."""
LOSSES = ("rm -r /var/lib/tuner", "rm -r /var/lib/tuner/run", "rm /var/lib/tuner/keeper")
KILL_BOTH = "kill -9 $(cat /var/lib/tuner/run/watchdog)"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def changed(machine: PrivateHost, journal: Journal) -> Lease:
    lease = armed(machine, journal)
    change(lease, machine, {**CHANGES, CONFIGURATION: b"demo 1.5\n"})
    change(lease, machine, CHANGES)
    machine.sh("/srv/demo stop; /srv/demo start")
    return lease


def abandoned(machine: PrivateHost, state: Path) -> None:
    """Leave the machine changed, by a controller that is dead."""
    with Journal(state) as journal:
        changed(machine, journal)._heartbeat.stop()


@IN_EACH_SHELL
@pytest.mark.parametrize("loss", leave_to_more(LOSSES))
def test_a_run_that_lives_puts_back_what_the_target_has_lost(machine: PrivateHost, state: Path, loss: str):
    before = machine.everything()
    with Journal(state) as journal:
        lease = changed(machine, journal)
        machine.sh(loss)

        assert set(lease.restore()) >= set(CHANGES)

        assert without_time(machine.everything()) == without_time(before)
        assert not list(state.iterdir())


@IN_EACH_SHELL
@pytest.mark.parametrize("loss", leave_to_more(LOSSES))
def test_a_restore_puts_back_what_the_target_has_lost_of_a_dead_run(
    machine: PrivateHost, state: Path, loss: str
):
    machine.sh(
        f"python3 -c \"import os; os.setxattr('{CONFIGURATION}', '{ACL}', bytes.fromhex('{GRANTED}'))\""
    )
    attributes = f"python3 -c \"import os; print(os.getxattr('{CONFIGURATION}', '{ACL}').hex())\""
    before = machine.everything() + machine.sh(attributes)
    assert GRANTED in before
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; {loss}; /srv/demo stop")

    with Journal(state) as journal:
        assert set(restore_host(machine, journal)) >= set(CHANGES)
        assert restore_host(machine, journal) == ()

    after = machine.everything() + machine.sh(attributes)
    assert without_time(after) == without_time(before)
    assert not list(state.iterdir())


def without_time(told: str) -> str:
    """Leave out when the file was changed: the controller does not keep that."""
    return "\n".join(" ".join(line.split(" ")[:5]) for line in told.splitlines())


def test_the_next_run_puts_back_what_the_target_has_lost_and_begins(machine: PrivateHost, state: Path):
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; rm -r /var/lib/tuner")

    with Journal(state) as journal:
        lease = armed(machine, journal)

        assert machine.read(CONFIGURATION).content == b"demo 1\n"
        assert machine.sh("cat /srv/in-force") == "demo 1\n"
        change(lease, machine, CHANGES)
        lease.restore()
    assert machine.read(CONFIGURATION).content == b"demo 1\n"


def test_a_machine_that_has_lost_the_keeper_alone_is_put_back_from_anywhere(
    machine: PrivateHost, state: Path, tmp_path: Path
):
    before = machine.everything()
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; rm /var/lib/tuner/keeper; echo '0.01 10 5' > /var/lib/tuner/run/ticking")

    with Journal(tmp_path / "colleague") as colleague:
        assert set(restore_host(machine, colleague)) >= set(CHANGES)

    assert machine.everything() == before


def test_the_second_way_overwrites_no_value_that_somebody_else_has_set(
    machine: PrivateHost, state: Path, tmp_path: Path
):
    abandoned(machine, state)
    machine.sh("echo '0.01 10 5' > /var/lib/tuner/run/ticking")
    with Journal(tmp_path / "colleague") as colleague:
        restore_host(machine, colleague)
    machine.sh(f"rm -r /var/lib/tuner; echo 999 > {SETTING}")

    with Journal(state) as journal, pytest.raises(RestoreFailed, match="somebody else has set it to '999'"):
        restore_host(machine, journal)

    assert machine.read(SETTING).content == b"999\n"


def test_the_second_way_overwrites_nobodys_edits(machine: PrivateHost, state: Path):
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; rm -r /var/lib/tuner; echo demo of the operator > {CONFIGURATION}")

    with (
        Journal(state) as journal,
        pytest.raises(RestoreFailed, match=r"demo\.conf \(somebody else has changed it"),
    ):
        restore_host(machine, journal)

    assert machine.read(CONFIGURATION).content == b"demo of the operator\n"
    assert machine.read(SETTING).content == b"4096\n"
    assert list(state.iterdir())


def test_what_the_target_has_put_back_itself_is_not_sent_again(machine: PrivateHost, state: Path):
    abandoned(machine, state)
    with Journal(state.parent / "other") as other:
        machine.sh(KILL_BOTH)
        restore_host(machine, other)
        # However many others begin meanwhile.
        machine.sh("seq -f %032.0f 200 >> /var/lib/tuner/run/sessions")
        lease = armed(machine, other)
        lease.restore()
    machine.sh(f"echo demo of the operator > {CONFIGURATION}")

    with Journal(state) as journal:
        assert restore_host(machine, journal) == ()

    assert machine.read(CONFIGURATION).content == b"demo of the operator\n"
    assert not list(state.iterdir())


def test_the_copy_is_kept_while_another_tuner_has_the_target(machine: PrivateHost, state: Path):
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; rm -r /var/lib/tuner")
    with Journal(state.parent / "other") as other, Journal(state) as journal:
        lease = armed(machine, other)

        with pytest.raises(TargetError, match=r"[Aa]nother tuner|A tuner is at work"):
            armed(machine, journal)
        assert journal.originals("local")

        lease.restore()
        restore_host(machine, journal)
    assert machine.read(CONFIGURATION).content == b"demo 1\n"


@IN_EACH_SHELL
def test_a_second_way_that_is_cut_off_is_gone_again(machine: PrivateHost, state: Path):
    before = machine.everything()
    abandoned(machine, state)
    machine.sh(f"{KILL_BOTH}; rm -r /var/lib/tuner; mkdir /var/lib/tuner; touch /var/lib/tuner/run")

    with Journal(state) as journal:
        with pytest.raises(TargetError):
            restore_host(machine, journal)
        machine.sh("rm /var/lib/tuner/run")
        restore_host(machine, journal)

    assert without_time(machine.everything()) == without_time(before)


def test_a_copy_of_the_controller_does_not_take_a_run_for_its_own(machine: PrivateHost, state: Path):
    copy = state.parent / "copy"
    with Journal(state) as journal:
        lease = Lease(machine, journal=journal, study="s", watchdog_s=2)
        lease.arm([DEMO])
        copy.mkdir()
        for file in state.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())

        with Journal(copy) as copied, pytest.raises(TargetError, match="A tuner is at work"):
            restore_host(machine, copied)

        lease.check_alive()
        lease.restore()
