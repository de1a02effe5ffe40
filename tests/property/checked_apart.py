"""Runs `tuner check` on one folder after another, each in a forked process, and tells what it took.

Imports are made once, before the first fork. Paths of study files come on standard input; each is answered
with one line of JSON. Under strace, what a check opened stands in the trace between two marks, see `Checker`.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO

ROOT = Path(__file__).parents[2]
GIVEN_UP_S = 60
MARK = "/tuner-checks-"
CHANGING = (
    "open,openat,openat2,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
    "truncate,mknod,mknodat,chmod,fchmodat,chown,lchown,fchownat,setxattr,lsetxattr,removexattr,utimensat,execve,faccessat2,"
    "access,faccessat"
)
_CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)\) = (?P<result>-?\d+)(?:<(?P<path>.*)>)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BELOW = re.compile(r'(?:AT_FDCWD|\d+)<([^<>]*)>, "((?:[^"\\]|\\.)*)"')
"""A folder's descriptor and a name below it."""
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_WRITES = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)")
# Of a sandbox: its memory, and settings of its network. /dev/shm there is a mount of its own.
_OF_THE_SANDBOX = re.compile(
    r"(?:/proc/\d+/root)?/dev/shm(?:/tuner(?:/.*)?)?|/tuner(?:/.*)?"
    # Its /dev is new: the calls are successful only where these are not there yet (O_EXCL, symlink).
    r"|/dev/(?:zero|full|u?random|fd|stdin|stdout|stderr)"
    r"|/proc/sys/net/.*|/proc/(?:self|\d+)/oom_score_adj"
)
_NO_FILES = re.compile(r"/dev/(?:null|tty|pts/.*|ptmx)(?:<char .*>)?|pipe:.*|socket:.*|anon_inode:.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What one check did."""

    code: int
    """Exit code; negative for a signal."""
    said: str
    seconds: float
    peak_mib: float
    """Of the largest process."""
    beyond: tuple[str, ...]
    """Directives that the space does not own, in what would be rendered."""
    changed: tuple[str, ...] = ()
    """Paths outside the study's folder that were opened for writing, or changed."""
    programs: tuple[str, ...] = ()
    """What was executed, when that was traced."""


class Checker:
    """A worker, and the trace of it."""

    def __init__(self, worker: "subprocess.Popen[str]", trace: TextIO | None) -> None:
        self._worker = worker
        self._trace = trace

    def check(self, study: Path) -> Checked:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(f"{study}\n")
        self._worker.stdin.flush()
        answer: dict[str, Any] = json.loads(self._worker.stdout.readline())
        answer["beyond"] = tuple(answer["beyond"])
        changed, programs = self._read_trace(study)
        return Checked(**answer, changed=changed, programs=programs)

    def _read_trace(self, study: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self._trace is None:
            return (), ()
        began, ended = (f'"{MARK}{which}{study}"' for which in ("begin", "end"))
        lines: list[str] = []
        is_of_the_check = False
        while True:
            line = self._read_line()
            if ended in line:
                return read_trace(lines, study)
            if is_of_the_check:
                lines.append(line)
            is_of_the_check |= began in line

    def _read_line(self) -> str:
        """Read a whole line of the trace, which strace may still be writing."""
        assert self._trace is not None
        line = self._trace.readline()
        while not line.endswith("\n"):
            time.sleep(0.005)
            line += self._trace.readline()
        return line.removesuffix("\n")


def read_trace(lines: list[str], study: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find what was changed outside the study's folder, and what was executed."""
    changed: dict[str, None] = {}
    programs: dict[str, None] = {}
    for line in join_unfinished(lines):
        call = _CALL.match(line)
        if call is None or int(call["result"]) < 0 or "access" in call["name"]:
            continue
        paths = _QUOTED.findall(_BELOW.sub(_join, call["arguments"]))
        if call["name"] == "execve":
            programs[paths[0]] = None
        elif call["name"] not in _OPENS:
            # What a link leads to is not changed by making it.
            changed |= dict.fromkeys(paths[-1:] if call["name"].startswith("symlink") else paths)
        elif call["name"] == "creat" or _WRITES.search(call["arguments"].rpartition('"')[2]):
            changed[call["path"] or paths[0]] = None
    folder = f"{study.parent}/{study.stem}.study"
    outside = [
        path
        for path in changed
        if path != folder and not path.startswith(f"{folder}/")
        and not _OF_THE_SANDBOX.fullmatch(path) and not _NO_FILES.fullmatch(path)
    ]  # fmt: skip
    return tuple(outside), tuple(programs)


def _join(found: re.Match[str]) -> str:
    """Write a name below a folder as the whole path."""
    return f'"{Path(found[1]) / found[2]}"'


def join_unfinished(lines: list[str]) -> Iterator[str]:
    """Yield whole calls: strace cuts one in two when another process comes between."""
    waiting: dict[str, str] = {}
    for line in lines:
        pid, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            waiting[pid] = line.removesuffix("<unfinished ...>").rstrip()
        elif resumed := re.match(r" *<\.\.\. \w+ resumed>(.*)", rest):
            yield waiting.pop(pid, f"{pid} ") + resumed[1]
        else:
            yield line


@contextmanager
def open_checker(*, traced: bool) -> Iterator[Checker]:
    """Start the worker, under strace when it is to tell what a check opens."""
    with tempfile.TemporaryDirectory(prefix="tuner-checks-") as place:
        trace = Path(place) / "trace"
        around = [
            "strace", "-f", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-o", str(trace),
            "-e", f"trace={CHANGING}", "-e", "signal=none",
        ]  # fmt: skip
        worker = subprocess.Popen(
            [*(around if traced else ()), sys.executable, "-m", "tests.property.checked_apart", place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TUNER_STATE": f"{place}/state"},
        )  # fmt: skip
        try:
            assert worker.stdout is not None
            worker.stdout.readline()
            with trace.open(errors="replace") if traced else nullcontext() as opened:
                yield Checker(worker, opened)
        finally:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()


def serve(place: Path) -> None:
    """Check what standard input names, until it ends."""
    from tests.property.rendering import directives_beyond

    say("ready")
    for line in sys.stdin:
        study = Path(line.removesuffix("\n"))
        with (place / "said").open("w+b") as said, (place / "beyond").open("w+") as beyond:
            os.access(f"{MARK}begin{study}", os.F_OK)
            began_s = time.monotonic()
            pid = os.fork() or check_here(study, said.fileno())
            status, usage = wait(pid)
            seconds = time.monotonic() - began_s
            os.access(f"{MARK}end{study}", os.F_OK)
            rendering = os.fork() or render_here(study, beyond.fileno(), directives_beyond)
            wait(rendering)
            said.seek(0)
            beyond.seek(0)
            answer = {
                "code": os.waitstatus_to_exitcode(status),
                "seconds": seconds,
                "peak_mib": usage.ru_maxrss / 1024,
                "said": said.read().decode(errors="replace"),
                "beyond": json.loads(beyond.read() or '["the rendering crashed"]'),
            }
        say(json.dumps(answer))


def say(line: str) -> None:
    """Answer with one line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait(pid: int) -> tuple[int, resource.struct_rusage]:
    """Wait for the end of a process; one that takes far too long is ended."""
    deadline_s = time.monotonic() + GIVEN_UP_S
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage
        if time.monotonic() > deadline_s:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def check_here(study: Path, said: int) -> NoReturn:
    """Be `tuner check STUDY`."""
    import tuner.cli

    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(study.parent)
    sys.argv = ["tuner", "check", str(study)]
    code = 1
    try:
        tuner.cli.main()
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:  # noqa: BLE001 - what the interpreter would print
        sys.excepthook(*sys.exc_info())
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def render_here(study: Path, beyond: int, directives_beyond: Any) -> NoReturn:
    """Tell which directives the study's space would add without owning them."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.write(beyond, json.dumps(directives_beyond(study)).encode())
    os._exit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
