"""What the keeper on the target is asked, and what its answers mean. The program itself is keeper.sh."""

import hashlib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.ports import Argv, Command, Completed, Files, Service
from tuner.restore.journal import Kept, Original

DIRECTORY = PurePosixPath("/var/lib/tuner")
PROGRAM = DIRECTORY / "keeper"
ARRIVING = DIRECTORY / "keeper.new"
SETTINGS = (PurePosixPath("/proc/sys"), PurePosixPath("/sys"))
"""Where a file takes one value of one line."""
SHOWN_BYTES: Final = 200
SERVICE_NAME = re.compile(r"[A-Za-z0-9@_:][A-Za-z0-9@_.:-]*")
TICKS: Final = 20
"""How often the watchdog looks before it gives a controller up."""
RETRY_S: Final = 30.0
"""After what the watchdog tries again to put back what could not be."""
ARM_TIMEOUT_S: Final = 120.0
CHANGE_TIMEOUT_S: Final = 60.0
LOCK_S: Final = 30.0
"""For so long a step waits for another one."""
SERVICE_S: Final = 90.0
"""Given to one command of a service: systemd's own limit for a start or a stop (DefaultTimeoutStartSec,
systemd-system.conf(5))."""
RESTORE_TIMEOUT_S: Final = 600.0
WORDS_TIMEOUT_S: Final = 10.0
LONG_S: Final = 120.0
"""The usual patience of a watchdog."""

# Exit statuses of keeper.sh; others are the shell's or sudo's.
OTHER_VERSION: Final = 21
ENDED: Final = 23
INCOMPLETE: Final = 24
REJECTED: Final = 25
SERVICE_FAILED: Final = 26
REFUSALS: Final = range(20, 28)
"""Those of them with which `arm` has taken nothing."""
NOT_INSTALLED: Final = (2, 126, 127)
"""What shells say when there is no such program: 127, dash 2."""
LAST_LINE: Final = "end\t2"
"""How every answer of a step ends that came to its end, with the version of what is said before.

An empty or a cut keeper exits with 0 as well, without a word."""
ABSENT: Final = "absent"
"""Stands for the checksum of a file that is not there."""


def program() -> bytes:
    """Return the keeper itself."""
    return (resources.files("tuner.restore") / "keeper.sh").read_bytes()


KEEPER: Argv = ("/bin/sh", str(PROGRAM))
"""What sudo must allow with any arguments."""


def step(name: str, purpose: str, *arguments: str, stdin: bytes = b"", timeout_s: float = 30.0) -> Command:
    """Name one step of the keeper."""
    argv = ("/bin/sh", str(PROGRAM), name, purpose, *arguments)
    return Command(argv=argv, timeout_s=timeout_s, stdin=stdin, as_root=True)


def installation() -> tuple[Command, ...]:
    """Name the commands that put the keeper on a target, at once whole."""
    return (
        Command(argv=("/usr/bin/install", "-d", "-m", "0700", str(DIRECTORY)), as_root=True),
        Command(
            argv=("/bin/dd", f"of={ARRIVING}", "conv=fsync", "status=none"), stdin=program(), as_root=True
        ),
        # A keeper that runs goes on with the old file.
        Command(argv=("/bin/mv", "-f", str(ARRIVING), str(PROGRAM)), as_root=True),
    )


def commands_needing_root() -> tuple[Argv, ...]:
    """Name what sudo must allow, besides the keeper itself."""
    return tuple(command.argv for command in installation())


