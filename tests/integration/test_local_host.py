import os
import signal
import stat
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import is_running, wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.hosts.process import OUTPUT_LIMIT_BYTES
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, FileState

LIMIT = OUTPUT_LIMIT_BYTES
FLOOD = """
import os
for _ in range(300):
    os.write(1, b"o" * 100_000)
    os.write(2, b"e" * 100_000)
os.write(1, b"the end")
"""
BUSY = """
import os, time
if os.fork() == 0:
    while time.process_time() < 0.2: pass
    os._exit(0)
os.wait()
while time.process_time() < 0.1: pass
"""


def test_a_command_gives_what_it_printed_and_its_status():
    completed = LocalHost().run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=5)

    assert (completed.stdout, completed.stderr, completed.returncode) == (b"out\n", b"err\n", 3)
    assert completed.argv == ("sh", "-c", "echo out; echo err >&2; exit 3")
    assert not completed.timed_out


def test_a_command_reads_what_it_is_given_however_long():
    completed = LocalHost().run(["wc", "-c"], timeout_s=10, stdin=b"x" * 1_000_000)

    assert completed.stdout.strip() == b"1000000"


def test_a_command_that_is_given_nothing_reads_nothing():
    assert LocalHost().run(["cat"], timeout_s=10).stdout == b""


def test_arguments_are_never_read_by_a_shell():
    assert LocalHost().run(["echo", "$HOME; `id` *"], timeout_s=5).stdout == b"$HOME; `id` *\n"


def test_a_flood_of_output_is_bounded_and_its_end_is_kept():
    completed = LocalHost().run([sys.executable, "-c", FLOOD], timeout_s=60)

    assert completed.returncode == 0
    assert completed.stdout.endswith(b"the end")
    assert completed.stdout.startswith(b"[")
    assert LIMIT <= len(completed.stdout) < LIMIT + 100
    assert LIMIT <= len(completed.stderr) < LIMIT + 100


def test_a_flood_that_never_ends_is_cut_at_the_deadline():
    completed = LocalHost().run(["cat", "/dev/zero"], timeout_s=0.3)

    assert completed.timed_out
    assert completed.returncode == -9


def test_the_cpu_time_of_a_command_includes_its_children():
    assert LocalHost().run([sys.executable, "-c", BUSY], timeout_s=30).cpu_s >= 0.3
    assert LocalHost().run(["sleep", "0.3"], timeout_s=30).cpu_s < 0.3


def test_what_a_command_leaves_in_its_group_ends_with_it():
    completed = LocalHost().run(["sh", "-c", "sleep 600 & echo $!"], timeout_s=30)

    left = int(completed.stdout)
    assert not completed.timed_out
    wait_until(lambda: not is_running(left))


def test_a_command_runs_on_the_cpus_that_it_is_given():
    assert LocalHost().run(["nproc"], timeout_s=5, cpus=frozenset({1})).stdout == b"1\n"


def test_a_command_has_the_open_files_that_it_is_given():
    assert LocalHost().run(["sh", "-c", "ulimit -n"], timeout_s=5, open_files=321).stdout == b"321\n"


def test_a_command_finds_little_of_our_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")

    found = LocalHost().run(["env"], timeout_s=5).stdout.decode()

    assert "elsewhere" not in found
    assert "LC_ALL=C\n" in found
    assert ":/usr/sbin:" in found


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(TargetError, match=r"^local: there is no program 'no-such-program' that may be run\."):
        LocalHost().run(["no-such-program"], timeout_s=5)


def test_a_file_that_may_not_be_run_is_named(tmp_path: Path):
    (tmp_path / "text").write_text("hello")

    with pytest.raises(TargetError, match="text' that may be run"):
        LocalHost().start([str(tmp_path / "text")])


def test_a_started_program_runs_on_until_it_is_stopped():
    process = LocalHost().start(["sh", "-c", "echo up; exec sleep 600"])
    try:
        assert process.poll() is None
        wait_until(lambda: process.output() != b"")
        assert process.output() == b"up\n"
    finally:
        process.stop(timeout_s=5)

    assert process.poll() == -15


def test_a_program_that_does_not_stop_when_asked_is_killed_with_its_children():
    stubborn = "trap '' TERM; sleep 601 & echo $!; while :; do wait; done"
    process = LocalHost().start(["sh", "-c", stubborn])
    wait_until(lambda: process.output() != b"")
    child = int(process.output())

    process.stop(timeout_s=0.1)

    assert process.poll() == -9
    wait_until(lambda: not is_running(child))


