"""Live progress: a few redrawn lines on a terminal, one line per trial anywhere else."""

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from threading import Event, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from tuner.campaign.progress import STAGES, Changes, Leader, Progress
from tuner.explain.variation import is_same
from tuner.ports import Clock
from tuner.records import Blame, Metric, Role, State, Trial
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
MOST_SHOWN = 5
"""Leaders, and notes; fewer on a low terminal."""
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
        try:
            yield progress
        finally:
            progress.end_wait()


class LiveProgress:
    """A few lines that are redrawn at every event.

    Nothing is drawn while a trial runs: a display that ticks would take CPU time from the server or the
    generator in the middle of a window. While it waits for a quiet host, it counts down.
    """

    def __init__(self, console: Console, *, clock: Clock = time) -> None:
        self._drawn = Drawn()
        self.live = ResizableLive(self._drawn, console=console)
        self._clock = clock
        self._begun_s = clock.monotonic()
        self._stage = "starting"
        self._done, self._total = 0, 0
        self._left_s: float | None = None
        self._now = self._last = Text("")
        self._speedups: deque[float | None] = deque(maxlen=TRIALS_SHOWN)
        self._baseline_rps: float | None = None
        self._leaders: Sequence[Leader] = ()
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN)
        self._waits_until_s = 0.0
        self._is_quiet = Event()
        self._is_quiet.set()

    def stage(self, name: str, done: int, total: int) -> None:
        self._stage, self._done, self._total = make_printable(name), done, total
        self.draw()

    def trial_begins(self, role: Role, label: str) -> None:
        self._is_quiet.set()
        self._now = Text.assemble(f"{role.label}  ", (make_printable(label), "bold"))
        self.draw()

    def trial_ends(self, trial: Trial, speedup: "Speedup | None") -> None:
        self._last = describe_end(trial, speedup)
        self._now = Text("")
        if trial.role.is_under_study_load:
            self._speedups.append(None if speedup is None else speedup.log_ratio)
        served = [each.goodput_rps for each in trial.valid_windows if each.metric is Metric.GOODPUT]
        if trial.role is Role.BASELINE and served:
            self._baseline_rps = fmean(served)
        self.draw()

    def leaders(self, leaders: Sequence[Leader]) -> None:
        self._leaders = leaders
        self.draw()

    def note(self, text: str) -> None:
        self._notes.append(make_printable(text))
        self.draw()

    def waits(self, seconds: float) -> None:
        self._waits_until_s = self._clock.monotonic() + seconds
        self._is_quiet.clear()
        Thread(target=self._count_down, daemon=True).start()

    def _count_down(self) -> None:
        while self._waits_until_s > self._clock.monotonic() and not self._is_quiet.is_set():
            self.draw()
            self._is_quiet.wait(1.0)

    def time_left(self, seconds: float) -> None:
        self._left_s = seconds
        self.draw()

    def end_wait(self) -> None:
        """Count down no longer."""
        self._is_quiet.set()

    def draw(self) -> None:
        """Draw it; where a terminal is too low for everything, with fewer leaders and notes."""
        console = self.live.console
        for most in range(MOST_SHOWN, 0, -1):
            self._drawn.screen = self._screen(most)
            if len(console.render_lines(self._drawn.screen, pad=False)) <= console.height:
                break
        self.live.refresh()

    def _screen(self, most: int = MOST_SHOWN) -> RenderableType:
        elapsed_s = self._clock.monotonic() - self._begun_s
        left_s = self._left_s or 0.0
        head = Table.grid(padding=(0, 2), expand=True)
        head.add_column(no_wrap=True)
        head.add_column(no_wrap=True, justify="right", ratio=1, overflow="ellipsis")
        left = "" if self._left_s is None else f", about {say_duration(left_s)} left"
        head.add_row(self._name_stage(), Text(f"{say_duration(elapsed_s)}{left}"))
        bar = Table.grid(expand=True)
        bar.add_row(ProgressBar(total=elapsed_s + left_s or None, completed=elapsed_s))
        body = Table.grid(padding=(0, 2), expand=True)
        body.add_column(style="dim", no_wrap=True, min_width=len("best estimate"))
        body.add_column(ratio=1)
        if self._baseline_rps is not None:
            body.add_row("baseline", f"{say_rate(self._baseline_rps)} requests/s")
        for title, text in self._describe_leaders(self._leaders[:most]):
            body.add_row(title, text)
        body.add_row("now", self._now if self._is_quiet.is_set() else self._say_wait())
        body.add_row("last", self._last)
        body.add_row("trials", Sparkline([*self._speedups]))
        for remark in list(self._notes)[-most:]:
            body.add_row("", Text(remark, style="yellow"))
        return Group(head, bar, body)

    def _say_wait(self) -> Text:
        left_s = self._waits_until_s - self._clock.monotonic()
        return Text(f"waiting for a quiet host, up to {say_duration(left_s)}", style="yellow")

    def _name_stage(self) -> Text:
        """Return the stage, its place in a study, and its trials: search (2 of 8), 3 of 20 trials."""
        place = f" ({STAGES.index(self._stage) + 1} of {len(STAGES)})" if self._stage in STAGES else ""
        trials = f", {self._done} of {self._total} trials" if self._total else f", {self._done} trials"
        return Text.assemble((self._stage, "bold"), f"{place}{trials}")

    def _describe_leaders(self, leaders: Sequence[Leader]) -> Iterator[tuple[str, Text]]:
        """Yield the best with their figures and what each alone changes, then what all change."""
        if not leaders:
            yield "best estimate", Text("the default")
            return
        common = find_common([each.changes for each in leaders])
        for place, leader in enumerate(leaders):
            text = describe_leader(leader, is_first=not place, but=common, baseline_rps=self._baseline_rps)
            yield ("" if place else "best estimate"), text
        if common:
            yield ("all change" if len(leaders) > 1 else "it changes"), Text(describe_changes(common))


