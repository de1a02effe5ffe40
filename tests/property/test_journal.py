"""Whatever is written, and wherever it is cut off: the originals lead back to where it began."""

import tempfile
from pathlib import Path, PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.originals import put_back
from tuner.errors import TargetError
from tuner.ports import ABSENT, FileState
from tuner.restore.journal import Journal
from tuner.testing.fakes import FailingHost

IN_MEMORY = "/dev/shm"  # noqa: S108 - every record waits for the disk, thousands of times here
PATHS = [PurePosixPath(path) for path in ("/etc/a", "/etc/b", "/proc/sys/net/core/somaxconn")]


class KilledError(BaseException):
    """The tuner is gone: no `except` of ours may see it."""


present = st.builds(
    FileState,
    content=st.binary(max_size=20),
    mode=st.integers(0, 0o777),
    uid=st.integers(0, 3),
    gid=st.integers(0, 3),
)
states = st.one_of(st.just(ABSENT), present)
beginnings = st.dictionaries(st.sampled_from(PATHS), present)
writes = st.lists(st.tuples(st.sampled_from(PATHS), states), max_size=6)
errors = st.sampled_from([TargetError("memory: it fails."), KilledError()])


def run_until_it_fails(
    host: FailingHost, directory: Path, changes: list[tuple[PurePosixPath, FileState]]
) -> None:
    with Journal(directory) as journal:
        try:
            for path, state in changes:
                journal.record(host, [path])
                host.write(path, state)
        except (TargetError, KilledError):
            pass


@given(beginning=beginnings, changes=writes, later=writes, fail_at=st.integers(0, 25), error=errors)
@settings(deadline=None, max_examples=examples(150))
def test_restoring_undoes_every_write_wherever_it_was_cut_off(
    beginning: dict[PurePosixPath, FileState],
    changes: list[tuple[PurePosixPath, FileState]],
    later: list[tuple[PurePosixPath, FileState]],
    fail_at: int,
    error: BaseException,
):
    host = FailingHost(files=dict(beginning), fail_at=fail_at, error=error)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        run_until_it_fails(host, Path(directory), changes)
        # Another run may come before anybody restores: its originals are not the originals.
        run_until_it_fails(host, Path(directory), later)
        host.fail_at = None

        put_back(Journal(Path(directory)), host)

        assert host.files == beginning


@given(beginning=beginnings, changes=writes, last=st.tuples(st.sampled_from(PATHS), states), data=st.data())
@settings(deadline=None, max_examples=examples(150))
def test_a_line_cut_off_at_any_byte_belongs_to_a_write_that_never_happened(
    beginning: dict[PurePosixPath, FileState],
    changes: list[tuple[PurePosixPath, FileState]],
    last: tuple[PurePosixPath, FileState],
    data: st.DataObject,
):
    host = FailingHost(files=dict(beginning))
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        run_until_it_fails(host, Path(directory), changes)
        file = Journal(Path(directory)).path(host.name)
        whole = file.read_bytes() if file.exists() else b""
        with Journal(Path(directory)) as journal:
            journal.record(host, [last[0]])  # and then the power fails
        line = file.read_bytes()[len(whole) :]
        file.write_bytes(whole + line[: data.draw(st.integers(0, len(line)), label="bytes on disk")])
        run_until_it_fails(host, Path(directory), [last])

        put_back(Journal(Path(directory)), host)

        assert host.files == beginning
