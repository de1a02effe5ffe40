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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tuner.adapters.hosts.command_runner import PSEUDO, Step, refused, rejected
from tuner.adapters.hosts.isolation import (
    DIRECTORY,
    NAMESPACES,
    NOT_PERMITTED,
    OUT_OF_MEMORY_SCORE,
    IsolatedHost,
    drop_powers,
    enter,
)
from tuner.adapters.hosts.local import commands, files, processes
from tuner.adapters.hosts.process import CHUNK_BYTES
from tuner.errors import TargetError
from tuner.ports import ABSENT, Argv, Completed, FileState

FIRST_PROCESS = Path(__file__).with_name("sandbox_init.py")
ANSWER_TIMEOUT_S = 10.0
SETPCAP = 8
"""linux/capability.h: the right to give rights up."""


class LocalSandbox(IsolatedHost, commands.LocalRunner):
    """Runs commands and keeps files inside; made by `open_sandbox`."""

    def __init__(self, first: "subprocess.Popen[bytes]", pid: int) -> None:
        self._first = first
        self._pid = pid
        self._started: list[commands.StartedProcess] = []
        self._powerless = _drop_powers()
        self._conversation = threading.Lock()

    @property
    def pid(self) -> int:
        return self._pid

    def read(self, path: PurePosixPath) -> FileState:
        shown = os.path.normpath(path)
        if shown.startswith("/proc/sys/"):
            return self._read_setting(shown)
        if shown.startswith("/proc/net/"):
            # A link to self/net: the sandbox's self is meant.
            return files.read_file(f"/proc/{self._pid}/{shown.removeprefix('/proc/')}", shown=shown)
        if shown.startswith(PSEUDO):
            return files.read_file(shown, shown=shown)
        return files.read_file(self._outside(shown), shown=shown)

    def close(self) -> None:
        """End everything inside and wait until it is gone."""
        if self._first.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._first.stdin.close()
        for process in self._started:
            process.resume()
        if self._first.poll() is None and not processes.wait_for_end(self._first.pid, ANSWER_TIMEOUT_S):
            processes.kill_tree(self._first.pid)
        _end(self._first)
        for process in self._started:
            process.reap()

    def _run_one(self, step: Step) -> Completed:
        # Inside, everybody is as much root as can be.
        completed = commands.run_to_end(self._inside(step), is_entered=True)
        if completed.returncode != 0:
            # What failed because the sandbox went is not the command's own failure.
            self._require_open()
        return completed

    def _start(self, step: Step) -> commands.StartedProcess:
        popen = commands.spawn(self._inside(step).command)
        pid = _child(popen)
        process = commands.StartedProcess(popen, pid)
        self._started.append(process)
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text(OUT_OF_MEMORY_SCORE)
        return process

    def _write_own(self, path: PurePosixPath, state: FileState) -> None:
        place = Path(self._outside(str(path)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused("local", path, "written", error) from error
        files.write_file(str(place), state, shown=str(path))

    def _inside(self, step: Step) -> Step:
        self._require_open()
        commands.require_usable(step)
        return replace(step, enters=enter(self._pid, as_user=os.geteuid() != 0), drops=self._powerless)

    def _outside(self, path: str) -> str:
        """Return a path of the sandbox as this process reaches it (proc(5), /proc/PID/root)."""
        self._require_open()
        return f"/proc/{self._pid}/root{path}"

    def _require_open(self) -> None:
        if self._first.poll() is not None or processes.has_ended(self._pid):
            # What made it (unshare) ends just after it.
            status = self._first.wait(ANSWER_TIMEOUT_S)
            raise TargetError(
                f"local: the sandbox ended by itself ({status}). Look for the cause in the kernel log."
            )

    def _read_setting(self, shown: str) -> FileState:
        kind, *values = self._ask(b"read " + shown.encode().hex().encode())
        if kind != b"ok":
            error = _error(values)
            if kind == b"open" and error.errno == errno.ENOENT:
                return ABSENT
            raise refused("local", shown, "read", error)
        mode, uid, gid = (int(value) for value in values[:3])
        return FileState(content=bytes.fromhex(b"".join(values[3:]).decode()), mode=mode, uid=uid, gid=gid)

    def _write_setting(self, path: PurePosixPath, state: FileState) -> None:
        content = state.content or b""
        kind, *values = self._ask(
            b"write %s %s" % (str(path).encode().hex().encode(), content.hex().encode())
        )
        if kind == b"open":
            raise refused("local", path, "written", _error(values))
        if kind != b"ok":
            raise rejected(path, content, _error(values))

    def _ask(self, request: bytes) -> list[bytes]:
        """Ask the sandbox's first process.

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
    as_user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    first = commands.spawn(
        [
            "setpriv", "--pdeathsig", "KILL",
            "unshare", *as_user, *NAMESPACES, "--fork", "--kill-child", "--",
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
        raise TargetError(f"local: a sandbox cannot be opened: {reason}. {NOT_PERMITTED}") from None
    return LocalSandbox(first, int(pid))


def _drop_powers() -> Argv:
    """Return the program that keeps a command in a sandbox of this machine from more than a server needs."""
    if os.geteuid() == 0 and commands.has_capability(SETPCAP):
        return drop_powers(int(Path("/proc/sys/kernel/cap_last_cap").read_text()))
    return drop_powers(None)


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
                raise TargetError(
                    f"local: the sandbox did not answer within {ANSWER_TIMEOUT_S:.0f} s. Try again."
                )
            data = os.read(first.stdout.fileno(), CHUNK_BYTES)
            if not data:
                raise TargetError(
                    "local: the sandbox's first process ended. Look for the cause in the kernel log."
                )
            line += data
    return line.split()


def _child(nsenter: "subprocess.Popen[bytes]") -> int:
    """Wait until nsenter has forked into the process namespace; return its child's pid as seen from here."""
    while not processes.wait_for_end(nsenter.pid, processes.POLL_S / 4):
        children = processes.children_of(nsenter.pid)
        if children:
            return children[0]
    return nsenter.pid


def _error(values: list[bytes]) -> OSError:
    number = int(values[0])
    return OSError(number, os.strerror(number))
