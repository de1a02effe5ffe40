"""The machine that tuner itself runs on."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.adapters.hosts.local import commands as local_commands
from tuner.adapters.hosts.local import files, sandbox
from tuner.ports import Argv, Command, Completed, CpuSet, FileReader, FileState, Process, Sandbox

DIES_WITH_THE_TUNER: Argv = ("setpriv", "--pdeathsig", "KILL", "--")


class LocalHost:
    """This machine; private servers run in sandboxes, without sudo for ordinary users."""

    name: ClassVar[str] = "local"

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cpus: CpuSet | None = None,
        stdin: bytes = b"",
        open_files: int | None = None,
        as_root: bool = False,
    ) -> Completed:
        command = _placed(argv, cpus, open_files)
        if sudo := local_commands.becoming_root(as_root=as_root):
            # Nothing between: sudo allows the very command that was asked for. It does not die with us, for
            # that is forgotten where rights change (prctl(2)), and what root has begun comes to its end.
            command = (*sudo, *local_commands.wrappers(cpus=cpus, open_files=open_files), *argv)
        # Who acts as root administers the machine, and starts its services.
        return local_commands.run_to_end(
            command, asked=tuple(argv), timeout_s=timeout_s, stdin=stdin, may_leave_daemons=as_root
        )

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return local_commands.run_each(self, commands)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> Process:
        popen = local_commands.spawn(_placed(argv, cpus, open_files))
        return local_commands.StartedProcess(popen, popen.pid)

    def read(self, path: PurePosixPath) -> FileState:
        return files.read_file(os.path.normpath(path), shown=str(path))

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:  # noqa: ARG002
        return self

    def write(self, path: PurePosixPath, state: FileState) -> None:
        # Files under /etc are often links (sites-enabled); what they lead to is what has to change.
        target = os.path.realpath(path)
        write = files.write_pseudo if files.is_pseudo(target) else files.write_file
        write(target, state, shown=str(path))

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        return sandbox.open_sandbox(share)


def _placed(argv: Sequence[str], cpus: CpuSet | None, open_files: int | None) -> Argv:
    local_commands.require_program(argv[0])
    local_commands.refuse_too_many_files(open_files)
    return (*DIES_WITH_THE_TUNER, *local_commands.wrappers(cpus=cpus, open_files=open_files), *argv)
