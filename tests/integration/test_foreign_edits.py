"""What somebody else writes while tuner is at work is never overwritten, and named."""

import contextlib
import shutil
from pathlib import PurePosixPath

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tests.more import leave_to_more
from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.keeper import requests
from tuner.restore.lease import Lease
from tuner.restore.recovery import accept_host

pytestmark = pytest.mark.parametrize(
    "machine", leave_to_more(shell for shell in ("dash", "busybox") if shutil.which(shell)), indirect=True
)
ORIGINAL: Files = {CONFIGURATION: b"demo 1\n"}
NEW = SERVED / "new.conf"
FOREIGN = b"demo of the operator\n"
ENTRY = PurePosixPath("/var/lib/tuner/run/journal/10001")
TCP_RMEM = PurePosixPath("/proc/sys/net/ipv4/tcp_rmem")


@pytest.fixture
def lease(machine: PrivateHost, journal: Journal) -> Lease:
    made = Lease(machine, journal=journal, study="s")
    made.arm([DEMO], files=ORIGINAL)
    return made


def change(lease: Lease, machine: PrivateHost, files: Files) -> None:
    lease.note_changed(machine.run_all((lease.command_to_change(files),)))


def write(machine: PrivateHost, path: PurePosixPath, content: bytes) -> None:
    machine.sh('printf %s "$1" > "$2"', content.decode(), str(path))


def test_a_file_that_changed_between_reading_and_arming_ends_the_run(machine: PrivateHost, journal: Journal):
    write(machine, CONFIGURATION, FOREIGN)
    lease = Lease(machine, journal=journal, study="s")

    with pytest.raises(
        TargetError, match=r"demo\.conf: somebody else has changed this file .*[0-9a-f]{64}, and is "
    ):
        lease.arm([DEMO], files=ORIGINAL)
    lease.restore()

    assert machine.read(CONFIGURATION).content == FOREIGN
    assert "everything is back" in machine.log()


def test_a_file_that_changed_after_arming_is_not_overwritten(
    machine: PrivateHost, lease: Lease, journal: Journal
):
    write(machine, CONFIGURATION, FOREIGN)

    with pytest.raises(TargetError, match=r"demo\.conf: somebody else changed it: it has the SHA-256 "):
        change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    lease.restore()

    assert machine.read(CONFIGURATION).content == FOREIGN
    assert not journal.originals(machine.name)


def test_a_file_that_appeared_after_it_was_found_absent_is_not_overwritten(
    machine: PrivateHost, lease: Lease
):
    command = lease.command_to_change({NEW: b"tuner's\n"})
    write(machine, NEW, FOREIGN)

    with pytest.raises(TargetError, match=r"new\.conf: somebody else changed it.* where tuner had read abs"):
        lease.note_changed(machine.run_all((command,)))
    lease.restore()

    assert machine.read(NEW).content == FOREIGN


@pytest.mark.parametrize("files", [{CONFIGURATION: b"demo 3\n"}, {}], ids=["put", "put back"])
def test_an_edit_between_two_changes_is_kept_beside_the_original(
    machine: PrivateHost, lease: Lease, files: Files
):
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    write(machine, CONFIGURATION, FOREIGN)

    with pytest.raises(TargetError, match=rf"demo\.conf: somebody else .*{ENTRY}/foreign.*{ENTRY}/content"):
        change(lease, machine, files)

    assert machine.read(CONFIGURATION).content == FOREIGN
    assert machine.read(ENTRY / "foreign").content == FOREIGN
    assert machine.read(ENTRY / "content").content == ORIGINAL[CONFIGURATION]
    with pytest.raises(RestoreFailed, match=r"demo\.conf"):
        lease.restore()
    assert machine.read(CONFIGURATION).content == FOREIGN
    write(machine, CONFIGURATION, ORIGINAL[CONFIGURATION])
    lease.restore()


def test_what_tuner_itself_wrote_is_never_somebody_elses(machine: PrivateHost, lease: Lease):
    before = machine.everything()
    for content in (b"demo 2\n", b"demo 3\n", b"demo 2\n"):
        change(lease, machine, {CONFIGURATION: content, NEW: content})
    # As it is after a power cut between what is noted and what is written.
    write(machine, CONFIGURATION, b"demo 3\n")
    change(lease, machine, {CONFIGURATION: b"demo 4\n"})
    assert machine.read(CONFIGURATION).content == b"demo 4\n"
    machine.sh("/srv/demo stop; /srv/demo start")

    lease.restore()

    assert machine.everything() == before