class Drawn:
    """What a live display shows, without blanks at the ends of its lines, and how wide these were drawn."""

    def __init__(self) -> None:
        self.screen: RenderableType = ""
        self._widths: tuple[int, ...] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what there is now."""
        lines = [cut_blanks(line) for line in console.render_lines(self.screen, options, pad=False)]
        self._widths = tuple(map(Segment.get_line_length, lines[: options.size.height]))
        for line in lines:
            yield from line
            yield Segment.line()

    def count_broken(self, width: int) -> int:
        """Return how many rows more than lines this takes on a terminal that has this width by now."""
        return sum(max(0, each - 1) // width for each in self._widths)


class ResizableLive(Live):
    """Also clears the rows into which a terminal that was made narrower has broken drawn lines.

    Terminals that cut such lines off instead, as xterm does, lose so many lines of older output.
    """

    def __init__(self, drawn: Drawn, *, console: Console) -> None:
        super().__init__(drawn, console=console, auto_refresh=False, transient=True)
        self._drawn = drawn

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Move the cursor to where rich takes it to be, and then do as it does."""
        broken = self._drawn.count_broken(self.console.width)
        row_up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        up = Control(ControlType.CARRIAGE_RETURN, *row_up * broken)
        return [up, *super().process_renderables(renderables)]


def cut_blanks(line: list[Segment]) -> list[Segment]:
    """Return the parts of a line without blanks at its end."""
    while line and not line[-1].text.rstrip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


def find_common(changes: Sequence[Changes]) -> Changes:
    """Return what several configurations change alike; of one, all of it."""
    first, *others = changes
    return {
        name: pair
        for name, pair in first.items()
        if all(name in each and is_same(each[name][1], pair[1]) for each in others)
    }


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

    def waits(self, seconds: float) -> None:
        self._print(f"  waiting for a quiet host, up to {say_duration(seconds)}")

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


def describe_leader(
    leader: Leader, *, is_first: bool, but: Changes = MappingProxyType({}), baseline_rps: float | None = None
) -> Text:
    """Return in one line what one of the best gives, in how many trials, and what it alone changes.

    Args:
        leader: one of the best.
        is_first: whether it is the best.
        but: what all of the best change.
        baseline_rps: what the default serves, for the requests per second of the best one.
    """
    trials = f"{leader.trials} trial{'' if leader.trials == 1 else 's'}"
    rate = "" if baseline_rps is None else f"{say_rate(baseline_rps * leader.speedup.ratio)} requests/s  "
    own = {name: pair for name, pair in leader.changes.items() if name not in but}
    return Text.assemble(
        rate,
        (say_speedup(leader.speedup), "bold green" if is_first else "green"),
        (f"  {trials:9}  ", "dim"),
        describe_changes(own) if own else "",
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
