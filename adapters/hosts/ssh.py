"""Another machine, reached over SSH."""

import getpass
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tuner.adapters.hosts import _commands, _files, _ssh_look, _ssh_requests
from tuner.adapters.hosts._ssh_address import read_address
from tuner.adapters.hosts._ssh_frames import ConnectionBroke, Frame
from tuner.adapters.hosts._ssh_process import SshProcess
from tuner.adapters.hosts._ssh_requests import Step
from tuner.errors import TargetError
from tuner.ports import Command, Completed, CpuSet, FileReader, FileState, Process, Sandbox

if TYPE_CHECKING:
    from tuner.adapters.hosts._ssh_shell import RemoteShell

ANSWER_S = 20.0
"""What a request may take longer than its commands: the way there and back, and killing them."""
FILES_TIMEOUT_S = 30.0
TERMINAL = "/dev/tty"
SHOWN_CHARACTERS = 200


def ask_on_terminal(question: str) -> str:
    """Ask for a password. Raises TargetError when nobody can be asked."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        message = (
            f"{question} There is no terminal to ask at. Let sudo run what is needed without a password: "
            "`tuner check` prints the sudoers file."
        )
        raise TargetError(message) from error
    return getpass.getpass(f"{question} ")


class SshHost:
    """A machine that is reached over SSH as `ssh://user@host:port`; ssh_config is heeded, nothing installed.

    Args:
        url: where it is.
        ask_password: is called with a question when sudo there wants a password, once at most.
    """

    def __init__(self, url: str, *, ask_password: Callable[[str], str] = ask_on_terminal) -> None:
        # Half a second of imports, which a list of adapters need not wait for.
        from tuner.adapters.hosts._ssh_connection import Connection
        from tuner.adapters.hosts._ssh_shells import Shells

        address = read_address(url)
        self._name = str(address)
        self._shells = Shells(Connection(address), self._name)
        self._ask_password = ask_password
        self._password: str | None = None
        self._asking = threading.Lock()

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
            wrappers=_commands.wrappers(cpus=cpus, open_files=open_files),
            timeout_s=timeout_s,
            stdin=stdin,
            as_root=as_root,
        )
        return self._run([step])[0]

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        steps = [
            Step(
                asked=each.argv,
                timeout_s=each.timeout_s,
                stdin=each.stdin,
                as_root=each.as_root,
                may_fail=each.may_fail,
            )
            for each in commands
        ]
        return self._run(steps)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> Process:
        placed = (*_commands.wrappers(cpus=cpus, open_files=open_files), *argv)
        shell = self._shells.hire()
        try:
            shell.send(b"tuner_start %b %b" % (_ssh_requests.quote(argv[0]), _ssh_requests.join(placed)))
            pid = _ssh_requests.started_pid(shell.read_frame(ANSWER_S), self._name)
        except BaseException:
            shell.close()
            self._shells.dismiss()
            raise
        return SshProcess(shell, pid, self._signal, self._shells.dismiss)

    def read(self, path: PurePosixPath) -> FileState:
        frames, mark = self._look([path], ())
        return _ssh_look.file_of(frames, path, mark, where=self._name)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        frames, mark = self._look(paths, trees)
        return _ssh_look.Snapshot(_ssh_look.files_of(frames, paths, mark), self)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        step = _ssh_requests.write_step(path, state, timeout_s=FILES_TIMEOUT_S, where=self._name)
        # The same content may be written twice: the first writing either is whole or left nothing.
        written = self._run([step], may_repeat=True)[0]
        if written.returncode == 0:
            return
        reason = written.stderr.decode(errors="replace").strip().rpartition(": ")[2] or "it took too long"
        if written.returncode == _ssh_requests.REFUSED_BY_KERNEL:
            raise _files.rejected(str(path), state.content or b"", OSError(0, reason))
        raise _files.refused(str(path), "written", OSError(0, reason), where=self._name)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        message = f"{self._name}: there are no sandboxes over SSH (share: {share}). Use mode: managed."
        raise TargetError(message)

    def close(self) -> None:
        """Close the connection; what was started over it ends."""
        self._shells.close()

    def _run(self, steps: Sequence[Step], *, may_repeat: bool = False) -> tuple[Completed, ...]:
        """Run commands in as few requests as possible: one, unless stdin is long or sudo wants a password."""
        done: list[Completed] = []
        for together in _ssh_requests.split(steps):
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
        done: list[Completed] = []
        with self._shells.borrow() as shell:
            unlocked_at = -1
            while True:
                left = steps[len(done) :]
                frames = shell.ask(
                    _ssh_requests.script_of(left),
                    then=_ssh_requests.payload_of(left),
                    timeout_s=sum(step.timeout_s for step in left) + ANSWER_S,
                )
                is_locked = frames[-1].kind == "locked"
                ran = frames[:-1] if is_locked else frames
                done += [
                    _ssh_requests.understand(step, frame, self._name)
                    for step, frame in zip(left, ran, strict=False)
                ]
                if not is_locked:
                    return done
                if unlocked_at == len(done):
                    message = (
                        f"{self._name}: sudo wants the password again for every command (timestamp_timeout). "
                        "Let it run what is needed without one: `tuner check` prints the sudoers file."
                    )
                    raise TargetError(message)
                unlocked_at = len(done)
                self._unlock(shell)

    def _unlock(self, shell: "RemoteShell") -> None:
        """Tell sudo the password, for this shell and as long as it remembers. Raises TargetError if wrong."""
        with self._asking:
            if self._password is None:
                self._password = self._ask_password(f"{self._name}: sudo wants the password.")
            secret = self._password
        if "\n" in secret or "\0" in secret:
            message = f"{self._name}: a password of several lines cannot be given to sudo. Change it."
            raise TargetError(message)
        frame = shell.ask(b"tuner_unlock", then=secret.encode() + b"\n", timeout_s=ANSWER_S)[0]
        if frame.words[0] != "0":
            with self._asking:
                self._password = None
            said = frame.err.decode(errors="replace").strip().rpartition("\n")[2]
            message = (
                f"{self._name}: sudo refused the password: {said}. Try again, or correct the sudoers file."
            )
            raise TargetError(message)

    def _look(self, paths: Sequence[PurePosixPath], trees: Sequence[int]) -> tuple[list[Frame], bytes]:
        try:
            return self._look_once(paths, trees)
        except ConnectionBroke:
            return self._look_once(paths, trees)

    def _look_once(self, paths: Sequence[PurePosixPath], trees: Sequence[int]) -> tuple[list[Frame], bytes]:
        script = _ssh_requests.look_script(paths, trees, timeout_s=FILES_TIMEOUT_S)
        with self._shells.borrow() as shell:
            return shell.ask(script, timeout_s=2 * FILES_TIMEOUT_S + ANSWER_S), shell.mark

    def _signal(self, pid: int, *, with_descendants: bool) -> None:
        script = b"tuner_kill %d ''" % pid if with_descendants else b"kill -TERM %d 2>/dev/null" % pid
        with self._shells.borrow() as shell:
            shell.ask(script, timeout_s=ANSWER_S)
