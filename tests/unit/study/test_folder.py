import os
import socket
import struct
from pathlib import Path

import pytest

from tuner.errors import TargetError, UsageError
from tuner.study.folder import list_files, make_folder, require_own, require_own_database, write_file


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "nginx.study"
    path.mkdir(mode=0o755)
    return path


@pytest.fixture
def precious(tmp_path):
    """A file elsewhere that must stay as it is."""
    path = tmp_path / "precious"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


def test_a_file_is_written_with_its_folder(folder):
    path = folder / "exports" / "nginx.conf"

    write_file(path, b"a longer content", study_folder=folder)
    write_file(path, b"new", study_folder=folder)

    assert path.read_bytes() == b"new"
    assert list_files(folder / "exports", study_folder=folder) == (path,)


def test_an_old_file_stays_until_the_new_one_is_whole(folder, monkeypatch):
    path = folder / "report.html"
    write_file(path, b"old", study_folder=folder)
    path.chmod(0o600)
    seen = []

    def look(_descriptor):
        seen.append((path.read_bytes(), len(list(folder.iterdir()))))
        if len(seen) == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", look)
    with pytest.raises(TargetError, match=r"cannot be written \(No space left on device\)"):
        write_file(path, b"new", study_folder=folder)
    assert (path.read_bytes(), len(list(folder.iterdir()))) == (b"old", 1)

    write_file(path, b"new", study_folder=folder)

    assert seen == [(b"old", 2)] * 2
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_tuner_was_writing_is_not_listed(folder):
    write_file(folder / "exports" / "tuner.json", b"{}", study_folder=folder)
    (folder / "exports" / ".tuner.json.0123abcd").write_bytes(b"{")

    assert list_files(folder / "exports", study_folder=folder) == (folder / "exports" / "tuner.json",)


def test_a_study_without_a_folder_gets_one(tmp_path):
    folder = tmp_path / "deep" / "nginx.study"

    require_own(folder)
    assert list_files(folder / "exports", study_folder=folder) == ()
    write_file(folder / "report.html", b"page", study_folder=folder)

    assert (folder / "report.html").read_bytes() == b"page"


def test_what_is_made_cannot_be_written_by_others_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        write_file(folder / "exports" / "file", b"", study_folder=folder)
    finally:
        os.umask(before)

    assert (folder / "exports").stat().st_mode & 0o777 == 0o755
    assert (folder / "exports" / "file").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "fifo", "socket", "folder"])
def test_a_file_is_not_written_through_what_was_planted_in_its_place(folder, precious, kind):
    path = folder / "report.html"
    plant(path, kind, precious)

    with pytest.raises(
        UsageError, match=r"report\.html: this (is|file has) .*\. Remove the file; tuner makes a new one"
    ):
        write_file(path, b"page", study_folder=folder)
    assert not precious.with_name("nothing").exists()


def plant(path: Path, kind: str, precious: Path) -> None:
    match kind:
        case "link":
            path.symlink_to(precious)
        case "dangling link":
            path.symlink_to(precious.with_name("nothing"))
        case "hard link":
            path.hardlink_to(precious)
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "folder":
            path.mkdir()


@pytest.mark.parametrize("name", ["exports", "comparisons"])
@pytest.mark.parametrize("kind", ["link to a folder", "dangling link"])
def test_a_folder_below_is_not_entered_through_a_link(folder, tmp_path, precious, name, kind):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link to a folder":
        (folder / name).symlink_to(elsewhere)
    else:
        plant(folder / name, kind, precious)

    with pytest.raises(UsageError, match=f"{name}: this is a symbolic link"):
        write_file(folder / name / "file", b"", study_folder=folder)
    with pytest.raises(UsageError, match=f"{name}: this is a symbolic link"):
        make_folder(folder / name)
    with pytest.raises(UsageError, match=f"{name}: this is a symbolic link"):
        list_files(folder / name, study_folder=folder)
    assert list(elsewhere.iterdir()) == []


def test_a_pipe_in_place_of_a_folder_keeps_nobody_waiting(folder):
    os.mkfifo(folder / "exports")

    with pytest.raises(UsageError, match=r"exports: this is not a folder. Remove the file"):
        write_file(folder / "exports" / "file", b"", study_folder=folder)
    with pytest.raises(UsageError, match="this is not a folder"):
        list_files(folder / "exports", study_folder=folder)


def test_a_study_folder_that_is_a_link_is_refused(folder, tmp_path):
    link = tmp_path / "link.study"
    link.symlink_to(folder)

    with pytest.raises(UsageError, match=r"link\.study: this is a symbolic link"):
        require_own(link)
    with pytest.raises(UsageError, match="this is a symbolic link"):
        write_file(link / "report.html", b"", study_folder=link)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(folder, mode):
    os.chown(folder, -1, 65534)
    folder.chmod(mode)

    with pytest.raises(
        UsageError, match=rf"other users may write to this file \(mode {mode:04o}\).*chmod go-w {folder}"
    ):
        require_own(folder)


def test_a_group_of_which_nobody_else_is_a_member_may_write(folder):
    os.chown(folder, -1, os.getgid())
    folder.chmod(0o775)

    require_own(folder)


def test_a_user_whom_an_access_list_lets_write_is_another_one(folder):
    os.chown(folder, -1, os.getgid())
    nobody, unnamed = 65534, 0xFFFFFFFF
    # acl(5): owner, a named user, group, mask, others; as the kernel keeps them (linux/posix_acl_xattr.h).
    entries = [
        (0x01, 7, unnamed),
        (0x02, 7, nobody),
        (0x04, 5, unnamed),
        (0x10, 7, unnamed),
        (0x20, 5, unnamed),
    ]
    access_list = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(folder, "system.posix_acl_access", access_list)

    with pytest.raises(UsageError, match="other users may write to this file"):
        require_own(folder)


def test_a_folder_of_another_user_is_refused(folder):
    os.chown(folder, 65534, -1)

    with pytest.raises(UsageError, match="this file belongs to user 65534, and tuner runs as user 0"):
        require_own(folder)


def test_who_became_root_with_sudo_is_no_other_user(folder, monkeypatch):
    os.chown(folder, 65534, -1)
    monkeypatch.setenv("SUDO_UID", "65534")

    require_own(folder)

    os.chown(folder, 65533, -1)
    with pytest.raises(UsageError, match="this file belongs to user 65533"):
        require_own(folder)


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "fifo"])
def test_no_file_of_a_database_may_lead_elsewhere(folder, precious, suffix, kind):
    database = folder / "study.db"
    require_own_database(database)
    plant(folder / f"study.db{suffix}", kind, precious)

    with pytest.raises(UsageError, match=rf"study\.db{suffix}: this (is|file has)"):
        require_own_database(database)


def test_a_folder_that_cannot_be_made_is_the_targets_fault(tmp_path):
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(TargetError, match=r"report\.html: cannot be written \(File exists\)"):
        write_file(file / "x.study" / "report.html", b"", study_folder=file / "x.study")


def test_a_folder_whose_database_leads_elsewhere_is_refused(folder, precious):
    require_own(folder)
    (folder / "study.db-wal").symlink_to(precious)

    with pytest.raises(UsageError, match=r"study\.db-wal: this is a symbolic link"):
        require_own(folder)
