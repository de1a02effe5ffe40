"""A host that remembers what was run on it as root."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath

from tuner.ports import Argv, Command, Completed, CpuSet, FileReader, FileState, Host, Process, Sandbox


class WitnessedHost:
    """Does what the host does, and keeps the commands that needed root."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.as_root: list[Argv] = []

    @property
    def name(self) -> str:
        return self._host.name

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
        if as_root:
            self.as_root.append(tuple(argv))
        return self._host.run(
            argv, timeout_s=timeout_s, cpus=cpus, stdin=stdin, open_files=open_files, as_root=as_root
        )

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self.as_root += [command.argv for command in commands if command.as_root]
        return self._host.run_all(commands)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> Process:
        return self._host.start(argv, cpus=cpus, open_files=open_files)

    def read(self, path: PurePosixPath) -> FileState:
        return self._host.read(path)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self._host.look(paths, trees=trees)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._host.write(path, state)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        return self._host.sandbox(share=share)
