import json
import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from tests.originals import put_back
from tuner.errors import RestoreFailed, TargetError
from tuner.ports import ABSENT, FileState, Host
from tuner.restore.journal import Journal, find_state_directory, open_journal
from tuner.testing.fakes import FailingHost, MemoryHost

CONF = PurePosixPath("/etc/server.conf")
NEW = PurePosixPath("/etc/server.d/new.conf")
SETTING = PurePosixPath("/proc/sys/net/core/somaxconn")
ORIGINAL = FileState(content=b"\x00workers 4\n", mode=0o640, uid=7, gid=8)


def change(journal: Journal, host: Host, path: PurePosixPath, state: FileState) -> None:
    journal.record(host, [path])
    host.write(path, state)


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost(files={CONF: ORIGINAL, SETTING: FileState(content=b"4096\n", mode=0o644, uid=0, gid=0)})


def test_originals_hold_content_mode_owner_and_absence_in_the_order_of_their_changes(
    tmp_path: Path, host: MemoryHost
):
    journal = Journal(tmp_path / "state")
    before = dict(host.files)

    change(journal, host, CONF, FileState(content=b"workers 8\n", mode=0o600, uid=0, gid=0))
    change(journal, host, NEW, FileState(content=b"more"))
    change(journal, host, SETTING, FileState(content=b"512"))

    assert [original.path for original in journal.originals("memory")] == [CONF, NEW, SETTING]
    put_back(journal, host)
    assert host.files == before


def test_the_first_original_is_never_overwritten(tmp_path: Path, host: MemoryHost):
    with Journal(tmp_path) as journal:
        change(journal, host, CONF, FileState(content=b"first"))
        change(journal, host, CONF, FileState(content=b"second"))
    with Journal(tmp_path) as later:
        change(later, host, CONF, FileState(content=b"third"))

        assert [original.state for original in later.originals("memory")] == [ORIGINAL]
        put_back(later, host)

    assert host.read(CONF) == ORIGINAL


def test_the_original_is_on_disk_before_the_first_write(tmp_path: Path):
    class Watching(MemoryHost):
        def write(self, path: PurePosixPath, state: FileState) -> None:
            kept = Journal(tmp_path).originals("memory")
            assert [original.path for original in kept] == [path]
            super().write(path, state)

    change(Journal(tmp_path), Watching(files={CONF: ORIGINAL}), CONF, FileState(content=b"x"))


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path, host: MemoryHost):
    with Journal(tmp_path) as journal:
        change(journal, host, CONF, FileState(content=b"x"))
    with journal.path("memory").open("ab") as file:
        file.write(b'{"host": "memory", "path": "/etc/o')

    with Journal(tmp_path) as later:
        change(later, host, NEW, FileState(content=b"y"))
        assert [original.path for original in later.originals("memory")] == [CONF, NEW]
        put_back(later, host)

    assert host.read(CONF) == ORIGINAL


def test_a_whole_line_that_cannot_be_read_is_loud_and_the_journal_stays(tmp_path: Path):
    journal = Journal(tmp_path)
    journal.path("memory").write_bytes(b'{"path": "/etc/x", "content": "?"}\n')

    with pytest.raises(RestoreFailed, match=r"memory\.journal, line 1: the backup cannot be read"):
        journal.read("memory")
    with pytest.raises(RestoreFailed, match=r"memory\.journal, line 1: the backup cannot be read"):
        journal.claim("memory")

    assert journal.path("memory").exists()


def test_two_hosts_have_a_journal_each(tmp_path: Path, host: MemoryHost):
    other = MemoryHost(name="ssh://web1", files={CONF: FileState(content=b"o", mode=0o644, uid=0, gid=0)})
    journal = Journal(tmp_path)
    change(journal, host, CONF, FileState(content=b"x"))
    change(journal, other, CONF, FileState(content=b"x"))

    put_back(journal, other)
    journal.discard(other.name)

    assert other.read(CONF).content == b"o"
    assert host.read(CONF).content == b"x"
    assert [path.name for path in tmp_path.iterdir()] == ["memory.journal"]


def test_a_second_tuner_on_the_same_host_is_refused(tmp_path: Path, host: MemoryHost):
    with Journal(tmp_path) as first:
        first.record(host, [CONF])

        with pytest.raises(TargetError, match=r"another tuner is at work on memory"):
            Journal(tmp_path).discard("memory")
        with pytest.raises(TargetError, match=r"another tuner is at work on memory"):
            Journal(tmp_path).record(host, [NEW])


