"""Keeps a target restorable: originals on both sides, a keeper and a watchdog there, a heartbeat from here.

The keeper on the target is the authority. Its journal exists from before the first write until everything is
verified to be back, whoever puts it back: this session, the watchdog, `tuner restore`, or the next boot.
When the target has lost that (its /var/lib/tuner was removed), it gets keeper, plan and originals again from
the controller, and goes on as if nothing had happened.
"""

import contextlib
import os
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from tuner.errors import RestoreFailed, TargetError
from tuner.ports import Command, Completed, Files, Host, Service
from tuner.restore import keeper
from tuner.restore.heartbeat import Heartbeat
from tuner.restore.journal import Journal, Original

BEATS = 8
"""Heartbeats in the time after which the watchdog gives the controller up."""
SHORTEST_TIMEOUT_S = 5.0
"""For what takes no time."""
PURPOSES = ("run", "apply")
NOTHING, PRESENT, ADOPTED = "nothing", "present", "adopted"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _tell_nobody(warning: str) -> None:
    """Drop a warning."""


class Guard:
    """One target during one run, or one apply: what is changed through it comes back."""

    def __init__(
        self, host: Host, *, journal: Journal, purpose: str = "run", study: str, watchdog_s: float = 120.0
    ) -> None:
        """Prepare it.

        Args:
            host: the target.
            journal: the controller's own originals.
            purpose: `run`: the watchdog waits for heartbeats; `apply`: for `confirm`.
            study: its name, for whoever finds the target taken.
            watchdog_s: seconds after which the target puts everything back by itself.
        """
        self._host = host
        self._journal = journal
        self._purpose = purpose
        self._study = study
        self._watchdog_s = watchdog_s
        self._session = secrets.token_hex(8)
        self._heartbeat: Heartbeat | None = None
        self._in_place: dict[PurePosixPath, bytes | None] = {}
        """What differs from the originals; None where the outcome of a change is not known."""
        self._sent: Files = {}
        self._lost: TargetError | None = None
        """Why the target has ended this session."""
        self._may_be_armed = False
        self._originals: dict[PurePosixPath, str] = {}
        """Checksums of the files that what is written is made from."""
        self._foreign: frozenset[PurePosixPath] = frozenset()
        """What somebody else wrote meanwhile: the target alone knows what has to be there."""
        self._has_begun = False
        """Whether the controller's copy is of this session."""

    def arm(
        self, services: Sequence[Service], *, urls: Sequence[str] = (), files: Files | None = None
    ) -> tuple[str, ...]:
        """Take the target: install the keeper, start the watchdog and the heartbeat. Returns warnings.

        Args:
            services: what has to run again after a restore, if it runs now.
            urls: what has to answer again as it does now.
            files: as they were read before; new contents are made of these.

        What the target has lost of an earlier run, and this side has not, is put back first. Call `restore`
        when this fails, too: it may be armed.

        Raises:
            TargetError: another tuner is at work there, originals of an earlier one are not back, one of the
                files is not any more as it was read, or root is needed.
            RestoreFailed: what the target had lost cannot be put back.
        """
        self._journal.claim(self._host.name)
        _return_what_was_lost(self._host, self._journal)
        command = keeper.arming(
            self._purpose,
            session=self._session,
            owner=self._owner(),
            watchdog_s=self._watchdog_s,
            services=services,
            urls=urls,
        )
        self._may_be_armed = True
        completed = _send_whole(self._host, command)
        # Who was told why it may not, has taken nothing.
        self._may_be_armed = not keeper.is_refusal(completed)
        answer = keeper.require_success(self._host.name, completed)
        # What an earlier run has left here is back, or confirmed: the target was asked.
        plan = keeper.plan_to_keep(self._purpose, self._session, command, answer)
        self._journal.begin(self._host.name, plan)
        self._has_begun = True
        self._refuse_changed(files or {})
        if self._purpose == "run":
            self._heartbeat = Heartbeat(self._beat, every_s=self._watchdog_s / BEATS)
            self._heartbeat.start()
        return tuple(f"{self._host.name}: {warning}" for warning in answer.get("warning", []))

    def command_to_change(self, files: Files) -> Command:
        """Name what makes exactly these files differ from the originals.

        The originals of what is new are on this side's disk when it returns; those on the target are kept
        by the command itself, before it writes. Give its outcome to `note_changed`. Send it also when nothing
        differs: it fails when the target has ended this session, and so keeps what is sent after it from
        touching a target that has put itself back.
        """
        self.check_alive()
        self._journal.record(self._host, tuple(files), session=self._session)
        if not files.keys() <= self._originals.keys():
            for original in self._journal.originals(self._host.name):
                self._originals.setdefault(original.path, keeper.checksum(original.state.content))
        put = {path: content for path, content in files.items() if self._in_place.get(path) != content}
        back = [path for path in self._in_place if path not in files]
        sums = {path: keeper.checksum(each) for path, each in put.items() if not keeper.is_setting(path)}
        if sums:
            self._journal.note_written(self._host.name, sums)
        command = keeper.change(self._purpose, self._session, put=put, back=back, originals=self._originals)
        self._in_place |= dict.fromkeys([*put, *back])
        self._sent = dict(files)
        return command

    def command_to_activate(self, verb: str, *service: str) -> Command:
        """Name what checks, restarts or reloads a service; it fails once the target has ended the session."""
        return keeper.activation(self._purpose, self._session, verb, *service)

    def note_changed(self, completed: Sequence[Completed]) -> None:
        """Learn how the commands to change ended.

        Whatever is not known to have worked is sent again with the next change.

        Raises:
            ConfigRejected: the kernel refused a value.
            TargetError: the watchdog has ended this session, or a file cannot be written.
            RestoreFailed: a file that should be the original again is not.
        """
        for each in completed:
            self._foreign |= keeper.read_foreign(each)
            answer = keeper.require_success(self._host.name, each)
            if made := answer.get("made"):
                self._journal.note_made(self._host.name, [PurePosixPath(path) for path in made])
        if completed:
            self._in_place = dict(self._sent)

    def check_alive(self) -> None:
        """Refuse to go on when the target may give this controller up, or has. Raises TargetError."""
        if self._lost is not None:
            raise self._lost
        if self._heartbeat is None or self._heartbeat.silent_s < self._watchdog_s / 2:
            return
        reason = self._heartbeat.error
        told = (
            f"no heartbeat arrived for {self._heartbeat.silent_s:.0f} s{f' ({reason})' if reason else ''}. "
            "Its watchdog puts the originals back. Look at the connection, then begin again."
        )
        raise TargetError(f"{self._host.name}: {told}")

    def restore(self, warn: Callable[[str], None] = _tell_nobody) -> tuple[PurePosixPath, ...]:
        """Put every original back and let the target go. Returns the paths that had to be written.

        Raises RestoreFailed naming what is not back; it can be called again.
        """
        if not self._may_be_armed:
            return ()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        command = keeper.step(
            "restore", self._purpose, "session", self._session, timeout_s=keeper.RESTORE_TIMEOUT_S
        )
        try:
            answer = _ask(self._host, command)
            if answer is None or "lost" in answer:
                if not self._has_begun:
                    return ()  # it was never armed, so nothing was changed
                _give_back(self._host, self._journal)
                answer = _ask(self._host, command) or {}
        except TargetError as error:
            told = (
                f"Unless that was done, its watchdog puts the originals back {self._watchdog_s:.0f} s after "
                "the last heartbeat. See to it with: tuner restore"
            )
            raise RestoreFailed(f"{error} {told}") from error
        _pass_warnings(self._host, answer, warn)
        if self._has_begun:
            self._refuse_unverified(answer)
            self._journal.discard(self._host.name)
            self._has_begun = False
        self._in_place = {}
        return _paths(answer)

    def _refuse_changed(self, files: Files) -> None:
        """Read again, now that nobody else tunes: what is written must not be made of what is gone."""
        there = self._host.look(tuple(files))
        for path, content in files.items():
            found = there.read(path).content
            if found != content:
                was, now = keeper.checksum(content), keeper.checksum(found)
                told = f"somebody else has changed it meanwhile: it had the SHA-256 {was}, now {now}"
                raise TargetError(f"{self._host.name}: {path}: {told}. Nothing was changed. Begin again.")
        self._originals = {path: keeper.checksum(content) for path, content in files.items()}

    def _refuse_unverified(self, answer: Mapping[str, Sequence[str]]) -> None:
        """Look with our own eyes before the originals here are given up.

        A target that says `nothing` has put them back before, and knows that. Of the kernel's settings it
        knows better than the copy here, too: they are others after a restart.
        """
        if "nothing" in answer:
            return
        kept = [
            each
            for each in self._journal.originals(self._host.name)
            if each.path not in self._foreign and not keeper.is_setting(each.path)
        ]
        if differing := _differing(self._host, kept):
            told = f"it says that all is back, but {differing}. The originals are kept in"
            where = self._journal.path(self._host.name)
            raise RestoreFailed(f"{self._host.name}: {told} {where}. Look there, then run: tuner restore")

    def _beat(self, number: int) -> None:
        timeout_s = max(self._watchdog_s / 4, SHORTEST_TIMEOUT_S)
        completed = _send(
            self._host,
            keeper.step("beat", self._purpose, self._session, str(number), timeout_s=timeout_s),
        )
        try:
            keeper.require_success(self._host.name, completed)
        except TargetError as error:
            if completed.returncode == keeper.ENDED:
                self._lost = error
            raise

    def _owner(self) -> tuple[tuple[str, str], ...]:
        by = f"{_user()}@{platform.node()} (process {os.getpid()})"
        return (("by", by), ("controller", _controller(self._journal)), ("study", self._study))


