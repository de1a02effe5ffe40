"""What is changed through a lease comes back, and nothing else is changed. On a private machine each."""

import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tests.integration.waiting import wait_until
from tests.more import leave_to_more
from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.ports import Completed, Files, Service
from tuner.restore.journal import Journal
from tuner.restore.keeper import requests
from tuner.restore.lease import Lease
from tuner.restore.recovery import describe_use, restore_host

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
LONG_S = 120.0
NEW = SERVED / "new.d" / "limits" / "tuner.conf"
CHANGES: Files = {CONFIGURATION: b"demo 2, longer\n", NEW: b"more\n", SETTING: b"512\n"}


IN_EACH_SHELL = pytest.mark.parametrize("machine", leave_to_more(SHELLS), indirect=True)
"""For tests that take the keeper through what shells do differently: redirections, patterns, descriptors."""


def armed(machine: PrivateHost, journal: Journal, *services: Service, watchdog_s: float = LONG_S) -> Lease:
    lease = Lease(machine, journal=journal, study="a study", watchdog_s=watchdog_s)
    lease.arm(services or (DEMO,))
    return lease


def change(lease: Lease, machine: PrivateHost, files: Files) -> None:
    lease.note_changed(machine.run_all((lease.command_to_change(files),)))


@IN_EACH_SHELL
def test_everything_comes_back(machine: PrivateHost, journal: Journal):
    machine.sh(
        f"mkdir /srv/available; echo site > /srv/available/site; ln -s /srv/available/site {SERVED}/site"
    )
    before = machine.everything()
    lease = armed(machine, journal)
    assert set(machine.sh("cd /var/lib/tuner; stat -c %a . run keeper").split()) == {"700"}

    change(lease, machine, {**CHANGES, SERVED / "site": b"another site\n"})
    assert machine.read(CONFIGURATION).content == b"demo 2, longer\n"
    assert machine.read(CONFIGURATION).mode == 0o640
    assert machine.read(NEW).mode == 0o644
    assert machine.sh("cat /srv/available/site") == "another site\n"
    assert machine.read(SETTING).content == b"512\n"
    machine.sh("/srv/demo stop; /srv/demo start")
    written = lease.restore()

    assert machine.everything() == before
    assert machine.sh("cat /srv/available/site") == "site\n"
    assert written[0] == PurePosixPath("/srv/available/site")  # the last change first
    assert set(written) >= {*CHANGES, NEW.parent, NEW.parent.parent}
    assert not list(journal.directory.iterdir())
    assert machine.sh("ls /var/lib/tuner/run") in (
        "ended\nsessions\nwatching\n",
        "ended\nsessions\nwatchdog\nwatching\n",
    )
    assert lease.restore() == ()
    assert restore_host(machine, journal) == ()


def test_a_limit_that_a_restart_would_lose_is_named_before_the_first_change(
    machine: PrivateHost, journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    # As root in a container may be: hard limits can be lowered, and not raised again.
    weak = ("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource")
    entrance = (*machine.entrance, "prlimit", "--nofile=1000:1000", *weak)
    monkeypatch.setattr(PrivateHost, "entrance", entrance)
    lease = Lease(machine, journal=journal, study="a study", watchdog_s=LONG_S)

    warnings = lease.arm((DEMO,))

    assert any("demo: a restart loses these limits" in each and "--nofile" in each for each in warnings)
    lease.restore()


def test_exactly_the_given_files_differ_from_the_originals(machine: PrivateHost, journal: Journal):
    before = machine.everything()
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)

    change(lease, machine, {CONFIGURATION: b"demo 3\n"})

    assert machine.read(CONFIGURATION).content == b"demo 3\n"
    assert machine.sh(f"ls -A {NEW.parent}") == ""
    assert machine.read(SETTING).content == b"4096\n"
    in_place = machine.everything()
    change(lease, machine, {CONFIGURATION: b"demo 3\n"})
    assert machine.everything() == in_place
    change(lease, machine, {})
    assert machine.read(CONFIGURATION).content == b"demo 1\n"
    lease.restore()
    assert machine.everything() == before


def test_a_service_is_left_alone_when_nothing_was_changed_and_started_when_it_is_down(
    machine: PrivateHost, journal: Journal
):
    armed(machine, journal).restore()
    assert machine.sh("cat /srv/demo.log") == "started\n"

    lease = armed(machine, journal)
    machine.sh("/srv/demo stop")
    lease.restore()

    assert machine.sh("cat /srv/demo.log; kill -0 $(cat /srv/demo.pid)") == "started\n" * 2