def test_a_setting_that_somebody_else_set_is_named_with_both_values(machine: PrivateHost, lease: Lease):
    change(lease, machine, {SETTING: b"512\n"})
    write(machine, SETTING, b"6000\n")

    with pytest.raises(
        TargetError, match=r"somaxconn:6000: somebody else set .*where it was .*somaxconn:512"
    ):
        change(lease, machine, {CONFIGURATION: b"demo 2\n", SETTING: b"256\n"})

    assert machine.read(CONFIGURATION).content == ORIGINAL[CONFIGURATION]
    assert machine.read(SETTING).content == b"6000\n"


def test_a_setting_that_somebody_else_set_is_left_and_named_until_it_is_accepted(
    machine: PrivateHost, lease: Lease, journal: Journal
):
    original = machine.read(SETTING).content
    assert original is not None
    change(lease, machine, {SETTING: b"512\n", TCP_RMEM: b"4097 131072 6291456\n"})
    rmem = machine.read(TCP_RMEM).content
    write(machine, SETTING, b"6000\n")

    told = rf"somaxconn .*'6000' .*'512' for tuner and '{original.decode().strip()}' before.* {ENTRY}/content"
    for _ in range(2):
        with pytest.raises(RestoreFailed, match=told):
            lease.restore()
        assert machine.read(SETTING).content == b"6000\n"
    assert machine.read(TCP_RMEM).content != rmem
    assert machine.read(ENTRY / "content").content == original
    _, given_up = accept_host(machine, journal)
    assert machine.read(SETTING).content == b"6000\n"
    assert "somaxconn" in " ".join(given_up)


def test_a_setting_that_is_set_while_another_thing_cannot_be_put_back_is_left(
    machine: PrivateHost, lease: Lease
):
    original = machine.read(SETTING).content
    change(lease, machine, {SETTING: b"512\n", CONFIGURATION: b"demo 2\n"})
    write(machine, CONFIGURATION, FOREIGN)
    with pytest.raises(RestoreFailed, match=r"demo\.conf"):
        lease.restore()
    assert machine.read(SETTING).content == original
    write(machine, SETTING, b"6000\n")

    with pytest.raises(RestoreFailed, match=r"somaxconn .*'6000'"):
        lease.restore()

    assert machine.read(SETTING).content == b"6000\n"


def test_a_setting_that_somebody_else_has_put_back_is_no_trouble(machine: PrivateHost, lease: Lease):
    before = machine.everything()
    change(lease, machine, {SETTING: b"512\n"})
    write(machine, SETTING, b"4096\n")

    lease.restore()

    assert machine.everything() == before


def test_a_value_that_the_kernel_writes_in_its_own_way_is_tuners(machine: PrivateHost, lease: Lease):
    for least in (4097, 4098):
        change(lease, machine, {TCP_RMEM: b"%d 131072  6291456\n" % least})
        assert machine.read(TCP_RMEM).content == b"%d\t131072\t6291456\n" % least

    change(lease, machine, {})
    warnings: list[str] = []
    lease.restore(warnings.append)
    assert warnings == []


def test_a_value_that_the_kernel_refused_is_not_taken_for_somebody_elses(machine: PrivateHost, lease: Lease):
    with pytest.raises(ConfigRejected):
        change(lease, machine, {TCP_RMEM: b"4097 131072 6291456\n", SETTING: b"none\n"})

    change(lease, machine, {SETTING: b"512\n"})
    warnings: list[str] = []
    lease.restore(warnings.append)
    assert warnings == []


EDITS = {
    "in place": 'printf "%s" "$content" > "$file"',
    "by rename": 'printf "%s" "$content" > "$file.swp"; /bin/mv "$file.swp" "$file"',
}
HIJACK = """
mount -t tmpfs tmpfs /usr/local/sbin
cat > /usr/local/sbin/mv << 'END'
#!/bin/bash
file=@file@ content='@content@'
case "$*" in *@name@*) if [ ! -e /srv/edited ]; then touch /srv/edited; @edit@; fi ;; esac
exec /bin/mv "$@"
END
chmod 755 /usr/local/sbin/mv
"""


