"""A power cut leaves what was synced, the way back for one; and half a keeper is no success."""

from pathlib import PurePosixPath

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tuner.errors import TargetError
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.keeper import replies, requests
from tuner.restore.lease import Lease

NEW = SERVED / "new.d" / "tuner.conf"
CHANGES: Files = {CONFIGURATION: b"demo 2\n", NEW: b"more\n", SETTING: b"512\n"}
STATE = "/var/lib/tuner"
NOT_NEEDED = ("lock", "log", "watching", "watchdog", "values", "incoming", "sessions.new")
"""What the way back does without."""
MODEL = r"""
mount -t tmpfs tmpfs /usr/local/sbin
mkdir -p /srv/disk /srv/cuts
cat > /usr/local/sbin/sync << 'END'
#!/bin/bash
for each; do
    [ "$each" = -- ] && continue
    path=$(readlink -f "$each")
    if [ -d "$path" ]; then
        mkdir -p "/srv/disk$path"
        ls -A "$path" > "/srv/disk$path/.entries"
    else
        mkdir -p "/srv/disk${path%/*}"
        cat "$path" > "/srv/disk$path"
    fi
done
exec /usr/bin/sync "$@"
END
cat > /usr/local/sbin/mv << 'END'
#!/bin/bash
case $PWD in
    /srv/served*)
        number=$(ls /srv/cuts | wc -l)
        mkdir "/srv/cuts/$number"
        cp -a /srv/disk "/srv/cuts/$number/disk"
        cp -a /var/lib/tuner "/srv/cuts/$number/live"
        ;;
esac
case $* in
    *"/journal/new "* | *"/sessions.new "*) /usr/bin/mv "/srv/disk$2" "/srv/disk$3" ;;
esac
exec /usr/bin/mv "$@"
END
chmod 755 /usr/local/sbin/sync /usr/local/sbin/mv
"""
"""A disk that keeps of a file what it held when it was synced, and of a directory its names. What it holds is
copied whenever the keeper is about to rename a file into place."""


def survives(machine: PrivateHost, cut: str, path: str) -> bool:
    """Tell whether a file is on the disk as it is, and each directory on the way has its name."""
    disk = f"/srv/cuts/{cut}/disk"
    place = PurePosixPath(path)
    parents = [place, *place.parents][: len(place.parts) - len(PurePosixPath("/var/lib").parts)]
    names = all(each.name in machine.sh(f"cat {disk}{each.parent}/.entries").split() for each in parents)
    live = f"/srv/cuts/{cut}/live{path.removeprefix(STATE)}"
    return names and machine.run(["cmp", live, f"{disk}{path}"], timeout_s=5).returncode == 0


def test_all_that_the_way_back_needs_is_synced_before_the_first_change(
    machine: PrivateHost, journal: Journal
):
    machine.sh(MODEL)
    lease = Lease(machine, journal=journal, study="s")
    lease.arm([DEMO])
    lease.note_changed(machine.run_all((lease.command_to_change(CHANGES),)))

    cuts = machine.sh("ls /srv/cuts").split()
    assert len(cuts) == 2
    for cut in cuts:
        files = machine.sh(f"cd /srv/cuts/{cut}/live && find . -type f -printf '%P\\n'").splitlines()
        needed = [file for file in files if not PurePosixPath(file).name.startswith(NOT_NEEDED)]
        assert {"keeper", "run/owner", "run/session", "run/services/demo", "run/boot_id"} <= set(needed)
        assert [file for file in needed if not survives(machine, cut, f"{STATE}/{file}")] == []
    assert "run/journal/10001/content" in needed
    assert "run/journal/10001/after" in needed
    lease.restore()


BROKEN = {
    "empty": ": > {0}",
    "cut": 'truncate -s "$(($(wc -c < {0}) / 2))" {0}',
    "zeros": "truncate -s 0 {0}; truncate -s 30000 {0}",
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_a_broken_keeper_says_is_no_success_and_it_is_sent_again(
    machine: PrivateHost, journal: Journal, how: str
):
    before = machine.everything()
    lease = Lease(machine, journal=journal, study="s")
    lease.arm([DEMO])
    lease.note_changed(machine.run_all((lease.command_to_change(CHANGES),)))
    machine.sh("/srv/demo stop; /srv/demo start")
    machine.sh(BROKEN[how].format("/var/lib/tuner/keeper"))

    asked = machine.run(requests.step("restore", "run", "hand", "-").argv, timeout_s=10)
    with pytest.raises(TargetError, match="keeper"):
        replies.read_reply("web1", asked)
    with pytest.raises(TargetError, match="keeper"):
        lease.note_changed(machine.run_all((lease.command_to_change({}),)))
    assert {original.path for original in journal.originals(machine.name)} == set(CHANGES)

    lease.restore()
    assert machine.everything() == before


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_keeper_is_replaced_when_a_target_is_armed(machine: PrivateHost, journal: Journal, how: str):
    Lease(machine, journal=journal, study="s").arm([DEMO])
    machine.sh(BROKEN[how].format("/var/lib/tuner/keeper"))

    with pytest.raises(TargetError, match="Another tuner is at work"):
        Lease(machine, journal=journal, study="s").arm([DEMO])

    assert machine.run(["cat", f"{STATE}/keeper"], timeout_s=5).stdout == requests.program()


def test_originals_come_from_here_when_the_target_has_forgotten_the_session(
    machine: PrivateHost, journal: Journal
):
    before = [machine.read(path) for path in CHANGES]
    lease = Lease(machine, journal=journal, study="s")
    lease.arm([DEMO])
    lease.note_changed(machine.run_all((lease.command_to_change(CHANGES),)))
    machine.sh("/srv/demo stop; /srv/demo start")
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog); rm -r /var/lib/tuner/run")

    lease.restore()

    assert [machine.read(path) for path in CHANGES] == before
    assert not journal.originals(machine.name)
