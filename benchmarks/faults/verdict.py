"""Whether a fault's promise was kept where the host could not put everything back by itself."""

import re
import time
from collections.abc import Mapping

from benchmarks.faults.forked import TUNER, Forked
from benchmarks.faults.kinds import Kind, Run, heal
from benchmarks.faults.look import differing, is_armed, see

RESTORE_TIMEOUT_S = 120
SERVED_FOR_S = 3.0
PATH = re.compile(r"/[A-Za-z0-9._/@:+-]+[A-Za-z0-9_]")


def judge_later(
    run: Run, kind: Kind, before: str, printed: str, troubles: list[str], environment: Mapping[str, str]
) -> None:
    """Check that what served serves, that what is left is named, and that a restore completes in the end."""
    restored, said = restore(run, environment)
    left = _left(run, before)
    _require_named(left, printed + said, troubles)
    if left and restored == 0:
        troubles.append(f"`tuner restore` said that all is well, and it is not: {left}\n{said}")
    if run.served and not serves(run):
        troubles.append("the service was taken down, and does not serve as long as the fault is there")
    kind.mend(run)
    heal(run.host)
    restored, said = restore(run, environment)
    left = _left(run, before)
    if restored != 0 or left or is_armed(run.host):
        troubles.append(f"`tuner restore` ended with {restored} without the fault, left: {left}\n{said}")


def judge_edits(
    run: Run, before: str, printed: str, troubles: list[str], environment: Mapping[str, str]
) -> None:
    """Check that another hand's version stays, that both are named, and that consent lets go."""
    _require_edits(run, "when the run had ended", troubles)
    restored, said = restore(run, environment)
    _require_edits(run, "after `tuner restore`", troubles)
    said += printed
    _require_named(list(run.edited), said, troubles)
    _require_originals(run, said, troubles)
    restored, accepted = restore(run, environment, "--accept", "--yes")
    if restored != 0 or is_armed(run.host):
        troubles.append(f"`tuner restore --accept --yes` ended with {restored}:\n{said}\n{accepted}")
    _require_edits(run, "after `tuner restore --accept`", troubles)
    # A file that was edited after the last trial is no news to anybody.
    left = [path for path in _left(run, before) if path not in {*run.edited, "active"}]
    if left:
        troubles.append(f"not back besides the edit: {left}")
    _merge(run)


def _merge(run: Run) -> None:
    """Do as the other hand would: take tuner's lines out, and keep one's own."""
    for path, merged in run.merged.items():
        if merged is None:
            (run.host.root / path.lstrip("/")).unlink(missing_ok=True)
        else:
            run.host.run(["tee", path], stdin=merged)
    for service in run.server.services:
        run.host.run(["service", service, "restart"], check=False)
    run.host.wait_until_it_answers(80)


def restore(run: Run, environment: Mapping[str, str], *options: str) -> tuple[int, str]:
    """Run `tuner restore` on the host; return its exit code and all that it printed."""
    command = [TUNER, "restore", "--host", run.host.ssh_url, *options]
    process = Forked(command, environment, run.bed.home / "restore.out")
    return process.wait(RESTORE_TIMEOUT_S), process.read_output()


def serves(run: Run) -> bool:
    """Check that the page answers for some seconds, whenever one asks."""
    until = time.monotonic() + SERVED_FOR_S
    while time.monotonic() < until:
        if not run.answers():
            return False
        time.sleep(0.1)
    return True


def _left(run: Run, before: str) -> list[str]:
    """List what is not as before; what others did, and what guards the rest, is no original."""
    found = differing(before, see(run.host, run.server))
    return [path for path in found if path not in run.others and "tuner-restore" not in path]


def _require_named(left: list[str], said: str, troubles: list[str]) -> None:
    unnamed = [path for path in left if path not in {"page", "active"} and path not in said]
    if unnamed:
        troubles.append(f"not back and not named: {unnamed}")


def _require_edits(run: Run, when: str, troubles: list[str]) -> None:
    for path, expected in run.edited.items():
        found = run.host.run(["cat", path], check=False).stdout
        if found != expected:
            troubles.append(f"{path}: what another hand wrote is gone {when}: {found[-200:]!r}")


def _require_originals(run: Run, said: str, troubles: list[str]) -> None:
    """Look into every file that was named: one of them is the original."""
    named = [run.host.run(["cat", path], check=False).stdout for path in set(PATH.findall(said))]
    for path, original in run.originals.items():
        if original is not None and original not in named:
            troubles.append(f"{path}: its original is in no file that was named")
