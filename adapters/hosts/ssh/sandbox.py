"""A private place on a host over SSH: namespaces of its own, files in memory, made by a shell alone.

Its first process is a remote shell. That ends when its channel closes, and the kernel ends everything in a
process namespace together with its first process (pid_namespaces(7)). Nothing else of ours is inside: what
runs there is put there from outside, and the ids of processes that are told here are the host's.
"""

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from tuner.adapters.hosts.local import commands as local_commands
from tuner.adapters.hosts.local.sandbox import DIRECTORY, NOT_PERMITTED, OUT_OF_MEMORY_SCORE, powers_dropped
from tuner.adapters.hosts.ssh import look
from tuner.adapters.hosts.ssh.connection import Connection
from tuner.adapters.hosts.ssh.frames import ConnectionBroke, Frame, read_count
from tuner.adapters.hosts.ssh.machine import ANSWER_S, Lender, RemoteMachine
from tuner.adapters.hosts.ssh.process import Signaller, SshProcess
from tuner.adapters.hosts.ssh.requests import Step, misunderstood, normal, quote
from tuner.adapters.hosts.ssh.shell import COMMAND, RemoteShell, within
from tuner.adapters.hosts.ssh.shells import Shells
from tuner.errors import TargetError
from tuner.ports import Argv, CpuSet, FileReader, FileState, Sandbox

NAMESPACES = ("--net", "--pid", "--ipc", "--mount")
OPEN = (
    'user=; [ "$(id -u)" -eq 0 ] || user="--user --map-current-user --keep-caps"; '
    f'exec unshare $user {" ".join(NAMESPACES)} --fork --kill-child -- sh -c "$0"'
)
PREPARE = rb"""
prepare() {
  set -e
  share=%b
  [ -z "$share" ] || exec 6<"$share"
  command -v setpriv >/dev/null || { echo "there is no program setpriv, of util-linux" >&2; exit 1; }
  ip link set lo up
  # This /proc is still the host's: it tells our id as the host knows it.
  read -r pid _ </proc/self/stat
  # Not read(1): settings of the kernel do not come byte by byte.
  last=$(cat /proc/sys/kernel/cap_last_cap)
  while read -r key value; do
    # CAP_SETPCAP is the bit 8.
    case $key$value in CapEff:*[13579bdf]??) powers=$((last + 1)) ;; CapEff:*) powers=0 ;; esac
  done </proc/self/status
  as_user=1
  [ "$(id -u)" -ne 0 ] || as_user=0

  # What this shell writes by itself lies where no server comes: none can make it write elsewhere.
  mount -n -t tmpfs -o nosuid,nodev,noexec,mode=700 tuner-own /run
  exec 8</run
  : >/run/empty
  # Everything can only be read, but for this and /tmp: to stay writable, it must be a mount.
  writable=/run
  [ ! -w /tmp ] || writable='/run /tmp'
  mount -n --rbind /tmp /tmp
  mount -n --all -t noproc --fstab /run/empty -o remount,bind,ro 2>/dev/null || :
  for each in $writable; do mount -n -o remount,bind,rw "$each"; done

  # Of the devices those that every program needs, and no sockets of the host's services.
  mount -n -t tmpfs -o nosuid,nodev,noexec,mode=755 tuner-dev /run
  mkdir /run/shm
  cp -P /dev/fd /dev/stdin /dev/stdout /dev/stderr /run || :
  for each in null zero full random urandom; do
    : >"/run/$each"
    echo "/dev/$each /run/$each none bind 0 0"
  done >/proc/self/fd/8/fstab
  echo "/run /dev none rbind 0 0
tuner-run /run tmpfs nosuid,nodev,noexec,mode=755 0 0
tuner-files /dev/shm tmpfs nosuid,nodev,mode=1777 0 0" >>/proc/self/fd/8/fstab
  mount -n --all --fstab /proc/self/fd/8/fstab
  mkdir -m 755 %b
  if [ -n "$share" ]; then
    mkdir %b/shared
    mount -n --rbind /proc/self/fd/6 %b/shared
    exec 6<&-
  fi

  # Where a container hides parts of /proc, the kernel permits no fresh one; then the host's stays.
  fresh=1
  mount -n -t proc -o nosuid,nodev,noexec tuner /proc 2>/dev/null || fresh=
  exec 9</proc
  mount -n --rbind /proc /proc
  [ -n "$fresh" ] || mount -n --all -t proc --fstab /proc/self/fd/8/empty -o remount,bind,ro 2>/dev/null || :
  mount -n -o remount,bind,ro,nosuid,nodev,noexec /proc
  set +e
  tuner_directory=/proc/self/fd/8
}
prepare
"""
END_TIMEOUT_S = 10.0
MOST_SHELLS = 4
TOLD_WORDS = 3
MOST_POWERS = 64
"""The kernel keeps capabilities in 64 bits (capability.h)."""
SETTINGS = "/proc/sys/net/"
OWN_PROC = PurePosixPath("/proc/self/fd/9")
"""The /proc that the first shell alone can write, and only what it starts by itself."""
OF_PROCESS = re.compile(r"/proc/[0-9]+(/|$)")
KILLED_FIRST = ("sh", "-c", f'echo {OUT_OF_MEMORY_SCORE} >/proc/self/oom_score_adj; exec "$@"', "sh")
MAKE_GATE = b'tuner_enters=1\nmkfifo "$tuner_directory/gate" && exec 3<>"$tuner_directory/gate"\n'
TELL = (
    "sh", "-c",
    '{ read -r _ <&3; exec "$@" 3<&-; } & echo "started $!"; echo >&3; exec 3<&-; { wait "$!"; } 2>/dev/null',
    "sh",
)  # fmt: skip
"""Only its children are in the process namespace, so the id that it knows is the host's."""


