"""Restores, confirms and describes a host without a lease: whatever an ended session has left there."""

import contextlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tuner.errors import RestoreFailed, TargetError
from tuner.ports import Command, Host
from tuner.restore.journal import HostRecord, Journal
from tuner.restore.keeper import ADOPTED, NOTHING, Keeper, ignore, paths_back, requests
from tuner.restore.keeper.replies import NOT_INSTALLED, read_reply

PURPOSES = ("run", "apply")
LOST = "lost"
MACHINE_ID, BOOT_ID, MOUNTS = map(
    PurePosixPath,
    ("/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/self/mountinfo"),
)


def restore_host(
    host: Host, journal: Journal, warn: Callable[[str], None] = ignore
) -> tuple[PurePosixPath, ...]:
    """Put back what runs and unconfirmed applies have left on a host. Returns the paths that were written.

    A host that has lost its record is first given keeper, plan and originals of this side's journal.

    Raises:
        RestoreFailed: something is not back.
        TargetError: a tuner is at work there, or root is needed.
    """
    keeper = Keeper(host)
    names = _claim_names(host, journal)
    if not names and not keeper.may_exist():
        return ()
    journal.claim(host.name)
    back = _restore_by_hand(keeper, journal, warn)
    for name in names:
        if keeper.give_back(journal.read(name)) != NOTHING:
            back += _restore_by_hand(keeper, journal, warn)
        journal.discard(name)
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
    if not journal.path(host.name).exists() and not keeper.may_exist():
        return (), ()
    back: tuple[PurePosixPath, ...] = ()
    told: list[str] = []
    with contextlib.suppress(RestoreFailed):  # a copy that cannot be read is set aside all the same
        journal.claim(host.name)
        record = journal.read(host.name)
        if not is_of_another(record, identify(host)) and not keeper.has_lost_apply(record):
            keeper.give_back(record)
    for purpose in PURPOSES:
        reply = keeper.ask(_long_step("accept", purpose, controller_name(journal, host)), warn)
        back += paths_back(reply)
        kept = dict(line.partition("\t")[::2] for line in reply.get("kept", []))
        for trouble in reply.get("trouble", []):
            what, _, reason = trouble.partition("\t")
            place = f" Its backup, if there is one, is in {kept[what]}." if what in kept else ""
            told.append(f"{host.name}: tuner leaves {what} as it is ({reason}).{place}")
    if copy := journal.set_aside(host.name):
        told.append(f"{host.name}: this machine keeps a copy of the backups in {copy}.")
    return back, tuple(told)


def return_what_was_lost(host: Host, journal: Journal) -> str:
    """Put back what a host has lost and this side has not. Returns who the host is.

    Raises RestoreFailed or TargetError.
    """
    identity = identify(host)
    for name in _claim_names(host, journal, identity):
        if Keeper(host).give_back(journal.read(name)) == ADOPTED:
            _restore_by_hand(Keeper(host), journal, ignore)
        if name != host.name:
            journal.discard(name)
    return identity


def identify(host: Host) -> str:
    """Return who a host is, as it says itself: machine, boot and root directory, whatever its address.

    Machines that were cloned may share the first, containers the second.
    """
    look = host.look((MACHINE_ID, BOOT_ID, MOUNTS))
    machine, boot, mounts = (
        (look.read(path).content or b"").decode(errors="replace") for path in (MACHINE_ID, BOOT_ID, MOUNTS)
    )
    # Device and directory of what is mounted at / (proc_pid_mountinfo(5)).
    roots = [words[2:4] for words in map(str.split, mounts.splitlines()) if words[4:5] == ["/"]]
    return " ".join((machine.strip() or "none", boot.strip() or "none", *(roots[-1] if roots else ())))


def is_of_another(record: HostRecord, identity: str) -> bool:
    """Check whether a record is of another machine than this one, which may have got its address."""
    machine, recorded = (words.partition(" ")[0] for words in (identity, record.say("identity")))
    return recorded not in {"", machine}


def _claim_names(host: Host, journal: Journal, identity: str | None = None) -> tuple[str, ...]:
    """Lock the records that are of this host, under whatever name. Returns the names.

    Raises TargetError when a tuner is at work on it from here, or a record is of another machine.
    """
    recorded = journal.names()
    if identity is None:
        identity = identify(host) if recorded else ""
    names = [name for name in recorded if name == host.name or _is_of(journal, name, identity)]
    for name in names:
        journal.claim(name)
        if is_of_another(journal.read(name), identity):
            raise TargetError(
                f"{journal.path(name)}: these backups belong to another machine, which had this name before. "
                "Restore the backups there. If that machine is gone, move this file to another folder."
            )
    return tuple(names)


