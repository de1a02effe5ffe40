"""How well the main job is done on this machine: gains, where the time goes, memory, start-up.

    python -m benchmarks.main_job [--allow-less-capacity]

Runs two quick studies for real, through the command line, and prints what was seen beside what is wanted.
Exit status 1 when anything is missed. With --allow-less-capacity candidates may hold less than the default:
the difference in gain is what the guard of capacity costs.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TUNER = Path(sys.executable).with_name("tuner")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure: what was seen, and the bound that it has to keep."""

    name: str
    seen: float
    bound: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.seen >= self.bound if self.at_least else self.seen <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "ok" if self.is_met else "MISSED"
        return f"{verdict:<6}  {self.name:<52} {self.seen:>9.3f}  {sign} {self.bound:g}"


def main() -> int:
    """Measure everything and print one line per figure."""
    parser = argparse.ArgumentParser(description="Measure how well the main job is done.")
    parser.add_argument("--allow-less-capacity", action="store_true")
    options = parser.parse_args()
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="tuner-bench-") as folder:
        for server, ratio, low, deploy_s in (("nginx", 1.4, 1.3, 0.5), ("apache", 1.25, 1.15, 1.5)):
            targets += run_study(
                Path(folder), server, ratio=ratio, low=low, deploy_s=deploy_s,
                allows_less=options.allow_less_capacity,
            )  # fmt: skip
    targets.append(Target(name="tuner --help, seconds (median of 9)", seen=time_help(), bound=0.3))
    memory_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    targets.append(Target(name="peak memory of one process of the runs, MiB", seen=memory_mib, bound=250))
    print("\n".join(map(str, targets)))
    return 0 if all(target.is_met for target in targets) else 1


def run_study(
    folder: Path, server: str, *, ratio: float, low: float, deploy_s: float, allows_less: bool = False
) -> Sequence[Target]:
    """Run one quick study from `tuner init` on and read its figures."""
    study = folder / f"{server}.yaml"
    subprocess.run([TUNER, "init", server, "-o", study], check=True, stdout=subprocess.DEVNULL)
    if allows_less:
        allow_less_capacity(study)
    began = time.monotonic()
    completed = subprocess.run([TUNER, "run", study, "--preset", "quick"], check=False)
    wall_s = time.monotonic() - began
    shown = subprocess.run([TUNER, "show", study, "--json"], check=True, capture_output=True)
    summary = json.loads(shown.stdout)
    gain = summary["gain"] or {"ratio": 0.0, "low": 0.0, "high": 0.0, "pairs": 0}
    timing = summary["timing"]
    print(
        f"{server}: exit {completed.returncode}, {gain['ratio']:.2f}× "
        f"[{gain['low']:.2f}, {gain['high']:.2f}], {gain['pairs']} pairs, {len(summary['trials'])} trials\n"
    )
    return [
        Target(name=f"{server}: confirmed gain", seen=gain["ratio"], bound=ratio, at_least=True),
        Target(name=f"{server}: lower end of its interval", seen=gain["low"], bound=low, at_least=True),
        Target(name=f"{server}: wall time, minutes", seen=wall_s / 60, bound=5),
        Target(
            name=f"{server}: share of the time under load",
            seen=timing["load_s"] / timing["total_s"], bound=0.7, at_least=True,
        ),
        Target(name=f"{server}: deploy, median seconds", seen=timing["deploy_median_s"], bound=deploy_s),
        Target(name=f"{server}: suggestion, longest, seconds", seen=timing["suggest_max_s"], bound=0.05),
        Target(name=f"{server}: writing a result, longest, seconds", seen=timing["store_max_s"], bound=0.02),
    ]  # fmt: skip


def allow_less_capacity(study: Path) -> None:
    """Write the allowance into the study's list of spaces."""
    text = study.read_text()
    study.write_text(text.replace("\nspace:\n", "\nspace:\n  - {allow: [capacity]}\n", 1))


def time_help() -> float:
    """Measure `tuner --help` as a whole process."""
    times = []
    for _ in range(9):
        began = time.monotonic()
        subprocess.run([TUNER, "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.monotonic() - began)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
