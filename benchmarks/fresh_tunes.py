"""Run `make tune` again and again as a newcomer would, each time a new study, and keep how each ended.

    python -m benchmarks.fresh_tunes TO.jsonl SERVER:SEED [SERVER:SEED …]   runs, and adds a line for each
    python -m benchmarks.fresh_tunes TO.jsonl                               prints the table

It runs in a clone of this checkout, so that only what is committed counts. What is installed already stays: a
setup from nothing takes one to two minutes more, once. The machine is to do nothing else meanwhile.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make") or "make"
TIMEOUT_S = 900.0
"""A `make tune` that takes longer is stuck."""


def main() -> int:
    """Run what is named, then print the table of all that stands in the file."""
    to, *jobs = sys.argv[1:]
    if jobs:
        with tempfile.TemporaryDirectory(prefix="tuner-fresh-") as folder:
            clone = Path(folder) / "tuner"
            run("git", "clone", "--quiet", ROOT, clone)
            run(".ci/python", "run", cwd=clone)
            for job in jobs:
                server, _, seed = job.partition(":")
                with Path(to).open("a") as file:
                    file.write(json.dumps(tune(clone, server, int(seed or 0))) + "\n")
    print(table([json.loads(line) for line in Path(to).read_text().splitlines()]))
    return 0


def run(*argv: str | Path, cwd: Path | None = None) -> None:
    """Run a command that has to succeed."""
    subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)


def tune(clone: Path, server: str, seed: int) -> Mapping[str, Any]:
    """Run one `make tune` with a new study; return how it ended."""
    study, tuner = clone / "tune" / f"{server}.yaml", clone / ".venv/bin/tuner"
    study.parent.mkdir(exist_ok=True)
    run("rm", "-rf", study, study.with_suffix(".study"))
    run(tuner, "init", server, "-o", study)
    text = re.sub(r"(?m)^seed: .*\n", "", study.read_text())
    study.write_text(f"{text}\nseed: {seed}\n")
    began = time.monotonic()
    made = subprocess.run(
        [MAKE, "tune", f"SERVER={server}"],
        cwd=clone, check=False, capture_output=True, text=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    wall_s = time.monotonic() - began
    shown = subprocess.run([tuner, "show", study, "--json"], check=False, capture_output=True, text=True)
    summary = json.loads(shown.stdout) if shown.returncode == 0 else {}
    return {
        "server": server,
        "seed": seed,
        "exit": made.returncode,
        "wall_s": round(wall_s),
        "verdict": summary.get("verdict") or summary.get("state"),
        "gain": summary.get("gain"),
        "found": summary.get("found"),
        "changes": (summary.get("winner") or {}).get("changes", {}),
        "said": [line for line in made.stdout.splitlines() if line.startswith(f"{server}: ")][:1],
        "complaints": made.stderr.splitlines()[-2:] if made.returncode else [],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return all runs as Markdown, and for each server how many ended well."""
    lines = ["| server | seed | exit | what it said | changed | seconds |", "|---|---:|---:|---|---|---:|"]
    for row in rows:
        said = (row["said"] or row["complaints"] or [""])[0].removeprefix(f"{row['server']}: ")
        changed = ", ".join(f"{name} {old} → {new}" for name, (old, new) in row["changes"].items())
        lines.append(
            f"| {row['server']} | {row['seed']} | {row['exit']} | {said} | {changed} | {row['wall_s']} |"
        )
    lines += [
        "",
        "| server | runs | exit 0 | gain confirmed | changed settings, median | longest run, s |",
        "|---|" + "---:|" * 5,
    ]
    for server in dict.fromkeys(row["server"] for row in rows):
        mine = [row for row in rows if row["server"] == server]
        shipped = [row for row in mine if row["verdict"] == "improved"]
        counts = [len(row["changes"]) for row in shipped]
        lines.append(
            f"| {server} | {len(mine)} | {sum(row['exit'] == 0 for row in mine)} | {len(shipped)} | "
            f"{statistics.median(counts) if counts else '–'} | {max(row['wall_s'] for row in mine)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