def test_a_service_that_did_not_run_does_not_run_afterwards(machine: PrivateHost, journal: Journal):
    machine.sh("/srv/demo stop")
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)
    machine.sh("/srv/demo start")

    lease.restore()

    assert machine.sh("ls /srv/demo.pid 2>&1 || true").endswith("No such file or directory\n")


def test_a_service_that_does_not_come_back_is_loud(machine: PrivateHost, journal: Journal):
    machine.sh(f"sed -i s/demo/broken/ {CONFIGURATION}")
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)

    with pytest.raises(RestoreFailed, match=r"demo \(it does not start: demo: no configuration"):
        lease.restore()

    machine.sh(f"sed -i s/broken/demo/ {CONFIGURATION}")
    with pytest.raises(RestoreFailed):  # that is not how it was
        restore_host(machine, journal)


REFUSED = {
    b"put 1 absent srv/served/x": "not an absolute path",
    b"put 1 absent /srv/served/../x": "not a normal path",
    b"put 1 absent /srv//served/x": "not a normal path",
    b"put 1 absent /srv/served/": "not a normal path",
    b"put 1 absent /srv/served/a\tb": "control characters",
    b"put 1 absent /proc/1/oom_score_adj": "not a setting",
    b"put 1 absent /dev/null": "not a setting",
    b"put 1 absent /var/lib/tuner/keeper": "belongs to tuner itself",
    b"put 1 absent /srv/served": "is not a file",
    b"put 1 absent /srv/served/loop": "leads nowhere",
    b"put 1 absent /srv/served/to-keeper": "belongs to tuner itself",
    b"put 1 absent /srv/served/two": "several names",
    b"put a[$(touch$IFS/srv/owned)] absent /srv/served/x": "no number",
    b"set /proc/sys/net/core/no_such_thing\n1": "no such setting",
    b"set /srv/served/demo.conf\n1": "not a setting",
    b"put 1 absent /proc/sys/net/core/somaxconn": "one line",
    b"$(touch /srv/owned)": "not known",
    b"": "not known",
}
"""What a controller that is not ours may ask, and what it is told."""
ORIGINALS = {CONFIGURATION: requests.checksum(b"demo 1\n")}


@IN_EACH_SHELL
def test_what_may_not_be_changed_is_refused(machine: PrivateHost, journal: Journal):
    machine.sh(
        f"""
        ln -s loop {SERVED}/loop
        ln -s /var/lib/tuner/keeper {SERVED}/to-keeper
        echo two > /srv/one
        ln /srv/one {SERVED}/two
        """
    )
    armed(machine, journal)
    session = machine.sh("cat /var/lib/tuner/run/session").strip()
    before = machine.everything()

    for line, told in REFUSED.items():
        head = line + b"\n"
        request = requests.step(
            "change", "run", session, str(len(head)), str(len(head) + 1), stdin=head + b"x"
        )
        (ended,) = machine.run_all([request])
        assert (ended.returncode, told in ended.stderr.decode()) == (22, True), ended
    cut_off = requests.change("run", session, put={CONFIGURATION: b"demo 2\n"}, back=[], originals=ORIGINALS)
    assert machine.run(cut_off.argv, timeout_s=10, stdin=cut_off.stdin[:-1]).returncode == 22
    other = requests.change("run", "a" * 16, put={CONFIGURATION: b"demo 2\n"}, back=[], originals=ORIGINALS)
    assert machine.run(other.argv, timeout_s=10, stdin=other.stdin).returncode == 23

    assert machine.everything() == before
    assert "owned" not in machine.sh("ls -A / /srv /var/lib/tuner /var/lib/tuner/run/journal")


def test_planted_links_are_not_followed(machine: PrivateHost, journal: Journal):
    machine.sh(f"echo victim > /srv/victim; ln -s /srv/victim {SERVED}/.tuner-new")
    lease = armed(machine, journal)

    change(lease, machine, CHANGES)
    machine.sh(f"ln -sf /srv/victim {SERVED}/.tuner-new")
    lease.restore()

    assert machine.sh("cat /srv/victim") == "victim\n"
    assert machine.sh(f"ls -A {SERVED}") == "demo.conf\n"


