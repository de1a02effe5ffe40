"""What a remote shell is sent, and what its answers mean. Pure; words are quoted here and nowhere else."""

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.adapters.hosts.command_runner import (
    PSEUDO,
    READ_LIMIT_BYTES,
    MissingProgram,
    Step,
    irremovable,
    too_many_files,
)
from tuner.adapters.hosts.process import OUTPUT_LIMIT_BYTES
from tuner.errors import TargetError, Unreachable
from tuner.ports import Completed, FileState

ANSWER_S = 20.0
"""What a request may take longer than its commands: the way there and back, and killing them."""
SIGNALLED, LAST_SIGNAL = 128, 64
"""A shell tells 128 + N for a command that signal N ended."""
DEADLINE_PASSED, RUNS_ON = "1", "2"
LEAST_S = 0.001
LONG_BYTES = 2**15
PLAIN = frozenset(range(0x20, 0x7F)) - set(b"%\\'-")
"""Bytes that mean themselves in a format of printf between single quotes."""
WRITE = """\
set -eu
target=$(readlink -f -- "$1" && echo .) || { echo "No such file or directory" >&2; exit 1; }
target=${target%??}
mode=$2 uid=$3 gid=$4
directory=${target%/*}/
if [ -e "$target" ]; then
  found=$(stat -L -c '%a %u %g' -- "$target")
  set -- $found
  [ -n "$mode" ] || mode=$1
  [ -n "$uid" ] || uid=$2
  [ -n "$gid" ] || gid=$3
fi
temporary=$(mktemp -- "$directory.${target##*/}.XXXXXXXXXX" && echo .)
temporary=${temporary%??}
trap 'rm -f -- "$temporary"' EXIT
# Labels of SELinux and access lists as well, where there are any.
[ ! -e "$target" ] || cp --attributes-only --preserve=all -- "$target" "$temporary" 2>/dev/null || :
cat >"$temporary"
[ -z "$uid$gid" ] || chown -- "$uid:$gid" "$temporary"
chmod -- "${mode:-644}" "$temporary"
sync -- "$temporary"
mv -f -T -- "$temporary" "$target"
trap - EXIT
sync -- "$directory"
"""
"""Writes its input to a file. mktemp(1) makes a new file that nobody could have put there."""
MAKE_PARENTS = 'mkdir -p -- "${1%/*}"\n'
REMOVE = """\
set -eu
target=$(readlink -f -- "$1" && echo .) || { echo "No such file or directory" >&2; exit 1; }
target=${target%??}
[ ! -d "$target" ] || { echo "Is a directory" >&2; exit 1; }
rm -f -- "$target"
sync -- "${target%/*}/"
"""
HAND_OVER = """\
[ -e "$1" ] || { echo ": No such file or directory" >&2; exit 1; }
exec 3>"$1"
cat >&3 || exit 9
"""
"""Writes its input to a file of the kernel: status 9 says that the file is there and the kernel refused."""
REFUSED_BY_KERNEL = 9


COUNT = re.compile(r"[0-9]{1,15}", re.ASCII)
SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)
TIMES = re.compile(r"([0-9]{1,12})m([0-9]{1,12}(?:\.[0-9]{1,9})?)s", re.ASCII)


class ConnectionBroke(Unreachable):
    """The connection was there and is gone, or gives no sign of life."""


class Secret(bytes):
    """Bytes that no traceback shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One part of an answer: a word, words that belong to it, and what the command printed."""

    kind: str
    words: tuple[str, ...] = ()
    out: bytes = b""
    err: bytes = b""

    @property
    def size_bytes(self) -> int:
        """About what it takes to keep it."""
        return len(self.out) + len(self.err) + sum(map(len, self.words))


def read_count(word: str, where: str) -> int:
    """Read a number that is not negative. Raises TargetError for anything else."""
    if not COUNT.fullmatch(word):
        raise _malformed(word, where)
    return int(word)


def read_seconds(word: str, where: str) -> float:
    """Read seconds as /proc/uptime has them. Raises TargetError for anything else."""
    if not SECONDS.fullmatch(word):
        raise _malformed(word, where)
    return float(word)


def read_times(word: str, where: str) -> float:
    """Read what times(1) prints: 0m1.25s. Raises TargetError for anything else."""
    found = TIMES.fullmatch(word)
    if found is None:
        raise _malformed(word, where)
    return int(found[1]) * 60 + float(found[2])


def split(steps: Sequence[Step]) -> list[list[Step]]:
    """Divide commands into requests: one with a long stdin must be the first of its request."""
    together: list[list[Step]] = []
    for step in steps:
        if not together or _is_long(step):
            together.append([])
        together[-1].append(step)
    return together


def script_of(steps: Iterable[Step]) -> bytes:
    """Write the script that runs commands one after the other, up to one that fails and may not."""
    return b"tuner_broken=\n" + b" && ".join(map(_step, steps))


def payload_of(steps: Sequence[Step]) -> bytes:
    """Return what the script reads from its own input: a stdin that is too long to be written into it."""
    return steps[0].stdin if _is_long(steps[0]) else b""


