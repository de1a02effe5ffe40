"""What `test` answers on a machine of dictionaries that has systemd or has not."""

from pathlib import PurePosixPath

from tuner.ports import Argv, Completed
from tuner.testing.fakes import Command, MemoryHost, completed


def answer_test(*, is_systemd: bool) -> Command:
    """Make a `test` that finds systemd with all its units, or only the files that are there."""

    def test(host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        is_there = (is_systemd and "systemd" in argv[-1]) or PurePosixPath(argv[-1]) in host.files
        return completed(argv, returncode=0 if is_there else 1)

    return test
