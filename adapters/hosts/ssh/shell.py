"""A POSIX shell that stays at the far end of a channel, so that a request with its answer is a round trip."""

import contextlib
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko

from tuner.adapters.hosts.process import CHUNK_BYTES, mark_shortened
from tuner.adapters.hosts.ssh.connection import FOREIGN
from tuner.adapters.hosts.ssh.requests import ANSWER_S, ConnectionBroke, Frame, read_count

FUNCTIONS = Path(__file__).with_name("shell.sh").read_bytes()
# It must mean the same to every login shell (csh, fish), hence no quote, no `!` and no newline. A request
# ends with a line that is secret, the first that is sent: nothing inside a request can look like its end.
LOOP = (
    'IFS= read -r end; all=; newline=$(printf "\\012x"); newline=${newline%x}; '
    "while IFS= read -r line; do "
    'if [ "$line" = "$end" ]; then eval "$all"; all=; else all=$all$line$newline; fi; '
    "done; tuner_end"
)
COMMAND = f"exec sh -c {shlex.quote(LOOP)}"
NOTHING = b""
CLOSED = "the host closed the connection, or does not respond"
ENDLESS = "the host's reply does not end"
NO_ROOM = "no space is left for the input and output of commands, in /dev/shm or /tmp"
RAN_WORDS = 12
MOST_OUTPUT_BYTES = 2**26
"""Of one command; what the shell keeps of it is less, but for a look at many files."""
MOST_NAME_BYTES = 2**16
MOST_LINE_BYTES = 2**20
"""Of an answer: ids of processes, a few numbers."""
MOST_FRAMES = 2**12
MOST_ANSWER_BYTES = 2**28
"""Of all its parts; a command's outputs and a look at files have smaller bounds of their own."""
MOST_SHELLS = 5
"""sshd_config(5), MaxSessions: 10 channels of a connection by default; the rest is a sandbox's."""


def within(script: str) -> str:
    """Return the command of a script that runs LOOP: to the script it is `$0`."""
    return f"exec sh -c {shlex.quote(script)} {shlex.quote(LOOP)}"


