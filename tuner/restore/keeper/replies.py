"""Replies of the keeper: lines of a word, a tab and its value, an exit status, and a last line."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.ports import Completed
from tuner.restore.keeper.requests import DIRECTORY, PROGRAM

# Exit statuses of the keeper; others are the shell's or sudo's.
OTHER_VERSION: Final = 21
ENDED: Final = 23
INCOMPLETE: Final = 24
REJECTED: Final = 25
SERVICE_FAILED: Final = 26
CHANGED: Final = 29
REFUSALS: Final = range(20, 28)
"""Statuses with which `arm` has taken nothing."""
NOT_INSTALLED: Final = (2, 126, 127)
"""Statuses of a shell that finds no such program: 127, dash 2."""
LAST_LINE: Final = "end\t2"
"""Last line of every whole reply, with the version of the protocol.

An empty or a cut keeper exits with 0 as well, and prints nothing."""
SHOWN_BYTES: Final = 200
NO_SUCH_STEP: Final = b"The keeper has no step"
"""As a keeper of an earlier version says it."""

Reply = dict[str, list[str]]
"""The first word of a line → what follows it, once for each such line."""


def read_reply(host_name: str, completed: Completed, *, also: int | None = None) -> Reply:
    """Parse what the keeper printed.

    Args:
        host_name: for messages.
        completed: how the keeper ended.
        also: another exit status of a whole reply.

    Raises:
        ConfigRejected: the kernel refused a value.
        RestoreFailed: something is not back.
        TargetError: everything else that went wrong, in the keeper's own words.
    """
    said = completed.stderr.decode(errors="replace").strip()
    reply: Reply = {}
    for line in _lines(completed):
        word, _, rest = line.partition("\t")
        reply.setdefault(word, []).append(rest)
    match completed.returncode:
        case code if code in (0, also):
            if _has_end(completed):
                return reply
            shown = completed.stdout[:SHOWN_BYTES]
            told = f"is damaged or of another version: its answer has no end ({shown!r}). Run: tuner restore"
            raise TargetError(f"{host_name}: the restore agent at {PROGRAM} {told}")
        case _ if completed.timed_out:
            told = f"did not end within {completed.duration_s:.0f} s. Read {DIRECTORY}/log."
            raise TargetError(f"{host_name}: the restore agent {told}")
        case code if code == REJECTED:
            raise ConfigRejected(f"{host_name}: {said}")
        case code if code == INCOMPLETE:
            raise RestoreFailed(_describe_troubles(host_name, _name_troubles(reply) or said))
        case code if code == CHANGED:
            raise RestoreFailed(
                f"{host_name}: {_name_troubles(reply)}. tuner has changed nothing. Save what you need of "
                "both versions. Then roll back all other files: tuner apply STUDY --undo --accept"
            )
        case code if code in NOT_INSTALLED:
            raise TargetError(
                f"{host_name}: the restore agent is missing at {PROGRAM} ({said}). Run the command again."
            )
        case code:
            told = said or f"the restore agent ended with status {code}. Read {DIRECTORY}/log."
            raise TargetError(f"{host_name}: {told}")


def read_activation(host_name: str, completed: Completed, commands: Mapping[str, Sequence[str]]) -> Completed:
    """Return how the last command of an activation ended, as if it had been run by itself.

    Args:
        host_name: for messages.
        completed: how the keeper ended.
        commands: verbs of the keeper → the commands that they run.

    Raises TargetError when the keeper did not run it: the session has ended, or the reply makes no sense.
    """
    reply = read_reply(host_name, completed, also=SERVICE_FAILED)
    verb, _, told = "".join(reply.get("ran", [])).partition("\t")
    status = re.fullmatch(r"[0-9]{1,3}", told, re.ASCII)
    if status is None or verb not in commands:
        shown = completed.stdout[:SHOWN_BYTES]
        raise TargetError(
            f"{host_name}: the reply {shown!r} of the restore agent has no exit status. Run the command "
            "again."
        )
    return Completed(
        argv=tuple(commands[verb]),
        returncode=int(status[0]),
        stdout=_joined(reply.get("out", [])),
        stderr=_joined(reply.get("err", [])),
        duration_s=completed.duration_s,
    )


def read_foreign(completed: Completed) -> frozenset[PurePosixPath]:
    """Return the paths that a change left alone, because somebody else had changed them."""
    words = (line.partition("\t") for line in _lines(completed))
    return frozenset(PurePosixPath(path) for word, _, path in words if word == "foreign")


def is_refusal(completed: Completed) -> bool:
    """Check whether the keeper, or the shell, explained why it did nothing."""
    return completed.returncode in (*REFUSALS, *NOT_INSTALLED)


def needs_installation(completed: Completed) -> bool:
    """Check whether the keeper is absent, of another version, empty or cut."""
    is_other = completed.returncode in (*NOT_INSTALLED, OTHER_VERSION) or NO_SUCH_STEP in completed.stderr
    return is_other or (completed.returncode == 0 and not _has_end(completed))


def _has_end(completed: Completed) -> bool:
    return (b"\n" + completed.stdout).endswith(f"\n{LAST_LINE}\n".encode())


def _lines(completed: Completed) -> list[str]:
    """Split at newlines only; names may hold what str.splitlines takes for an end of a line."""
    return completed.stdout.decode(errors="surrogateescape").removesuffix("\n").split("\n")


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _name_troubles(reply: Reply) -> str:
    return "; ".join("{} ({})".format(*each.partition("\t")[::2]) for each in reply.get("trouble", []))


def _describe_troubles(host_name: str, told: str) -> str:
    return (
        f"{host_name}: tuner could not restore everything: {told}. The backups are kept in {DIRECTORY}. "
        "Remove the cause, then run: tuner restore. To leave these items as they are, run: tuner restore "
        "--accept"
    )
