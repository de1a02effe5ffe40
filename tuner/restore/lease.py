"""A lease on a target: what is changed through it comes back, whatever becomes of the controller.

The keeper on the target is the authority. Its journal exists from before the first write until everything is
verified to be back, whoever puts it back: this session, the watchdog, `tuner restore`, or the next boot.
When the target has lost that (its /var/lib/tuner was removed), it gets keeper, plan and originals again from
the controller.
"""

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from tuner.errors import HostLost, RestoreFailed, TargetError, Unreachable
from tuner.ports import Command, Completed, Files, Host, Service
from tuner.restore.journal import Journal
from tuner.restore.keeper import Keeper, ignore, paths_back, requests
from tuner.restore.keeper.replies import ENDED, is_refusal, read_foreign, read_reply
from tuner.restore.recovery import controller_name, return_what_was_lost

LOG = logging.getLogger(__name__)
BEATS = 8
"""Heartbeats within the time after which the watchdog gives the controller up."""
SHORTEST_BEAT_TIMEOUT_S = 5.0


class Heartbeat:
    """A thread that delivers increasing numbers, and records when that worked last."""

    def __init__(self, deliver: Callable[[int], None], *, every_s: float) -> None:
        """Prepare a thread that calls `deliver`, which may raise, every so many seconds."""
        self._deliver = deliver
        self._every_s = every_s
        self._ended = threading.Event()
        self._delivered_s = time.monotonic()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @property
    def silent_s(self) -> float:
        """Seconds since the last number arrived."""
        return time.monotonic() - self._delivered_s

    @property
    def error(self) -> Exception | None:
        """Why the last one did not arrive."""
        return self._error

    def start(self) -> None:
        """Start the thread."""
        self._delivered_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the number that is on its way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        number = 0
        while not self._ended.wait(self._every_s):
            number += 1
            began_s = time.monotonic()
            try:
                self._deliver(number)
            except Exception as error:  # noqa: BLE001 - the beat goes on, or a healthy run would be taken back
                self._error = error
            else:
                # From when it was sent: the target has counted since then at the earliest.
                self._delivered_s, self._error = began_s, None


