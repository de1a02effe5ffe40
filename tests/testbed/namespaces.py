"""First processes that hold namespaces, and commands that run inside.

Each ends with the test process, even when that is killed: the kernel sends it the parent-death signal.
Whatever runs in its process namespace ends with it, and with that mounts and network go.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
}
END_TIMEOUT_S = 10.0
NAMESPACES = ("--net", "--pid", "--ipc", "--uts", "--mount")


@contextlib.contextmanager
def hold_namespaces(first: Sequence[str], *, mounts_of: int | None = None) -> Iterator[int]:
    """Run a first process in fresh namespaces, which says `ready PID`; give its pid.

    Args:
        first: the command.
        mounts_of: the first process whose mounts it begins with; without one, this machine's.
    """
    at = [] if mounts_of is None else ["nsenter", f"--target={mounts_of}", "--mount", "--"]
    process = subprocess.Popen(
        [
            "setpriv",
            "--pdeathsig",
            "KILL",
            *at,
            "unshare",
            *NAMESPACES,
            "--fork",
            "--kill-child",
            "--",
            *first,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    try:
        said = process.stdout.readline()
        if not said.startswith(b"ready "):
            message = f"testbed: {first[0]} made no namespaces; it said {said!r}. Run the tests as root."
            raise RuntimeError(message)
        yield int(said.split()[1])
    finally:
        # With it goes the first process (--kill-child), and with that all the others.
        process.kill()
        process.communicate()
        if said.startswith(b"ready "):
            wait_until_gone(int(said.split()[1]))


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a first process: the kernel first ends all the others in its namespace."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.005)


def runs(pid: int) -> bool:
    """Say whether a process has not ended; one that only waits to be noticed by its parent has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # Its name, in parentheses, may hold anything (proc_pid_stat(5)).
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def entrance(pid: int) -> list[str]:
    """Name the command that runs another one in the namespaces of a first process."""
    return ["nsenter", f"--target={pid}", *NAMESPACES, "--"]


def run_in(
    pid: int, argv: Sequence[str], *, stdin: bytes = b"", check: bool = True, timeout_s: float = 60
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in the namespaces of a first process, as root."""
    # Files, not pipes: a daemon that keeps its output open would not let us see the end.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        done = subprocess.run(
            [*entrance(pid), *argv],
            input=stdin,
            stdout=stdout,
            stderr=stderr,
            env=ENVIRONMENT,
            timeout=timeout_s,
            check=False,
        )
        stdout.seek(0)
        stderr.seek(0)
        ended = subprocess.CompletedProcess(tuple(argv), done.returncode, stdout.read(), stderr.read())
    if check and ended.returncode != 0:
        message = f"testbed: {' '.join(argv)} failed: {ended}"
        raise RuntimeError(message)
    return ended


def processes_of(pid: int) -> list[int]:
    """List the processes in the process namespace of a first one, itself left out, by the machine's ids."""
    namespace = Path(f"/proc/{pid}/ns/pid").readlink()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != pid:
            with contextlib.suppress(OSError):
                if (entry / "ns/pid").readlink() == namespace:
                    found.append(int(entry.name))
    return found


def kill_each(pids: Sequence[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Kill processes, those too that are gone; or send them another signal."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
