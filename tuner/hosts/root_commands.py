"""A host that remembers what was run on it as root."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from tuner.ports import Argv, Command, Completed, FileReader, FileState, Host, Process, Sandbox


class RootCommandRecorder:
    """Does what the host does, and keeps the commands that needed root.

    Until `is_root` is set, they are run as the user who asks.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.is_root = False
        self.commands: list[Argv] = []

    @property
    def name(self) -> str:
        return self._host.name

    def run(self, argv: Sequence[str], *, as_root: bool = False, **how: Any) -> Completed:  # noqa: ANN401 - as Host.run
        if as_root:
            self.commands.append(tuple(argv))
        return self._host.run(argv, as_root=as_root and self.is_root, **how)

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self.commands += [command.argv for command in commands if command.as_root]
        return self._host.run_all([replace(each, as_root=each.as_root and self.is_root) for each in commands])

    def start(self, argv: Sequence[str], **how: Any) -> Process:  # noqa: ANN401 - as Host.start
        return self._host.start(argv, **how)

    def read(self, path: PurePosixPath) -> FileState:
        return self._host.read(path)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self._host.look(paths, trees=trees)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._host.write(path, state)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        return self._host.sandbox(share=share)
