"""Plays sequences of commands, edits, signals and losses, and says which rules they broke.

python -m benchmarks.faults.sequences [--sequences 2000] [--steps 12] [--seed 1] [--workers 4] [--shrink]
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks.faults.sequences.machine import Sequences
from benchmarks.faults.sequences.servers import SERVERS
from benchmarks.faults.sequences.world import template

CHUNK = 5


def play(name: str, folder: Path, number: int, steps: int, count: int, *, shrinks: bool) -> tuple[int, str]:
    """Play some sequences; return how many, and what was violated."""
    played = 0

    class Played(Sequences):
        troubles: ClassVar[list[str]] = []

        def __init__(self) -> None:
            nonlocal played
            played += 1
            super().__init__()

    Played.template = folder
    Played.tuned = SERVERS[name]
    Played.is_local = number % 3 == 0
    Played.has_systemd = number % 6 in {1, 3}
    Played.has_cron = number % 2 == 0
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    how = settings(
        max_examples=count, stateful_step_count=steps, deadline=None, database=None, phases=phases,
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    try:
        run_state_machine_as_test(seed(number)(Played), settings=how)
    except Exception:  # noqa: BLE001 - the others go on, and this one counts as a failure
        # The last one is the shortest; without one, the world itself has failed.
        return played, [f"WORLD: {traceback.format_exc()[-3000:]}", *Played.troubles][-1]
    return played, ""


def main() -> None:
    """Play many sequences and say what became of them."""
    parser = argparse.ArgumentParser(description="Play sequences.")
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--server", choices=sorted(SERVERS), default="")
    arguments = parser.parse_args()
    began = time.monotonic()
    kinds: Counter[str] = Counter()
    total = 0
    names = [arguments.server] if arguments.server else sorted(SERVERS)
    with ExitStack() as stack:
        folders = {name: stack.enter_context(template(SERVERS[name])) for name in names}
        pool = stack.enter_context(ProcessPoolExecutor(arguments.workers))
        pending = {}
        for number in range(
            arguments.seed * 100_000, arguments.seed * 100_000 + arguments.sequences // CHUNK
        ):
            name = names[number % len(names)]
            how = name, folders[name], number, arguments.steps, CHUNK
            pending[pool.submit(play, *how, shrinks=arguments.shrink)] = f"{name}, seed {number}"
        for each in as_completed(pending):
            if each.cancelled():
                continue
            played, trouble = each.result()
            total += played
            print(f"{total} sequences in {time.monotonic() - began:.0f} s", flush=True)
            if time.monotonic() - began > arguments.seconds:
                for other in pending:
                    other.cancel()
            if trouble:
                kinds[trouble.partition(":")[0]] += 1
                print(f"{pending[each]}: {trouble}", "\n" + "-" * 80, flush=True)
    print(f"{total} sequences in {time.monotonic() - began:.0f} s; violations: {dict(kinds)}")
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()
