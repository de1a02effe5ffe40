"""Live progress: a few redrawn lines on a terminal, one line per trial anywhere else."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tuner.campaign.progress import Changes, Leader, Progress
from tuner.records import Blame, Role, State, Trial
from tuner.report.wording import (
    make_printable,
    say_duration,
    say_milliseconds,
    say_rate,
    say_ratio,
    say_speedup,
    say_value,
)

if TYPE_CHECKING:
    from tuner.statistics.baseline_level import Speedup

NOTES_SHOWN = 4
CHANGES_SHOWN = 6
P99 = 0.99
TRIALS_SHOWN = 48
"""In the sparkline, the last ones."""
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "._-=+*#@"
NOT_MEASURED = "x"
"""In place of the bar of a trial that gave no measurement."""


@contextmanager
def open_progress(console: Console, *, verbose: bool = False) -> Iterator[Progress]:
    """Open the live display where lines can be redrawn, else one line per trial.

    The console should stand for stderr. Verbose, there are lines everywhere, and below each trial what its
    windows gave or why it failed.
    """
    if verbose or not console.is_interactive:
        yield LineProgress(console, verbose=verbose)
        return
    progress = LiveProgress(console)
    with progress.live:
        progress.draw()
        yield progress


class LiveProgress:
    """A few lines that are redrawn at every event.

    Nothing is drawn between events: a display that ticks would take CPU time from the server or the
    generator in the middle of a window.
    """

    def __init__(self, console: Console) -> None:
        self.live = Live(console=console, auto_refresh=False, transient=True)
        self._stage = Text("starting")
        self._done, self._total = 0, 0
        self._left_s: float | None = None
        self._now = Text("")
        self._last = Text("")
        self._speedups: deque[float | None] = deque(maxlen=TRIALS_SHOWN)
        self._leaders: Sequence[Leader] = ()
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN)

    def stage(self, name: str, done: int, total: int) -> None:
        self._stage = Text(make_printable(name), style="bold")
        self._done, self._total = done, total
        self.draw()

    def trial_begins(self, role: Role, label: str) -> None:
        self._now = Text.assemble(f"{role.label}  ", (make_printable(label), "bold"))
        self.draw()

    def trial_ends(self, trial: Trial, speedup: "Speedup | None") -> None:
        self._last = describe_end(trial, speedup)
        self._now = Text("")
        if trial.role.is_under_study_load:
            self._speedups.append(None if speedup is None else speedup.log_ratio)
        self.draw()

    def leaders(self, leaders: Sequence[Leader]) -> None:
        self._leaders = leaders
        self.draw()

    def note(self, text: str) -> None:
        self._notes.append(make_printable(text))
        self.draw()

    def time_left(self, seconds: float) -> None:
        self._left_s = seconds
        self.draw()

    def draw(self) -> None:
        self.live.update(self._screen(), refresh=True)

    def _screen(self) -> RenderableType:
        count = f"{self._done} of {self._total}" if self._total else f"{self._done}"
        left = "" if self._left_s is None else f"about {say_duration(self._left_s)} left"
        bar = ProgressBar(total=self._total or None, completed=self._done, width=24)
        head = Table.grid(padding=(0, 2))
        head.add_row(self._stage, bar, count, left)
        body = Table.grid(padding=(0, 2), expand=True)
        body.add_column(style="dim", no_wrap=True, min_width=len("best estimate"))
        body.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
        body.add_row("now", self._now)
        body.add_row("last", self._last)
        body.add_row("trials", Sparkline([*self._speedups]))
        best = [describe_leader(leader, is_first=not place) for place, leader in enumerate(self._leaders)]
        for place, text in enumerate(best or [Text("the default")]):
            body.add_row("" if place else "best estimate", text)
        for remark in self._notes:
            body.add_row("", Text(remark, style="yellow"))
        return Group(head, body)


class LineProgress:
    """One plain line per trial, for logs, pipes and notebooks."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._stage = self._label = self._left = ""
        self._best: Changes = {}

    def stage(self, name: str, done: int, total: int) -> None:  # noqa: ARG002 - a line says it once
        if name != self._stage:
            self._print(name)
        self._stage = name

    def trial_begins(self, role: Role, label: str) -> None:
        self._label = label or role.label

    def trial_ends(self, trial: Trial, speedup: "Speedup | None") -> None:
        self._print(f"  {describe_end(trial, speedup).plain}  {self._label}{self._left}")
        for line in describe_windows(trial) if self._verbose else ():
            self._print(f"    {line}")

    def leaders(self, leaders: Sequence[Leader]) -> None:
        if not leaders or leaders[0].changes == self._best:
            return
        self._best = leaders[0].changes
        self._print(f"  best estimate {say_speedup(leaders[0].speedup)}  {describe_changes(self._best)}")

    def note(self, text: str) -> None:
        self._print(f"  {text}")

    def time_left(self, seconds: float) -> None:
        self._left = f"  (about {say_duration(seconds)} left)"

    def _print(self, line: str) -> None:
        self._console.print(make_printable(line), markup=False, highlight=False, emoji=False, soft_wrap=True)


