"""What was applied: confirmed, taken back apply by apply, and never over what somebody else wrote."""

from pathlib import Path

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SETTING, PrivateHost
from tests.integration.test_keeper import CHANGES, IN_EACH_SHELL, LONG_S, change
from tests.integration.waiting import wait_until
from tuner.errors import RestoreFailed, TargetError
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.keeper import requests
from tuner.restore.lease import Lease
from tuner.restore.recovery import confirm, find_applied, restore_host, undo

RESTART = "/srv/demo stop; /srv/demo start"
KILL_BOTH = "kill -9 $(cat /var/lib/tuner/apply/watchdog)"


def apply(machine: PrivateHost, journal: Journal, files: Files, *, study: str = "s") -> None:
    """Put files on the machine as `tuner apply` does; its lease is left to the machine."""
    lease = Lease(machine, journal=journal, purpose="apply", study=study, watchdog_s=LONG_S)
    lease.arm([DEMO])
    change(lease, machine, files)
    machine.sh(RESTART)
    lease.await_confirmation()


def take_back(machine: PrivateHost, journal: Journal, *, accepts: bool = False, warn=print) -> None:
    applied = find_applied(machine, journal)
    assert applied is not None
    undo(machine, journal, applied, accepts=accepts, warn=warn)


@IN_EACH_SHELL
def test_each_apply_is_taken_back_to_what_it_found(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    apply(machine, journal, CHANGES, study="first")
    confirm(machine, journal)
    first = machine.everything()
    apply(machine, journal, {CONFIGURATION: b"demo 3\n"}, study="second")
    confirm(machine, journal)
    assert restore_host(machine, journal) == ()

    applied = find_applied(machine, journal)
    assert applied is not None
    assert (applied.study, applied.paths, applied.earlier) == ("second", (CONFIGURATION,), 1)
    assert applied.services == ("demo",)
    take_back(machine, journal)
    assert machine.everything() == first
    take_back(machine, journal)
    assert machine.everything() == before
    assert find_applied(machine, journal) is None
    assert machine.sh("ls /var/lib/tuner/applied") == ""


@IN_EACH_SHELL
def test_what_an_administrator_wrote_between_two_applies_is_back_after_an_undo(
    machine: PrivateHost, journal: Journal
):
    apply(machine, journal, CHANGES)
    confirm(machine, journal)
    machine.sh(f"echo demo with a site >> {CONFIGURATION}")
    with_site = machine.read(CONFIGURATION)
    apply(machine, journal, {CONFIGURATION: b"demo 3\n"})
    confirm(machine, journal)

    take_back(machine, journal)
    assert machine.read(CONFIGURATION) == with_site

    with pytest.raises(
        RestoreFailed, match=r"it has the SHA-256 .*, tuner wrote .*journal/\d+/content"
    ) as told:
        take_back(machine, journal)
    assert "tuner has changed nothing" in str(told.value)
    assert machine.read(CONFIGURATION) == with_site
    assert machine.read(SETTING).content == b"512\n"

    left: list[str] = []
    take_back(machine, journal, accepts=True, warn=left.append)
    assert machine.read(CONFIGURATION) == with_site
    assert machine.read(SETTING).content == b"4096\n"
    (sentence,) = [each for each in left if " as it is" in each]
    original = machine.sh(f"cat {sentence.rsplit(' ', 1)[1].rstrip('.')}/content")
    assert original == "demo 1\n"
    assert find_applied(machine, journal) is None


@pytest.mark.parametrize(
    "edit",
    [f"echo demo of the operator > {CONFIGURATION}", f"echo 1024 > {SETTING}"],
    ids=["file", "setting"],
)
def test_an_edit_before_the_confirmation_is_nobody_elses_than_the_administrators(
    machine: PrivateHost, journal: Journal, edit: str
):
    apply(machine, journal, CHANGES)
    machine.sh(edit)
    edited = machine.everything()
    warnings: list[str] = []

    confirm(machine, journal, warnings.append)

    assert "was changed after it was applied" in "".join(warnings)
    with pytest.raises(RestoreFailed, match="changed after tuner had applied it"):
        take_back(machine, journal)
    assert machine.everything() == edited


def test_a_mode_that_somebody_else_has_set_stays(machine: PrivateHost, journal: Journal):
    apply(machine, journal, CHANGES)
    machine.sh(f"chmod 600 {CONFIGURATION}; chown 9:9 {CONFIGURATION}")
    warnings: list[str] = []

    take_back(machine, journal, warn=warnings.append)

    found = machine.read(CONFIGURATION)
    assert (found.content, found.mode, found.uid, found.gid) == (b"demo 1\n", 0o600, 9, 9)
    assert any("has changed its mode or owner, which stay" in each for each in warnings)
    assert find_applied(machine, journal) is None


def test_an_apply_that_has_not_come_to_its_end_is_not_confirmed(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    lease = Lease(machine, journal=journal, purpose="apply", study="s", watchdog_s=LONG_S)
    lease.arm([DEMO])
    change(lease, machine, CHANGES)

    with pytest.raises(TargetError, match="has not finished, so it is not confirmed"):
        confirm(machine, journal)

    lease._heartbeat.stop()
    take_back(machine, journal)
    assert machine.everything() == before


def test_what_has_no_service_is_confirmed_and_taken_back(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    lease = Lease(machine, journal=journal, purpose="apply", study="s", watchdog_s=LONG_S)
    lease.arm([])
    change(lease, machine, {SETTING: b"512\n"})
    lease.await_confirmation()

    confirm(machine, journal)

    take_back(machine, journal)
    assert machine.everything() == before


def test_a_confirmation_that_was_killed_is_finished_by_who_asks_what_was_applied(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    apply(machine, journal, CHANGES)
    machine.sh(f"{KILL_BOTH}; touch /var/lib/tuner/apply/confirmed")  # it is killed after this

    applied = find_applied(machine, journal)

    assert applied is not None
    assert applied.which != "open"
    take_back(machine, journal)
    assert machine.everything() == before


def test_an_apply_that_waits_to_be_confirmed_is_taken_back_at_once(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    apply(machine, journal, CHANGES)

    take_back(machine, journal)

    assert machine.everything() == before
    assert not list(journal.directory.iterdir())
    with pytest.raises(TargetError, match="Nothing waits to be confirmed"):
        confirm(machine, journal)


def test_an_undo_that_is_killed_is_brought_to_its_end_by_the_watchdog(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    apply(machine, journal, CHANGES)
    confirm(machine, journal)
    # It stops, and waits: then the keeper is killed, and goes on without anybody.
    machine.sh(
        "mkfifo /srv/gate; sed -i 's|    stop)|    stop) : > /srv/stopping; read -r _ < /srv/gate|' /srv/demo"
    )
    applied = find_applied(machine, journal)
    assert applied is not None
    step = requests.step("undo", "apply", applied.which).argv
    # In a session of its own before this shell ends, and its group with it.
    begun = f"echo $$ > /srv/undo; exec {' '.join(step)}"
    machine.sh(
        f"setsid sh -c '{begun}' > /dev/null 2>&1 < /dev/null & while [ ! -s /srv/undo ]; do sleep 0.01; done"
    )
    wait_until(lambda: "stopping" in machine.sh("ls /srv"))
    machine.sh("kill -9 $(cat /srv/undo); sed -i 's|read -r _ < /srv/gate||' /srv/demo; echo > /srv/gate")
    # Its process that counts has read that it waits for half a minute; the other one starts it again.
    machine.sh("cd /var/lib/tuner/apply; echo '0.1 10 0.1' > ticking; read -r _ pid < watchdog; kill -9 $pid")

    # A process that had begun to wait before looks again after its half minute.
    wait_until(lambda: "owner" not in machine.sh("ls /var/lib/tuner/apply"), patience_s=60)

    assert machine.everything() == before


@pytest.mark.parametrize(
    "loss", ["true", "rm /var/lib/tuner/keeper", "rm -r /var/lib/tuner/apply", "rm -r /var/lib/tuner"]
)
def test_what_was_confirmed_elsewhere_is_not_taken_back_by_a_copy_of_its_originals(
    machine: PrivateHost, journal: Journal, tmp_path: Path, loss: str
):
    apply(machine, journal, CHANGES)
    with Journal(tmp_path / "colleague") as colleague:
        confirm(machine, colleague)
    machine.sh(loss)
    applied = machine.everything()

    if loss != "rm -r /var/lib/tuner":
        assert restore_host(machine, journal) == ()
    else:
        with pytest.raises(TargetError, match=r"has lost its record of the apply of s \(.*tuner confirm"):
            restore_host(machine, journal)
        with pytest.raises(TargetError, match=r"has lost its record"):
            Lease(machine, journal=journal, study="another").arm([DEMO])
        assert machine.everything() == applied
        warnings: list[str] = []
        confirm(machine, journal, warnings.append)
        (aside,) = journal.directory.glob("*.journal.*")
        assert str(aside) in "".join(warnings)

    assert machine.everything() == applied
    assert not list(journal.directory.glob("*.journal"))


def test_an_apply_of_which_the_machine_has_lost_everything_is_taken_back_on_demand(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    apply(machine, journal, CHANGES)
    machine.sh(f"{KILL_BOTH}; rm -r /var/lib/tuner")

    take_back(machine, journal)

    assert without_time(machine.everything()) == without_time(before)
    assert not list(journal.directory.glob("*.journal"))


def without_time(told: str) -> str:
    """Leave out when the file was changed: the controller does not keep that."""
    return "\n".join(" ".join(line.split(" ")[:5]) for line in told.splitlines())


def test_what_an_earlier_version_applied_is_taken_back(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    apply(machine, journal, {CONFIGURATION: b"demo 2\n"})
    confirm(machine, journal)
    machine.sh("cd /var/lib/tuner/applied; mv 10001/* .; rmdir 10001; rm owner ended journal/values")

    take_back(machine, journal)

    assert machine.everything() == before