@dataclass(frozen=True, slots=True)
class Inside:
    """How a command gets into the sandbox."""

    pid: int
    """Of its first process, as the host numbers it."""
    as_user: bool
    powerless: Argv

    def enter(self, *options: str) -> Argv:
        """Name the program that enters."""
        user = ("--user", "--preserve-credentials") if self.as_user else ()
        return ("nsenter", f"--target={self.pid}", *options, *user, *NAMESPACES, "--")


class FirstShell:
    """The sandbox's first process: reads its files, and alone may change its settings."""

    def __init__(self, shell: RemoteShell) -> None:
        self._shell = shell
        self._conversation = threading.Lock()

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        with self._conversation:
            yield self._shell


class ShellsBeside:
    """Shells outside of the sandbox, for as long as that is there: later its id may be another process's."""

    def __init__(self, first: RemoteShell, shells: Shells, where: str) -> None:
        self._first = first
        self._shells = shells
        self._where = where

    @property
    def requests(self) -> int:
        return self._shells.requests

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        self._require_open()
        with self._shells.borrow() as shell:
            # The connection may just have been made anew.
            self._require_open()
            yield shell

    def hire(self) -> RemoteShell:
        self._require_open()
        shell = self._shells.hire()
        try:
            self._require_open()
        except TargetError:
            shell.close()
            self._shells.dismiss()
            raise
        return shell

    def dismiss(self) -> None:
        self._shells.dismiss()

    def _require_open(self) -> None:
        if not self._first.is_usable:
            message = (
                f"{self._where}: the connection broke, and the sandbox ended with it, or its first process "
                "was killed. Try again."
            )
            raise TargetError(message)


class SshSandbox(RemoteMachine):
    """Runs commands and keeps files inside; made by `open_sandbox`."""

    def __init__(
        self, name: str, first: FirstShell, beside: ShellsBeside, inside: Inside, signal: Signaller
    ) -> None:
        super().__init__(name, beside, unlock=None, signal=signal)
        self._first = first
        self._inside = inside
        self._started: list[SshProcess] = []

    @property
    def directory(self) -> PurePosixPath:
        return DIRECTORY

    @property
    def pid(self) -> int:
        return self._inside.pid

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> SshProcess:
        limits = local_commands.wrappers(cpus=cpus, open_files=open_files)
        # When memory runs out, the server has to go, not what must notice it.
        entering = (*KILLED_FIRST, *self._inside.enter("--no-fork"), *TELL)
        placed = (*entering, *limits, *self._inside.powerless, *argv)
        process = self._start(argv[0], placed, before=MAKE_GATE)
        self._started.append(process)
        return process

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        found: dict[str, FileState] = {}
        inside = [path for path in paths if self._shells_for(path) is self._first]
        outside = [path for path in paths if self._shells_for(path) is not self._first]
        if inside:
            frames, mark = self._look(inside, (), self._first)
            found |= look.files_of(frames, inside, mark)
        if outside or trees:
            frames, mark = self._look(outside, trees, self._shells)
            found |= look.files_of(frames, outside, mark)
        return look.Snapshot(found, self)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        place = normal(path)
        if place.startswith(SETTINGS):
            with self._first.borrow() as shell:
                self._write(path, state, shell, reached=OWN_PROC / place.removeprefix("/proc/"))
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

    def _shells_for(self, path: PurePosixPath) -> Lender:
        """Let the first shell read what is inside; processes are known by their ids outside."""
        return self._shells if OF_PROCESS.match(normal(path)) else self._first

    def _entering(self, step: Step) -> Step:
        # Last what takes rights away: the limit of open files is raised with one of them.
        return replace(step, wrappers=(*self._inside.enter(), *step.wrappers, *self._inside.powerless))

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
        inside = _ask_inside(first, name)
        beside = Shells(partial(connection.open_channel, COMMAND), name, MOST_SHELLS)
        sandbox = SshSandbox(
            name, FirstShell(first), ShellsBeside(first, beside, name), inside, outside.signal
        )
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


def _ask_inside(first: RemoteShell, where: str) -> Inside:
    try:
        frames = first.ask(b'echo "started $pid $as_user $powers"', timeout_s=ANSWER_S)
    except ConnectionBroke as error:
        message = f"{error} So no sandbox can be opened. {NOT_PERMITTED}"
        raise TargetError(message) from error
    told = frames[0] if frames else Frame(kind="end")
    if told.kind != "started" or len(told.words) != TOLD_WORDS:
        raise misunderstood(told.kind, where)
    pid, as_user, powers = (read_count(word, where) for word in told.words)
    if powers > MOST_POWERS:
        raise misunderstood(told.kind, where)
    powerless = powers_dropped(powers - 1 if powers and not as_user else None)
    return Inside(pid=pid, as_user=bool(as_user), powerless=powerless)
