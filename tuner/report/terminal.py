"""What a person sees on a terminal: live progress, and the end of a study on one screen."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tuner.campaign.progress import Changes, Progress
from tuner.records import Role, Start, State
from tuner.report.wording import (
    LOWER_BOUND,
    make_printable,
    say_duration,
    say_failures,
    say_gain,
    say_milliseconds,
    say_quantile,
    say_rate,
    say_speedup,
    say_value,
)

if TYPE_CHECKING:
    from tuner.report.summary import Arm, Summary
    from tuner.statistics.control_level import Speedup

NOTES_SHOWN = 4
CHANGES_SHOWN = 6
PAIRED = (" of winner against default", "dim")


def open_progress(console: Console) -> "AbstractContextManager[Progress]":
    """Choose the live display on a terminal, one line per start anywhere else."""
    return LiveProgress(console) if console.is_terminal else LineProgress(console)


class LiveProgress:
    """A few lines that are redrawn at every event.

    Nothing is drawn between events: a display that ticks would take CPU time from the server or the
    generator in the middle of a window.
    """

    def __init__(self, console: Console) -> None:
        """Draw on this console, which should stand for stderr."""
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._stage = Text("starting")
        self._done, self._total = 0, 0
        self._left_s: float | None = None
        self._now = Text("")
        self._last = Text("")
        self._incumbent = Text("the default")
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN)

    def __enter__(self) -> Self:
        self._live.__enter__()
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def stage(self, name: str, done: int, total: int) -> None:
        """Show the stage and how far it is."""
        self._stage = Text(make_printable(name), style="bold")
        self._done, self._total = done, total
        self._draw()

    def start_begins(self, role: Role, label: str) -> None:
        """Show what is being measured now."""
        self._now = Text.assemble(f"{role.value}  ", (make_printable(label), "bold"))
        self._draw()

    def start_ends(self, start: Start, speedup: "Speedup | None") -> None:
        """Show what the last start gave."""
        self._last = describe_end(start, speedup)
        self._now = Text("")
        self._draw()

    def incumbent(self, changes: Changes, speedup: "Speedup") -> None:
        """Show the best configuration so far."""
        self._incumbent = Text.assemble(
            (say_speedup(speedup), "bold green"), "  ", describe_changes(changes, CHANGES_SHOWN)
        )
        self._draw()

    def note(self, text: str) -> None:
        """Keep the last few remarks in sight."""
        self._notes.append(make_printable(text))
        self._draw()

    def time_left(self, seconds: float) -> None:
        """Show how long the rest will take."""
        self._left_s = seconds
        self._draw()

    def _draw(self) -> None:
        self._live.update(self._screen(), refresh=True)

    def _screen(self) -> RenderableType:
        count = f"{self._done} of {self._total}" if self._total else f"{self._done}"
        left = "" if self._left_s is None else f"about {say_duration(self._left_s)} left"
        head = Table.grid(padding=(0, 2))
        head.add_row(
            self._stage, ProgressBar(total=self._total or None, completed=self._done, width=24), count, left
        )
        body = Table.grid(padding=(0, 2))
        body.add_column(style="dim", no_wrap=True, min_width=len("best so far"))
        body.add_column(overflow="ellipsis", no_wrap=True)
        for title, text in (("now", self._now), ("last", self._last), ("best so far", self._incumbent)):
            body.add_row(title, text)
        for remark in self._notes:
            body.add_row("", Text(remark, style="yellow"))
        return Group(head, body)


class LineProgress:
    """One plain line per start, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        """Print on this console, which should stand for stderr."""
        self._console = console
        self._stage, self._done, self._total = "", 0, 0
        self._label = ""
        self._left_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left open."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Print a stage when it is entered."""
        if name != self._stage:
            self._print(name)
        self._stage, self._done, self._total = name, done, total

    def start_begins(self, role: Role, label: str) -> None:
        """Remember what is being measured until it is over."""
        self._label = label or role.value

    def start_ends(self, start: Start, speedup: "Speedup | None") -> None:
        """Print what the start gave."""
        left = "" if self._left_s is None else f"  (about {say_duration(self._left_s)} left)"
        self._print(f"  {describe_end(start, speedup).plain}  {self._label}{left}")

    def incumbent(self, changes: Changes, speedup: "Speedup") -> None:
        """Print the new best configuration."""
        self._print(f"  best so far {say_speedup(speedup)}  {describe_changes(changes, CHANGES_SHOWN)}")

    def note(self, text: str) -> None:
        """Print the remark."""
        self._print(f"  {text}")

    def time_left(self, seconds: float) -> None:
        """Remember how long the rest will take."""
        self._left_s = seconds

    def _print(self, line: str) -> None:
        self._console.print(make_printable(line), markup=False, highlight=False, emoji=False, soft_wrap=True)


def describe_end(start: Start, speedup: "Speedup | None") -> Text:
    """Say in one line how a start ended."""
    text = Text(f"#{start.number} {start.role.value}  ")
    if speedup is not None:
        text.append(say_speedup(speedup), style="green" if speedup.log_ratio > 0 else "")
        if start.state is State.PRUNED:
            text.append("  pruned", style="dim")
    elif start.failure is not None:
        text.append(f"{start.state.value}: {make_printable(start.failure.kind)}", style="red")
    else:
        text.append(start.state.value, style="yellow")
    return text


def describe_changes(changes: Changes, most: int) -> str:
    """Say in one line what a configuration changes: `sendfile off, worker_processes 1, … (3 more)`."""
    if not changes:
        return "the default"
    shown = [
        make_printable(f"{name} {say_value(value)}") for name, (_, value) in list(changes.items())[:most]
    ]
    rest = len(changes) - len(shown)
    return ", ".join(shown) + (f", … ({rest} more)" if rest > 0 else "")


