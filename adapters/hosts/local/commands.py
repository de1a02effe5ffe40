"""Runs and starts programs: the only place of tuner that makes processes. Never through a shell."""

import contextlib
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tuner.adapters.hosts.local import processes
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Argv, Command, Completed, CpuSet, Host

OUTPUT_LIMIT_BYTES = 8 * 2**20
"""What is kept of each stream: its end, where generators print their counts and servers their last words."""
CHUNK_BYTES = 2**16
SANDBOX_PROGRAMS = ("setpriv", "unshare", "nsenter", "taskset", "prlimit")
PACKAGES = {**dict.fromkeys(SANDBOX_PROGRAMS, "util-linux"), "curl": "curl", "ss": "iproute2"}
"""Debian packages of what hosts and the core themselves run; servers and generators name their own."""
SUDO: Argv = ("sudo", "-n", "--")
KILLED_S = 2.0
"""For what was asked to end."""
CAP_SYS_RESOURCE = 1 << 24
"""linux/capability.h"""
INHERITED = ("HOME", "LOGNAME", "USER", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that commands get from the tuner's own environment. Others (proxies) would change results."""


class Tail:
    """The end of a stream, bounded, with a word on what was left out."""

    def __init__(self, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._kept = bytearray()
        self._left_out_bytes = 0
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Append what was read."""
        with self._lock:
            self._kept += data
            if len(self._kept) > 2 * self._limit_bytes:
                self._shorten()

    def content(self) -> bytes:
        """Return what is kept."""
        with self._lock:
            self._shorten()
            mark = b"[%d earlier bytes left out]\n" % self._left_out_bytes if self._left_out_bytes else b""
            return mark + bytes(self._kept)

    def _shorten(self) -> None:
        surplus_bytes = len(self._kept) - self._limit_bytes
        if surplus_bytes > 0:
            del self._kept[:surplus_bytes]
            self._left_out_bytes += surplus_bytes


class StartedProcess:
    """A program that runs on; what it prints is read all the time, so that it never waits for us."""

    def __init__(self, popen: "subprocess.Popen[bytes]", pid: int) -> None:
        self._popen = popen
        self._pid = pid
        self._tail = Tail()
        self._reader = threading.Thread(target=self._read, name=f"output of {pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._pid

    def poll(self) -> int | None:
        return self._popen.poll()

    def output(self) -> bytes:
        if self.poll() is not None:
            # Its last words may still be on their way through the pipe.
            self._reader.join(timeout=1)
        return self._tail.content()

    def stop(self, *, timeout_s: float) -> None:
        if self._popen.returncode is None and not processes.wait_for_end(self._popen.pid, 0):
            processes.send(self._pid, signal.SIGTERM)
            if not processes.wait_for_end(self._popen.pid, timeout_s):
                processes.kill_tree(self._popen.pid, is_entrance=self._pid != self._popen.pid)
        self.reap()

    def reap(self) -> None:
        """Wait for the end of a process that was killed."""
        self._popen.wait()
        self._reader.join(timeout=1)

    def _read(self) -> None:
        if self._popen.stdout is not None:
            with self._popen.stdout as stream:
                while data := os.read(stream.fileno(), CHUNK_BYTES):
                    self._tail.add(data)


def run_to_end(
    command: Sequence[str],
    *,
    asked: Argv,
    timeout_s: float,
    stdin: bytes = b"",
    is_entered: bool = False,
    may_leave_daemons: bool = False,
) -> Completed:
    """Run a command to its end, or kill it and all its descendants at the deadline.

    Args:
        command: what is run: `asked` behind the wrappers that place it.
        asked: what the result names.
        timeout_s: seconds until it is killed.
        stdin: what it reads.
        is_entered: whether it is a child of the program that is run, nsenter.
        may_leave_daemons: whether what it leaves behind when it ends goes on: a daemon that was started is in
            the command's group until it has made its own (setsid(2)).
    """
    began_s = time.monotonic()
    with _as_file(stdin) as source:
        popen = spawn(command, stdin=source, stderr=subprocess.PIPE)
    out, err = Tail(), Tail()
    ended = False
    try:
        ended = _collect(
            popen, {popen.stdout: out, popen.stderr: err}, began_s + timeout_s, spares=may_leave_daemons
        )
    finally:
        if not ended and command[:1] == SUDO[:1]:
            _end_sudo(popen, asked, began_s + timeout_s)
        elif not ended:
            processes.kill_tree(popen.pid, is_entrance=is_entered)
        # wait4 gives the CPU time of the command and of the descendants that it waited for.
        _, status, used = os.wait4(popen.pid, 0)
        popen.returncode = os.waitstatus_to_exitcode(status)
        for stream in (popen.stdout, popen.stderr):
            if stream is not None:
                stream.close()
    return Completed(
        argv=asked,
        returncode=popen.returncode,
        stdout=out.content(),
        stderr=err.content(),
        duration_s=time.monotonic() - began_s,
        timed_out=not ended,
        cpu_s=used.ru_utime + used.ru_stime,
    )


def _end_sudo(popen: "subprocess.Popen[bytes]", asked: Argv, deadline_s: float) -> None:
    """End a command of root's, which this user may not kill. Raises TargetError when it runs on.

    An interrupt does not end it before its time: what was begun on a host comes to its end.
    """
    if processes.wait_for_end(popen.pid, max(0.0, deadline_s - time.monotonic())):
        return
    # sudo hands it on, and killed itself it would leave the command behind.
    processes.send(popen.pid, signal.SIGTERM)
    if processes.wait_for_end(popen.pid, KILLED_S):
        return
    for stream in (popen.stdout, popen.stderr):
        if stream is not None:
            stream.close()
    # Nobody waits for it any more.
    popen.returncode = -signal.SIGKILL
    message = (
        f"local: `{shlex.join(asked)}` did not end in time, and this user may not end it: it still runs. "
        "Look there."
    )
    raise TargetError(message)


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
        message = (
            f"local: {command[0]} cannot be run: {error.strerror}. Install it, or correct its permissions."
        )
        raise TargetError(message) from error


def run_each(host: Host, commands: Sequence[Command]) -> tuple[Completed, ...]:
    """Run commands one by one, up to the first that fails and may not."""
    ended: list[Completed] = []
    for each in commands:
        ended.append(host.run(each.argv, timeout_s=each.timeout_s, stdin=each.stdin, as_root=each.as_root))
        if ended[-1].returncode != 0 and not each.may_fail:
            break
    return tuple(ended)


def becoming_root(*, as_root: bool) -> Argv:
    """Name what makes an ordinary user's command one of root's, without ever asking for a password."""
    return SUDO if as_root and os.geteuid() != 0 else ()


def wrappers(*, cpus: CpuSet | None = None, open_files: int | None = None) -> Argv:
    """Name the programs that place a command; each replaces itself by the next (exec), so the pid stays."""
    pinned = ("taskset", "--cpu-list", ",".join(str(cpu) for cpu in sorted(cpus))) if cpus else ()
    limited = ("prlimit", f"--nofile={open_files}:{open_files}") if open_files else ()
    return (*pinned, *limited)


def require_program(program: str) -> None:
    """Refuse a program that is not there, before wrappers could hide it. Raises TargetError."""
    if shutil.which(program, path=environment()["PATH"]) is None:
        remedy = (
            f"Install it with: apt-get install {PACKAGES[program]}" if program in PACKAGES else "Install it."
        )
        message = f"local: there is no program {program!r} that may be run. {remedy}"
        raise TargetError(message)


def refuse_too_many_files(open_files: int | None) -> None:
    """Refuse what setrlimit(2) would."""
    if open_files is None:
        return
    most = most_open_files()
    if open_files > most:
        message = (
            f"local: {open_files} open files are needed, {most} are allowed. Raise the limit "
            "(`ulimit -Hn`, /etc/security/limits.conf, fs.nr_open), or use fewer connections."
        )
        raise ConfigRejected(message)


def most_open_files() -> int:
    """Tell how many open files can be had: the hard limit, or fs.nr_open for who may raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
    # Being root is not enough: containers take this capability away.
    is_free = bool(effective_capabilities() & CAP_SYS_RESOURCE) or hard == resource.RLIM_INFINITY
    return nr_open if is_free else hard


def effective_capabilities() -> int:
    """Read what this process may do, a bit for each capability (capabilities(7))."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))


def environment() -> dict[str, str]:
    """Build what commands find in their environment: little, and the same in every terminal."""
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
    """Read once; tell whether more may come."""
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