def test_a_value_that_the_kernel_refuses_counts_against_the_configuration(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = armed(machine, journal)

    with pytest.raises(ConfigRejected, match="somaxconn: the kernel refused 'none'"):
        change(lease, machine, {CONFIGURATION: b"demo 2\n", SETTING: b"none\n"})
    change(lease, machine, {CONFIGURATION: b"demo 2\n", SETTING: b"256\n"})

    assert machine.read(SETTING).content == b"256\n"
    machine.sh("/srv/demo stop; /srv/demo start")
    lease.restore()
    assert machine.everything() == before


def test_a_second_tuner_is_told_who_is_at_work(machine: PrivateHost, journal: Journal, tmp_path: Path):
    lease = armed(machine, journal, watchdog_s=2)

    with Journal(tmp_path / "elsewhere") as elsewhere:
        with pytest.raises(TargetError, match=r"Another tuner is at work: .*study a study, since 20.*Wait"):
            armed(machine, elsewhere)
        with pytest.raises(TargetError, match=r"A tuner is at work: .*End it there"):
            restore_host(machine, elsewhere)
    (sentence,) = describe_use(machine)
    assert re.fullmatch(r"local: a tuner is at work \(run\): .*, study a study, since 20.*Z\.", sentence)

    change(lease, machine, CHANGES)
    lease.restore()
    assert describe_use(machine) == ()


def test_what_a_dead_tuner_left_is_explained_and_not_taken(machine: PrivateHost, tmp_path: Path):
    before = machine.everything()
    with Journal(tmp_path / "dead") as dead:
        lease = armed(machine, dead)
        change(lease, machine, CHANGES)
        lease._heartbeat.stop()
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog)")

    for directory in ("dead", "elsewhere"):
        with (
            Journal(tmp_path / directory) as later,
            pytest.raises(
                TargetError, match=r"A tuner was killed .*study a study, since .*Run `tuner restore`"
            ),
        ):
            armed(machine, later)
    with Journal(tmp_path / "elsewhere") as elsewhere:
        assert CONFIGURATION in restore_host(machine, elsewhere)

    assert machine.everything() == before


def test_nothing_is_left_of_one_who_died_before_it_changed_anything(machine: PrivateHost, tmp_path: Path):
    with Journal(tmp_path / "dead") as dead:
        armed(machine, dead)._heartbeat.stop()
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog); rm /var/lib/tuner/run/session")

    with Journal(tmp_path / "other") as other:
        armed(machine, other).restore()


@IN_EACH_SHELL
def test_a_full_disk_does_not_prevent_restoring(machine: PrivateHost, journal: Journal):
    machine.sh(
        f"""
        mount -t tmpfs -o size=600k,mode=755 tmpfs /var/lib
        mkdir {SERVED}/full
        mount -t tmpfs -o size=64k,mode=755 tmpfs {SERVED}/full
        head -c 20000 /dev/urandom > {SERVED}/full/large
        """
    )
    large, small = SERVED / "full" / "large", SERVED / "full" / "new"
    before = machine.everything()
    lease = armed(machine, journal)
    change(lease, machine, {**CHANGES, large: bytes(20_001), small: b"x"})
    machine.sh(
        f"""
        cat /dev/zero > {SERVED}/full/filler || true
        cat /dev/zero > /var/lib/filler || true
        """
    )
    with pytest.raises(TargetError, match="has no space"):
        change(lease, machine, {large: bytes(20_000)})

    lease.restore()

    machine.sh(f"rm {SERVED}/full/filler /var/lib/filler")
    # It was written in place, so it has a new time.
    machine.sh(f"touch -d 2001-01-01 {large}")
    assert [line for line in machine.everything().splitlines() if "f 644 0 0" not in line] == [
        line for line in before.splitlines() if "f 644 0 0" not in line
    ]


@IN_EACH_SHELL
def test_an_original_for_which_there_is_no_room_is_not_put_back_in_part(
    machine: PrivateHost, journal: Journal
):
    machine.sh(
        f"""
        mkdir {SERVED}/full
        mount -t tmpfs -o size=64k,mode=755 tmpfs {SERVED}/full
        head -c 20000 /dev/urandom > {SERVED}/full/large
        """
    )
    large = SERVED / "full" / "large"
    before = machine.read(large).content
    lease = armed(machine, journal)
    change(lease, machine, {large: b"small"})
    machine.sh(f"cat /dev/zero > {SERVED}/full/filler || true")

    with pytest.raises(RestoreFailed, match="large"):
        lease.restore()

    assert machine.read(large).content == b"small"
    machine.sh(f"rm {SERVED}/full/filler")
    lease.restore()
    assert machine.read(large).content == before