class Lease:
    """One target during one run or one apply."""

    def __init__(
        self, host: Host, *, journal: Journal, purpose: str = "run", study: str, watchdog_s: float = 120.0
    ) -> None:
        """Prepare a lease; nothing is done before `arm`.

        Args:
            host: the target.
            journal: the controller's own originals.
            purpose: `run`, or `apply`, which ends when it is confirmed.
            study: its name, for whoever finds the target taken.
            watchdog_s: seconds after which the target puts everything back by itself: without a heartbeat,
                or once an apply is active without `confirm`.
        """
        self._host = host
        self._keeper = Keeper(host)
        self._journal = journal
        self._purpose = purpose
        self._study = study
        self._confirm_within_s = watchdog_s
        # Until an apply is active, its controller has to live as that of a run.
        self._watchdog_s = watchdog_s if purpose == "run" else min(watchdog_s, requests.DEFAULT_WATCHDOG_S)
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
        """Take the target: install the keeper, start watchdog and heartbeat. Returns warnings.

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
        identity = return_what_was_lost(self._host, self._journal)
        command = requests.arming(
            self._purpose,
            session=self._session,
            owner=self._owner(),
            watchdog_s=self._watchdog_s,
            services=services,
            urls=urls,
        )
        self._may_be_armed = True
        completed = self._keeper.send_whole(command)
        # Who was told why it may not, has taken nothing.
        self._may_be_armed = not is_refusal(completed)
        reply = read_reply(self._host.name, completed)
        # What an earlier run has left here is back, or confirmed: the target was asked.
        plan = requests.plan_to_keep(self._purpose, self._session, identity, command, reply)
        self._journal.begin(self._host.name, plan)
        LOG.info("%s: taken for %s, watchdog after %g s", self._host.name, self._purpose, self._watchdog_s)
        self._has_begun = True
        self._refuse_changed(files or {})
        self._heartbeat = Heartbeat(self._beat, every_s=self._watchdog_s / BEATS)
        self._heartbeat.start()
        return tuple(f"{self._host.name}: {warning}" for warning in reply.get("warning", []))

    def await_confirmation(self) -> None:
        """Let the target wait for `confirm`, and for no heartbeat: what was applied is active.

        Raises TargetError.
        """
        self.check_alive()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._keeper.require(requests.readiness(self._purpose, self._session, self._confirm_within_s))

    def command_to_change(self, files: Files) -> Command:
        """Return the command that makes exactly these files differ from the originals.

        The originals of what is new are on this side's disk when it returns; those on the target are kept
        by the command itself, before it writes. Pass its outcome to `note_changed`. Send it also when nothing
        differs: it fails when the target has ended this session, and so keeps what is sent after it from
        touching a target that has put itself back.
        """
        self.check_alive()
        self._journal.record(self._host, tuple(files))
        if not files.keys() <= self._originals.keys():
            for original in self._journal.originals(self._host.name):
                self._originals.setdefault(original.path, requests.checksum(original.state.content))
        put = {path: content for path, content in files.items() if self._in_place.get(path) != content}
        back = [path for path in self._in_place if path not in files]
        sums = {path: requests.checksum(each) for path, each in put.items() if not requests.is_setting(path)}
        if sums:
            self._journal.note_written(self._host.name, sums)
        LOG.info("%s: writes %s; restores %s", self._host.name, _list(put), _list(back))
        command = requests.change(self._purpose, self._session, put=put, back=back, originals=self._originals)
        self._in_place |= dict.fromkeys([*put, *back])
        self._sent = dict(files)
        return command

    def command_to_activate(self, verb: str, *service: str) -> Command:
        """Return the command that checks, restarts or reloads a service; it fails in an ended session."""
        return requests.activation(self._purpose, self._session, verb, *service)

    def note_changed(self, completed: Sequence[Completed]) -> None:
        """Record how the commands to change ended.

        Whatever is not known to have worked is sent again with the next change.

        Raises:
            ConfigRejected: the kernel refused a value.
            TargetError: the watchdog has ended this session, or a file cannot be written.
            RestoreFailed: a file that should be the original again is not.
        """
        for each in completed:
            self._foreign |= read_foreign(each)
            reply = read_reply(self._host.name, each)
            if values := reply.get("value"):
                self._journal.note_values(self._host.name, values)
            if made := reply.get("made"):
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
            "The watchdog of the host restores the backups. Check the connection, then run the command again."
        )
        raise TargetError(f"{self._host.name}: {told}")

    def restore(self, warn: Callable[[str], None] = ignore) -> tuple[PurePosixPath, ...]:
        """Put every original back and let the target go. Returns the paths that had to be written.

        It can be called again.

        Raises:
            RestoreFailed: something is not back; it is named.
            HostLost: the target could not be asked.
        """
        if not self._may_be_armed:
            return ()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        command = requests.step(
            "restore", self._purpose, "session", self._session, timeout_s=requests.RESTORE_TIMEOUT_S
        )
        try:
            reply = self._keeper.ask(command, warn)
            if "lost" in reply:
                if not self._has_begun:
                    return ()  # it was never armed, so nothing was changed
                self._keeper.give_back(self._journal.read(self._host.name), takes_back=True)
                reply = self._keeper.ask(command, warn)
        except TargetError as error:
            told = (
                "If nothing was restored yet, the watchdog of the host restores the backups "
                f"{self._watchdog_s:.0f} s after the last heartbeat"
            )
            if isinstance(error, Unreachable):
                raise HostLost(
                    f"{error} {told}, or when the host boots. To restore by hand, run `tuner restore`. To "
                    "resume, run the same command again."
                ) from error
            raise RestoreFailed(f"{error} {told}. To restore now, run: tuner restore") from error
        if self._has_begun:
            self._refuse_unverified(reply)
            self._journal.discard(self._host.name)
            self._has_begun = False
        self._in_place = {}
        LOG.info("%s: given back; restored %s", self._host.name, _list(paths_back(reply)))
        return paths_back(reply)

    def _refuse_changed(self, files: Files) -> None:
        """Read again, now that nobody else tunes: what is written must not be made of what is gone."""
        there = self._host.look(tuple(files))
        for path, content in files.items():
            found = there.read(path).content
            if found != content:
                was, now = requests.checksum(content), requests.checksum(found)
                told = (
                    f"somebody else has changed this file since tuner read it: its SHA-256 was {was}, and is "
                    f"now {now}"
                )
                raise TargetError(
                    f"{self._host.name}: {path}: {told}. tuner has changed nothing. Run the command again."
                )
        self._originals = {path: requests.checksum(content) for path, content in files.items()}

    def _refuse_unverified(self, reply: Mapping[str, Sequence[str]]) -> None:
        """Raise RestoreFailed unless the originals are seen to be back, before those here are discarded.

        A target that says `nothing` has put them back before, and knows that. Of the kernel's settings it
        knows better than the copy here, too: they are others after a restart.
        """
        if "nothing" in reply:
            return
        record = self._journal.read(self._host.name)
        kept = [each for each in record.originals if each.path in record.written.keys() - self._foreign]
        there = self._host.look([original.path for original in kept])
        differing = [str(each.path) for each in kept if there.read(each.path).content != each.state.content]
        if differing:
            verb = "differs" if len(differing) == 1 else "differ"
            told = (
                f"the restore agent reports that everything is restored, but {', '.join(differing)} {verb} "
                "from the backup. The backups are kept in"
            )
            where = self._journal.path(self._host.name)
            raise RestoreFailed(
                f"{self._host.name}: {told} {where}. Compare the files, then run: tuner restore"
            )

    def _beat(self, number: int) -> None:
        timeout_s = max(self._watchdog_s / 4, SHORTEST_BEAT_TIMEOUT_S)
        completed = self._keeper.send(
            requests.step("beat", self._purpose, self._session, str(number), timeout_s=timeout_s)
        )
        try:
            read_reply(self._host.name, completed)
        except TargetError as error:
            if completed.returncode == ENDED:
                self._lost = error
            raise

    def _owner(self) -> tuple[tuple[str, str], ...]:
        user = os.environ.get("USER") or os.geteuid()
        by = f"{user}@{platform.node()} (process {os.getpid()})"
        return (
            ("by", by),
            ("controller", controller_name(self._journal, self._host)),
            ("study", self._study),
        )


def _list(paths: Iterable[PurePosixPath]) -> str:
    return ", ".join(map(str, paths)) or "nothing"
