"""Configuration files of an installed server."""

import os
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.kit.config_files import (
    DROP_IN_HEAD,
    LARGEST_FILE_BYTES,
    find_changes,
    find_readable,
    read_files,
    write_drop_in,
)
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost, completed

MAIN = PurePosixPath("/etc/zephyr/zephyr.conf")
MORE = MAIN.parent / "conf.d"


def host(*names: str) -> MemoryHost:
    """Return a host with these files below /etc/zephyr, which `find` lists in no order."""
    listed = "".join(f"{MAIN.parent / name}\n" for name in reversed(names) if name.startswith("conf.d"))
    return MemoryHost(
        files={MAIN.parent / name: FileState(content=name.encode()) for name in names},
        commands={"find": lambda _host, argv, _stdin: completed(argv, stdout=listed.encode())},
    )


def test_the_main_file_is_read_first_and_the_others_in_the_order_of_their_names():
    files = read_files(host("zephyr.conf", "conf.d/a.conf", "conf.d/b.conf"), MAIN, MORE, package="zephyr")

    assert files == {
        MAIN: b"zephyr.conf",
        MORE / "a.conf": b"conf.d/a.conf",
        MORE / "b.conf": b"conf.d/b.conf",
    }
    assert list(files) == [MAIN, MORE / "a.conf", MORE / "b.conf"]


def test_a_missing_main_file_names_the_package():
    with pytest.raises(TargetError, match=r"zephyr\.conf does not exist\. Restore this file, or reinstall"):
        read_files(host(), MAIN, package="zephyr")


def test_what_is_in_force_is_no_change_and_a_number_is_no_truth_value():
    current = {"workers": 1, "tcp": True}

    assert find_changes({"workers": 1, "tcp": True}, current) == {}
    assert find_changes({"workers": True, "tcp": False, "new": 0}, current) == {
        "workers": True,
        "tcp": False,
        "new": 0,
    }


def test_a_new_drop_in_says_who_wrote_it():
    assert write_drop_in(None, {"a": "a := 1"}).decode() == f"# {DROP_IN_HEAD}\na := 1\n"
    assert write_drop_in(None, {"a": "a = 1"}, comment=";").decode() == f"; {DROP_IN_HEAD}\na = 1\n"


def test_a_drop_in_keeps_what_it_sets_besides():
    installed = b"# mine\na := 1\n  b=2\nab := 3\n"

    assert write_drop_in(installed, {"a": "a := 7", "b": "b := 8"}) == b"# mine\nab := 3\na := 7\nb := 8\n"


def test_a_pipe_a_device_or_an_endless_file_is_refused_before_it_is_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with (tmp_path / "long").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)

    for path in (tmp_path / "link", tmp_path / "long", tmp_path, Path("/dev/zero")):
        with pytest.raises(
            TargetError, match=f"cannot read {path}: the path is no file, or the file is larger than 16 MiB"
        ):
            find_readable(LocalHost(), [PurePosixPath(path)])


def test_a_file_of_the_kernel_stays_unread_and_a_missing_one_is_left_to_the_reader(tmp_path: Path):
    (tmp_path / "a\n.conf").write_text("worker_processes 2;\n")
    (tmp_path / "kernel").symlink_to("/proc/kmsg")
    names = [PurePosixPath(tmp_path / name) for name in ("a\n.conf", "kernel", "missing")]

    assert find_readable(LocalHost(), names) == [names[0], names[2]]
