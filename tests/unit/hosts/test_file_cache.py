"""One look answers several questions."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.hosts.file_cache import FileCache
from tuner.ports import FileReader, FileState
from tuner.testing.fakes import MemoryHost

STAT = PurePosixPath("/proc/7/stat")
SETTING = PurePosixPath("/proc/sys/net/core/somaxconn")
GROUP = PurePosixPath("/proc/7/cgroup")


class CountingHost(MemoryHost):
    def __init__(self) -> None:
        running = FileState(content=b"7 (nginx: master) S 1 7 7")
        super().__init__(
            files={STAT: running, SETTING: FileState(content=b"4096"), GROUP: FileState(content=b"0::/a")}
        )
        self.looks: list[tuple[PurePosixPath, ...]] = []

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:  # noqa: ARG002
        self.looks.append(tuple(paths))
        return MemoryHost(files=dict(self.files))


def test_every_look_takes_in_what_the_owner_wants_to_know():
    host = CountingHost()
    watched = FileCache(host, paths=[SETTING], trees=[7])

    watched.look([STAT])

    assert host.looks == [(STAT, SETTING)]
    assert watched.latest().read(SETTING).content == b"4096"
    assert len(host.looks) == 1


def test_what_stays_the_same_is_read_once():
    host = CountingHost()
    watched = FileCache(host, lasting=[GROUP])

    watched.look()
    watched.look()
    host.files.pop(GROUP)

    assert host.looks == [(GROUP,), ()]
    assert watched.read(GROUP).content == b"0::/a"


def test_a_process_is_there_until_it_ends_or_is_a_zombie():
    host = CountingHost()

    assert FileCache(host, trees=[7]).has_process(7)
    host.files[STAT] = FileState(content=b"7 (evil) name) S 1) Z 1 7 7")
    assert not FileCache(host, trees=[7]).has_process(7)
    assert not FileCache(host, trees=[8]).has_process(8)