def arming(
    purpose: str,
    *,
    session: str,
    owner: Sequence[tuple[str, str]],
    watchdog_s: float,
    services: Sequence[Service],
    urls: Sequence[str],
) -> Command:
    """Name the command that takes the target.

    Args:
        purpose: run, or apply: then `watchdog_s` is the time in which it has to be confirmed.
        session: what later commands show; hexadecimal digits.
        owner: `by`, `controller` and `study`, for whoever finds the target taken.
        watchdog_s: seconds without a heartbeat after which everything is put back.
        services: what has to run again after a restore, if it runs now.
        urls: what has to answer again as it does now.

    Raises TargetError for a name or a command line that cannot be kept in a line of text.
    """
    lines = [f"session {session}", f"ticking {_ticking(watchdog_s)}"]
    lines += [f"{key} {_printable(value)}" for key, value in owner]
    for service in services:
        if not SERVICE_NAME.fullmatch(service.name):
            raise TargetError(f"{service.name!r} is not a name of a service. Correct it.")
        lines += [
            f"service {service.name}",
            f"systemd {'yes' if service.is_systemd else 'no'}",
            f"stop {_one_line(shlex.join(service.stop), service.name)}",
            f"start {_one_line(shlex.join(service.start), service.name)}",
        ]
        optional = {"check": service.check, "reload": service.reload}
        lines += [
            f"{verb} {_one_line(shlex.join(argv), service.name)}" for verb, argv in optional.items() if argv
        ]
        if service.pid_file != PurePosixPath():
            lines.append(f"pid-file {_one_line(str(service.pid_file), service.name)}")
    lines += [f"url {_one_line(url, url)}" for url in urls]
    stdin = "\n".join([*lines, "end", ""]).encode(errors="surrogateescape")
    digest = hashlib.sha256(program()).hexdigest()
    return step("arm", purpose, digest, stdin=stdin, timeout_s=ARM_TIMEOUT_S)


def checksum(content: bytes | None) -> str:
    """Return the word by which the keeper is told what it should find at a path."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def plan_to_keep(purpose: str, session: str, command: Command, answer: Mapping[str, Sequence[str]]) -> str:
    """Write down what was armed, as `adoption` tells it to a target that has lost it.

    Args:
        purpose: of the arming.
        session: of the arming.
        command: which armed the target.
        answer: what the keeper said: which services ran, what answered how, and which boot it is.
    """
    ran = dict(line.partition(" ")[::2] for line in answer.get("ran", ()))
    lines = [f"purpose {purpose}", f"session {session}"]
    for line in command.stdin.decode(errors="surrogateescape").splitlines():
        word, _, value = line.partition(" ")
        if word not in {"session", "url", "end"}:
            lines.append(line)
        if word == "service" and value in ran:
            lines.append(f"ran {ran[value]}")
    lines += [f"{word} {line}" for word in ("answered", "boot", "since") for line in answer.get(word, ())]
    return "\n".join(lines)


def adoption(kept: Kept) -> Command:
    """Name the command that gives a target back what it has lost."""
    plan = [line.partition(" ") for line in kept.plan.splitlines()]
    named = {word: value for word, _, value in plan if word in {"purpose", "session"}}
    lines = [f"{word} {value}" for word, _, value in plan if word not in named]
    if not kept.plan:  # of a version that kept originals only
        lines = [f"ticking {_ticking(LONG_S)}"]
    head = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    head += b"".join(b"made %s\n" % _named(path) for path in kept.made)
    contents = b""
    for original in kept.originals:
        head += b"".join(
            b"written %s\n" % _told_by_keeper(each) for each in kept.written.get(original.path, ())
        )
        head += _tell_original(original)
        contents += original.state.content or b""
    purpose = named.get("purpose", "run")
    session = named.get("session") or hashlib.sha256(head + contents).hexdigest()[:16]
    digest = hashlib.sha256(program()).hexdigest()
    return step(
        "adopt",
        purpose,
        digest,
        session,
        str(len(head)),
        str(len(head) + len(contents)),
        stdin=head + contents,
        timeout_s=RESTORE_TIMEOUT_S,
    )


def _told_by_keeper(checksum: str) -> bytes:
    return (checksum if checksum == ABSENT else f"{checksum}  -").encode()


def _tell_original(original: Original) -> bytes:
    state, path = original.state, _named(original.path)
    if state.content is None:
        return b"absent %s\n" % path
    size = len(state.content)
    if is_setting(original.path):
        return b"setting %d %s\n" % (size, path)
    return b"file %d %o %d %d %s\n" % (size, state.mode or 0, state.uid or 0, state.gid or 0, path)


def change(
    purpose: str,
    session: str,
    *,
    put: Files,
    back: Sequence[PurePosixPath],
    originals: Mapping[PurePosixPath, str],
) -> Command:
    """Name the command that keeps the originals of what is new, writes files and puts others back.

    Args:
        purpose: run or apply.
        session: the one that was armed.
        put: what is written.
        back: what becomes the original again.
        originals: checksums of the files that `put` was made from. The keeper overwrites only these, and
            what it wrote itself.

    Raises:
        ConfigRejected: a setting of the kernel would get more than one line.
        TargetError: a path cannot be named in a line of text.
    """
    head, contents = b"", b""
    for path, content in put.items():
        if is_setting(path):
            head += b"set %s\n%s\n" % (_named(path), _value(path, content))
        else:
            head += b"put %d %s %s\n" % (len(content), originals[path].encode(), _named(path))
            contents += content
    for path in back:
        head += b"back %s\n" % _named(path)
    return step(
        "change",
        purpose,
        session,
        str(len(head)),
        str(len(head) + len(contents)),
        stdin=head + contents,
        timeout_s=CHANGE_TIMEOUT_S,
    )


def words(log: PurePosixPath) -> Command:
    """Name the command that prints the end of a server's log; links, pipes and devices it does not read."""
    return replace(
        step("words", "run", _one_line(str(log), "a log"), timeout_s=WORDS_TIMEOUT_S), may_fail=True
    )