def restore_host(
    host: Host, journal: Journal, warn: Callable[[str], None] = _tell_nobody
) -> tuple[PurePosixPath, ...]:
    """Put back by hand what runs and unconfirmed applies have left on a host.

    A host that has lost what it knew is given keeper, plan and originals of this side's journal first.
    Returns the paths that had to be written.

    Raises:
        RestoreFailed: something is not back.
        TargetError: a tuner is at work there, or root is needed.
    """
    if not _is_concerned(host, journal):
        return ()
    journal.claim(host.name)
    back, troubles = _restore_by_hand(host, journal, warn)
    if not troubles and _give_back(host, journal) != NOTHING:
        more, troubles = _restore_by_hand(host, journal, warn)
        back += more
    if troubles:
        raise RestoreFailed(" ".join(troubles))
    journal.discard(host.name)
    return tuple(back)


def accept_host(
    host: Host, journal: Journal, warn: Callable[[str], None] = _tell_nobody
) -> tuple[tuple[PurePosixPath, ...], tuple[str, ...]]:
    """Put back what can be, and let go of the rest: somebody has agreed to that.

    Returns the paths that had to be written, and a sentence about each thing that was given up. Nothing is
    deleted: what is known of the originals is kept on the host, and this side's copy here.

    Raises TargetError when a tuner is at work there, or root is needed.
    """
    if not _is_concerned(host, journal):
        return (), ()
    back: list[PurePosixPath] = []
    told: list[str] = []
    with contextlib.suppress(RestoreFailed):  # a copy that cannot be read is set aside all the same
        journal.claim(host.name)
        _give_back(host, journal)
    for purpose in PURPOSES:
        answer = _ask(host, _step("accept", purpose, _controller(journal)))
        if answer is None:
            break
        _pass_warnings(host, answer, warn)
        back += _paths(answer)
        kept = dict(line.partition("\t")[::2] for line in answer.get("kept", []))
        for trouble in answer.get("trouble", []):
            what, _, reason = trouble.partition("\t")
            place = f" What is known of its original is in {kept[what]}." if what in kept else ""
            told.append(f"{host.name}: {what} is left as it is ({reason}).{place}")
    if copy := journal.set_aside(host.name):
        told.append(f"{host.name}: the copy of the originals on this side is {copy}.")
    return tuple(back), tuple(told)