class Sparkline:
    """Speedups of the last trials as bars on a log scale, from the least to the most; both in figures."""

    def __init__(self, speedups: Sequence[float | None]) -> None:
        """Take log ratios; None is a trial without a measurement."""
        self._speedups = speedups

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw with what the terminal's encoding has."""
        known = [each for each in self._speedups if each is not None]
        if not known:
            return
        bars, least, most = ASCII_BARS if options.ascii_only else BARS, min(known), max(known)
        ends = f"  {say_ratio(math.exp(least))} to {say_ratio(math.exp(most))}"
        shown = self._speedups[-max(1, options.max_width - len(ends)) :]
        step = (most - least) / (len(bars) - 1) or 1.0
        drawn = (NOT_MEASURED if each is None else bars[round((each - least) / step)] for each in shown)
        yield Text.assemble(("".join(drawn), "cyan"), ends)


def describe_leader(leader: Leader, *, is_first: bool) -> Text:
    """Return in one line what one of the best gives, in how many trials, and what it changes."""
    trials = f"{leader.trials} trial{'' if leader.trials == 1 else 's'}"
    return Text.assemble(
        (say_speedup(leader.speedup), "bold green" if is_first else "green"),
        (f"  {trials:9}  ", "dim"),
        describe_changes(leader.changes),
    )


def describe_end(trial: Trial, speedup: "Speedup | None") -> Text:
    """Return in one line how a trial ended."""
    text = Text(f"#{trial.number} {trial.role.label}  ")
    if speedup is not None:
        text.append(say_speedup(speedup), style="green" if speedup.log_ratio > 0 else "")
        if trial.state is State.PRUNED:
            text.append("  pruned", style="dim")
    elif trial.failure is not None and trial.failure.kind == Blame.ENVIRONMENT:
        text.append("not counted: other programs disturbed it", style="yellow")
    elif trial.failure is not None:
        text.append(f"{trial.state.value}: {make_printable(trial.failure.kind)}", style="red")
    else:
        text.append(trial.state.value, style="yellow")
    return text


def describe_windows(trial: Trial) -> list[str]:
    """Return a line for each window with what the checks found, and the lines of the reason of a failure."""
    lines = []
    for number, window in enumerate(trial.windows, 1):
        p99 = None if window.latency is None else window.latency.quantiles_ms.get(P99)
        figures = f"{say_rate(window.goodput_rps)} requests/s, p99 {say_milliseconds(p99)}"
        found = "".join(f"; {each.check}: {each.reason}" for each in window.verdicts)
        lines.append(f"window {number}: {figures}, {window.failures.total} failures{found}")
    return lines + (trial.failure.reason.splitlines() if trial.failure is not None else [])


def describe_changes(changes: Changes) -> str:
    """Return in one line what a configuration changes: `sendfile off, worker_processes 1, … (3 more)`."""
    if not changes:
        return "the default"
    shown = [
        make_printable(f"{name} {say_value(value)}")
        for name, (_, value) in list(changes.items())[:CHANGES_SHOWN]
    ]
    rest = len(changes) - len(shown)
    return ", ".join(shown) + (f", … ({rest} more)" if rest > 0 else "")