def test_nothing_is_written_when_the_original_cannot_be_kept(host: MemoryHost):
    full = Journal(Path("/proc/self"))  # no file can be made there

    with pytest.raises(TargetError, match=r"cannot be written .*TUNER_STATE"):
        change(full, host, CONF, FileState(content=b"x"))

    assert host.read(CONF) == ORIGINAL


def test_nothing_is_written_when_the_disk_is_full(tmp_path: Path, host: MemoryHost):
    journal = Journal(tmp_path)
    journal.record(host, [CONF])
    os.close(journal._files["memory"])
    journal._files["memory"] = os.open("/dev/full", os.O_WRONLY)

    with pytest.raises(
        TargetError,
        match=r"tuner cannot store the backup of /etc/server\.d/new\.conf \(No space left on device\)",
    ):
        change(journal, host, NEW, FileState(content=b"x"))

    assert host.read(NEW) == ABSENT
    assert [original.path for original in journal.originals("memory")] == [CONF]


def test_reading_an_original_that_fails_means_no_write(tmp_path: Path):
    host = FailingHost(files={CONF: ORIGINAL}, fail_at=0)

    with pytest.raises(TargetError):
        change(Journal(tmp_path), host, CONF, FileState(content=b"x"))

    assert not host.written


def test_nobody_else_may_read_the_originals(tmp_path: Path, host: MemoryHost):
    journal = Journal(tmp_path / "state")
    journal.record(host, [CONF])

    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.path("memory").stat().st_mode) == 0o600


def test_a_journal_is_json_lines_that_an_operator_can_read(tmp_path: Path, host: MemoryHost):
    journal = Journal(tmp_path)
    journal.record(host, [CONF])

    (line,) = journal.path("memory").read_text().splitlines()
    assert json.loads(line) == {
        "host": "memory",
        "path": "/etc/server.conf",
        "content": "AHdvcmtlcnMgNAo=",
        "mode": 0o640,
        "uid": 7,
        "gid": 8,
    }


def test_the_state_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TUNER_STATE", "/somewhere")
    assert find_state_directory() == Path("/somewhere")
    assert open_journal().directory == Path("/somewhere")

    monkeypatch.delenv("TUNER_STATE")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_state_directory() == Path("/var/lib/tuner")

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert find_state_directory() == Path("/state/tuner")

    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/u")
    assert find_state_directory() == Path("/home/u/.local/state/tuner")


def test_what_the_host_has_put_back_itself_is_forgotten(tmp_path: Path, host: MemoryHost):
    journal = Journal(tmp_path)
    change(journal, host, CONF, FileState(content=b"x"))

    journal.discard(host.name)

    assert journal.originals(host.name) == ()
    assert not journal.path(host.name).exists()
    assert host.read(CONF).content == b"x"


def test_a_host_that_was_claimed_is_refused_to_others(tmp_path: Path):
    with Journal(tmp_path) as first:
        first.claim("web1")

        with pytest.raises(TargetError, match="another tuner is at work on web1"):
            Journal(tmp_path).claim("web1")


def test_the_plan_of_a_session_is_on_disk_with_what_was_written_and_made(tmp_path: Path, host: MemoryHost):
    with Journal(tmp_path) as journal:
        change(journal, host, NEW, FileState(content=b"of an earlier session"))
        journal.begin("memory", "session 0a")
        journal.record(host, [CONF])
        for number in range(20):
            journal.note_written("memory", {CONF: f"sum {number}"})
        journal.note_written("memory", {CONF: "sum 15"})
        journal.note_made("memory", [NEW.parent, NEW.parent.parent])

    kept = Journal(tmp_path).read("memory")

    assert kept.plan == "session 0a"
    assert [original.path for original in kept.originals] == [CONF]
    assert kept.written[CONF][-3:] == ("sum 18", "sum 19", "sum 15")
    assert len(kept.written[CONF]) == 8
    assert kept.made == (NEW.parent.parent, NEW.parent)


def test_a_copy_that_cannot_be_read_is_set_aside_and_not_deleted(tmp_path: Path):
    journal = Journal(tmp_path)
    journal.path("memory").write_bytes(b"damaged\n")

    place = journal.set_aside("memory")

    assert place is not None
    assert place.read_bytes() == b"damaged\n"
    assert journal.originals("memory") == ()
    assert journal.set_aside("memory") is None