def edit_before_next_rename(machine: PrivateHost, path: PurePosixPath, edit: str) -> None:
    """Let another hand write a file between the keeper's last look at it and its rename."""
    words = {"file": str(path), "content": FOREIGN.decode().strip(), "name": path.name, "edit": EDITS[edit]}
    script = HIJACK
    for word, value in words.items():
        script = script.replace(f"@{word}@", value)
    machine.sh(script)


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("files", [{CONFIGURATION: b"demo 3\n"}, {}], ids=["put", "put back"])
def test_an_edit_in_the_instant_of_the_rename_stays_and_is_named(
    machine: PrivateHost, lease: Lease, files: Files, edit: str
):
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    edit_before_next_rename(machine, CONFIGURATION, edit)

    with pytest.raises(TargetError, match=rf"demo\.conf: somebody else .*{ENTRY}/foreign.*{ENTRY}/content"):
        change(lease, machine, files)

    assert machine.read(CONFIGURATION).content == FOREIGN.strip()
    assert machine.read(ENTRY / "foreign").content == FOREIGN.strip()
    assert machine.sh(f"ls -A {SERVED}") == "demo.conf\n"


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("before", [{}, {NEW: b"tuner's\n"}], ids=["not there yet", "there"])
@pytest.mark.parametrize("files", [{NEW: b"tuner's, too\n"}, {}], ids=["put", "put back"])
def test_an_edit_of_a_new_file_in_the_instant_of_the_rename_stays(
    machine: PrivateHost, lease: Lease, before: Files, files: Files, edit: str
):
    change(lease, machine, before)
    edit_before_next_rename(machine, NEW, edit)

    if before or files:
        with pytest.raises(TargetError, match=r"new\.conf: somebody else"):
            change(lease, machine, files)
        assert machine.read(NEW).content == FOREIGN.strip()
    assert machine.sh(f"ls -A {SERVED}") == ("demo.conf\nnew.conf\n" if before or files else "demo.conf\n")


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_in_the_instant_of_a_restore_stays_and_is_named(
    machine: PrivateHost, lease: Lease, edit: str
):
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    edit_before_next_rename(machine, CONFIGURATION, edit)

    with pytest.raises(RestoreFailed, match=r"demo\.conf.*somebody else .*/content"):
        lease.restore()

    assert machine.read(CONFIGURATION).content == FOREIGN.strip()
    assert machine.sh(f"ls -A {SERVED}") == "demo.conf\n"


def test_a_file_that_was_displaced_when_the_keeper_was_killed_gets_its_name_again(
    machine: PrivateHost, lease: Lease
):
    before = machine.everything()
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    machine.sh(f"mv {CONFIGURATION} {CONFIGURATION}.tuner-old-$(cat /var/lib/tuner/run/session)")

    lease.restore()

    machine.sh("/srv/demo stop; /srv/demo start")
    assert machine.everything() == before


def test_an_edit_that_was_displaced_when_the_keeper_was_killed_is_not_lost(
    machine: PrivateHost, lease: Lease
):
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    session = machine.sh("cat /var/lib/tuner/run/session").strip()
    write(machine, PurePosixPath(f"{CONFIGURATION}.tuner-old-{session}"), FOREIGN)

    with pytest.raises(RestoreFailed, match=r"demo\.conf.*somebody else"):
        lease.restore()

    assert machine.read(CONFIGURATION).content == FOREIGN
    assert machine.sh(f"ls -A {SERVED}") == "demo.conf\n"


def test_what_an_earlier_session_displaced_is_left_where_it_is(machine: PrivateHost, lease: Lease):
    stale = {f"{CONFIGURATION}.tuner-old{end}": b"of long ago\n" for end in ("", f"-{16 * '0'}")}
    for path, content in stale.items():
        write(machine, PurePosixPath(path), content)
    before = machine.read(CONFIGURATION)

    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    assert machine.read(CONFIGURATION).content == b"demo 2\n"
    lease.restore()

    assert machine.read(CONFIGURATION) == before
    assert {path: machine.read(PurePosixPath(path)).content for path in stale} == stale


@pytest.mark.parametrize("file", ["after is empty", "after is not there"])
def test_what_tuner_never_wrote_is_not_overwritten_by_a_restore(
    machine: PrivateHost, lease: Lease, file: str
):
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    # As after a disk that was full when the original had been kept.
    machine.sh(f": > {ENTRY}/after" if "empty" in file else f"rm {ENTRY}/after")
    write(machine, CONFIGURATION, FOREIGN)

    with contextlib.suppress(RestoreFailed):
        lease.restore()

    assert machine.read(CONFIGURATION).content == FOREIGN


def test_a_pipe_in_the_place_of_a_file_makes_the_keeper_wait_for_nobody(machine: PrivateHost):
    functions = requests.program().decode().rpartition("main ")[0]
    machine.sh("mkfifo /srv/pipe; ln -s pipe /srv/link")
    for each in ("pipe", "link"):
        tried = f"{functions}\n(open_file /srv/{each}) && echo opened || echo refused"
        assert machine.sh('timeout 5 sh -c "$1" keeper', tried) == "refused\n"