@IN_EACH_SHELL
def test_what_cannot_be_put_back_is_named_and_tried_again_until_it_can(
    machine: PrivateHost, journal: Journal
):
    before = machine.everything()
    lease = armed(machine, journal, watchdog_s=1)
    change(lease, machine, CHANGES)
    machine.sh("/srv/demo stop; /srv/demo start")
    # As good as immutable: nothing can be renamed over it or written to it.
    machine.sh(f"mount --bind {CONFIGURATION} {CONFIGURATION}; mount -o remount,ro,bind {CONFIGURATION}")

    with pytest.raises(RestoreFailed, match=r"demo\.conf \(.*Read-only file system.*\)\. The backups are"):
        lease.restore()
    assert machine.read(SETTING).content == b"4096\n"
    assert machine.sh("ls /var/lib/tuner/run/journal") != ""

    machine.sh(f"umount {CONFIGURATION}")
    wait_until(lambda: "everything is back" in machine.log())  # the watchdog did it
    assert machine.everything() == before
    assert restore_host(machine, journal) == ()


def test_a_damaged_original_is_not_put_back(machine: PrivateHost, journal: Journal):
    lease = armed(machine, journal)
    change(lease, machine, {CONFIGURATION: b"demo 2\n"})
    machine.sh("echo demo 9 > /var/lib/tuner/run/journal/10001/content")

    with pytest.raises(RestoreFailed, match=r"demo\.conf \(its original in .*10001 is damaged"):
        lease.restore()

    assert machine.read(CONFIGURATION).content == b"demo 2\n"


def test_a_target_that_lost_its_journal_is_restored_from_here(machine: PrivateHost, journal: Journal):
    before = machine.read(CONFIGURATION)
    lease = armed(machine, journal)
    change(lease, machine, CHANGES)
    lease._heartbeat.stop()
    machine.sh("kill -9 $(cat /var/lib/tuner/run/watchdog); rm -r /var/lib/tuner")

    assert set(restore_host(machine, journal)) >= set(CHANGES)

    assert machine.read(CONFIGURATION) == before
    assert machine.read(SETTING).content == b"4096\n"


def test_what_the_target_has_put_back_itself_does_not_prevent_the_next_run(
    machine: PrivateHost, tmp_path: Path
):
    with Journal(tmp_path / "dead") as dead:
        lease = armed(machine, dead, watchdog_s=0.5)
        change(lease, machine, CHANGES)
        lease._heartbeat.stop()
    wait_until(lambda: "everything is back" in machine.log())
    machine.sh(f"echo demo of the operator > {CONFIGURATION}")

    with Journal(tmp_path / "dead") as later:
        lease = armed(machine, later)
        change(lease, machine, CHANGES)
        lease.restore()

    assert machine.read(CONFIGURATION).content == b"demo of the operator\n"


@IN_EACH_SHELL
def test_no_text_of_a_study_or_a_service_is_a_command(machine: PrivateHost, journal: Journal):
    hostile = 'it\'s "quoted" $(touch /srv/owned) `touch /srv/owned`; touch /srv/owned\n-e \\ * \x1b[31m'
    line = "$(touch /srv/owned); touch /srv/owned' \" `touch /srv/owned` \\ *"
    odd = SERVED / "-e $(touch owned) 'x' \\ *"
    machine.sh(f"mkdir '{SERVED}/-d'")
    before = machine.everything()
    lease = Lease(machine, journal=journal, study=hostile, watchdog_s=LONG_S)
    service = Service(
        name="demo",
        check=None,
        stop=("/srv/demo", "stop", line),
        start=("/srv/demo", "start", line, "--", "-rf"),
        reload=None,
        pid_file=PurePosixPath("/srv/demo.pid"),
    )
    lease.arm([service], urls=["-K/srv/owned://x", f"http://127.0.0.1/{line}"])

    change(lease, machine, {CONFIGURATION: b"demo 2\n", odd: b"$(touch /srv/owned)\n", SERVED / "-d/-n": b""})
    assert machine.read(odd).content == b"$(touch /srv/owned)\n"
    with Journal(journal.directory / "other") as other, pytest.raises(TargetError) as refused:
        armed(machine, other)
    lease.restore()

    assert 'study it\'s "quoted" $(touch /srv/owned) `touch' in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert machine.everything() == before
    assert "owned" not in machine.sh("ls -A / /root /srv /var/lib/tuner /var/lib/tuner/run")


