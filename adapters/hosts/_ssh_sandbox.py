"""A private place on a host over SSH: namespaces of its own, files in memory, made by a shell alone.

Its first process is a remote shell. That ends when its channel closes, and the kernel ends everything in a
process namespace together with its first process (pid_namespaces(7)). /proc is the host's, as are the ids of
processes that are told here.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import PurePosixPath

from tuner.adapters.hosts._sandbox import DIRECTORY, NOT_PERMITTED, OUT_OF_MEMORY_SCORE
from tuner.adapters.hosts._ssh_connection import Connection
from tuner.adapters.hosts._ssh_frames import ConnectionBroke, Frame
from tuner.adapters.hosts._ssh_machine import ANSWER_S, RemoteMachine
from tuner.adapters.hosts._ssh_process import Signaller, SshProcess
from tuner.adapters.hosts._ssh_requests import normal, quote, read_pid
from tuner.adapters.hosts._ssh_shell import RemoteShell, within
from tuner.adapters.hosts._ssh_shells import Shells
from tuner.errors import TargetError
from tuner.ports import CpuSet, FileState, Sandbox

NAMESPACES = "--net --pid --ipc --mount"
OPEN = (
    'user=; [ "$(id -u)" -eq 0 ] || user="--user --map-current-user --keep-caps"; '
    f'exec unshare $user {NAMESPACES} --fork --kill-child -- sh -c "$0"'
)
ENTER = (
    'user=; [ "$(id -u)" -eq 0 ] || user="--user --preserve-credentials"; '
    f'exec nsenter --target=%d $user {NAMESPACES} -- sh -c "$0"'
)
PREPARE = b"""
prepare() {
  set -e
  share=%b
  [ -z "$share" ] || exec 6<"$share"
  ip link set lo up
  mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /dev/shm
  mkdir -m 755 %b
  if [ -n "$share" ]; then
    mkdir %b/shared
    mount --rbind /proc/self/fd/6 %b/shared
    exec 6<&-
  fi
  # To stay writable, it must be a mount.
  mount --rbind /tmp /tmp
  set +e
  while read -r _ point _ options _; do
    case $point in /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /tmp | /tmp/*) continue ;; esac
    flags= words=$IFS IFS=,
    for each in $options; do
      case $each in nosuid | nodev | noexec | noatime | nodiratime | relatime) flags=$flags,$each ;; esac
    done
    IFS=$words
    mount -o "remount,bind,ro$flags" "$(printf %%b "$point")" 2>/dev/null
  done </proc/self/mounts
  read -r pid _ </proc/self/stat
}
prepare
"""
END_TIMEOUT_S = 10.0
MOST_SHELLS = 4
SETTINGS = "/proc/sys/net/"
KILLED_FIRST = ("sh", "-c", f'echo {OUT_OF_MEMORY_SCORE} >/proc/self/oom_score_adj; exec "$@"', "sh")


class SandboxShells:
    """The sandbox's first process, as long as that is free; others come in beside it."""

    def __init__(self, first: RemoteShell, beside: Shells) -> None:
        self._first = first
        self._beside = beside
        self._conversation = threading.Lock()

    @property
    def requests(self) -> int:
        return self._beside.requests

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        if not self._conversation.acquire(blocking=False):
            with self._beside.borrow() as shell:
                yield shell
            return
        try:
            yield self._first
        finally:
            self._conversation.release()

    @contextlib.contextmanager
    def borrow_first(self) -> Iterator[RemoteShell]:
        """Give the first process, which alone may change settings where the user is an ordinary one."""
        with self._conversation:
            yield self._first

    def hire(self) -> RemoteShell:
        return self._beside.hire()

    def dismiss(self) -> None:
        self._beside.dismiss()


class SshSandbox(RemoteMachine):
    """Runs commands and keeps files inside; made by `open_sandbox`."""

    def __init__(self, name: str, shells: SandboxShells, pid: int, signal: Signaller) -> None:
        super().__init__(name, shells, unlock=None, signal=signal)
        self._inside = shells
        self._pid = pid
        self._started: list[SshProcess] = []

    @property
    def directory(self) -> PurePosixPath:
        return DIRECTORY

    @property
    def pid(self) -> int:
        return self._pid

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> SshProcess:
        # When memory runs out, the server has to go, not what must notice it.
        process = self._start(argv, cpus=cpus, open_files=open_files, before=KILLED_FIRST)
        self._started.append(process)
        return process

    def write(self, path: PurePosixPath, state: FileState) -> None:
        place = normal(path)
        if place.startswith(SETTINGS):
            with self._inside.borrow_first() as shell:
                self._write(path, state, shell)
        elif PurePosixPath(place).is_relative_to(DIRECTORY):
            self._write(path, state, with_parents=True)
        else:
            message = (
                f"{self.name}: {place} is not the sandbox's own and would outlive it. "
                f"Inside, only {DIRECTORY} and /proc/sys/net can be written."
            )
            raise TargetError(message)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        message = f"{self.name}: a sandbox cannot hold another (share: {share}). Open it on the host."
        raise TargetError(message)

    def end(self) -> None:
        """Let those that were started here know that they have ended."""
        for process in self._started:
            process.close()


@contextlib.contextmanager
def open_sandbox(
    connection: Connection, outside: Shells, share: PurePosixPath | None, *, name: str
) -> Iterator[SshSandbox]:
    """Open a sandbox and close it, whatever happens. Raises TargetError when it is not permitted."""
    place, shared = quote(str(DIRECTORY)), quote("" if share is None else normal(share))
    before = PREPARE % (shared, place, place, place)
    first = RemoteShell(connection.open_channel(within(OPEN)), name, outside.count, before=before)
    try:
        pid = _ask_pid(first, name)
        beside = Shells(partial(connection.open_channel, within(ENTER % pid)), name, MOST_SHELLS)
        sandbox = SshSandbox(name, SandboxShells(first, beside), pid, outside.signal)
        try:
            yield sandbox
        finally:
            beside.close()
            with contextlib.suppress(ConnectionBroke):
                first.send(b"exit 0")
                first.wait_for_status(END_TIMEOUT_S)
            sandbox.end()
    finally:
        first.close()


def _ask_pid(first: RemoteShell, where: str) -> int:
    try:
        frames = first.ask(b'echo "started $pid"', timeout_s=ANSWER_S)
    except ConnectionBroke as error:
        message = f"{error} So no sandbox can be opened. {NOT_PERMITTED}"
        raise TargetError(message) from error
    return read_pid(frames[0] if frames else Frame(kind="end"), where)