def _is_of(journal: Journal, name: str, identity: str) -> bool:
    try:
        return journal.read(name).say("identity") == identity
    except RestoreFailed:
        return False  # it is said under its own name


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
            state = ("is at work") if is_at_work else "was at work, and its backups are not restored"
            found.append(f"{host.name}: a tuner {state} ({purpose}): {owner}.")
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastApply:
    """What was applied last on a host, and is not taken back."""

    which: str
    """The keeper's word for it; LOST where only this side knows of it."""
    study: str
    since: str
    paths: tuple[PurePosixPath, ...]
    """What an undo puts back."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """What somebody has changed since → both versions."""
    services: tuple[str, ...] = ()
    earlier: int = 0
    """Number of applies before it that are confirmed."""


def confirm(host: Host, journal: Journal, warn: Callable[[str], None] = ignore) -> None:
    """Keep what was applied, from wherever; this side's copies of its originals are given up.

    Where the host has lost its own, they are set aside here.

    Raises TargetError when it was taken back already, or nothing was applied.
    """
    keeper = Keeper(host)
    applied = _records_of_applies(host, journal)
    is_lost = any(keeper.has_lost_apply(record) for record in applied.values())
    if not is_lost:
        for warning in _installed(keeper).require(requests.step("confirm", "apply")).get("warning", []):
            warn(f"{host.name}: {warning}")
    for name in applied:
        if is_lost:
            warn(
                f"{host.name}: the host has lost the backups, so nothing can roll back the apply. Copies are "
                f"in {journal.set_aside(name)}."
            )
        else:
            journal.discard(name)


def find_applied(host: Host, journal: Journal) -> LastApply | None:
    """Return what was applied last, confirmed or not; None when all was taken back.

    Raises TargetError when nothing was ever applied there, or root is needed.
    """
    keeper = Keeper(host)
    for record in _records_of_applies(host, journal).values():
        if keeper.has_lost_apply(record):
            paths = tuple(original.path for original in record.originals)
            return LastApply(which=LOST, study=record.say("study"), since=record.say("since"), paths=paths)
    asked = requests.step("applied", "apply", requests.checksum(requests.program()))
    reply = read_reply(host.name, _installed(keeper).send_whole(asked))
    if "number" not in reply:
        return None
    return LastApply(
        which=reply["number"][0],
        study="".join(reply.get("study", ())),
        since="".join(reply.get("since", ())),
        paths=tuple(map(PurePosixPath, reply.get("kept", ()))),
        changed=dict(line.partition("\t")[::2] for line in reply.get("foreign", ())),
        services=tuple(reply.get("service", ())),
        earlier=int("".join(reply.get("earlier", ())) or 0),
    )


def undo(
    host: Host,
    journal: Journal,
    applied: LastApply,
    *,
    accepts: bool = False,
    warn: Callable[[str], None] = ignore,
) -> tuple[PurePosixPath, ...]:
    """Take back what was applied last. Returns the paths that were written.

    Args:
        host: where it was applied.
        journal: this side's copies of originals.
        applied: what `find_applied` returned.
        accepts: whether to leave what somebody has changed since; its originals are kept.
        warn: is told what is not as before, and what was left.

    Raises:
        RestoreFailed: something was changed by somebody else since, and then nothing is put back; or
            something is not back.
        TargetError: a tuner is at work there.
    """
    keeper = Keeper(host)
    records = _records_of_applies(host, journal)
    if applied.which == LOST:
        for record in records.values():
            keeper.give_back(record, takes_back=True)
        back = _restore_by_hand(keeper, journal, warn)
    else:
        reply = keeper.require(_long_step("undo", "apply", applied.which, *(["accept"] * accepts)))
        for warning in reply.get("warning", []):
            warn(f"{host.name}: {warning}")
        for path, place in (line.partition("\t")[::2] for line in reply.get("kept", [])):
            warn(f"{host.name}: tuner left {path} as it is; its backup is in {place}.")
        back = paths_back(reply)
    for name in records:
        journal.discard(name)
    return back


def _records_of_applies(host: Host, journal: Journal) -> dict[str, HostRecord]:
    """Lock and read this side's copies of what was applied on a host, by the names that it had."""
    records = {name: journal.read(name) for name in _claim_names(host, journal)}
    return {name: record for name, record in records.items() if record.say("purpose") == "apply"}


def _installed(keeper: Keeper) -> Keeper:
    """Return a keeper that was installed. Raises TargetError where there never was one."""
    if not keeper.may_exist():
        name = keeper.host.name
        raise TargetError(f"{name}: nothing is applied on this host. Apply a winner with: tuner apply STUDY")
    return keeper


def controller_name(journal: Journal, host: Host) -> str:
    """Return a name of this side: whoever holds the lock of this host's journal is the only one of that name.

    A copy of this machine or directory has locks of its own and needs another name, but whatever is kept in
    the directory is copied with it, and so may be /etc/machine-id. No copy shares the random id of this boot;
    containers share that, but not the directory itself. After a reboot the name is another one: its own tuner
    is dead then, and the keeper makes sure of that as it does for any stranger.
    """
    boot = platform.node()
    with contextlib.suppress(OSError):
        boot = Path(BOOT_ID).read_text(encoding="ascii").strip()
    facts = journal.directory.stat()
    return f"{boot}:{facts.st_dev:x}:{facts.st_ino:x}:{host.name}"


def _restore_by_hand(
    keeper: Keeper, journal: Journal, warn: Callable[[str], None]
) -> tuple[PurePosixPath, ...]:
    """Restore both purposes. Returns the paths that were written. Raises RestoreFailed."""
    back: tuple[PurePosixPath, ...] = ()
    asker = controller_name(journal, keeper.host)
    troubles: list[str] = []
    for purpose in PURPOSES:
        try:
            reply = keeper.ask(_long_step("restore", purpose, "hand", asker), warn)
        except RestoreFailed as error:
            troubles.append(str(error))
            continue
        back += paths_back(reply)
    if troubles:
        raise RestoreFailed(" ".join(troubles))
    return back


def _long_step(name: str, purpose: str, *arguments: str) -> Command:
    return requests.step(name, purpose, *arguments, timeout_s=requests.RESTORE_TIMEOUT_S)
