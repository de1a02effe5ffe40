"""The state machine: what can happen to a host, and what tuner must have said and done."""

import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from benchmarks.faults.sequences import look, strike, verdict
from benchmarks.faults.sequences.look import State
from benchmarks.faults.sequences.servers import NGINX, Tuned
from benchmarks.faults.sequences.world import LASTING, STRANGER, Ended, World, open_world

MAIN, OWN, WRITTEN = "main", "own", "written"
PLACES = st.sampled_from((MAIN, WRITTEN, OWN, LASTING))
REMOVED = st.sampled_from((OWN, LASTING))
CONTROLLERS = st.sampled_from(("one", "one", "one", "two"))
ALIASES = st.sampled_from((0, 0, 0, 1))
HITS = st.none() | st.builds(
    strike.write, st.integers(1, 36), st.sampled_from(strike.SIGNALS), st.sampled_from((0, 5, 30, 100, 300))
)
REPLACE = "[ ! -e {path} ] || cp -p {path} {path}.swp; echo '{line}' >> {path}.swp; mv {path}.swp {path}"
REFUSED, INTERRUPTED = 2, 130
LOST, NOTHING = "the host has lost the backups", "nothing is applied"
Hit = Mapping[str, str] | None


class Violated(AssertionError):
    """Something that must not be."""


