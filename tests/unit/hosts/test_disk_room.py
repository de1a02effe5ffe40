import os
import subprocess
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.errors import TargetError
from tuner.hosts.disk_room import Disk, DiskRoom, measure_growth
from tuner.ports import Completed

LOGS = [PurePosixPath("/var/log/nginx/error.log")]
KIB_OF_MIB = 2**10


def shown(**free_mib: int) -> Completed:
    """Print disks of 1,000 MiB as df does: of each, what is free, by the last part of its mount point."""
    lines = ["Filesystem     1024-blocks      Used Available Capacity Mounted on"]
    for name, free in free_mib.items():
        lines.append(f"/dev/vda 1024000 {1024000 - free * KIB_OF_MIB} {free * KIB_OF_MIB} 50% /var/{name}")
    return Completed(argv=("df",), returncode=0, stdout="\n".join(lines).encode(), stderr=b"", duration_s=0)


def test_the_command_asks_where_the_logs_are_and_where_servers_write():
    argv = DiskRoom.of("web", LOGS).command.argv
    assert argv[:3] == ("df", "-Pk", "--")
    assert {"/var/log/nginx", "/var/log", "/var/lib", "/tmp"} <= set(argv[3:])  # noqa: S108 - asked for its size


def test_what_the_real_df_prints_is_read(tmp_path):
    room = DiskRoom(host_name="web", directories=(PurePosixPath(tmp_path), PurePosixPath("/nowhere/at/all")))
    done = subprocess.run(room.command.argv, capture_output=True, check=False)
    assert done.returncode != 0  # of the directory that is missing
    room.look(Completed(argv=(), returncode=1, stdout=done.stdout, stderr=b"", duration_s=0))
    (free,) = room._free_bytes.values()
    stat = os.statvfs(tmp_path)
    assert free == pytest.approx(stat.f_bavail * stat.f_frsize, rel=0.05)


def test_a_disk_that_does_not_change_is_let_be():
    room = DiskRoom.of("web", LOGS)
    for _ in range(100):
        room.look(shown(log=51, lib=900))


def test_a_disk_that_is_full_at_first_is_refused_with_what_is_needed():
    with pytest.raises(
        TargetError, match=r"web: /var/log has only 49 MiB of 1,000 MiB left, .* tuner needs at least 50 MiB"
    ):
        DiskRoom.of("web", LOGS).look(shown(lib=900, log=49))


def test_the_trial_that_could_fill_a_disk_is_not_made():
    room = DiskRoom.of("web", LOGS)
    for free in (200, 160, 140):
        room.look(shown(log=free))
    with pytest.raises(TargetError, match=r"one trial under load wrote 40 MiB there.*logrotate"):
        room.look(shown(log=129))


def test_logs_that_were_rotated_are_no_reason():
    room = DiskRoom.of("web", LOGS)
    for free in (400, 300, 900, 850):
        room.look(shown(log=free))


@given(steps=st.lists(st.integers(min_value=0, max_value=90), min_size=1, max_size=40))
def test_no_disk_is_filled_by_trials_that_write_up_to_twice_as_much_as_before(steps):
    room, free, most = DiskRoom.of("web", LOGS), 1000, 0
    room.look(shown(log=free))
    for wanted in steps:
        written = min(wanted, 2 * most) if most else wanted
        free, most = free - written, max(most, written)
        assert free >= 0
        try:
            room.look(shown(log=free))
        except TargetError:
            break


def test_a_session_writes_what_its_study_allows_and_no_more():
    room = DiskRoom.of("web", LOGS, allowed_mib=100)
    for free in (900, 860, 890, 850):  # rotated in between
        room.look(shown(log=free))
    with pytest.raises(
        TargetError,
        match=r"web: tuner stopped this run, because it wrote more to /var/log than .* `target.logs_mib:`",
    ):
        room.look(shown(log=829))


def test_without_a_number_it_is_a_share_of_the_room_or_a_gigabyte():
    room = DiskRoom.of("web", LOGS)

    assert room.allow(Disk(mount_point="/", size_bytes=10**12, free_bytes=50 * 2**30)) == 5 * 2**30
    assert room.allow(Disk(mount_point="/", size_bytes=10**12, free_bytes=2**30)) == 2**30


def test_how_fast_logs_grow_is_said_with_where_a_run_ends():
    room = DiskRoom.of("web", LOGS, allowed_mib=500)

    (growth,) = measure_growth(room, shown(log=600, lib=300), shown(log=598, lib=301), duration_s=2.0)

    assert growth.describe(minutes=5) == (
        "about 60 MiB a minute under load on /var/log, up to 300 MiB in a run at this rate; tuner ends "
        "the run when it has written 500 MiB (target.logs_mib)"
    )
    assert "500 MiB, before its planned end" in growth.describe(minutes=75)
