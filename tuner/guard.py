"""Keeps a target restorable: originals on both sides, a keeper and a watchdog there, a heartbeat from here.

The keeper on the target is the authority. Its journal exists from before the first write until everything is
verified to be back, whoever puts it back: this session, the watchdog, `tuner restore`, or the next boot. The
controller's own journal is for the one case that the target has lost that (its /var/lib/tuner was removed).
"""

import os
import platform
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from tuner import keeper
from tuner.errors import RestoreFailed, TargetError
from tuner.heartbeat import Heartbeat
from tuner.journal import Journal, Original
from tuner.ports import Command, Completed, Files, Host, Service

BEATS = 8
"""Heartbeats in the time after which the watchdog gives the controller up."""
SHORTEST_TIMEOUT_S = 5.0
"""For what takes no time."""
PURPOSES = ("run", "apply")


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

    def arm(
        self, services: Sequence[Service], *, urls: Sequence[str] = (), files: Files | None = None
    ) -> tuple[str, ...]:
        """Take the target: install the keeper, start the watchdog and the heartbeat. Returns warnings.

        Args:
            services: what has to run again after a restore, if it runs now.
            urls: what has to answer again as it does now.
            files: as they were read before; new contents are made of these.

        Raises TargetError when another tuner is at work there, when originals of an earlier one are not back,
        when one of the files is not any more as it was read, or without root. Call `restore` then, too: it
        may be armed.
        """
        self._journal.claim(self._host.name)
        self._refuse_lost_originals()
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
        # What an earlier run has left here is back, or confirmed: it was looked at.
        self._journal.discard(self._host.name)
        self._journal.claim(self._host.name)
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
            keeper.require_success(self._host.name, each)
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

    def restore(self) -> tuple[PurePosixPath, ...]:
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
            answer = keeper.require_success(self._host.name, _send(self._host, command))
        except TargetError as error:
            told = (
                f"Unless that was done, its watchdog puts the originals back {self._watchdog_s:.0f} s after "
                "the last heartbeat. See to it with: tuner restore"
            )
            raise RestoreFailed(f"{error} {told}") from error
        self._refuse_unverified(answer)
        self._journal.discard(self._host.name)
        self._in_place = {}
        return _paths(answer)

    def _refuse_lost_originals(self) -> None:
        """Refuse a target that has forgotten an earlier run whose originals are kept here, and not there."""
        earlier = self._journal.originals(self._host.name)
        if not earlier:
            return
        done = _ask_for_done(self._host, {original.session for original in earlier})
        if done is not None and (
            lost := _differing(self._host, [o for o in earlier if o.session not in done])
        ):
            told = "it has lost its journal, and originals of an earlier run are kept here"
            raise TargetError(f"{self._host.name}: {told}: {lost}. Run: tuner restore")

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

        A target that says `nothing` has put them back before, and knows that; or it has lost all it knew.
        """
        kept = self._journal.originals(self._host.name)
        if "nothing" in answer and self._session in (_ask_for_done(self._host, {self._session}) or ()):
            return
        kept = tuple(each for each in kept if each.path not in self._foreign)
        if "nothing" not in answer:
            # Of the kernel's settings the target knows better: they are others after a restart.
            kept = tuple(each for each in kept if not keeper.is_setting(each.path))
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


def restore_host(host: Host, journal: Journal) -> tuple[PurePosixPath, ...]:
    """Put back by hand what runs and unconfirmed applies have left on a host.

    The host's keeper does it; without one, this side's journal. Returns the paths that had to be written.

    Raises:
        RestoreFailed: something is not back.
        TargetError: a tuner is at work there, or root is needed.
    """
    if not _may_have_keeper(host):
        return journal.restore(host)
    journal.claim(host.name)
    back: list[PurePosixPath] = []
    troubles: list[str] = []
    for purpose in PURPOSES:
        completed = _ask(host, "restore", purpose, "hand", _controller(journal))
        if completed is None:
            back += journal.restore(host)
            break
        try:
            back += _paths(keeper.require_success(host.name, completed))
        except RestoreFailed as error:
            troubles.append(str(error))
    if troubles:
        raise RestoreFailed(" ".join(troubles))
    journal.discard(host.name)
    return tuple(back)


def describe_use(host: Host) -> tuple[str, ...]:
    """Say who has taken a host, and since when: one sentence each. Raises TargetError without root."""
    found: list[str] = []
    for purpose in PURPOSES if _may_have_keeper(host) else ():
        completed = _ask(host, "status", purpose)
        if completed is None:
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


def _ask_for_done(host: Host, sessions: Collection[str]) -> Collection[str] | None:
    """Ask which sessions began on a host and are done; None when one is not, which will be told later."""
    done: set[str] = set()
    for purpose in PURPOSES:
        command = keeper.step("status", purpose, *sorted(filter(None, sessions)))
        completed = _send(host, command)
        if completed.returncode in keeper.NOT_INSTALLED:
            break
        if keeper.needs_installation(completed):
            _install(host)
            completed = _send(host, command)
        answer = keeper.require_success(host.name, completed)
        if "owner" in answer:
            return None
        done |= set(answer.get("done", ()))
    return done


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


def _ask(host: Host, name: str, purpose: str, *arguments: str) -> Completed | None:
    """Let the keeper of a host do a step; None when there is none."""
    completed = _send(host, keeper.step(name, purpose, *arguments, timeout_s=keeper.RESTORE_TIMEOUT_S))
    return None if completed.returncode in keeper.NOT_INSTALLED else completed


def _paths(answer: dict[str, list[str]]) -> tuple[PurePosixPath, ...]:
    return tuple(PurePosixPath(path) for path in answer.get("back", []))


def _controller(journal: Journal) -> str:
    """Name this side: whoever holds the lock of this journal is the only one of that name."""
    return f"{_user()}@{platform.node()}:{journal.directory}"


def _user() -> str:
    return os.environ.get("USER") or str(os.geteuid())