def test_stopping_what_has_ended_does_nothing():
    process = LocalHost().start(["true"])
    process.stop(timeout_s=5)
    process.stop(timeout_s=5)

    assert process.poll() in {0, -15}


def test_a_file_is_read_with_its_mode_and_owner(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    path.chmod(0o604)

    assert LocalHost().read(PurePosixPath(path)) == FileState(
        content=b"content", mode=0o604, uid=os.getuid(), gid=os.getgid()
    )
    assert LocalHost().read(PurePosixPath(tmp_path / "nothing")) == ABSENT
    assert LocalHost().read(PurePosixPath(path / "below a file")) == ABSENT


def test_a_directory_cannot_be_read_as_a_file(tmp_path: Path):
    with pytest.raises(TargetError, match="cannot be read: Is a directory"):
        LocalHost().read(PurePosixPath(tmp_path))


def test_writing_over_a_file_keeps_its_mode_and_owner(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, 33, 34)

    LocalHost().write(PurePosixPath(path), FileState(content=b"new"))

    assert LocalHost().read(PurePosixPath(path)) == FileState(content=b"new", mode=0o640, uid=33, gid=34)


def test_writing_sets_the_mode_and_owner_that_it_is_given(tmp_path: Path):
    state = FileState(content=b"new", mode=0o4750, uid=33, gid=34)

    LocalHost().write(PurePosixPath(tmp_path / "file"), state)

    assert LocalHost().read(PurePosixPath(tmp_path / "file")) == state


def test_a_new_file_is_readable_by_all_and_writable_by_its_owner(tmp_path: Path):
    LocalHost().write(PurePosixPath(tmp_path / "file"), FileState(content=b"new"))

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_writing_replaces_the_file_and_leaves_nothing_else(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        LocalHost().write(PurePosixPath(path), FileState(content=b"new"))

        assert reader.read() == b"old"  # who reads sees one or the other, never a part
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_writing_through_a_link_keeps_the_link(tmp_path: Path):
    (tmp_path / "available").write_bytes(b"old")
    (tmp_path / "enabled").symlink_to("available")

    LocalHost().write(PurePosixPath(tmp_path / "enabled"), FileState(content=b"new"))

    assert (tmp_path / "enabled").is_symlink()
    assert (tmp_path / "available").read_bytes() == b"new"


def test_writing_absence_removes_the_file_and_may_be_repeated(tmp_path: Path):
    path = PurePosixPath(tmp_path / "file")
    LocalHost().write(path, FileState(content=b"x"))

    LocalHost().write(path, ABSENT)
    LocalHost().write(path, ABSENT)

    assert LocalHost().read(path) == ABSENT


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path):
    (tmp_path / "directory").mkdir()

    with pytest.raises(TargetError, match="directory cannot be written"):
        LocalHost().write(PurePosixPath(tmp_path / "directory"), FileState(content=b"x"))

    assert [each.name for each in tmp_path.iterdir()] == ["directory"]


def test_a_file_of_the_kernel_is_written_in_place_and_its_refusal_is_the_configurations_fault():
    own = PurePosixPath("/proc/self/oom_score_adj")
    before = LocalHost().read(own)

    LocalHost().write(own, before)
    with pytest.raises(ConfigRejected, match="oom_score_adj: the kernel refused 'much': Invalid argument"):
        LocalHost().write(own, FileState(content=b"much"))
    with pytest.raises(TargetError, match="is a kernel file, and nobody can remove it"):
        LocalHost().write(own, ABSENT)

    assert LocalHost().read(own) == before


def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(TargetError, match=r"cannot be read: the path is not a file"):
            LocalHost().read(PurePosixPath(path))


ROOT_STEP = """\
import pathlib, sys
from tuner.adapters.hosts.local import LocalHost
script = "trap : PIPE; touch began; until [ -e go ]; do sleep 0.01; done; echo is heard; touch done"
done = LocalHost().run(("sh", "-c", script), timeout_s=30, as_root=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_what_root_has_begun_comes_to_its_end_whatever_signal_ends_the_tuner(
    tmp_path: Path, number: signal.Signals
):
    with subprocess.Popen([sys.executable, "-c", ROOT_STEP], cwd=tmp_path, stderr=subprocess.PIPE) as tuner:
        wait_until((tmp_path / "began").exists)
        tuner.send_signal(number)
        if number != signal.SIGINT:
            tuner.wait()
        (tmp_path / "go").touch()
        tuner.wait()
        assert number != signal.SIGINT or (tmp_path / "done").exists()

    wait_until((tmp_path / "done").exists)
    assert tuner.returncode == -number
