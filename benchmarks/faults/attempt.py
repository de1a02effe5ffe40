"""One fault: a study runs, something happens to it, the host is looked at, and the study resumes."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.edits import SETTING
from benchmarks.faults.forked import RUN, Forked
from benchmarks.faults.kinds import Kind, Machine, Promise, Run, heal
from benchmarks.faults.look import contents_of, differing, has_changed, has_tried, is_armed, see, windows_of
from benchmarks.faults.servers import SERVERS, install, write_study
from benchmarks.faults.verdict import judge_edits, judge_later
from tests.testbed import shim
from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import TestHost

WATCHDOG_S = 5
ALLOWED_S = WATCHDOG_S + 10
MOST_SHOWN = 2500
WITH_JOURNAL = 0.5
QUIET_SHARE = 0.7
"""Of the faults that a service must survive: they come when nobody restarts it. The others: at any time."""
START_TIMEOUT_S = 90.0
RESUME_TIMEOUT_S = 90.0
END_TIMEOUT_S = 10.0
WAITED_FOR = {"a window": 0.5, "a change": 0.25, "the keeper": 0.15, "nothing": 0.1}
"""What the run has done before the clock of a fault begins to tick, with shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What shall happen to whom, and all that is drawn for it."""

    number: int
    name: str
    kind: Kind
    server: str
    seed: int
    longest_s: float = 5.0
    """After what it waits for, it comes within this time."""

    @property
    def random(self) -> random.Random:
        return random.Random(f"{self.seed}-{self.number}")  # noqa: S311 - no secret


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of one fault."""

    fault: Fault
    after_s: float = 0.0
    """Between the begin of the run and the fault."""
    back_s: float | None = None
    """Between the fault and the host being as it has to be; None if it never was."""
    was_changed: bool = False
    """Whether the host was changed when the fault came."""
    windows_lost: int = 0
    windows_before: int = 0
    resumed: bool = False
    troubles: list[str] = field(default_factory=list)
    """What must not be, a sentence each."""

    @property
    def is_good(self) -> bool:
        return self.back_s is not None and self.resumed and not self.windows_lost and not self.troubles


def try_fault(fault: Fault, folder: Path) -> Outcome:
    """Run a study, break it, look, and resume it."""
    rng, kind, server = fault.random, fault.kind, SERVERS[fault.server]
    outcome = Outcome(fault=fault)
    study = folder / f"fault-{fault.number}.yaml"
    with open_testbed() as bed:
        host = _add_host(bed, kind.machine, rng)
        shims = _add_shims(bed, host) if kind.is_shimmed else ()
        install(host, server)
        kind.prepare(host, server)
        before = see(host, server)
        found, setting = contents_of(host), host.run(["cat", SETTING]).stdout
        if kind.machine is Machine.FORGETFUL:
            bed.sync(host)
        study.write_text(write_study(host, fault.server, WATCHDOG_S))
        environment = {
            # Threads of libraries would wait for each other on a machine that is full.
            "OMP_NUM_THREADS": "1",
            **os.environ,
            "HOME": str(bed.home),
            "TUNER_STATE": str(study.with_suffix(".state")),
        }
        seen = shims[1].environment if shims else {}
        with running(study, {**environment, **seen}) as process:
            run = Run(
                bed=bed, host=host, server=server, process=process, rng=rng, shims=shims, found=found,
                setting=setting,
            )  # fmt: skip
            outcome.after_s = _await_moment(run, study, fault)
            outcome.was_changed = differs(run, before)
            # Last, for looking takes long enough that the next restart may have begun.
            if kind.promise is Promise.LATER and rng.random() < QUIET_SHARE:
                run.await_quiet()
            kind.strike(run)
            printed = _judge(run, kind, before, outcome, environment)
        kept = windows_of(study)
        outcome.windows_before = len(kept)
        expected = see(run.host, server) if run.edited else before
        outcome.resumed = _resume(run, study, kept, expected, outcome, environment)
        outcome.windows_lost = len(kept - windows_of(study))
        outcome.troubles += run.notes
        if not outcome.is_good:
            outcome.troubles.append(f"the run said:\n{printed[-MOST_SHOWN:]}")
            with contextlib.suppress(OSError):
                log = (run.host.root / "var/lib/tuner/log").read_text()
                outcome.troubles.append(f"the keeper's log:\n{log[-MOST_SHOWN:]}")
    return outcome


def _add_host(bed: Testbed, machine: Machine, rng: random.Random) -> TestHost:
    if machine is Machine.FORGETFUL:
        return bed.add_forgetful_host("web", has_journal=rng.random() < WITH_JOURNAL)
    return bed.add_host("web", systemd=machine is Machine.SYSTEMD)


def _add_shims(bed: Testbed, host: TestHost) -> tuple[shim.Shim, ...]:
    built = shim.build(bed.home)
    loaded = shim.preload(host, built)
    host.kill_sshd()
    host.start_sshd()
    return loaded, built


