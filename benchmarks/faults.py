"""Breaks managed runs at random moments, and looks whether the host is as it was before: byte for byte.

    python -m benchmarks.faults [--faults 200] [--side-by-side 4] [--seed 1]

Each fault has a test host of its own with an installed nginx, and a managed run that changes it over SSH
(benchmarks/faults_run.py).
Within `watchdog_s` + 10 s after the fault, every file with mode and owner, every setting of its network and
the page must be as before; then the same command goes on with the study, and no finished window is lost.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import TestHost
from tests.testbed.namespaces import kill_each

WATCHDOG_S = 5
ALLOWED_S = WATCHDOG_S + 10
MOST_SHOWN = 1500
WAITED_FOR = {"a window": 0.6, "a change": 0.25, "nothing": 0.15}
"""What the run has done before the clock of a fault begins to tick, with shares."""
STUDY = """\
study: fault
servers: [nginx, sysctl]
space:
  - nginx
  - sysctl-net
  - {{only: [worker_processes, worker_connections, sendfile, tcp_nopush, keepalive_timeout, listen_backlog,
            net.core.somaxconn, net.ipv4.tcp_slow_start_after_idle]}}
target: {{host: "{url}", mode: managed, watchdog_s: {watchdog_s}}}
# Light load, so that many hosts fit on one machine: what is at stake is what is put back, not how fast it is.
load:
  generator: command
  path: /
  connections: 1
  command: [sh, -c, {loop}, load, "{{url}}", "{{duration_s}}"]
  result: {{regex: '(?P<correct>\\d+)'}}
budget: {{preset: quick}}
"""
LOOP = 'for i in 1 2 3 4 5 6 7 8; do curl -sf -o /dev/null "$1" && echo ok; sleep 0.1; done | grep -c ok'
LOOK_AT_FILES = """
cd /
find etc var/lib usr/lib/systemd -xdev -path var/lib/tuner -prune -o -path var/lib/nginx -prune -o \
  -printf '%p %y %m %U %G %l\\n' | sort
find etc -xdev -type f -exec sha256sum {} + | sort
"""
LOOK_AT_SETTINGS = "grep -rs '' /proc/sys/net/core /proc/sys/net/ipv4/tcp_* | sort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One managed run that something happens to."""

    bed: Testbed
    host: TestHost
    process: "subprocess.Popen[bytes]"


def kill_controller(run: Run) -> None:
    """Kill -9 of the tuner."""
    run.process.kill()


def cut_link(run: Run) -> None:
    """Nothing goes through any more; the tuner lives on at its end."""
    run.host.cut()


def kill_sshd(run: Run) -> None:
    """All sessions end, and no new one begins."""
    run.host.kill_sshd()


def kill_watchdog(run: Run) -> None:
    """The watchdog goes first; the tuner, which lives, has to put everything back itself."""
    kill_each(_find_keepers(run.host))
    run.process.terminate()


def fill_disk(run: Run) -> None:
    """No space is left when the tuner dies."""
    run.host.fill_disk()
    run.process.kill()


def interrupt_twice(run: Run) -> None:
    """An impatient person."""
    run.process.send_signal(signal.SIGINT)
    time.sleep(random.random() * 0.3)  # noqa: S311 - no secret
    run.process.send_signal(signal.SIGINT)


def refuse_to_start(run: Run) -> None:
    """The server's program is gone for a moment while the tuner ends: the restore cannot start it at once."""
    run.host.run(["sh", "-c", "mv /usr/sbin/nginx /usr/sbin/nginx.away"])
    run.process.terminate()
    time.sleep(random.random())  # noqa: S311
    run.host.run(["sh", "-c", "mv /usr/sbin/nginx.away /usr/sbin/nginx"])