def activation(purpose: str, session: str, verb: str, *service: str) -> Command:
    """Name the command that does something with a service, unless the target has ended the session.

    Args:
        purpose: run or apply.
        session: the one that was armed.
        verb: check, restart or reload, with the name of a service; or units: systemd reads its units again.
        service: its name, one of those that the target was armed for.
    """
    commands = 2 if verb == "restart" else 1
    timeout_s = LOCK_S + commands * SERVICE_S
    return step("activate", purpose, session, verb, *service, timeout_s=timeout_s)


def read_activation(host_name: str, completed: Completed, commands: Mapping[str, Sequence[str]]) -> Completed:
    """Read how the last command of an activation ended, as if it had been run by itself.

    Args:
        host_name: for messages.
        completed: how the keeper ended.
        commands: what the verbs stand for that the keeper names.

    Raises TargetError when the keeper did not run it: the session has ended, or its answer makes no sense.
    """
    answer = require_success(host_name, completed, also=SERVICE_FAILED)
    verb, _, told = "".join(answer.get("ran", [])).partition("\t")
    status = re.fullmatch(r"[0-9]{1,3}", told, re.ASCII)
    if status is None or verb not in commands:
        shown = completed.stdout[:SHOWN_BYTES]
        message = f"{host_name}: the keeper tells {shown!r}, which is no end of a command. Begin again."
        raise TargetError(message)
    return Completed(
        argv=tuple(commands[verb]),
        returncode=int(status[0]),
        stdout=_joined(answer.get("out", [])),
        stderr=_joined(answer.get("err", [])),
        duration_s=completed.duration_s,
    )


def read_foreign(completed: Completed) -> frozenset[PurePosixPath]:
    """Read which paths a change left alone, because somebody else had changed them."""
    words = (line.partition("\t") for line in _lines(completed))
    return frozenset(PurePosixPath(path) for word, _, path in words if word == "foreign")


def is_refusal(completed: Completed) -> bool:
    """Tell whether a keeper, or the shell, said why it did nothing."""
    return completed.returncode in (*REFUSALS, *NOT_INSTALLED)


def is_setting(path: PurePosixPath) -> bool:
    """Tell whether a path is a setting of the kernel: a value of one line, with no owner to give back."""
    return any(path.is_relative_to(root) for root in SETTINGS)