class RemoteShell:
    """Made for a channel on which LOOP has been started.

    Args:
        channel: where it runs.
        where: how errors call the host.
        count: is called for each request that is sent.
        before: a script that is run first.
    """

    def __init__(
        self, channel: paramiko.Channel, where: str, count: Callable[[], None], *, before: bytes = b""
    ) -> None:
        self._channel = channel
        self._where = where
        self._count = count
        self._end = secrets.token_hex(16).encode()
        self._unread = bytearray()
        self.mark = secrets.token_hex(16).encode()
        """Keeps the contents of files apart (see `tuner_look`)."""
        self._prologue = b"\n".join(
            (self._end, before, FUNCTIONS, b"printf %b >$tuner_mark" % self.mark, self._end, b"")
        )

    @property
    def is_usable(self) -> bool:
        """Whether its channel is still open, as far as is known."""
        transport = self._channel.get_transport()
        return not (self._channel.closed or self._channel.eof_received) and transport.is_active()

    def send(self, script: bytes, *, then: bytes = b"") -> None:
        """Send a request; `then` is what it reads from its input. Raises ConnectionBroke."""
        self._count()
        request = b"%b%b\n%b\n" % (self._prologue, script, self._end)
        self._prologue = b""
        try:
            self._channel.sendall(request)
            self._channel.sendall(then)
        except FOREIGN as error:
            raise self._broke(str(error) or CLOSED) from error

    def ask(self, script: bytes, *, timeout_s: float, then: bytes = b"") -> list[Frame]:
        """Send a request and wait for the whole answer.

        Raises ConnectionBroke when there is none; the shell is of no use any more.
        """
        self.send(script + b"\necho end", then=then)
        deadline_s = time.monotonic() + timeout_s
        frames: list[Frame] = []
        answer_bytes = 0
        while not frames or frames[-1].kind != "end":
            frames.append(self._read_frame(deadline_s))
            answer_bytes += frames[-1].size_bytes
            if len(frames) > MOST_FRAMES or answer_bytes > MOST_ANSWER_BYTES:
                raise self._broke(ENDLESS)
        return frames[:-1]

    def read_frame(self, timeout_s: float) -> Frame:
        """Wait for the next part of an answer."""
        return self._read_frame(time.monotonic() + timeout_s)

    def read_some(self) -> bytes:
        """Wait for more, however long it takes; nothing means that no more will come."""
        if self._unread:
            data = bytes(self._unread)
            self._unread.clear()
            return data
        self._channel.settimeout(None)
        try:
            return bytes(self._channel.recv(CHUNK_BYTES))
        except FOREIGN:
            return NOTHING

    def wait_for_status(self, timeout_s: float) -> int | None:
        """Wait for the exit status of the shell; None while it runs. Raises ConnectionBroke."""
        if not self._channel.status_event.wait(timeout_s):
            return None
        if self._channel.exit_status < 0:
            raise self._broke(CLOSED)
        return int(self._channel.exit_status)

    def close(self) -> None:
        """End it, and with it what it has started (`tuner_start`)."""
        with contextlib.suppress(*FOREIGN):
            self._channel.close()

    def _read_frame(self, deadline_s: float) -> Frame:
        kind, *words = self._read_line(deadline_s) or ("nothing",)
        match kind:
            case "full":
                raise self._broke(NO_ROOM)
            case "ran" if len(words) != RAN_WORDS:
                raise self._broke(NO_ROOM)
            case "ran":
                counts = (read_count(word, self._where) for word in words[8:])
                out_bytes, out_cut_bytes, err_bytes, err_cut_bytes = counts
                out = self._read_exactly(out_bytes, MOST_OUTPUT_BYTES, deadline_s)
                err = self._read_exactly(err_bytes, MOST_OUTPUT_BYTES, deadline_s)
                return Frame(
                    kind=kind,
                    words=tuple(words[:8]),
                    out=mark_shortened(out, out_cut_bytes),
                    err=mark_shortened(err, err_cut_bytes),
                )
            case "missing" if len(words) == 1:
                count = read_count(words[0], self._where)
                return Frame(kind=kind, out=self._read_exactly(count, MOST_NAME_BYTES, deadline_s))
            case "tree" | "started":
                pids = tuple(str(read_count(word, self._where)) for word in words)
                return Frame(kind=kind, words=pids)
            case "locked" | "end":
                return Frame(kind=kind, words=tuple(words))
            case _:
                raise self._broke(f"its shell said {' '.join((kind, *words))[:200]!r}")

    def _read_line(self, deadline_s: float) -> tuple[str, ...]:
        # What was searched is not searched again: it may come byte by byte.
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > MOST_LINE_BYTES:
                raise self._broke(ENDLESS)
            self._receive(deadline_s)
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return tuple(line.decode(errors="replace").split())

    def _read_exactly(self, count: int, most: int, deadline_s: float) -> bytes:
        if count > most:
            raise self._broke(f"the host announced {count} bytes at once")
        while len(self._unread) < count:
            self._receive(deadline_s)
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def _receive(self, deadline_s: float) -> None:
        """Receive what arrives next."""
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise self._broke("the host did not answer in time")
        self._channel.settimeout(left_s)
        try:
            data = self._channel.recv(CHUNK_BYTES)
        except TimeoutError:
            # paramiko counts by the time of day, which somebody may set; whoever waits looks at the deadline.
            return
        except FOREIGN as error:
            raise self._broke(str(error)) from error
        if not data:
            raise self._broke(self._last_words() or CLOSED)
        self._unread += data

    def _last_words(self) -> str:
        said = self._channel.recv_stderr(CHUNK_BYTES) if self._channel.recv_stderr_ready() else b""
        lines = bytes(said).decode(errors="replace").strip().splitlines()
        return f"its shell ended: {lines[-1]}" if lines else ""

    def _broke(self, reason: str) -> ConnectionBroke:
        return ConnectionBroke(f"{self._where}: the connection broke: {reason}.")


class Shells:
    """The remote shells of one host: each thread borrows one of its own, made when it is needed."""

    def __init__(
        self, open_channel: Callable[[], paramiko.Channel], where: str, most: int = MOST_SHELLS
    ) -> None:
        self._open_channel = open_channel
        self._where = where
        self._idle: list[RemoteShell] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(most)
        self._requests = 0

    @property
    def requests(self) -> int:
        """How many have been sent: each is one round trip."""
        return self._requests

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        """Lend a shell to one thread; when its use fails, it is closed."""
        with self._places:
            shell = self._lend()
            try:
                yield shell
            except BaseException:
                shell.close()
                raise
            with self._lock:
                self._idle.append(shell)

    def hire(self) -> RemoteShell:
        """Lend a shell for as long as a program runs in it; `dismiss` makes room for another."""
        self._places.acquire()
        try:
            return self._lend()
        except BaseException:
            self._places.release()
            raise

    def dismiss(self) -> None:
        """Make room for another shell."""
        self._places.release()

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def signal(self, pid: int, *, with_descendants: bool) -> None:
        """Ask a process to end (SIGTERM), or kill it with all that descends from it."""
        script = b"tuner_kill %d ''" % pid if with_descendants else b"tuner_terminate %d" % pid
        with self.borrow() as shell:
            shell.ask(script, timeout_s=ANSWER_S)

    def _lend(self) -> RemoteShell:
        return self._take() or RemoteShell(self._open_channel(), self._where, self.count)

    def _take(self) -> RemoteShell | None:
        """Return one that waits, without those that have ended meanwhile; None when there is none."""
        with self._lock:
            while self._idle:
                shell = self._idle.pop()
                if shell.is_usable:
                    return shell
                shell.close()
        return None

    def count(self) -> None:
        """Count one request."""
        with self._lock:
            self._requests += 1
