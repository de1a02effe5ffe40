"""Runs the study of one row through the command line, and keeps what came of it."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.servers.rows import Row

TUNER = Path(sys.executable).with_name("tuner")
NOTHING_BETTER = 1
"""Exit code of `tuner run` when nothing beat the default: a result as well."""
FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a row gave; kept as JSON beside its study."""

    row: str
    title: str
    verdict: str
    """Of the confirmation; empty when there is none."""
    reason: str
    """Why there is no proven gain; why nothing was measured."""
    gain: Mapping[str, float] | None
    """ratio, low, high and pairs, of fresh pairs of default and winner."""
    metric: str
    """What was compared: goodput, or requests per CPU second where the load generator is the limit."""
    failures: Mapping[str, Sequence[int]]
    """Arm → failed and all requests."""
    lines: Mapping[str, Sequence[object]]
    """What is shipped: setting → value before and after."""
    seconds: float
    """Wall time of all runs that it took."""
    servers: Mapping[str, str]
    machine: str

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a result; None where there is none."""
        return cls(**json.loads(path.read_text())) if path.exists() else None


def run_row(row: Row, folder: Path, *, options: Sequence[str] = (), again: bool = False) -> Result:
    """Return what is known of a row, after a run where its study is not finished.

    Args:
        row: the row.
        folder: where studies and results are kept; a run that was interrupted there is resumed.
        options: of `tuner run`.
        again: forget what is there.
    """
    kept = folder / f"{row.name}.json"
    if again:
        forget(row, folder)
    known = Result.read(kept)
    if known is not None and known.verdict:
        return known
    study = folder / f"{row.name}.yaml"
    if refused := write_study(row, study):
        return nothing(row, refused)
    result = run_study(row, study, options, spent_s=known.seconds if known else 0.0)
    kept.write_text(json.dumps(asdict(result), indent=1) + "\n")
    return result


def run_study(
    row: Row, study: Path, options: Sequence[str], *, spent_s: float = 0.0, through: Sequence[str] = ()
) -> Result:
    """Run a study to its end, or from where it was interrupted.

    Args:
        row: of which it is the study.
        study: the file.
        options: of `tuner run`.
        spent_s: seconds that went into it before.
        through: what is put before the command, such as `unshare`.
    """
    began = time.monotonic()
    completed = call("run", study, *options, through=through)
    spent_s += time.monotonic() - began
    shown = call("show", study, "--json")
    if completed.returncode not in {0, NOTHING_BETTER} or shown.returncode != 0:
        return nothing(row, last_line(completed.stderr), spent_s)
    return read_summary(row, json.loads(shown.stdout), spent_s)


def call(*arguments: object, through: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command of tuner."""
    command = [*through, TUNER, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def forget(row: Row, folder: Path) -> None:
    """Remove the study of a row and what came of it."""
    for name in (f"{row.name}.json", f"{row.name}.yaml"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / f"{row.name}.study", ignore_errors=True)


def write_study(row: Row, study: Path) -> str:
    """Write the study of a row, unless it is there. Returns why it cannot be; nothing when it is."""
    if study.exists():
        return ""
    if not row.server:
        shutil.copyfile(row.study, study)
        return ""
    behind = ("--backend", row.backend) if row.backend else ()
    made = call("init", row.server, *behind, "-o", study)
    return "" if made.returncode == 0 else last_line(made.stderr)


def read_summary(row: Row, summary: Mapping[str, Any], seconds: float) -> Result:
    """Return what the table says of a finished study, from `tuner show --json`."""
    gain, winner, found = summary["gain"], summary["winner"], summary["fingerprint"]
    arms = {name: summary[name] for name in ("default", "winner") if summary[name]}
    is_finished = summary["state"] == FINISHED
    return Result(
        row=row.name,
        title=row.title,
        verdict=(summary["verdict"] or "not proven") if is_finished else "",
        reason=summary["reason"] or "" if is_finished else f"the study is {summary['state']}",
        gain=gain and {name: gain[name] for name in ("ratio", "low", "high", "pairs")},
        metric=summary["metric"],
        failures={name: [arm["failures"], arm["requests"]] for name, arm in arms.items()},
        lines=winner["ships"] if winner else {},
        seconds=seconds,
        servers=found["servers"],
        machine=f"{found['cpu']}, {found['cores']} CPUs, {found['memory_mib']} MiB, Linux {found['kernel']}",
    )


def nothing(row: Row, reason: str, seconds: float = 0.0) -> Result:
    """Return that a row could not be measured."""
    return Result(
        row=row.name, title=row.title, verdict="", reason=reason, gain=None, metric="", failures={}, lines={},
        seconds=seconds, servers={}, machine="",
    )  # fmt: skip


def last_line(printed: str) -> str:
    """Return what a program said last."""
    return next(reversed(printed.strip().splitlines()), "it said nothing")