def describe_use(host: Host) -> tuple[str, ...]:
    """Say who has taken a host, and since when: one sentence each. Raises TargetError without root."""
    found: list[str] = []
    for purpose in PURPOSES if _may_have_keeper(host) else ():
        completed = _send(host, _step("status", purpose))
        if completed.returncode in keeper.NOT_INSTALLED:
            break
        answer = keeper.require_success(host.name, completed)
        is_guarded = "session" in answer and "watchdog" in answer
        for owner in answer.get("owner", []):
            state = "is at work" if is_guarded else "was at work, and the originals are not back"
            found.append(f"{host.name}: a tuner {state} ({purpose}): {owner}.")
    return tuple(found)


def confirm(host: Host) -> None:
    """Keep what was applied. Raises TargetError when it was taken back already, or nothing was applied."""
    keeper.require_success(host.name, _send(host, keeper.step("confirm", "apply")))


def undo(host: Host) -> tuple[PurePosixPath, ...]:
    """Take back what was applied and confirmed. Returns the paths that had to be written.

    Raises:
        RestoreFailed: something is not back, or was changed by somebody else since.
        TargetError: a tuner is at work there, or nothing was ever applied by this version.
    """
    command = keeper.step("undo", "apply", timeout_s=keeper.RESTORE_TIMEOUT_S)
    return _paths(keeper.require_success(host.name, _send(host, command)))


