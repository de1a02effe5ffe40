"""A private place on this machine: fresh network, process, IPC and mount namespaces, files in memory.

kill -9 of the tuner leaves nothing: the first process ends when the pipe to the tuner closes (besides, by
its parent-death signal), the kernel kills everything in a process namespace together with its first
process (pid_namespaces(7)), and network, IPC objects, mounts and files in memory go with their last user.
"""

import contextlib
import errno
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import ClassVar

from tuner.adapters.hosts.local import commands as local_commands
from tuner.adapters.hosts.local import files, processes
from tuner.errors import TargetError
from tuner.ports import ABSENT, Argv, Command, Completed, CpuSet, FileReader, FileState, Sandbox

DIRECTORY = PurePosixPath("/dev/shm/tuner")  # noqa: S108 - on a memory-backed mount of the sandbox's own
FIRST_PROCESS = Path(__file__).with_name("sandbox_init.py")
ANSWER_TIMEOUT_S = 10.0
OUT_OF_MEMORY_SCORE = "500"
"""proc(5), oom_score_adj: when memory runs out, the server has to go, not the tuner that must notice it."""
KEPT_CAPABILITIES = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7,
    "net_bind_service": 10, "ipc_lock": 14, "sys_nice": 23, "sys_resource": 24,
}  # fmt: skip
"""What a server uses that begins as root: it becomes another user, listens on port 80, sets limits and
priorities, pins memory for the network. By number, because older programs lack the names of newer ones."""
SETPCAP = 8
NOT_PERMITTED = (
    "A sandbox needs namespaces: run as root (in a container: with CAP_SYS_ADMIN and CAP_NET_ADMIN), or let "
    "ordinary users have them: `sysctl kernel.unprivileged_userns_clone=1` on Debian, "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, and `user.max_user_namespaces` and "
    "`user.max_net_namespaces` above 0."
)


class LocalSandbox:
    """Runs commands and keeps files inside; made by `open_sandbox`."""

    name: ClassVar[str] = "local"

    def __init__(self, first: "subprocess.Popen[bytes]", pid: int) -> None:
        self._first = first
        self._pid = pid
        self._started: list[local_commands.StartedProcess] = []
        self._powerless = without_powers()
        self._conversation = threading.Lock()

    @property
    def directory(self) -> PurePosixPath:
        return DIRECTORY

    @property
    def pid(self) -> int:
        return self._pid

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cpus: CpuSet | None = None,
        stdin: bytes = b"",
        open_files: int | None = None,
        as_root: bool = False,  # noqa: ARG002 - inside, everybody is as much root as can be
    ) -> Completed:
        command = self._inside(argv, cpus, open_files)
        completed = local_commands.run_to_end(
            command, asked=tuple(argv), timeout_s=timeout_s, stdin=stdin, is_entered=True
        )
        if completed.returncode != 0:
            # What failed because the sandbox went is not the command's own failure.
            self._require_open()
        return completed

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return local_commands.run_each(self, commands)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> local_commands.StartedProcess:
        popen = local_commands.spawn(self._inside(argv, cpus, open_files))
        pid = _child(popen)
        process = local_commands.StartedProcess(popen, pid)
        self._started.append(process)
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text(OUT_OF_MEMORY_SCORE)
        return process

    def read(self, path: PurePosixPath) -> FileState:
        shown = _normal(path)
        if shown.startswith("/proc/sys/"):
            return self._read_setting(shown)
        if shown.startswith("/proc/net/"):
            # A link to self/net: the sandbox's self is meant.
            return files.read_file(f"/proc/{self._pid}/{shown.removeprefix('/proc/')}", shown=shown)
        if files.is_pseudo(shown):
            return files.read_file(shown, shown=shown)
        return files.read_file(self._outside(shown), shown=shown)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:  # noqa: ARG002
        return self

    def write(self, path: PurePosixPath, state: FileState) -> None:
        shown = _normal(path)
        if shown.startswith("/proc/sys/net/"):
            self._write_setting(shown, state)
        elif PurePosixPath(shown).is_relative_to(DIRECTORY):
            place = Path(self._outside(shown))
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise files.refused(shown, "written", error) from error
            files.write_file(str(place), state, shown=shown)
        else:
            message = (
                f"local: {shown} is not the sandbox's own and would outlive it. Inside, only {DIRECTORY} and "
                "/proc/sys/net can be written."
            )
            raise TargetError(message)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        message = f"local: a sandbox cannot hold another (share: {share}). Open it on the host."
        raise TargetError(message)

    def close(self) -> None:
        """End everything inside and wait until it is gone."""
        if self._first.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._first.stdin.close()
        if self._first.poll() is None and not processes.wait_for_end(self._first.pid, ANSWER_TIMEOUT_S):
            processes.kill_tree(self._first.pid)
        _end(self._first)
        for process in self._started:
            process.reap()

    def _inside(self, argv: Sequence[str], cpus: CpuSet | None, open_files: int | None) -> list[str]:
        """Put a command line into the sandbox."""
        local_commands.require_program(argv[0])
        self._require_open()
        local_commands.refuse_too_many_files(open_files)
        enter = ["nsenter", f"--target={self._pid}", "--net", "--pid", "--ipc", "--mount"]
        if os.geteuid() != 0:
            enter += ["--user", "--preserve-credentials"]
        # Last what takes rights away: the limit of open files is raised with one of them.
        return [
            *enter,
            "--",
            *local_commands.wrappers(cpus=cpus, open_files=open_files),
            *self._powerless,
            *argv,
        ]

    def _outside(self, path: str) -> str:
        """Name a path of the sandbox as this process reaches it (proc(5), /proc/PID/root)."""
        self._require_open()
        return f"/proc/{self._pid}/root{path}"

    def _require_open(self) -> None:
        if self._first.poll() is not None or processes.has_ended(self._pid):
            # What made it (unshare) ends just after it.
            status = self._first.wait(ANSWER_TIMEOUT_S)
            message = f"local: the sandbox ended by itself ({status}). Look for what killed it."
            raise TargetError(message)

    def _read_setting(self, shown: str) -> FileState:
        kind, *values = self._ask(b"read " + shown.encode().hex().encode())
        if kind != b"ok":
            error = _error(values)
            if kind == b"open" and error.errno == errno.ENOENT:
                return ABSENT
            raise files.refused(shown, "read", error)
        mode, uid, gid = (int(value) for value in values[:3])
        return FileState(content=bytes.fromhex(b"".join(values[3:]).decode()), mode=mode, uid=uid, gid=gid)

    def _write_setting(self, shown: str, state: FileState) -> None:
        content = state.content or b""
        kind, *values = self._ask(b"write %s %s" % (shown.encode().hex().encode(), content.hex().encode()))
        if kind == b"open":
            raise files.refused(shown, "written", _error(values))
        if kind != b"ok":
            raise files.rejected(shown, content, _error(values))

    def _ask(self, request: bytes) -> list[bytes]:
        """Let the first process do it.

        It is in the network namespace and has the right to change it, which a program that an ordinary user
        starts there has lost (capabilities(7), execve).
        """
        self._require_open()
        with self._conversation:
            if self._first.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._first.stdin.write(request + b"\n")
                    self._first.stdin.flush()
            return _answer(self._first)