def look_script(paths: Sequence[PurePosixPath], trees: Sequence[int], *, timeout_s: float) -> bytes:
    """Write the script that reads files, and files of processes."""
    marked = b"".join(b' %b "$tuner_mark"' % quote(normal(path)) for path in paths)
    pids = " ".join(str(int(pid)) for pid in trees).encode()
    return b"tuner_broken=\ntuner_walk %b\ntuner_look %.3f %d%b" % (pids, timeout_s, READ_LIMIT_BYTES, marked)


def quote(word: str) -> bytes:
    """Quote a word for the shell. Raises TargetError for what no argument can hold."""
    if "\0" in word:
        raise TargetError(
            f"host: {word!r} contains a NUL character, and no argument or path may contain one. Remove this "
            "character."
        )
    return os.fsencode(shlex.quote(word))


def join(argv: Iterable[str]) -> bytes:
    """Quote a command line."""
    return b" ".join(map(quote, argv))


def normal(path: PurePosixPath) -> str:
    """Return a path as the host shall see it."""
    return os.path.normpath(path)


def printf_format(data: bytes) -> bytes:
    """Write bytes as a format of printf(1), which every shell has built in."""
    return b"'%b'" % b"".join(bytes([byte]) if byte in PLAIN else b"\\%03o" % byte for byte in data)


def started_pid(frame: Frame, where: str) -> int:
    """Read which process was started. Raises TargetError when there is no such program."""
    if frame.kind == "missing":
        raise MissingProgram(where, os.fsdecode(frame.out))
    return read_pid(frame, where)


def read_pid(frame: Frame, where: str) -> int:
    """Read the id of a process. Raises TargetError when the answer is another one."""
    if frame.kind != "started" or len(frame.words) != 1:
        raise misunderstood(frame.kind, where)
    return int(frame.words[0])


def misunderstood(said: str, where: str) -> TargetError:
    """Return the error for an answer that belongs to no question of ours."""
    return TargetError(f"{where}: its shell gave the unexpected reply {said!r}. Check its /bin/sh.")


def understand(step: Step, frame: Frame, where: str) -> Completed:
    """Read what became of a command. Raises TargetError when there is no such program."""
    if frame.kind == "missing":
        raise MissingProgram(where, os.fsdecode(frame.out))
    if frame.kind != "ran":
        raise misunderstood(frame.kind, where)
    status, late = read_count(frame.words[0], where), frame.words[1]
    began_s, ended_s = (read_seconds(word, where) for word in frame.words[2:4])
    spent = [read_times(word, where) for word in frame.words[4:8]]
    before_s, after_s = sum(spent[:2]), sum(spent[2:])
    if late == RUNS_ON:
        raise TargetError(
            f"{where}: `{shlex.join(step.asked)}` did not end within {step.timeout_s:g} s and still runs, "
            "because sudo may not kill the command. End this command by hand."
        )
    if step.open_files and frame.err.startswith(b"prlimit: failed to set the NOFILE"):
        raise too_many_files(where, step.open_files)
    return Completed(
        argv=step.asked,
        returncode=exit_status(status),
        stdout=frame.out,
        stderr=frame.err,
        duration_s=ended_s - began_s,
        timed_out=late == DEADLINE_PASSED,
        cpu_s=max(0.0, after_s - before_s),
    )


def exit_status(told: int) -> int:
    """Return the exit status as Python has it: -N when signal N ended the command."""
    return SIGNALLED - told if SIGNALLED < told <= SIGNALLED + LAST_SIGNAL else told


def write_step(
    path: PurePosixPath, state: FileState, *, timeout_s: float, where: str, with_parents: bool = False
) -> Step:
    """Return the command that writes a file, removes it, or hands a value to the kernel."""
    place = normal(path)
    if place.startswith(PSEUDO) and state.content is None:
        raise irremovable(where, path)
    script = WRITE if state.content is not None else REMOVE
    if place.startswith(PSEUDO):
        script = HAND_OVER
    if with_parents:
        script = MAKE_PARENTS + script
    mode = "" if state.mode is None else f"{state.mode:o}"
    owner = ("" if each is None else str(each) for each in (state.uid, state.gid))
    argv = ("sh", "-c", script, "tuner", place, mode, *owner)
    return Step(asked=argv, stdin=state.content or b"", timeout_s=timeout_s)


def _malformed(word: str, where: str) -> TargetError:
    return TargetError(f"{where}: its shell replied {word[:40]!r} instead of a number. Check its /bin/sh.")


def _is_long(step: Step) -> bool:
    """Return whether its stdin is long: a shell reads its script byte by byte, a microsecond for three."""
    return len(step.stdin) > LONG_BYTES


def _step(step: Step) -> bytes:
    before, source = b"", b"/dev/null"
    if step.stdin:
        source = b'"$tuner_directory/in"'
        before = (
            b"tuner_receive %d" % len(step.stdin)
            if _is_long(step)
            else b"tuner_stdin " + printf_format(step.stdin)
        )
        before += b" && "
    limits = b"%.3f %d" % (max(step.timeout_s, LEAST_S), OUTPUT_LIMIT_BYTES)
    root = b'"$tuner_root"' if step.as_root else b"''"
    command = join(step.command)
    after = b' || [ -z "$tuner_broken" ]' if step.may_fail else b""
    run = b"tuner_run %b %b %b %b %b" % (limits, source, root, quote(step.asked[0]), command)
    return b"{ %b%b%b; }" % (before, run, after)
