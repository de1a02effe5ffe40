"""Requests to the keeper: the commands that install it and run its steps."""

import hashlib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Argv, Command, Files, Service
from tuner.restore.journal import HostRecord, Original

DIRECTORY = PurePosixPath("/var/lib/tuner")
PROGRAM = DIRECTORY / "keeper"
ARRIVING = DIRECTORY / "keeper.new"
SETTINGS = (PurePosixPath("/proc/sys"), PurePosixPath("/sys"))
"""Directories in which a file takes one value of one line."""
SERVICE_NAME = re.compile(r"[A-Za-z0-9@_:][A-Za-z0-9@_.:-]*")
TICKS: Final = 20
"""Number of looks after which the watchdog gives a controller up."""
RETRY_S: Final = 30.0
"""Pause of the watchdog before it tries again to put back what it could not."""
ARM_TIMEOUT_S: Final = 120.0
CHANGE_TIMEOUT_S: Final = 60.0
LOCK_S: Final = 30.0
"""Time that a step waits for another one."""
SERVICE_S: Final = 90.0
"""Timeout of one command of a service, as of systemd (DefaultTimeoutStartSec, systemd-system.conf(5))."""
RESTORE_TIMEOUT_S: Final = 600.0
LOG_TIMEOUT_S: Final = 10.0
DEFAULT_WATCHDOG_S: Final = 120.0

SOURCES = (
    "state",
    "originals",
    "files",
    "change",
    "services",
    "restore",
    "applied",
    "watchdog",
    "arm",
    "main",
)
"""Shell files of the keeper, in their order; the first explains it, the last runs it."""
ABSENT: Final = "absent"
"""The checksum of a file that is not there."""


def program() -> bytes:
    """Return the keeper itself: its shell files in their order, as one program."""
    folder = resources.files("tuner.restore.keeper")
    return b"\n".join((folder / f"{name}.sh").read_bytes() for name in SOURCES)


KEEPER: Argv = ("/bin/sh", str(PROGRAM))
"""Command that sudo must allow with any arguments."""


def step(name: str, purpose: str, *arguments: str, stdin: bytes = b"", timeout_s: float = 30.0) -> Command:
    """Return the command that runs one step of the keeper."""
    argv = ("/bin/sh", str(PROGRAM), name, purpose, *arguments)
    return Command(argv=argv, timeout_s=timeout_s, stdin=stdin, as_root=True)


def installation() -> tuple[Command, ...]:
    """Return the commands that put the keeper on a target atomically."""
    return (
        Command(argv=("/usr/bin/install", "-d", "-m", "0700", str(DIRECTORY)), as_root=True),
        Command(
            argv=("/bin/dd", f"of={ARRIVING}", "conv=fsync", "status=none"), stdin=program(), as_root=True
        ),
        # A keeper that runs goes on with the old file.
        Command(argv=("/bin/mv", "-f", str(ARRIVING), str(PROGRAM)), as_root=True),
    )


def commands_needing_root() -> tuple[Argv, ...]:
    """Return the commands that sudo must allow, besides the keeper itself."""
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
    """Return the command that takes the target.

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
            raise TargetError(f"{service.name!r} is not a name of a service. Correct the name.")
        commands = {verb: getattr(service, verb) for verb in ("stop", "start", "restart", "check", "reload")}
        lines += [f"service {service.name}", f"systemd {'yes' if service.is_systemd else 'no'}"]
        lines += [
            f"{verb} {_one_line(shlex.join(argv), service.name)}" for verb, argv in commands.items() if argv
        ]
        if service.pid_file != PurePosixPath():
            lines.append(f"pid-file {_one_line(str(service.pid_file), service.name)}")
    lines += [f"url {_one_line(url, url)}" for url in urls]
    stdin = "\n".join([*lines, "end", ""]).encode(errors="surrogateescape")
    return step("arm", purpose, checksum(program()), stdin=stdin, timeout_s=ARM_TIMEOUT_S)


def checksum(content: bytes | None) -> str:
    """Return the checksum of a content, as the keeper writes it."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def readiness(purpose: str, session: str, confirm_within_s: float) -> Command:
    """Return the command that lets what was applied wait for `confirm` so long."""
    return step("ready", purpose, session, *_ticking(confirm_within_s).split())


OF_CONTROLLER: Final = frozenset({"purpose", "session", "identity"})
"""Words of a plan that a target is not sent."""