class Sequences(RuleBasedStateMachine):
    """One host's history."""

    template: ClassVar[Path]
    tuned: ClassVar[Tuned] = NGINX
    is_local: ClassVar[bool] = False
    has_systemd: ClassVar[bool] = False
    has_cron: ClassVar[bool] = False
    troubles: ClassVar[list[str]]
    """What was violated, by the machines of one playing."""

    def __init__(self) -> None:
        super().__init__()
        self.has_failed = False
        self.unbroken: State
        self._opened = open_world(
            self.template, self.tuned, is_local=self.is_local, systemd=self.has_systemd, cron=self.has_cron
        )
        self.world: World = self._opened.__enter__()

    def teardown(self) -> None:
        """Look whether all can be given back; a sequence that failed has its trouble already."""
        try:
            if not self.has_failed and sys.exc_info()[0] is None:
                self.all_is_given_back()
        finally:
            self._opened.__exit__(None, None, None)

    # ------------------------------------------------------------------------------- tuner
    @rule(controller=CONTROLLERS, alias=ALIASES, hit=HITS)
    def apply(self, *, controller: str, alias: int, hit: Hit) -> None:
        before = verdict.fingerprint(self.world)
        study, url = str(self.world.folder / "study.yaml"), self.world.page
        ended = self.run(
            "apply", study, *self._at(alias), "--url", url, "--yes", controller=controller, hit=hit
        )
        if ended.code == 0:
            self.require(
                "APPLY",
                self._is_in_force(),
                "said that the winner is active, and it is not",
                ended,
            )
            self.require(
                "APPLY", self._owns("apply"), "said that the host rolls back, and it knows nothing", ended
            )
        elif ended.code in {2, 3} and not hit:
            self.require(
                "APPLY", verdict.fingerprint(self.world) == before, "was refused, and changed files", ended
            )

    @rule(controller=CONTROLLERS, alias=ALIASES)
    def apply_study_of_another_user(self, *, controller: str, alias: int) -> None:
        self.note(f"the study belongs to user {STRANGER}")
        self.world.hand_study_over(STRANGER)
        before, study = verdict.fingerprint(self.world), str(self.world.folder / "study.yaml")
        ended = self.run(
            "apply", study, *self._at(alias), "--url", self.world.page, "--yes", controller=controller
        )
        is_refused = ended.code == REFUSED and verdict.fingerprint(self.world) == before
        self.require("STRANGER", is_refused, "took what belongs to another user", ended)
        self.note("the study belongs to root again")
        self.world.hand_study_over(0)

    @rule(controller=CONTROLLERS, hit=HITS)
    def run_trial(self, *, controller: str, hit: Hit) -> None:
        ended = self.world.trial(controller, hit)
        self.note(ended)
        if ended.code == 0:
            self.require("TRIAL", not self._owns("run"), "ended well, and the host is not given back", ended)
        self.judge(ended)

    @rule(controller=CONTROLLERS, alias=ALIASES, hit=HITS)
    @precondition(lambda self: self.world.is_touched)
    def confirm(self, *, controller: str, alias: int, hit: Hit) -> None:
        before = verdict.fingerprint(self.world)
        ended = self.run("confirm", *self._at(alias), controller=controller, hit=hit)
        if ended.code == 0:
            self.require("CONFIRM", not self._owns("apply"), "said that it stays, and the host waits", ended)
            written = self.world.tuned.written
            is_tuners = self.world.scan().get(written) != self.world.truth.get(written)
            self.require("CONFIRM", not is_tuners or self._is_in_force(), "keeps what is not active", ended)
        self.require("CONFIRM", verdict.fingerprint(self.world) == before, "changed files", ended)

    @rule(controller=CONTROLLERS, alias=ALIASES, hit=HITS, accept=st.booleans())
    @precondition(lambda self: self.world.is_touched)
    def undo(self, *, controller: str, alias: int, hit: Hit, accept: bool) -> None:
        self.undo_by(controller=controller, alias=alias, hit=hit, accept=accept)

    def undo_by(self, *, controller: str, alias: int, hit: Hit, accept: bool) -> Ended:
        before = verdict.fingerprint(self.world)
        study = str(self.world.folder / "study.yaml")
        told = self.run("apply", study, *self._at(alias), "--undo", "--dry-run", controller=controller)
        self.require("DRY", verdict.fingerprint(self.world) == before, "changed files", told)
        options = ["--accept"] if accept else []
        ended = self.run(
            "apply", study, *self._at(alias), "--undo", "--yes", *options, controller=controller, hit=hit
        )
        if ended.code == 0:
            is_put_back = f"{self.world.tuned.written}\n" in ended.said
            self.require(
                "UNDO",
                not is_put_back or self._is_in_force(),
                "put back what is not active",
                ended,
            )
            # Of an apply that was killed before it changed anything, its watchdog knows for a while.
            is_given_back = not self._owns("apply") or NOTHING in ended.said
            self.require("UNDO", is_given_back, "said that all is back, and the host says otherwise", ended)
        if "changed nothing" in ended.said or "Nothing was changed" in ended.said:
            self.require(
                "UNDO", verdict.fingerprint(self.world) == before, "said that nothing was changed", ended
            )
        return ended

    @rule(controller=CONTROLLERS, alias=ALIASES, hit=HITS, accept=st.booleans())
    @precondition(lambda self: self.world.is_touched)
    def restore(self, *, controller: str, alias: int, hit: Hit, accept: bool) -> None:
        self.restore_by(controller=controller, alias=alias, hit=hit, accept=accept)

    def restore_by(self, *, controller: str, alias: int, hit: Hit, accept: bool) -> Ended:
        before = verdict.fingerprint(self.world)
        options = ["--accept", "--yes"] if accept else []
        self._quicken()
        ended = self.run("restore", *self._at(alias), *options, controller=controller, hit=hit)
        if ended.code == 0:
            owns = self._owns("run") or self._owns("apply")
            is_put_back = f"{self.world.tuned.written}\n" in ended.said
            self.require(
                "RESTORE",
                not is_put_back or self._is_in_force(),
                "put back what is not active",
                ended,
            )
            self.require("RESTORE", not owns, "said that all is back, and the host says otherwise", ended)
        if "Nothing to restore" in ended.said:
            self.require("RESTORE", verdict.fingerprint(self.world) == before, "changed files", ended)
        return ended

    @rule()
    @precondition(lambda self: self.world.is_taken)
    def time_passes(self) -> None:
        self.note("time passes")
        self.world.let_time_pass()
        self.judge()

    # ----------------------------------------------------------------------- somebody else
    @rule(place=PLACES, in_place=st.booleans())
    @precondition(lambda self: not self.world.is_full)
    def edit(self, *, place: str, in_place: bool) -> None:
        path = self.path_of(place)
        self.world.number += 1
        line = f"{self.world.tuned.comment} by hand {self.world.number}"
        how = "echo '{line}' >> {path}" if in_place else REPLACE
        self.by_hand(how.format(path=path, line=line), path)

    @rule(place=REMOVED)
    @precondition(lambda self: self.world.is_touched and not self.world.is_full)
    def remove(self, *, place: str) -> None:
        path = self.path_of(place)
        self.by_hand(f"rm -f {path}", path)

    @rule(place=PLACES, mode=st.sampled_from(("600", "640", "664")))
    @precondition(lambda self: self.world.is_touched and not self.world.is_full)
    def chmod(self, *, place: str, mode: str) -> None:
        path = self.path_of(place)
        # A file that is tuner's own alone is tuner's to remove.
        if path in self.world.truth and path in self.world.scan():
            self.note(f"by hand: chmod {mode} {path}")
            self.world.sh(f"chmod {mode} {path}")
            self.world.truth[path] = replace(self.world.truth[path], mode=int(mode, 8))
            self.world.handed_on_s = (self.world.host.root / path[1:]).stat().st_ctime
            self.judge()

    @rule(value=st.sampled_from(("1111", "2222")))
    def set_value(self, *, value: str) -> None:
        self.world.is_value_free = False
        self.by_hand(f"echo {value} > {look.SETTING}", look.SETTING)

    @rule()
    @precondition(
        lambda self: self.world.is_touched and not (self.world.is_broken and self.tuned.ends_when_broken)
    )
    def reload(self) -> None:
        tuned = self.world.tuned
        self.by_hand(f"kill -{tuned.reload_by} $(cat {tuned.pid_file}) || true")

    @rule()
    @precondition(lambda self: self.world.is_touched and not self.world.is_full and not self.world.is_broken)
    def break_and_leave(self) -> None:
        if not self.world.is_broken:
            self.world.is_broken = True
            tuned = self.world.tuned
            self.unbroken = self.world.truth[tuned.main]
            self.by_hand(f"echo '{tuned.broken}' >> {tuned.main}", tuned.main)

    @rule()
    @precondition(lambda self: self.world.is_broken and not self.world.is_full)
    def mend(self) -> None:
        if self.world.is_broken:
            self.world.is_broken = False
            tuned = self.world.tuned
            if tuned.broken.encode() in self._content(tuned.main):
                self.note(f"by hand: the line is taken out of {tuned.main}")
                self.world.sh(f"sed -i '/^{tuned.broken}$/d' {tuned.main}")
                self.world.wrote(tuned.main)
                if self._is_tuners(tuned.main):
                    # Whoever takes his own edit back leaves the file to tuner.
                    now = self.world.truth[tuned.main]
                    self.world.truth[tuned.main] = replace(now, content=self.unbroken.content)
                self.judge()

    @rule()
    @precondition(lambda self: self.world.is_touched and not self.world.is_full and not self.world.is_broken)
    def upgrade(self) -> None:
        tuned = self.world.tuned
        line = f"{tuned.comment} of the new version"
        self.by_hand(f"cp -p {tuned.binary} {tuned.binary}.new; mv {tuned.binary}.new {tuned.binary}")
        self.by_hand(REPLACE.format(path=tuned.packaged, line=line), tuned.packaged)
        if self.world.serves:
            self.by_hand(f"systemctl restart {tuned.unit}" if self.world.host.has_systemd else tuned.restart)

    @rule()
    @precondition(lambda self: self.world.is_touched and not self.world.is_broken)
    def lose_power(self) -> None:
        self.note("the power fails, and is back")
        self.world.restart()
        # Without tuner nobody would set it again.
        self.world.is_value_free = True
        self.judge()

    @rule(what=st.sampled_from(("", "/run", "/apply", "/keeper", "/applied")))
    @precondition(lambda self: self.world.is_touched)
    def lose_on_host(self, *, what: str) -> None:
        self.note(f"rm -rf /var/lib/tuner{what}")
        self.world.sh(f"rm -rf /var/lib/tuner{what}")
        self.forgive()

    @rule(controller=CONTROLLERS)
    @precondition(lambda self: self.world.is_touched)
    def lose_here(self, *, controller: str) -> None:
        self.note(f"the state of controller {controller} is lost")
        shutil.rmtree(self.world.controllers[controller], ignore_errors=True)
        self.forgive()

    @rule()
    @precondition(lambda self: self.world.is_touched and not self.world.is_full)
    def fill_disk(self) -> None:
        if not self.world.is_full:
            self.note("the disk is full")
            self.world.is_full = True
            self.world.host.fill_disk()

    @rule()
    @precondition(lambda self: self.world.is_full)
    def free_disk(self) -> None:
        if self.world.is_full:
            self.note("the disk has room")
            self.world.is_full = False
            self.world.host.free_disk()

    # ------------------------------------------------------------------------------- its end
    def all_is_given_back(self) -> None:
        """Mend what others broke; then tuner must be able to give everything back, and to say so."""
        self.free_disk()
        self.mend()
        ended = self.give_back("one")
        if any(self.world.controllers["two"].glob("*.journal")):
            # What the host has lost, only whoever changed it knows.
            ended = self.give_back("two")
        self.judge(ended)
        there = verdict.fingerprint(self.world)
        free = {look.SETTING} if self.world.is_value_free else set[str]()
        for path in sorted({*there, *self.world.truth} - free):
            if there.get(path) != self.world.truth.get(path):
                self.fail(
                    "END",
                    f"{path} is {there.get(path)}, and somebody else wrote {self.world.truth.get(path)}",
                )

    def give_back(self, controller: str) -> Ended:
        """Let a controller restore the host, and take back all that was applied there."""
        for _ in range(2):
            ended = self.restore_by(controller=controller, alias=0, hit=None, accept=False)
            if ended.code == 0:
                break
            ended = self.restore_by(controller=controller, alias=0, hit=None, accept=True)
        self.require("END", ended.code == 0 or "confirm" in ended.said, "does not give the host back", ended)
        for _ in range(12):
            ended = self.undo_by(controller=controller, alias=0, hit=None, accept=True)
            if NOTHING in ended.said:
                break
        self.require("END", NOTHING in ended.said, "does not take back what was applied", ended)
        return ended

    # ------------------------------------------------------------------------------- helpers
    def run(self, *argv: str, controller: str, hit: Hit = None) -> Ended:
        """Run a command of tuner, and judge what it left."""
        ended = self.world.tuner(*argv, controller=controller, hit=hit)
        self.note(ended)
        self.require(
            "MUTE", ended.code != INTERRUPTED or ended.said, "was interrupted, and said nothing", ended
        )
        if LOST in ended.said:
            # They have to be somewhere all the same.
            self.judge(ended, agreed=("LEFT",))
            self.forgive()
        else:
            self.judge(ended)
        return ended

    def by_hand(self, script: str, *paths: str) -> None:
        self.note(f"by hand: {script}")
        self.world.sh(script)
        self.world.wrote(*paths)
        self.judge()

    def forgive(self) -> None:
        """Whoever removes what tuner keeps has agreed that what is there stays."""
        there = verdict.fingerprint(self.world)
        copies = [*look.copies_on(self.world.host), *look.copies_here(self.world.controllers)]
        for path in {*there, *self.world.truth}:
            kept = [
                each.state.content if each.state else None
                for each in copies
                if each.path == path and each.is_live
            ]
            wanted = self.world.truth.get(path)
            if (wanted.content if wanted else None) not in kept:
                if path in there:
                    self.world.truth[path] = there[path]
                else:
                    self.world.truth.pop(path, None)
        self.judge()

    def judge(self, ended: Ended | None = None, agreed: Collection[str] = ()) -> None:
        for kind, _, told in (each.partition(" ") for each in verdict.judge(self.world, ended)):
            if kind not in agreed:
                self.fail(kind, told)

    def require(self, kind: str, is_so: object, told: str, ended: Ended) -> None:
        if not is_so:
            self.fail(kind, f"{' '.join(ended.argv)} {told} (exit {ended.code}): {ended.said[-400:]}")

    def fail(self, kind: str, told: str) -> None:
        steps = "\n  ".join(self.world.steps)
        log = self.world.sh("tail -n 15 /var/lib/tuner/log 2> /dev/null", check=False)
        self.has_failed = True
        said = f"{kind}: {told}\n after\n  {steps}\n the keeper's log:\n{log}"
        self.troubles.append(said)
        raise Violated(said)

    def note(self, step: Ended | str) -> None:
        if isinstance(step, Ended):
            words = [word.rpartition("/")[2] if word.endswith(".yaml") else word for word in step.argv]
            hit = " (hit)" if step.was_hit else ""
            step = f"{' '.join(words)}{hit} → {step.code}: {step.said[-250:]!r}"
        self.world.steps.append(step)

    def _at(self, alias: int) -> tuple[str, str]:
        return "--host", self.world.aliases[alias % len(self.world.aliases)]

    def path_of(self, place: str) -> str:
        """Return a path that somebody edits, by what it is to the server."""
        return place if place.startswith("/") else getattr(self.world.tuned, place)

    def _is_in_force(self) -> bool:
        return self.world.is_in_force(self.world.tuned.written)

    def _is_tuners(self, path: str) -> bool:
        """Whether what is there is what tuner wrote, and takes back."""
        copies = [*look.copies_on(self.world.host), *look.copies_here(self.world.controllers)]
        written = [each.written for each in copies if each.path == path and each.is_live]
        return any(look.checksum(self._content(path)) in sums for sums in written)

    def _content(self, path: str) -> bytes:
        return (self.world.host.root / path[1:]).read_bytes()

    def _owns(self, purpose: str) -> bool:
        return (self.world.host.root / f"var/lib/tuner/{purpose}/owner").exists()

    def _quicken(self) -> None:
        """Whoever asks whether a stranger's tuner is alive need not wait for long."""
        ticking = self.world.host.root / "var/lib/tuner/run/ticking"
        if ticking.exists():
            ticking.write_text("0.02 10 600\n")
