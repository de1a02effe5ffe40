"""The table of a load curve: a row for each configuration and number of connections."""

from rich.console import Group, RenderableType
from rich.text import Text

from tuner.report.curve import Curve, list_faults, say_collapse, say_effort, say_failures_of, say_share
from tuner.report.figures.drawn_rows import DrawnRows, shorten
from tuner.report.tables import (
    escape_markdown,
    join_markdown,
    list_interval,
    markdown_list,
    markdown_table,
    write_csv,
)
from tuner.report.wording import NOTHING, make_printable, say_estimate, say_milliseconds, say_rate
from tuner.statistics.curves.load_curve import Spot

HEAD = ("connections", "configuration", "requests/s", "ratio to the first", "failed", "p99", "trials")
OF_SPOT = (
    "connections", "configuration", "goodput_rps", "goodput_low", "goodput_high", "ratio", "low", "high",
    "latency_p99_ms", "failures", "requests", "trials", "failed_trials", "bears", "fault",
)  # fmt: skip
"""Columns of the CSV."""


def list_rows(curve: Curve) -> list[tuple[str, ...]]:
    """Return what each configuration gave, in the order of `HEAD`."""
    return [
        (
            f"{spot.connections:,}", curve.names[spot.config],
            NOTHING if spot.goodput is None else
            f"{say_rate(spot.goodput.ratio)} [{say_rate(spot.goodput.low)}, {say_rate(spot.goodput.high)}]",
            "" if spot.ratio is None else say_estimate(spot.ratio),
            say_failures_of(spot), say_milliseconds(spot.p99_ms),
            f"{spot.trials}, {spot.failed_trials} failed" if spot.failed_trials else str(spot.trials),
        )
        for spot in curve.load_curve.by_connections
    ]  # fmt: skip


def curve_markdown(curve: Curve) -> str:
    """Return a load curve as Markdown: where each configuration collapses, and the table."""
    return join_markdown(
        f"**{escape_markdown(curve.verdict)}**",
        markdown_table(HEAD, list_rows(curve), numbers=True),
        markdown_list(list_faults(curve)),
        f"{escape_markdown(curve.workload)}, with the connections above instead. {say_effort(curve)}.",
    )


def curve_csv(curve: Curve) -> str:
    """Return a line for each configuration and number of connections."""
    rows = (
        (
            spot.connections, curve.names[spot.config], *list_interval(spot.goodput),
            *list_interval(spot.ratio), spot.p99_ms, spot.failed, spot.requests, spot.trials,
            spot.failed_trials, spot.bears, spot.fault or None,
        )
        for spot in curve.load_curve.by_connections
    )  # fmt: skip
    return write_csv(OF_SPOT, rows)


LEAST_BAR, MOST_BAR = 12, 48
"""Columns of the drawing: narrower it shows nothing, wider nothing more."""
LONGEST_NAME = 14
LEGEND = "█ goodput, ┼ within its 95 % interval  ✕ requests fail"
TITLES = ("connections", "", "requests/s", "failed", "p99")


def curve_screen(curve: Curve) -> Group:
    """Return what a load curve has shown: where each configuration collapses, and the curve."""
    parts: list[RenderableType] = [
        Text(make_printable(say_collapse(curve, index)), style="bold") for index in range(len(curve.names))
    ]
    parts += [Text(f"{say_effort(curve)}."), Text(""), draw_goodput(curve), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(curve)]
    return Group(*parts)


def draw_goodput(curve: Curve) -> DrawnRows:
    """Draw the curve by connections, and within by configuration."""
    spots = curve.load_curve.by_connections
    told = (
        [f"{spot.connections:,}" if not spot.config else "" for spot in spots],
        [shorten(make_printable(curve.names[spot.config]), LONGEST_NAME) for spot in spots],
        [say_rate(spot.goodput.ratio) if spot.goodput else NOTHING for spot in spots],
        [f"{'' if spot.bears else '✕ '}{say_share(spot)}" for spot in spots],
        [say_milliseconds(spot.p99_ms) for spot in spots],
    )
    ratios = [say_estimate(spot.ratio) if spot.ratio else "" for spot in spots]
    columns = [[title, *cells] for title, cells in zip(TITLES, told, strict=True)]
    whole = [*columns, ["ratio", *ratios]] if any(ratios) else columns
    most = max((spot.goodput.high for spot in spots if spot.goodput), default=1.0)
    return DrawnRows(
        sets=(whole, columns, columns[:4], columns[:3], columns[:4]),
        draw=lambda width: ["", *(_draw(spot, most, width) if width >= LEAST_BAR else "" for spot in spots)],
        styles=["" if spot.bears or not (spot.trials or spot.fault) else "yellow" for spot in spots],
        least=LEAST_BAR, most=MOST_BAR, left=1,
    )  # fmt: skip


def _draw(spot: Spot, most: float, columns: int) -> str:
    """Draw goodput as a bar from 0, and over its end the interval."""
    if spot.goodput is None:
        return "served nothing" if spot.fault else ""
    low, middle, high = (
        min(round(each / most * columns), columns)
        for each in (spot.goodput.low, spot.goodput.ratio, spot.goodput.high)
    )
    solid = max(middle, 1)
    return "█" * min(low, solid) + "┼" * max(high - min(low, solid), 0)
