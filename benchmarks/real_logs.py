"""Make a load of each access log in a folder that others wrote, and compare it with what is sent.

    make bench-real-logs FOLDER=DIRECTORY
    python -m benchmarks.real_logs DIRECTORY --run

Each file in the folder is a log. Of each, `tuner init nginx --from LOG --stand-in` makes a study, and `tuner
check` loads a private nginx with it for a second. With --run, a quick study follows. Exit status 1 when a log
makes no load, or less than 95 % of a load is sent as asked.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEAST_MATCH = 0.95
TUNER = str(Path(sys.executable).parent / "tuner")
HEAD = (
    "| log | format | requests | kinds | share covered | sent as asked | as expected | result |\n"
    "|---|---|---:|---:|---:|---:|---:|---|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one log."""

    name: str
    said: str = ""
    """Why there is no load, or how its quick study ended."""
    format: str = ""
    log: Mapping[str, Any] | None = None
    mix: Mapping[str, Any] | None = None

    @property
    def is_as_wanted(self) -> bool:
        """Return whether the load is sent as the log says."""
        return self.mix is not None and self.mix["match"] >= LEAST_MATCH

    def row(self) -> str:
        """Return a row of the table."""
        if self.log is None or self.mix is None:
            return f"| {self.name} | {self.format} | | | | | | {self.said} |"
        log, mix = self.log, self.mix
        return (
            f"| {self.name} | {self.format} | {log['requests']:,} | {log['kinds']} | {log['covered']:.1%} | "
            f"{mix['match']:.2%} | {mix['as_expected']:.2%} | {self.said} |"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every log and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", action="store_true", help="run a quick study of each as well")
    given = parser.parse_args(arguments)
    print(HEAD, flush=True)
    outcomes = []
    for log in sorted(each for each in given.folder.iterdir() if each.is_file()):
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(_try(log, Path(folder) / "own.yaml", runs=given.run))
        print(outcomes[-1].row(), flush=True)
    return int(not all(each.is_as_wanted for each in outcomes))


def _try(log: Path, study: Path, *, runs: bool) -> Outcome:
    made = _call("init", "nginx", "--from", str(log), "--stand-in", "-o", str(study), "--json")
    if made.returncode:
        return Outcome(name=log.name, said=_last_line(made))
    told = made.stderr.splitlines()
    form = next((line.rpartition(" in the format ")[2] for line in told if " in the format " in line), "")
    found = json.loads(made.stdout)["log"]
    checked = _call("check", str(study), "--json")
    if checked.returncode:
        return Outcome(name=log.name, format=form, said=_last_line(checked))
    said = ""
    if runs:
        ran = _call("run", str(study), "--preset", "quick")
        said = _describe_end(study) if ran.returncode in {0, 1} else _last_line(ran)
    mix = json.loads(checked.stdout)["mix"].get("")
    return Outcome(name=log.name, format=form, log=found, mix=mix, said=said)


def _describe_end(study: Path) -> str:
    shown = json.loads(_call("show", str(study), "--json").stdout)
    gain = shown["gain"]
    return shown["verdict"] + (
        f", {gain['ratio']:.2f}× [{gain['low']:.2f}, {gain['high']:.2f}]" if gain else ""
    )


def _call(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TUNER, *arguments], capture_output=True, text=True, check=False, timeout=1800)


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


if __name__ == "__main__":
    sys.exit(main())
