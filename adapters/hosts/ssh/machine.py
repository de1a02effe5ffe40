"""What a host and a sandbox on it have in common: commands and files over remote shells."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from tuner.adapters.hosts.local import commands as local_commands
from tuner.adapters.hosts.local import files
from tuner.adapters.hosts.ssh import look, requests
from tuner.adapters.hosts.ssh.frames import ConnectionBroke, Frame
from tuner.adapters.hosts.ssh.process import Signaller, SshProcess
from tuner.adapters.hosts.ssh.requests import Step
from tuner.errors import TargetError
from tuner.ports import Command, Completed, CpuSet, FileReader, FileState

if TYPE_CHECKING:
    from tuner.adapters.hosts.ssh.shell import RemoteShell

ANSWER_S = 20.0
"""What a request may take longer than its commands: the way there and back, and killing them."""
FILES_TIMEOUT_S = 30.0
SHOWN_CHARACTERS = 200


class Lender(Protocol):
    """Lends shells."""

    def borrow(self) -> AbstractContextManager["RemoteShell"]:
        """Give a shell to one thread; when its use fails, it is closed."""


class ShellSource(Lender, Protocol):
    """Where shells come from."""

    @property
    def requests(self) -> int:
        """How many requests were sent."""

    def hire(self) -> "RemoteShell":
        """Give a shell away for as long as a program runs in it."""

    def dismiss(self) -> None:
        """Make room for another shell."""


class RemoteMachine:
    """Runs commands, reads and writes files.

    Args:
        name: what errors call it.
        shells: where its shells come from.
        unlock: tells sudo the password in a shell; None where everybody is as much root as can be.
        signal: ends a process, by its id in /proc.
    """

    def __init__(
        self,
        name: str,
        shells: ShellSource,
        unlock: "Callable[[RemoteShell], None] | None",
        signal: Signaller,
    ) -> None:
        self._name = name
        self._shells = shells
        self._unlock = unlock
        self._signal = signal

    @property
    def name(self) -> str:
        return self._name

    @property
    def requests(self) -> int:
        """How many requests were sent so far: each is one round trip."""
        return self._shells.requests

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
        step = Step(
            asked=tuple(argv),
            wrappers=local_commands.wrappers(cpus=cpus, open_files=open_files),
            open_files=open_files,
            timeout_s=timeout_s,
            stdin=stdin,
            as_root=as_root and self._unlock is not None,
        )
        return self._run([step])[0]

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        steps = [
            Step(
                asked=each.argv,
                timeout_s=each.timeout_s,
                stdin=each.stdin,
                as_root=each.as_root and self._unlock is not None,
                may_fail=each.may_fail,
            )
            for each in commands
        ]
        return self._run(steps)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> SshProcess:
        placed = (*local_commands.wrappers(cpus=cpus, open_files=open_files), *argv)
        return self._start(argv[0], placed)

    def read(self, path: PurePosixPath) -> FileState:
        frames, mark = self._look([path], (), self._shells_for(path))
        return look.file_of(frames, path, mark, where=self._name)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        frames, mark = self._look(paths, trees, self._shells)
        return look.Snapshot(look.files_of(frames, paths, mark), self)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._write(path, state)

    def _start(self, program: str, placed: Sequence[str], *, before: bytes = b"") -> SshProcess:
        shell = self._shells.hire()
        try:
            quoted = requests.quote(program), requests.join(placed)
            shell.send(before + b"tuner_start %b %b" % quoted)
            pid = requests.started_pid(shell.read_frame(ANSWER_S), self._name)
        except BaseException:
            shell.close()
            self._shells.dismiss()
            raise
        return SshProcess(shell, pid, self._signal, self._shells.dismiss)

    def _write(
        self,
        path: PurePosixPath,
        state: FileState,
        shell: "RemoteShell | None" = None,
        *,
        with_parents: bool = False,
        reached: PurePosixPath | None = None,
    ) -> None:
        step = requests.write_step(
            reached or path, state, timeout_s=FILES_TIMEOUT_S, where=self._name, with_parents=with_parents
        )
        # The same content may be written twice: the first writing either is whole or left nothing.
        written = self._run_in(shell, [step])[0] if shell else self._run([step], may_repeat=True)[0]
        if written.returncode == 0:
            return
        reason = written.stderr.decode(errors="replace").strip().rpartition(": ")[2] or "it took too long"
        if written.returncode == requests.REFUSED_BY_KERNEL:
            raise files.rejected(str(path), state.content or b"", OSError(0, reason))
        raise files.refused(str(path), "written", OSError(0, reason), where=self._name)

    def _run(self, steps: Sequence[Step], *, may_repeat: bool = False) -> tuple[Completed, ...]:
        """Run commands in as few requests as possible: one, unless stdin is long or sudo wants a password."""
        done: list[Completed] = []
        for together in requests.split([self._entering(step) for step in steps]):
            done += self._run_together(together, may_repeat=may_repeat)
            if done[-1].returncode != 0 and not steps[len(done) - 1].may_fail:
                break
        return tuple(done)

    def _run_together(self, steps: Sequence[Step], *, may_repeat: bool) -> list[Completed]:
        """Run commands in one request; not repeated when the connection breaks if it may have effects."""
        try:
            return self._run_once(steps)
        except ConnectionBroke as error:
            if may_repeat:
                return self._run_once(steps)
            shown = " && ".join(shlex.join(step.asked) for step in steps)
            message = (
                f"{error} `{shown[:SHOWN_CHARACTERS]}` may have run or not. Look there before it runs again."
            )
            raise TargetError(message) from error

    def _run_once(self, steps: Sequence[Step]) -> list[Completed]:
        with self._shells.borrow() as shell:
            return self._run_in(shell, steps)

    def _run_in(self, shell: "RemoteShell", steps: Sequence[Step]) -> list[Completed]:
        """Run commands; when sudo wants a password, it gets it, and the rest is run in another request."""
        done: list[Completed] = []
        unlocked_at = -1
        while True:
            left = steps[len(done) :]
            frames = shell.ask(
                requests.script_of(left),
                then=requests.payload_of(left),
                timeout_s=sum(step.timeout_s for step in left) + ANSWER_S,
            )
            is_locked = bool(frames) and frames[-1].kind == "locked"
            ran = frames[:-1] if is_locked else frames
            if len(ran) > len(left) or not frames:
                raise requests.misunderstood("end", self._name)
            done += [
                requests.understand(step, frame, self._name) for step, frame in zip(left, ran, strict=False)
            ]
            if not is_locked:
                last = steps[len(done) - 1]
                if len(done) < len(steps) and (done[-1].returncode == 0 or last.may_fail):
                    raise requests.misunderstood("end", self._name)
                return done
            if self._unlock is None or unlocked_at == len(done):
                message = (
                    f"{self._name}: sudo wants the password again for every command (timestamp_timeout). "
                    "Let it run what is needed without one: `tuner check` prints the sudoers file."
                )
                raise TargetError(message)
            unlocked_at = len(done)
            self._unlock(shell)

    def _shells_for(self, path: PurePosixPath) -> Lender:  # noqa: ARG002 - a sandbox has several
        """Tell which shells read a file."""
        return self._shells

    def _entering(self, step: Step) -> Step:
        """Change a command so that it runs where it shall."""
        return step

    def _look(
        self, paths: Sequence[PurePosixPath], trees: Sequence[int], shells: Lender
    ) -> tuple[list[Frame], bytes]:
        try:
            return self._look_once(paths, trees, shells)
        except ConnectionBroke:
            return self._look_once(paths, trees, shells)

    def _look_once(
        self, paths: Sequence[PurePosixPath], trees: Sequence[int], shells: Lender
    ) -> tuple[list[Frame], bytes]:
        script = requests.look_script(paths, trees, timeout_s=FILES_TIMEOUT_S)
        with shells.borrow() as shell:
            return shell.ask(script, timeout_s=2 * FILES_TIMEOUT_S + ANSWER_S), shell.mark