def _await_moment(run: Run, study: Path, fault: Fault) -> float:
    """Let the run get as far as the fault wants it, and some random time further."""
    (waited_for,) = run.rng.choices(list(WAITED_FOR), list(WAITED_FOR.values()))
    after_s = run.rng.uniform(0, fault.longest_s)
    if fault.kind.needs_change and waited_for != "a window":
        waited_for = "a change"
    elif waited_for == "the keeper":
        after_s = run.rng.uniform(0, min(fault.longest_s, 1))
    began_s = time.monotonic()
    while not _has_reached(run, study, waited_for) and run.process.poll() is None:
        if time.monotonic() - began_s > START_TIMEOUT_S:
            run.notes.append(f"the run did not get to {waited_for} within {START_TIMEOUT_S:.0f} s")
            break
        time.sleep(0.02)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and run.process.poll() is None:
        time.sleep(0.02)
    if run.process.poll() is not None:
        run.notes.append(f"the run ended by itself with {run.process.returncode}, before the fault")
    return time.monotonic() - began_s


def _has_reached(run: Run, study: Path, waited_for: str) -> bool:
    match waited_for:
        case "nothing":
            return True
        case "the keeper":
            return (run.host.root / "var/lib/tuner/keeper").exists()
        case "a change":
            return has_changed(run.host)
        case _:
            return bool(windows_of(study))


def _judge(run: Run, kind: Kind, before: str, outcome: Outcome, environment: Mapping[str, str]) -> str:
    """Look whether the fault's promise is kept, take the fault away, and return what the run printed."""
    struck_s = time.monotonic()
    if kind.promise is Promise.BACK:
        outcome.back_s = await_back(run, before, struck_s)
        if outcome.back_s is None:
            outcome.troubles += differences(run, before)
        kind.mend(run)
        heal(run.host)
        printed = end_politely(run.process)
        await_back(run, before, time.monotonic())
        return printed
    printed = await_end(run)
    if kind.promise is Promise.LATER:
        judge_later(run, kind, before, printed, outcome.troubles, environment)
    else:
        judge_edits(run, before, printed, outcome.troubles, environment)
    if not differences(run, before):
        outcome.back_s = time.monotonic() - struck_s
    return printed


def differs(run: Run, before: str) -> bool:
    """Check whether the host is not as before."""
    return is_armed(run.host) or see(run.host, run.server) != before


def differences(run: Run, before: str) -> list[str]:
    """Describe what is not as before; edits of another hand belong there."""
    found = differing(before, see(run.host, run.server))
    return [told for path, told in found.items() if path not in run.edited]


def await_back(run: Run, before: str, struck_s: float) -> float | None:
    """Wait until the host is as before; return how long it took, or None."""
    while time.monotonic() - struck_s < ALLOWED_S:
        if not is_armed(run.host) and not differences(run, before):
            return time.monotonic() - struck_s
        time.sleep(0.2)
    return None


def await_end(run: Run) -> str:
    """Wait for the end of a run that was ended, and for its watchdog if it was killed."""
    try:
        run.process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        run.notes.append("the run did not end within 60 s")
        run.process.kill()
    if run.process.returncode == -signal.SIGKILL:
        deadline = time.monotonic() + ALLOWED_S
        while is_armed(run.host) and not has_tried(run.host) and time.monotonic() < deadline:
            time.sleep(0.2)
    return run.process.read_output()


def end_politely(process: Forked) -> str:
    """Let a resumed run put everything back; return what it printed."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=60)
    process.kill()
    return process.read_output()


def _resume(
    run: Run, study: Path, kept: set[str], expected: str, outcome: Outcome, environment: Mapping[str, str]
) -> bool:
    """Go on with the same command until another window is there, then end it politely."""
    with running(study, environment) as process:
        deadline = time.monotonic() + RESUME_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None and not windows_of(study) - kept:
            time.sleep(0.2)
        printed = end_politely(process)
    went_on = bool(windows_of(study) - kept)
    left = list(differing(expected, see(run.host, run.server)).values())
    if not went_on or left:
        outcome.troubles.append(f"resumed: exit {process.returncode}, {left}\n{printed[-MOST_SHOWN:]}")
    return went_on and not left


@contextlib.contextmanager
def running(study: Path, environment: Mapping[str, str]) -> Iterator[Forked]:
    """Run the study in a session of its own; it does not outlive this."""
    process = Forked([RUN, str(study)], environment, study.with_suffix(".out"))
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=END_TIMEOUT_S)


def describe(outcome: Outcome) -> str:
    """Tell in a line what became of a fault; troubles follow."""
    took = "never" if outcome.back_s is None else f"{outcome.back_s:.1f} s"
    fault = outcome.fault
    line = (
        f"{'ok    ' if outcome.is_good else 'FAILED'} {fault.number:3d} {fault.server}: {fault.name}, "
        f"after {outcome.after_s:.1f} s: back after {took}"
        f"{'' if outcome.was_changed else ' (nothing was changed)'}, "
        f"{outcome.windows_before} windows kept, {outcome.windows_lost} lost, "
        f"{'resumed' if outcome.resumed else 'NOT resumed'}"
    )
    return "\n  ".join([line, *outcome.troubles])
