"""A private place on a host over SSH: namespaces of its own, files in memory, made by a shell alone.

Its first process is a remote shell. That ends when its channel closes, and the kernel ends everything in a
process namespace together with its first process (pid_namespaces(7)). Nothing else of ours is inside: what
runs there is put there from outside, and the ids of processes that are told here are the host's.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

import paramiko

from tuner.adapters.hosts.command_runner import Step
from tuner.adapters.hosts.isolation import (
    DIRECTORY,
    NAMESPACES,
    NOT_PERMITTED,
    OUT_OF_MEMORY_SCORE,
    IsolatedHost,
    drop_powers,
    enter,
)
from tuner.adapters.hosts.ssh import look
from tuner.adapters.hosts.ssh.connection import Connection
from tuner.adapters.hosts.ssh.machine import RemoteMachine
from tuner.adapters.hosts.ssh.process import SshProcess
from tuner.adapters.hosts.ssh.requests import (
    ANSWER_S,
    ConnectionBroke,
    Frame,
    misunderstood,
    normal,
    quote,
    read_count,
)
from tuner.adapters.hosts.ssh.shell import COMMAND, RemoteShell, Shells, within
from tuner.errors import TargetError
from tuner.ports import Argv, FileReader, FileState

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
    """How a command gets into the sandbox, and what it may do there."""

    pid: int
    """Of its first process, as the host numbers it."""
    as_user: bool
    powerless: Argv


class ShellsBeside(Shells):
    """Shells outside of the sandbox, for as long as that is there: later its id may be another process's."""

    def __init__(
        self, first: RemoteShell, host: Shells, open_channel: Callable[[], paramiko.Channel], where: str
    ) -> None:
        super().__init__(open_channel, where, MOST_SHELLS)
        self._first = first
        self._host = host

    def signal(self, pid: int, *, with_descendants: bool) -> None:
        # What outlives the sandbox by a moment is ended all the same.
        self._host.signal(pid, with_descendants=with_descendants)

    def _lend(self) -> RemoteShell:
        self._require_open()
        shell = super()._lend()
        try:
            # The connection may just have been made anew.
            self._require_open()
        except TargetError:
            shell.close()
            raise
        return shell

    def _require_open(self) -> None:
        if not self._first.is_usable:
            raise TargetError(
                f"{self._where}: the connection broke and ended the sandbox, or somebody killed the first "
                "process of the sandbox. Try again."
            )


class SshSandbox(IsolatedHost, RemoteMachine):
    """Runs commands and keeps files inside; made by `open_sandbox`.

    Its first shell is its first process: that reads its files, and alone may change its settings.
    """

    def __init__(self, name: str, first: RemoteShell, beside: ShellsBeside, inside: Inside) -> None:
        RemoteMachine.__init__(self, name, beside)
        self._first = first
        self._conversation = threading.Lock()
        self._inside = inside
        self._started: list[SshProcess] = []

    @property
    def pid(self) -> int:
        return self._inside.pid

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        found: dict[str, FileState] = {}
        inside = [path for path in paths if not _is_of_process(path)]
        outside = [path for path in paths if _is_of_process(path)]
        if inside:
            frames, mark = self._look(inside, (), self._borrow_first)
            found |= look.files_of(frames, inside, mark)
        if outside or trees:
            frames, mark = self._look(outside, trees, self._shells.borrow)
            found |= look.files_of(frames, outside, mark)
        return look.Snapshot(found, self)

    def end(self) -> None:
        """Close the processes that were started here: they have ended with the sandbox."""
        for process in self._started:
            process.close()

    @contextlib.contextmanager
    def _borrow_first(self) -> Iterator[RemoteShell]:
        with self._conversation:
            yield self._first

    def _lender_of(self, path: PurePosixPath) -> Callable[[], AbstractContextManager[RemoteShell]]:
        return self._shells.borrow if _is_of_process(path) else self._borrow_first

    def _start(self, step: Step, *, before: bytes = MAKE_GATE) -> SshProcess:
        enters = (*KILLED_FIRST, *self._enter("--no-fork"), *TELL)
        placed = replace(step, enters=enters, drops=self._inside.powerless)
        process = super()._start(placed, before=before)
        self._started.append(process)
        return process

    def _write_setting(self, path: PurePosixPath, state: FileState) -> None:
        with self._borrow_first() as shell:
            self._write(path, state, shell, reached=OWN_PROC / path.relative_to("/proc"))

    def _write_own(self, path: PurePosixPath, state: FileState) -> None:
        self._write(path, state, with_parents=True)

    def _enter(self, *options: str) -> Argv:
        return enter(self._inside.pid, *options, as_user=self._inside.as_user)

    def _entering(self, step: Step) -> Step:
        # Inside, everybody is as much root as can be.
        return replace(step, enters=self._enter(), drops=self._inside.powerless, as_root=False)


def _is_of_process(path: PurePosixPath) -> bool:
    """Return whether a file is a process's: those are known by their ids outside."""
    return OF_PROCESS.match(normal(path)) is not None


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
        beside = ShellsBeside(first, outside, partial(connection.open_channel, COMMAND), name)
        sandbox = SshSandbox(name, first, beside, inside)
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
        raise TargetError(f"{error} So no sandbox can be opened. {NOT_PERMITTED}") from error
    told = frames[0] if frames else Frame(kind="end")
    if told.kind != "started" or len(told.words) != TOLD_WORDS:
        raise misunderstood(told.kind, where)
    pid, as_user, powers = (read_count(word, where) for word in told.words)
    if powers > MOST_POWERS:
        raise misunderstood(told.kind, where)
    powerless = drop_powers(powers - 1 if powers and not as_user else None)
    return Inside(pid=pid, as_user=bool(as_user), powerless=powerless)