@contextlib.contextmanager
def open_sandbox(share: PurePosixPath | None) -> Iterator[LocalSandbox]:
    """Open a sandbox and close it, whatever happens. Raises TargetError when it is not permitted.

    It also ends with the thread that opened it, to which parent-death signals are bound (prctl(2)).
    """
    sandbox = _open(share)
    try:
        yield sandbox
    finally:
        sandbox.close()


def _open(share: PurePosixPath | None) -> LocalSandbox:
    for program in local_commands.SANDBOX_PROGRAMS:
        local_commands.require_program(program)
    as_user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    first = local_commands.spawn(
        [
            "setpriv", "--pdeathsig", "KILL",
            "unshare", *as_user, "--net", "--pid", "--ipc", "--mount", "--fork", "--kill-child", "--",
            sys.executable, "-I", "-S", str(FIRST_PROCESS), str(DIRECTORY), *([str(share)] if share else []),
        ],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, pid = _answer(first)
    except BaseException as error:
        processes.kill_tree(first.pid)
        said = b"" if first.stderr is None else first.stderr.read()
        _end(first)
        if not isinstance(error, TargetError):
            raise
        lines = said.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else str(error)
        message = f"local: a sandbox cannot be opened: {reason}. {NOT_PERMITTED}"
        raise TargetError(message) from None
    return LocalSandbox(first, int(pid))


def without_powers() -> Argv:
    """Name the program that keeps a command in a sandbox of this machine from more than a server needs."""
    if os.geteuid() == 0 and local_commands.effective_capabilities() & 1 << SETPCAP:
        return powers_dropped(int(Path("/proc/sys/kernel/cap_last_cap").read_text()))
    return powers_dropped(None)


def powers_dropped(last_capability: int | None) -> Argv:
    """Name the program that keeps a command in a sandbox from more than a server needs (capabilities(7)).

    Nothing can be given up without the right to do so: an ordinary user's command has lost every capability
    when it entered, and root in a container may lack that right. Then there is no last capability.
    """
    wrapper: Argv = ("setpriv", "--no-new-privs")
    if last_capability is not None:
        every = range(last_capability + 1)
        dropped = ",".join(f"-cap_{each}" for each in every if each not in KEPT_CAPABILITIES.values())
        # Inheritable ones would come back with the next program that root runs.
        inherited = ",".join(f"-cap_{each}" for each in every)
        wrapper = (*wrapper, f"--bounding-set={dropped}", f"--inh-caps={inherited}")
    return (*wrapper, "--")


def _end(first: "subprocess.Popen[bytes]") -> None:
    first.wait()
    for stream in (first.stdin, first.stdout, first.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _answer(first: "subprocess.Popen[bytes]") -> list[bytes]:
    """Read one line of the first process, split in words. Raises TargetError when none comes."""
    line = b""
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    with selectors.DefaultSelector() as selector:
        if first.stdout is not None:
            selector.register(first.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if first.stdout is None or not selector.select(deadline_s - time.monotonic()):
                message = f"local: the sandbox did not answer within {ANSWER_TIMEOUT_S:.0f} s. Try again."
                raise TargetError(message)
            data = os.read(first.stdout.fileno(), local_commands.CHUNK_BYTES)
            if not data:
                message = "local: the sandbox's first process ended. Look for what killed it."
                raise TargetError(message)
            line += data
    return line.split()


def _child(nsenter: "subprocess.Popen[bytes]") -> int:
    """Wait until nsenter has forked into the process namespace; tell its child's pid as seen from here."""
    while not processes.wait_for_end(nsenter.pid, processes.POLL_S / 4):
        children = processes.children_of(nsenter.pid)
        if children:
            return children[0]
    return nsenter.pid


def _error(values: list[bytes]) -> OSError:
    number = int(values[0])
    return OSError(number, os.strerror(number))


def _normal(path: PurePosixPath) -> str:
    return os.path.normpath(path)