def final_screen(summary: "Summary", *, report: str | None = None, exports: Sequence[str] = ()) -> Group:
    """Show how a study ended: both sides, the gain, the few changes, and where everything is."""
    parts: list[RenderableType] = [_headline(summary), Text(""), _sides(summary)]
    if summary.latency is not None:
        rate = f"p99 at {say_rate(summary.latency.rate_rps)} requests/s: "
        default, winner = summary.latency.default_p99, summary.latency.winner_p99
        parts.append(Text(f"{rate}{say_quantile(default)} → {say_quantile(winner)}"))
    if summary.winner is not None and summary.winner.is_lower_bound:
        parts.append(Text(LOWER_BOUND, style="dim"))
    if summary.winner is not None and summary.shipped:
        parts += [Text(""), *_difference(summary)]
    parts += _capacity(summary)
    if summary.front:
        parts += [Text(""), _front(summary)]
    places = Table.grid(padding=(0, 2))
    if exports:
        places.add_row("exports", Text("\n".join(make_printable(path) for path in exports)))
    if report is not None:
        places.add_row("report", Text(make_printable(report)))
    if exports or report is not None:
        parts += [Text(""), places]
    return Group(*parts)


def _headline(summary: "Summary") -> Text:
    name = make_printable(summary.study)
    if summary.gain is not None and summary.gain.verdict == "improved":
        return Text.assemble((name, "bold"), ": ", (say_gain(summary.gain), "bold green"), PAIRED)
    if summary.gain is not None:
        return Text.assemble(
            (name, "bold"), ": not proven, ", (say_gain(summary.gain), "bold yellow"), PAIRED
        )
    if summary.state == "finished":
        reason = f" ({make_printable(summary.stop_reason)})" if summary.stop_reason else ""
        return Text.assemble((name, "bold"), ": nothing beat the default", reason)
    best = ""
    if summary.incumbent is not None:
        best = f"; best so far {say_speedup(summary.incumbent[1])}, not confirmed"
    return Text.assemble((name, "bold"), f": {summary.state}{best}")


def _sides(summary: "Summary") -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("")
    for title in ("requests/s", "p99", "failures", "starts"):
        table.add_column(title, justify="right")
    table.add_row("default", *_side(summary.default))
    if summary.winner is not None:
        table.add_row("winner", *_side(summary.winner), style="bold")
    return table


def _front(summary: "Summary") -> Table:
    """List what nobody beats in both objectives."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    for title in ("pick", "goodput", summary.cost or "", "starts", "settings that change"):
        table.add_column(title)
    for number, choice in enumerate(summary.front, 1):
        changes = summary.space.changes(choice.config)
        table.add_row(
            f"{number} (winner)" if summary.is_winner(choice.config) else str(number),
            say_speedup(choice.goodput) if changes else "1",
            say_speedup(choice.cost) if changes else "1",
            str(choice.starts),
            Text(_list_changes(summary, changes)),
        )
    return table


def _list_changes(summary: "Summary", changes: Changes) -> str:
    shown = [f"{name} {summary.space.show(name, value)}" for name, (_, value) in changes.items()]
    return make_printable(", ".join(shown)) or "none: the default"


def _side(arm: "Arm") -> tuple[str, str, str, str]:
    return (
        say_rate(arm.goodput_rps),
        say_milliseconds(arm.latency_p99_ms),
        say_failures(arm.failures, arm.requests),
        str(arm.starts),
    )


def _difference(summary: "Summary") -> list[RenderableType]:
    """List what is written, and below each setting what else it does."""
    rows = [
        [
            make_printable(each)
            for each in (name, summary.space.show(name, old), summary.space.show(name, new))
        ]
        for name, (old, new) in summary.shipped.items()
    ]
    names, olds, news = (max(map(len, column)) for column in zip(*rows, strict=True))
    parts: list[RenderableType] = []
    for setting, (name, old, new) in zip(summary.shipped, rows, strict=True):
        follows = "  follows" if setting not in summary.changes else ""
        parts.append(
            Text.assemble(
                (name.ljust(names), "bold"), "  ", (old.ljust(olds), "red"), "  →  ",
                (new.ljust(news) if follows else new, "green"), (follows, "dim"),
            )
        )  # fmt: skip
        if also := summary.space.also(setting):
            parts.append(Padding(Text(make_printable(also), style="dim"), (0, 0, 0, 4)))
    return parts


def _capacity(summary: "Summary") -> list[RenderableType]:
    """Put what default and winner hold at once below each other, server by server."""
    default = summary.space.describe_capacity(summary.default.config)
    winner = {} if summary.winner is None else summary.space.describe_capacity(summary.winner.config)
    table = Table.grid(padding=(0, 2))
    for server, held in default.items():
        of_server = f" of {make_printable(server)}" if len(default) > 1 else ""
        table.add_row(Text(f"capacity{of_server}", style="dim"), Text("default", style="dim"), Text(held))
        if server in winner:
            table.add_row("", Text("winner", style="bold"), Text(winner[server]))
    parts: list[RenderableType] = [Text(""), table] if default else []
    if summary.lacks:
        text = f"The winner holds less than the default: {make_printable('; '.join(summary.lacks))}."
        held_back = " It is neither exported nor applied without `allow: [capacity]`."
        parts.append(Text(text + (held_back if summary.is_held_back else ""), style="bold red"))
    return parts
