"""Plays the search of a study on the live display of its terminal, one trial for each line of a file.

python -m tests.e2e.play_live FILE quiet|noisy
"""

import sys
from pathlib import Path

from tests.unit.simulated_study import make_summary
from tuner.campaign.progress import Leader, Progress
from tuner.cli.printing import make_console, show_progress
from tuner.ports import Scalar
from tuner.records import Role
from tuner.statistics.baseline_level import Speedup

OLDER, VERDICT = "a line of an earlier command", "the verdict"
MANY = 50
"""Such lines, so that the display stands at the lower end of its terminal."""
TOTAL = 20
CHANGES: dict[str, tuple[Scalar, Scalar]] = {
    "sendfile": (True, False),
    "open_file_cache": ("off", 10_000),
    "keepalive_requests": (1000, 1_000_000),
    "access_log_buffer": ("off", 65_536),
    "worker_processes": ("auto", 1),
    "client_header_buffer_size": (1024, 4096),
}
NOTES = tuple(
    f"trial {number}: other programs took 1.4 of 2 CPUs during its second window, so it does not "
    "count; stop them, or allow more time with `--minutes`"
    for number in range(11, 16)
)


def lead(place: int) -> Leader:
    """Return one of five leaders, each with another value of a setting that all of them change."""
    changes = {**CHANGES, "open_file_cache": ("off", 1000 * (place + 1))}
    speedup = Speedup(log_ratio=0.6 - place / 20, variance=0.002)
    return Leader(changes=changes, speedup=speedup, trials=5 - place)


def begin(progress: Progress, *, is_noisy: bool) -> None:
    """Show what a study shows in the midst of its search."""
    trials = make_summary(searches=6, pairs=0).trials
    progress.stage("search", 0, TOTAL)
    progress.time_left(130)
    for number, trial in enumerate(trials):
        speedup = Speedup(log_ratio=number / 20, variance=0.002)
        progress.trial_ends(trial, speedup if trial.valid_windows else None)
    progress.leaders([lead(place) for place in range(5 if is_noisy else 2)])
    progress.trial_begins(Role.SEARCH, "4 settings changed")
    for note in NOTES if is_noisy else ():
        progress.note(note)
    if is_noisy:
        progress.waits(3600)


def main() -> None:
    """Play it, and end with the file."""
    file, kind = sys.argv[1:]
    sys.stdout.write(f"{OLDER}\n" * MANY)
    sys.stdout.flush()
    with Path(file).open() as lines, show_progress() as progress:
        begin(progress, is_noisy=kind == "noisy")
        done = 0
        while lines.readline():
            done += 1
            progress.stage("search", done, TOTAL)
    make_console().print(VERDICT)


if __name__ == "__main__":
    main()