def plan_to_keep(
    purpose: str, session: str, identity: str, command: Command, reply: Mapping[str, Sequence[str]]
) -> str:
    """Return the plan of a session, as `adoption` sends it to a target that has lost it.

    `command` armed the target, which is the machine `identity`; in its reply the keeper says what it
    found of services, what answered how, and which boot it is.
    """
    found: dict[str, list[str]] = {}
    for line in reply.get("found", ()):
        service, _, fact = line.partition(" ")
        found.setdefault(service, []).append(fact)
    lines = [f"purpose {purpose}", f"session {session}", f"identity {identity}"]
    for line in command.stdin.decode(errors="surrogateescape").splitlines():
        word, _, value = line.partition(" ")
        if word not in {"session", "url", "end"}:
            lines.append(line)
        if word == "service":
            lines += found.get(value, [])
    lines += [f"{word} {line}" for word in ("answered", "boot", "since") for line in reply.get(word, ())]
    return "\n".join(lines)


def adoption(record: HostRecord) -> Command:
    """Return the command that gives a target back what it has lost."""
    lines = [line for line in record.plan.splitlines() if line.partition(" ")[0] not in OF_CONTROLLER]
    if not record.plan:  # of a version that kept originals only
        lines = [f"ticking {_ticking(DEFAULT_WATCHDOG_S)}"]
    head = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    head += b"".join(b"made %s\n" % _named(path) for path in record.made)
    head += b"".join(b"value %s\n" % value.encode(errors="surrogateescape") for value in record.values)
    contents = b""
    for original in record.originals:
        for each in record.written.get(original.path, ()):
            head += f"written {each if each == ABSENT else f'{each}  -'}\n".encode()  # as sha256sum prints it
        head += b"" if record.plan else b"written anything\n"
        head += _describe_original(original)
        contents += original.state.content or b""
    purpose = record.say("purpose") or "run"
    session = record.say("session") or hashlib.sha256(head + contents).hexdigest()[:16]
    arguments = (purpose, checksum(program()), session)
    return _step_with_contents("adopt", *arguments, head=head, contents=contents, timeout_s=RESTORE_TIMEOUT_S)


def _describe_original(original: Original) -> bytes:
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
    """Return the command that keeps the originals of what is new, writes files and puts others back.

    The keeper overwrites only files with the checksums in `originals`, and what it wrote itself.

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
    return _step_with_contents(
        "change", purpose, session, head=head, contents=contents, timeout_s=CHANGE_TIMEOUT_S
    )


def _step_with_contents(
    name: str, purpose: str, *arguments: str, head: bytes, contents: bytes, timeout_s: float
) -> Command:
    """Return the command of a step whose stdin is lines and then the contents of files."""
    sizes = (str(len(head)), str(len(head) + len(contents)))
    return step(name, purpose, *arguments, *sizes, stdin=head + contents, timeout_s=timeout_s)


def log_tail(log: PurePosixPath) -> Command:
    """Return the command that prints the end of a server's log; links, pipes and devices are refused."""
    return replace(step("words", "run", _one_line(str(log), "a log"), timeout_s=LOG_TIMEOUT_S), may_fail=True)


def activation(purpose: str, session: str, verb: str, *service: str) -> Command:
    """Return the command that activates a service, unless the session has ended.

    `verb` is check, restart or reload, with the name of a service; or units: systemd reads its units again.
    """
    timeout_s = LOCK_S + (2 if verb == "restart" else 1) * SERVICE_S
    return step("activate", purpose, session, verb, *service, timeout_s=timeout_s)


def is_setting(path: PurePosixPath) -> bool:
    """Check whether a path is a setting of the kernel: one line, with no owner to restore."""
    return any(path.is_relative_to(root) for root in SETTINGS)


def _ticking(watchdog_s: float) -> str:
    """Return length and number of the watchdog's ticks; whole seconds where that is fine enough."""
    tick_s = max(1, math.floor(watchdog_s / TICKS)) if watchdog_s >= TICKS else watchdog_s / TICKS
    return f"{tick_s:.6g} {math.ceil(watchdog_s / tick_s)} {min(RETRY_S, watchdog_s):.6g}"


def _value(path: PurePosixPath, content: bytes) -> bytes:
    value = content.removesuffix(b"\n")
    if any(byte < ord(" ") and byte != ord("\t") for byte in value):
        raise ConfigRejected(f"{path}: {value!r} is not a value of one line. Correct the search space.")
    return value


def _named(path: PurePosixPath) -> bytes:
    return _one_line(str(path), "a file").encode(errors="surrogateescape")


def _one_line(text: str, of: str) -> str:
    if any(ord(character) < ord(" ") or character == "\x7f" for character in text):
        raise TargetError(f"{of}: {text!r} has control characters, which tuner does not send. Remove them.")
    return text


def _printable(text: str) -> str:
    """Replace what a terminal may not show: anybody may choose names of studies and hosts."""
    return "".join(character if character.isprintable() else "?" for character in text)