def needs_installation(completed: Completed) -> bool:
    """Tell whether there is no keeper, or one that is not this version, is empty or was cut."""
    is_other = completed.returncode in (*NOT_INSTALLED, OTHER_VERSION)
    return is_other or (completed.returncode == 0 and not has_end(completed))


def has_end(completed: Completed) -> bool:
    """Tell whether an answer is whole."""
    return (b"\n" + completed.stdout).endswith(f"\n{LAST_LINE}\n".encode())


def require_success(host_name: str, completed: Completed, *, also: int | None = None) -> dict[str, list[str]]:
    """Read what the keeper printed: by the first word of a line, what follows it.

    Args:
        host_name: for messages.
        completed: how the keeper ended.
        also: another status of a whole answer.

    Raises:
        ConfigRejected: the kernel refused a value.
        RestoreFailed: something is not back.
        TargetError: everything else that went wrong, in the keeper's own words.
    """
    said = completed.stderr.decode(errors="replace").strip()
    answer: dict[str, list[str]] = {}
    for line in _lines(completed):
        word, _, rest = line.partition("\t")
        answer.setdefault(word, []).append(rest)
    match completed.returncode:
        case code if code in (0, also) and has_end(completed):
            return answer
        case code if code in (0, also):
            shown = completed.stdout[:SHOWN_BYTES]
            told = (
                f"the keeper at {PROGRAM} is damaged or of another version: its answer has no end ({shown!r})"
            )
            raise TargetError(f"{host_name}: {told}. Run: tuner restore")
        case _ if completed.timed_out:
            told = f"the keeper did not end within {completed.duration_s:.0f} s. Look into {DIRECTORY}/log."
            raise TargetError(f"{host_name}: {told}")
        case code if code == REJECTED:
            raise ConfigRejected(f"{host_name}: {said}")
        case code if code == INCOMPLETE:
            raise RestoreFailed(_tell_troubles(host_name, answer.get("trouble", []), said))
        case code if code in NOT_INSTALLED:
            raise TargetError(f"{host_name}: the keeper is not at {PROGRAM} ({said}). Begin again.")
        case code:
            told = said or f"the keeper ended with status {code}. Look into {DIRECTORY}/log."
            raise TargetError(f"{host_name}: {told}")


def _lines(completed: Completed) -> list[str]:
    """Split what was printed; names may hold what str.splitlines takes for an end of a line."""
    return completed.stdout.decode(errors="surrogateescape").removesuffix("\n").split("\n")


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _tell_troubles(host_name: str, troubles: Sequence[str], said: str) -> str:
    told = "; ".join("{} ({})".format(*trouble.partition("\t")[::2]) for trouble in troubles) or said
    return (
        f"{host_name}: not everything could be put back: {told}. The originals are kept in {DIRECTORY}. "
        "Remove the cause, then run: tuner restore (or give up what is left with: tuner restore --accept)"
    )


def _ticking(watchdog_s: float) -> str:
    """Tell length and number of the watchdog's ticks; whole seconds where that is fine enough."""
    tick_s = max(1, math.floor(watchdog_s / TICKS)) if watchdog_s >= TICKS else watchdog_s / TICKS
    return f"{tick_s:.6g} {math.ceil(watchdog_s / tick_s)} {min(RETRY_S, watchdog_s):.6g}"


def _value(path: PurePosixPath, content: bytes) -> bytes:
    value = content.removesuffix(b"\n")
    if any(byte < ord(" ") and byte != ord("\t") for byte in value):
        raise ConfigRejected(f"{path}: {value!r} is not a value of one line. Correct its space.")
    return value


def _named(path: PurePosixPath) -> bytes:
    return _one_line(str(path), "a file").encode(errors="surrogateescape")


def _one_line(text: str, of: str) -> str:
    if any(ord(character) < ord(" ") or character == "\x7f" for character in text):
        raise TargetError(f"{of}: {text!r} has control characters, which tuner does not send. Correct it.")
    return text


def _printable(text: str) -> str:
    """Give what a terminal may show: names of studies and hosts are anybody's."""
    return "".join(character if character.isprintable() else "?" for character in text)