FAULTS: Mapping[str, Callable[[Run], None]] = {
    "controller killed": kill_controller,
    "link cut": cut_link,
    "sshd killed": kill_sshd,
    "watchdog killed, controller ended": kill_watchdog,
    "disk full, controller killed": fill_disk,
    "Ctrl-C twice": interrupt_twice,
    "server does not start": refuse_to_start,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one fault."""

    number: int
    fault: str
    after_s: float
    """Between the begin of the run and the fault."""
    back_s: float | None
    """Between the fault and the host being as before; None if it never was."""
    was_changed: bool
    """Whether the host was changed when the fault came."""
    windows_lost: int
    windows_before: int
    resumed: bool
    trouble: str = ""

    @property
    def is_good(self) -> bool:
        return (
            self.back_s is not None and self.back_s <= ALLOWED_S and self.windows_lost == 0 and self.resumed
        )


def try_fault(number: int, fault: str, seed: int, folder: Path) -> Outcome:
    """Run a study, break it, look, and go on with it."""
    rng = random.Random(f"{seed}-{number}")  # noqa: S311
    (waited_for,) = rng.choices(list(WAITED_FOR), list(WAITED_FOR.values()))
    after_s = rng.uniform(0.0, 5.0)
    with open_testbed() as bed:
        host = bed.add_host("web")
        host.install_nginx()
        before = look_at(host)
        study = folder / f"fault-{number}.yaml"
        study.write_text(STUDY.format(url=host.ssh_url, watchdog_s=WATCHDOG_S, loop=json.dumps(LOOP)))
        with running(bed, study) as process:
            began_s = time.monotonic()
            while process.poll() is None and not (
                waited_for == "nothing"
                or (waited_for == "a change" and has_changed(host))
                or windows_of(study)
            ):
                time.sleep(0.05)
            deadline = time.monotonic() + after_s
            while time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.02)
            after_s = time.monotonic() - began_s
            was_changed = look_at(host) != before
            FAULTS[fault](Run(bed=bed, host=host, process=process))
            broke_s = time.monotonic()
            back_s = await_original(host, before, broke_s)
            found = look_at(host)
            heal(host)
            printed = end_politely(process)
            await_original(host, before, time.monotonic())
        kept = windows_of(study)
        resumed, trouble = resume(bed, study, kept, host, before)
        later = windows_of(study)
        lost = len(kept - later)
        differing = "" if back_s is not None else describe_difference(before, found)
        said = "" if resumed and back_s is not None else printed[-MOST_SHOWN:]
        return Outcome(
            number=number, fault=fault, after_s=after_s, back_s=back_s, was_changed=was_changed,
            windows_lost=lost, windows_before=len(kept), resumed=resumed,
            trouble="\n".join(filter(None, [differing, trouble, said])),
        )  # fmt: skip


def has_changed(host: TestHost) -> bool:
    """Tell whether the keeper has ever written anything there."""
    log = host.root / "var/lib/tuner/log"
    return log.exists() and " put " in log.read_text()


def await_original(host: TestHost, before: str, broke_s: float) -> float | None:
    """Wait until the host is as before; tell how long it took, or None."""
    while time.monotonic() - broke_s < ALLOWED_S + 5:
        if look_at(host) == before:
            return time.monotonic() - broke_s
        time.sleep(0.2)
    return None


def end_politely(process: "subprocess.Popen[bytes]") -> str:
    """Let a run that goes on put everything back; give what it printed."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=60)
    process.kill()
    return process.communicate()[0].decode(errors="replace")


def resume(bed: Testbed, study: Path, kept: set[str], host: TestHost, before: str) -> tuple[bool, str]:
    """Go on with the same command until another window is there, then end it politely."""
    with running(bed, study) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None and not windows_of(study) - kept:
            time.sleep(0.5)
        printed = end_politely(process)
    went_on = bool(windows_of(study) - kept)
    is_back = look_at(host) == before
    trouble = (
        ""
        if went_on and is_back
        else f"resumed: exit {process.returncode}, back: {is_back}\n{printed[-1500:]}"
    )
    return went_on and is_back, trouble


@contextlib.contextmanager
def running(bed: Testbed, study: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the study in a session of its own; it does not outlive this."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.faults_run", study],
        env={**os.environ, "HOME": str(bed.home), "TUNER_STATE": str(study.with_suffix(".state"))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def windows_of(study: Path) -> set[str]:
    """Read which windows the study's storage holds: the starts' numbers with the windows' begin."""
    database = study.with_suffix(".study") / "study.db"
    if not database.exists():
        return set()
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute(
                "SELECT trial_id, key FROM trial_user_attributes WHERE key LIKE 'window%'"
            ).fetchall()
        except sqlite3.OperationalError:
            return set()
    return {f"{trial} {key}" for trial, key in rows}


def look_at(host: TestHost) -> str:
    """Describe all that a run may change on a host, and whether the page is served."""
    files = host.run(["sh", "-c", LOOK_AT_FILES], check=False).stdout.decode(errors="replace")
    settings = host.run(["sh", "-c", LOOK_AT_SETTINGS], check=False).stdout.decode(errors="replace")
    page = host.run(
        ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1/"], check=False
    )
    return f"{files}\n{settings}\n{page.stdout.decode()}"


def describe_difference(before: str, after: str) -> str:
    """Show the lines that differ."""
    gone, come = set(before.splitlines()), set(after.splitlines())
    return "\n".join(
        [*(f"- {line}" for line in sorted(gone - come)), *(f"+ {line}" for line in sorted(come - gone))]
    )


def heal(host: TestHost) -> None:
    """Take the fault itself away."""
    host.heal()
    with contextlib.suppress(FileNotFoundError):
        host.free_disk()
    if not host.processes("sshd"):
        host.start_sshd()


def _find_keepers(host: TestHost) -> list[int]:
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"/var/lib/tuner/keeper" in words and (b"watch" in words or b"guard" in words):
                found.append(pid)
    return found


def main() -> None:
    """Try many faults and say what became of them."""
    parser = argparse.ArgumentParser(description="Break managed runs at random moments.")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(FAULTS))
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else sorted(FAULTS)
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:

        def attempt(number: int) -> Outcome:
            outcome = try_fault(number, names[number % len(names)], arguments.seed, Path(directory))
            word = "ok    " if outcome.is_good else "FAILED"
            took = "never" if outcome.back_s is None else f"{outcome.back_s:.1f} s"
            print(
                f"{word} {number:3d} {outcome.fault}, after {outcome.after_s:.1f} s: back after {took}"
                f"{'' if outcome.was_changed else ' (nothing was changed)'}, "
                f"{outcome.windows_before} windows kept, {outcome.windows_lost} lost, "
                f"{'resumed' if outcome.resumed else 'NOT resumed'}",
                flush=True,
            )
            if outcome.trouble:
                print(outcome.trouble, flush=True)
            return outcome

        with ThreadPoolExecutor(arguments.side_by_side) as pool:
            outcomes = list(pool.map(attempt, range(arguments.faults)))
    good = sum(outcome.is_good for outcome in outcomes)
    changed = sum(outcome.was_changed for outcome in outcomes)
    measured = sum(outcome.windows_before > 0 for outcome in outcomes)
    worst = max((outcome.back_s for outcome in outcomes if outcome.back_s is not None), default=float("nan"))
    print(json.dumps(Counter(outcome.fault for outcome in outcomes)))
    print(
        f"{good} of {len(outcomes)} as before; {changed} hosts were changed at the moment of the fault, "
        f"{measured} studies had windows to lose; "
        f"slowest way back {worst:.1f} s of {ALLOWED_S} s; watchdog {WATCHDOG_S} s"
    )
    sys.exit(0 if good == len(outcomes) else 1)


if __name__ == "__main__":
    main()