def test_a_page_of_another_status_is_a_warning_and_one_of_another_length_a_trouble(
    machine: PrivateHost, journal: Journal
):
    machine.sh("mkdir /srv/www; echo shop > /srv/www/index.html")
    server = subprocess.Popen(
        [*machine.entrance, "python3", "-m", "http.server", "-d", "/srv/www", "8080"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: machine.run(["curl", "-sf", "http://127.0.0.1:8080/"], timeout_s=5).returncode == 0)
    lease = Lease(machine, journal=journal, study="s", watchdog_s=LONG_S)
    lease.arm([DEMO], urls=["http://127.0.0.1:8080/", "http://127.0.0.1:8080/missing"])
    # Nobody has to wait for the answer that never comes.
    machine.sh(
        """
        touch /srv/www/missing
        kill -9 $(cat /var/lib/tuner/run/watchdog)
        mount --bind /bin/true $(readlink -f /bin/sleep)
        """
    )

    machine.sh("echo NO DATABASE > /srv/www/index.html")
    warnings: list[str] = []
    lease.restore(warnings.append)

    assert warnings == [
        "local: http://127.0.0.1:8080/ answers with 12 bytes, but with 5 before. Check whether it is right.",
        "local: http://127.0.0.1:8080/missing answers 200, but 404 before.",
    ]
    assert restore_host(machine, journal) == ()
    server.kill()
    server.wait()


def test_the_log_is_bounded(machine: PrivateHost, journal: Journal):
    armed(machine, journal).restore()
    machine.sh("head -c 3000000 /dev/zero | tr '\\0' 'x' > /var/lib/tuner/log")

    armed(machine, journal).restore()

    assert int(machine.sh("wc -c < /var/lib/tuner/log")) < 300_000
    assert machine.log().endswith("everything is back\n")


@IN_EACH_SHELL
def test_of_a_log_the_end_is_read_and_no_link_pipe_or_device_in_its_place(machine: PrivateHost):
    machine.run_all(requests.installation())
    machine.sh(
        """
        mkdir /srv/log; ln -s log /srv/logs; cd /srv/log
        { yes first | head -n 20000; echo last; } > server.log
        ln -s /etc/shadow to-secret; ln /srv/demo.log second-name; mkfifo pipe; mkdir folder
        mknod device c 1 5
        """
    )

    def words(name: str) -> Completed:
        return machine.run_all([requests.log_tail(PurePosixPath("/srv/logs") / name)])[0]

    log = words("server.log").stdout
    assert log.endswith(b"first\nlast\n")
    assert len(log) == 65536
    for name in ("to-secret", "second-name", "pipe", "device", "folder", "missing", "no/folder.log"):
        refused = words(name)
        assert refused.stdout == b"", name
        assert refused.returncode != 0, name
        assert name.encode() in refused.stderr, name


def test_a_log_that_is_exchanged_all_the_time_is_read_or_refused(machine: PrivateHost):
    machine.run_all(requests.installation())
    machine.sh(
        """
        mkdir /srv/log; cd /srv/log; echo secret > ../secret; chmod 600 ../secret
        echo mine > mine; ln -s ../secret link; mkfifo pipe
        (while [ -d /srv/log ]; do
            for each in mine link pipe; do cp -a $each new; mv -T new server.log; done
        done) > /dev/null 2>&1 &
        """
    )

    said = [machine.run_all([requests.log_tail(PurePosixPath("/srv/log/server.log"))])[0] for _ in range(30)]

    assert {each.stdout for each in said} <= {b"mine\n", b""}
    assert not any(each.timed_out for each in said)
    machine.sh("rm -r /srv/log")


@IN_EACH_SHELL
def test_a_service_without_systemd_starts_as_the_process_before_it(machine: PrivateHost, journal: Journal):
    machine.sh("sed -i 's|cp .* /srv/in-force|&; { env; pwd; umask; ulimit -n; } > /srv/manner|' /srv/demo")
    value = "a 'secret' $word\nof two lines"
    machine.sh(
        '/srv/demo stop; cd /srv; umask 027; ulimit -n 777; env -i PATH=$PATH DATABASE="$1" /srv/demo start',
        value,
    )
    before = machine.sh("grep -Ev '^(_|SHLVL)=' /srv/manner | sort")
    lease = armed(machine, journal)

    change(lease, machine, CHANGES)
    restarted = machine.run_all((lease.command_to_activate("restart", "demo"),))
    assert restarted[0].returncode == 0, restarted
    in_trial = machine.sh("grep -Ev '^(_|SHLVL)=' /srv/manner | sort")
    lease.restore()

    for each in (in_trial, machine.sh("grep -Ev '^(_|SHLVL)=' /srv/manner | sort")):
        assert each == before
