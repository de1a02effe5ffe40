"""Restores, confirms and describes a host without a lease: whatever an ended session has left there."""

import contextlib
import platform
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tuner.errors import RestoreFailed, TargetError
from tuner.ports import Command, Host
from tuner.restore.journal import Journal
from tuner.restore.keeper import ADOPTED, NOTHING, Keeper, ignore, paths_back, requests
from tuner.restore.keeper.replies import NOT_INSTALLED, read_reply

PURPOSES = ("run", "apply")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def restore_host(
    host: Host, journal: Journal, warn: Callable[[str], None] = ignore
) -> tuple[PurePosixPath, ...]:
    """Put back what runs and unconfirmed applies have left on a host. Returns the paths that were written.

    A host that has lost what it knew is first given keeper, plan and originals of this side's journal.

    Raises:
        RestoreFailed: something is not back.
        TargetError: a tuner is at work there, or root is needed.
    """
    keeper = Keeper(host)
    if not _is_concerned(keeper, journal):
        return ()
    journal.claim(host.name)
    back = _restore_by_hand(keeper, journal, warn)
    if keeper.give_back(journal.read(host.name)) != NOTHING:
        back += _restore_by_hand(keeper, journal, warn)
    journal.discard(host.name)
    return back


def accept_host(
    host: Host, journal: Journal, warn: Callable[[str], None] = ignore
) -> tuple[tuple[PurePosixPath, ...], tuple[str, ...]]:
    """Put back what can be, and give up the rest, with a person's consent.

    Returns the paths that were written, and a sentence about each thing that was given up. Nothing is
    deleted: what is known of the originals is kept on the host, and this side's copy here.

    Raises TargetError when a tuner is at work there, or root is needed.
    """
    keeper = Keeper(host)
    if not _is_concerned(keeper, journal):
        return (), ()
    back: tuple[PurePosixPath, ...] = ()
    told: list[str] = []
    with contextlib.suppress(RestoreFailed):  # a copy that cannot be read is set aside all the same
        journal.claim(host.name)
        keeper.give_back(journal.read(host.name))
    for purpose in PURPOSES:
        reply = keeper.ask(_long_step("accept", purpose, controller_name(journal)), warn)
        if reply is None:
            break
        back += paths_back(reply)
        kept = dict(line.partition("\t")[::2] for line in reply.get("kept", []))
        for trouble in reply.get("trouble", []):
            what, _, reason = trouble.partition("\t")
            place = f" What is known of its original is in {kept[what]}." if what in kept else ""
            told.append(f"{host.name}: {what} is left as it is ({reason}).{place}")
    if copy := journal.set_aside(host.name):
        told.append(f"{host.name}: the copy of the originals on this side is {copy}.")
    return back, tuple(told)


def return_what_was_lost(host: Host, journal: Journal) -> None:
    """Put back what a host has lost and this side has not. Raises RestoreFailed or TargetError."""
    if Keeper(host).give_back(journal.read(host.name)) == ADOPTED:
        _restore_by_hand(Keeper(host), journal, ignore)


def describe_use(host: Host) -> tuple[str, ...]:
    """Return one sentence about each tuner that has taken a host. Raises TargetError without root."""
    keeper = Keeper(host)
    found: list[str] = []
    for purpose in PURPOSES if keeper.may_exist() else ():
        completed = keeper.send(_long_step("status", purpose))
        if completed.returncode in NOT_INSTALLED:
            break
        reply = read_reply(host.name, completed)
        is_at_work = "session" in reply and "watchdog" in reply
        for owner in reply.get("owner", []):
            state = "is at work" if is_at_work else "was at work, and the originals are not back"
            found.append(f"{host.name}: a tuner {state} ({purpose}): {owner}.")
    return tuple(found)


def confirm(host: Host) -> None:
    """Keep what was applied. Raises TargetError when it was taken back already, or nothing was applied."""
    _applied(host).require(requests.step("confirm", "apply"))


def undo(host: Host) -> tuple[PurePosixPath, ...]:
    """Take back what was applied and confirmed. Returns the paths that were written.

    Raises:
        RestoreFailed: something is not back, or was changed by somebody else since.
        TargetError: a tuner is at work there, or nothing was ever applied by this version.
    """
    return paths_back(_applied(host).require(_long_step("undo", "apply")))


def _applied(host: Host) -> Keeper:
    """Return the keeper of a host. Raises TargetError where there never was one."""
    keeper = Keeper(host)
    if not keeper.may_exist():
        raise TargetError(f"{host.name}: nothing was applied here. Apply a winner with: tuner apply STUDY")
    return keeper


def controller_name(journal: Journal) -> str:
    """Return a name of this side: whoever holds the lock of this journal is the only one of that name.

    A copy of this machine or directory has locks of its own and needs another name, but whatever is kept in
    the directory is copied with it, and so may be /etc/machine-id. No copy shares the random id of this boot;
    containers share that, but not the directory itself. After a reboot the name is another one: its own tuner
    is dead then, and the keeper makes sure of that as it does for any stranger.
    """
    boot = platform.node()
    with contextlib.suppress(OSError):
        boot = BOOT_ID.read_text(encoding="ascii").strip()
    facts = journal.directory.stat()
    return f"{boot}:{facts.st_dev:x}:{facts.st_ino:x}"


def _is_concerned(keeper: Keeper, journal: Journal) -> bool:
    """Check whether anything may have to be put back; that needs no root."""
    return journal.path(keeper.host.name).exists() or keeper.may_exist()


def _restore_by_hand(
    keeper: Keeper, journal: Journal, warn: Callable[[str], None]
) -> tuple[PurePosixPath, ...]:
    """Restore both purposes. Returns the paths that were written. Raises RestoreFailed."""
    back: tuple[PurePosixPath, ...] = ()
    troubles: list[str] = []
    for purpose in PURPOSES:
        try:
            reply = keeper.ask(_long_step("restore", purpose, "hand", controller_name(journal)), warn)
        except RestoreFailed as error:
            troubles.append(str(error))
            continue
        if reply is None:
            break
        back += paths_back(reply)
    if troubles:
        raise RestoreFailed(" ".join(troubles))
    return back


def _long_step(name: str, purpose: str, *arguments: str) -> Command:
    return requests.step(name, purpose, *arguments, timeout_s=requests.RESTORE_TIMEOUT_S)
