"""What a host and a sandbox on it have in common: commands and files over remote shells."""

import logging
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tuner.adapters.hosts.command_runner import CommandRunner, Step, refused, rejected
from tuner.adapters.hosts.ssh import look, requests
from tuner.adapters.hosts.ssh.process import SshProcess
from tuner.adapters.hosts.ssh.requests import ANSWER_S, ConnectionBroke, Frame
from tuner.errors import TargetError, Unreachable
from tuner.ports import Completed, FileReader, FileState

LOG = logging.getLogger(__name__)

if TYPE_CHECKING:
    from tuner.adapters.hosts.ssh.shell import RemoteShell, Shells

    Lend = Callable[[], AbstractContextManager[RemoteShell]]

FILES_TIMEOUT_S = 30.0
SHOWN_CHARACTERS = 200


class RemoteMachine(CommandRunner):
    """Runs commands, reads and writes files.

    Args:
        name: what errors call it.
        shells: of the host.
        unlock: lets sudo accept a shell's commands; None where everybody is as much root as can be.
    """

    def __init__(
        self, name: str, shells: "Shells", unlock: "Callable[[RemoteShell], None] | None" = None
    ) -> None:
        self.name = name
        self._shells = shells
        self._unlock = unlock

    @property
    def requests(self) -> int:
        """How many requests were sent so far: each is one round trip."""
        return self._shells.requests

    def read(self, path: PurePosixPath) -> FileState:
        frames, mark = self._look([path], (), self._lender_of(path))
        return look.file_of(frames, path, mark, where=self.name)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        frames, mark = self._look(paths, trees, self._shells.borrow)
        return look.Snapshot(look.files_of(frames, paths, mark), self)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._write(path, state)

    def _start(self, step: Step, *, before: bytes = b"") -> SshProcess:
        shell = self._shells.hire()
        try:
            quoted = requests.quote(step.asked[0]), requests.join(step.command)
            shell.send(before + b"tuner_start %b %b" % quoted)
            pid = requests.started_pid(shell.read_frame(ANSWER_S), self.name)
        except BaseException:
            shell.close()
            self._shells.dismiss()
            raise
        return SshProcess(shell, pid, self._shells)

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
            reached or path, state, timeout_s=FILES_TIMEOUT_S, where=self.name, with_parents=with_parents
        )
        # The same content may be written twice: the first writing either is whole or left nothing.
        written = self._run_in(shell, [step])[0] if shell else self._run([step], may_repeat=True)[0]
        if written.returncode == 0:
            return
        reason = written.stderr.decode(errors="replace").strip().rpartition(": ")[2] or (
            "the command took too long"
        )
        if written.returncode == requests.REFUSED_BY_KERNEL:
            raise rejected(path, state.content, OSError(0, reason))
        raise refused(self.name, path, "written", OSError(0, reason))

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
                # As text: a handler that keeps records would keep the answer, which the error's frames hold.
                LOG.info("%s: the connection broke (%s); asked again", self.name, str(error))
                return self._run_once(steps)
            shown = " && ".join(shlex.join(step.asked) for step in steps)
            raise Unreachable(
                f"{error} `{shown[:SHOWN_CHARACTERS]}` may or may not have run. Check the host before you "
                "run it again."
            ) from error

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
                raise requests.misunderstood("end", self.name)
            done += [
                requests.understand(step, frame, self.name) for step, frame in zip(left, ran, strict=False)
            ]
            if not is_locked:
                last = steps[len(done) - 1]
                if len(done) < len(steps) and (done[-1].returncode == 0 or last.may_fail):
                    raise requests.misunderstood("end", self.name)
                return done
            if self._unlock is None or unlocked_at == len(done):
                raise TargetError(
                    f"{self.name}: sudo wants the password again for every command (timestamp_timeout). "
                    "Allow sudo without a password for tuner's commands: `tuner check STUDY --sudoers` "
                    "prints the sudoers file."
                )
            unlocked_at = len(done)
            self._unlock(shell)

    def _lender_of(self, path: PurePosixPath) -> "Lend":
        """Return what lends the shell that reads a file."""
        return self._shells.borrow

    def _entering(self, step: Step) -> Step:
        """Change a command so that it runs where it shall."""
        return step

    def _look(
        self, paths: Sequence[PurePosixPath], trees: Sequence[int], lend: "Lend"
    ) -> tuple[list[Frame], bytes]:
        try:
            return self._look_once(paths, trees, lend)
        except ConnectionBroke as error:
            LOG.info("%s: the connection broke (%s); looked again", self.name, str(error))
            return self._look_once(paths, trees, lend)

    def _look_once(
        self, paths: Sequence[PurePosixPath], trees: Sequence[int], lend: "Lend"
    ) -> tuple[list[Frame], bytes]:
        script = requests.look_script(paths, trees, timeout_s=FILES_TIMEOUT_S)
        with lend() as shell:
            return shell.ask(script, timeout_s=2 * FILES_TIMEOUT_S + ANSWER_S), shell.mark