def _differing(host: Host, originals: Sequence[Original]) -> str:
    """Name what is not as it was: content, and of files mode and owner."""
    there = host.look([original.path for original in originals])
    paths = [
        str(original.path)
        for original in originals
        if (found := there.read(original.path)) != original.state
        and not (keeper.is_setting(original.path) and found.content == original.state.content)
    ]
    return f"{', '.join(paths)} {'differs' if len(paths) == 1 else 'differ'}" if paths else ""


def _send_whole(host: Host, command: Command) -> Completed:
    """Send a step to this version of the keeper, which is installed where it is not there whole."""
    completed = _send(host, command)
    if not keeper.needs_installation(completed):
        return completed
    _install(host)
    return _send(host, command)


def _send(host: Host, command: Command) -> Completed:
    return host.run(command.argv, timeout_s=command.timeout_s, stdin=command.stdin, as_root=command.as_root)


def _install(host: Host) -> None:
    last = host.run_all(keeper.installation())[-1]
    if last.returncode != 0:
        said = last.stderr.decode(errors="replace").strip()
        told = f"the keeper cannot be installed ({said}). Allow the commands that `tuner check` lists."
        raise TargetError(f"{host.name}: {told}")


def _may_have_keeper(host: Host) -> bool:
    """Look for the keeper's directory; that needs no root."""
    return host.run(("test", "-d", str(keeper.DIRECTORY)), timeout_s=SHORTEST_TIMEOUT_S).returncode == 0


def _is_concerned(host: Host, journal: Journal) -> bool:
    """Check whether anything may have to be put back; that needs no root."""
    return journal.path(host.name).exists() or _may_have_keeper(host)


def _restore_by_hand(
    host: Host, journal: Journal, warn: Callable[[str], None]
) -> tuple[list[PurePosixPath], list[str]]:
    """Return the paths that had to be written, and what is not back."""
    back: list[PurePosixPath] = []
    troubles: list[str] = []
    for purpose in PURPOSES:
        try:
            answer = _ask(host, _step("restore", purpose, "hand", _controller(journal)))
        except RestoreFailed as error:
            troubles.append(str(error))
            continue
        if answer is None:
            break
        _pass_warnings(host, answer, warn)
        back += _paths(answer)
    return back, troubles


def _return_what_was_lost(host: Host, journal: Journal) -> None:
    """Put back what a host has lost and this side has not. Raises RestoreFailed or TargetError."""
    if _give_back(host, journal) != ADOPTED:
        return
    _, troubles = _restore_by_hand(host, journal, _tell_nobody)
    if troubles:
        raise RestoreFailed(" ".join(troubles))


def _give_back(host: Host, journal: Journal) -> str:
    """Give a host this side's copy of what it has lost. Returns what the keeper says of it: a word of these.

    `adopted`: it had lost it. `present`: it has it, and has yet to put it back. `nothing`: all is back.

    Raises TargetError when the keeper cannot be installed, or another tuner has taken the host.
    """
    kept = journal.kept(host.name)
    if not kept.originals:
        return NOTHING
    answer = keeper.require_success(host.name, _send_whole(host, keeper.adoption(kept)))
    return next((word for word in (ADOPTED, PRESENT) if word in answer), NOTHING)


def _step(name: str, purpose: str, *arguments: str) -> Command:
    return keeper.step(name, purpose, *arguments, timeout_s=keeper.RESTORE_TIMEOUT_S)


def _ask(host: Host, command: Command) -> dict[str, list[str]] | None:
    """Let the keeper of a host do a step; None when there is none. Raises as keeper.require_success does."""
    completed = _send(host, command)
    if completed.returncode in keeper.NOT_INSTALLED:
        return None
    if keeper.needs_installation(completed):  # it was damaged
        completed = _send_whole(host, command)
    return keeper.require_success(host.name, completed)


def _pass_warnings(host: Host, answer: dict[str, list[str]], warn: Callable[[str], None]) -> None:
    for warning in answer.get("warning", []):
        warn(f"{host.name}: {warning}")


def _paths(answer: dict[str, list[str]]) -> tuple[PurePosixPath, ...]:
    return tuple(PurePosixPath(path) for path in answer.get("back", []))


def _controller(journal: Journal) -> str:
    """Name this side: whoever holds the lock of this journal is the only one of that name.

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


def _user() -> str:
    return os.environ.get("USER") or str(os.geteuid())
