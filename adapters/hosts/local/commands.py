"""Runs and starts programs: the only place of tuner that makes processes. Never through a shell."""

import contextlib
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from tuner.adapters.hosts.command_runner import CommandRunner, MissingProgram, Step, too_many_files
from tuner.adapters.hosts.isolation import KEPT_CAPABILITIES
from tuner.adapters.hosts.local import processes
from tuner.adapters.hosts.process import CHUNK_BYTES, RunningProcess, Tail
from tuner.errors import TargetError
from tuner.ports import Argv, Completed, FileReader, FileState

SUDO: Argv = ("sudo", "-n", "--")
KILLED_S = 2.0
"""For what was asked to end."""
INHERITED = ("HOME", "LOGNAME", "USER", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that commands get from the tuner's own environment. Others (proxies) would change results."""


class LocalRunner(CommandRunner):
    """Runs commands on this machine one by one, and reads each file only when it is asked for."""

    name = "local"

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self

    def _run(self, steps: Sequence[Step]) -> tuple[Completed, ...]:
        ended: list[Completed] = []
        for step in steps:
            ended.append(self._run_one(step))
            if ended[-1].returncode != 0 and not step.may_fail:
                break
        return tuple(ended)

    @abstractmethod
    def read(self, path: PurePosixPath) -> FileState:
        """Read a file."""

    @abstractmethod
    def _run_one(self, step: Step) -> Completed:
        """Run one command."""


class StartedProcess(RunningProcess):
    """A program that was started on this machine."""

    def __init__(self, popen: "subprocess.Popen[bytes]", pid: int) -> None:
        self._popen = popen
        super().__init__(pid)

    def poll(self) -> int | None:
        return self._popen.poll()

    def stop(self, *, timeout_s: float) -> None:
        if self._popen.returncode is None and not processes.wait_for_end(self._popen.pid, 0):
            processes.send(self._pid, signal.SIGTERM)
            if not processes.wait_for_end(self._popen.pid, timeout_s):
                processes.kill_tree(self._popen.pid, is_entrance=self._pid != self._popen.pid)
        self.reap()

    def resume(self) -> None:
        """Let an entrance go on, which has stopped itself when its command was stopped, to reap that."""
        if self._popen.poll() is None:
            processes.send(self._popen.pid, signal.SIGCONT)

    def reap(self) -> None:
        """Wait for the end of a process that was killed."""
        self._popen.wait()
        self._await_last_words()

    def _read(self) -> None:
        if self._popen.stdout is not None:
            with self._popen.stdout as stream:
                while data := os.read(stream.fileno(), CHUNK_BYTES):
                    self._tail.add(data)


def run_to_end(step: Step, *, is_entered: bool = False, ends_by_itself: bool = False) -> Completed:
    """Run a command to its end, or kill it and all its descendants at the deadline.

    Args:
        step: the command.
        is_entered: whether it is a child of the program that is run, nsenter.
        ends_by_itself: whether no interrupt ends it before its time, as what root has begun on a host; and
            what it leaves behind goes on: a daemon is in its group until it has made its own (setsid(2)).
    """
    began_s = time.monotonic()
    command = step.command
    with _as_file(step.stdin) as source:
        popen = spawn(command, stdin=source, stderr=subprocess.PIPE)
    out, err = Tail(), Tail()
    outputs, deadline_s = {popen.stdout: out, popen.stderr: err}, began_s + step.timeout_s
    ended = False
    try:
        ended = _collect(popen, outputs, deadline_s, spares=ends_by_itself)
    finally:
        if not ended and ends_by_itself:
            ended = _collect(popen, outputs, deadline_s, spares=True)
        if not ended and command[:1] == SUDO[:1]:
            _end_sudo(popen, step.asked)
        elif not ended:
            processes.kill_tree(popen.pid, is_entrance=is_entered)
        # wait4 gives the CPU time of the command and of the descendants that it waited for.
        _, status, used = os.wait4(popen.pid, 0)
        popen.returncode = os.waitstatus_to_exitcode(status)
        for stream in (popen.stdout, popen.stderr):
            if stream is not None:
                stream.close()
    return Completed(
        argv=step.asked,
        returncode=popen.returncode,
        stdout=out.content(),
        stderr=err.content(),
        duration_s=time.monotonic() - began_s,
        timed_out=not ended,
        cpu_s=used.ru_utime + used.ru_stime,
    )


def _end_sudo(popen: "subprocess.Popen[bytes]", asked: Argv) -> None:
    """End a command of root's, which this user may not kill. Raises TargetError when it runs on."""
    # sudo hands it on, and killed itself it would leave the command behind.
    processes.send(popen.pid, signal.SIGTERM)
    if processes.wait_for_end(popen.pid, KILLED_S):
        return
    for stream in (popen.stdout, popen.stderr):
        if stream is not None:
            stream.close()
    # Nobody waits for it any more.
    popen.returncode = -signal.SIGKILL
    raise TargetError(
        f"local: `{shlex.join(asked)}` did not end in time and still runs, because this user may not end the "
        "command. End this command by hand."
    )


def spawn(
    command: Sequence[str], *, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.STDOUT
) -> "subprocess.Popen[bytes]":
    """Start a command in a session of its own: Ctrl-C in the terminal is for the tuner alone."""
    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise TargetError(
            f"local: {command[0]} cannot be run: {error.strerror}. Install the program, or correct its "
            "permissions."
        ) from error


def require_usable(step: Step) -> None:
    """Refuse, before wrappers could hide it, a missing program or what setrlimit(2) would refuse."""
    require_program(step.asked[0])
    if step.open_files is not None and step.open_files > (most := most_open_files()):
        raise too_many_files("local", step.open_files, most)


def require_program(program: str) -> None:
    """Refuse a program that is not there. Raises TargetError."""
    if shutil.which(program, path=environment()["PATH"]) is None:
        raise MissingProgram("local", program)


def most_open_files() -> int:
    """Return how many open files can be had: the hard limit, or fs.nr_open for who may raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
    # Being root is not enough: containers take this capability away.
    is_free = has_capability(KEPT_CAPABILITIES["sys_resource"]) or hard == resource.RLIM_INFINITY
    return nr_open if is_free else hard


def has_capability(number: int) -> bool:
    """Return whether this process may do what a capability permits (capabilities(7))."""
    status = Path("/proc/self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(effective >> number & 1)


def environment() -> dict[str, str]:
    """Return what commands find in their environment: little, and the same in every terminal."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    # Servers are in sbin, which Debian leaves out of an ordinary user's PATH.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    return {**inherited, "PATH": path, "LC_ALL": "C"}


def _collect(
    popen: "subprocess.Popen[bytes]",
    outputs: Mapping[IO[bytes] | None, Tail],
    deadline_s: float,
    *,
    spares: bool,
) -> bool:
    """Read what a command prints until it has ended (True) or the deadline is over (False)."""
    with processes.watch(popen.pid) as ended, selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        for stream, tail in outputs.items():
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, tail)
        while (left_s := deadline_s - time.monotonic()) > 0:
            ready = selector.select(left_s)
            for key, _ in ready:
                if isinstance(key.data, Tail) and not _read_some(key.fd, key.data):
                    selector.unregister(key.fileobj)
            if any(key.fd == ended for key, _ in ready):
                # What it left behind in its group ends with it; not reaped yet, it still has that id.
                with contextlib.suppress(ProcessLookupError):
                    if not spares:
                        os.killpg(popen.pid, signal.SIGKILL)
                _drain(selector, deadline_s)
                return True
    return False


def _drain(selector: selectors.BaseSelector, deadline_s: float) -> None:
    """Read what is in the pipes. A daemon in a session of its own may hold them: then until nothing comes."""
    while time.monotonic() < deadline_s:
        ready = [key for key, _ in selector.select(0) if isinstance(key.data, Tail)]
        if not ready:
            return
        for key in ready:
            if not _read_some(key.fd, key.data):
                selector.unregister(key.fileobj)


def _read_some(descriptor: int, tail: Tail) -> bool:
    """Read once; return whether more may come."""
    data = os.read(descriptor, CHUNK_BYTES)
    tail.add(data)
    return bool(data)


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[int]:
    """Offer bytes as a file in memory: unlike a pipe, it needs nobody who feeds it."""
    if not content:
        yield subprocess.DEVNULL
        return
    with os.fdopen(os.memfd_create("stdin"), "wb+") as file:
        file.write(content)
        file.seek(0)
        yield file.fileno()
