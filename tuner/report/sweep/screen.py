"""A sweep on a terminal of any width: a row for each value, its interval drawn beside it."""

from rich.console import Group, RenderableType
from rich.text import Text

from tuner.report.figures.drawn_rows import DrawnRows, shorten
from tuner.report.figures.interval_bar import LEAST_BAR, MOST_BAR, draw_estimates
from tuner.report.sweep import (
    Sweep,
    advise,
    list_faults,
    list_followers,
    name_best,
    say_effort,
    say_tolerance,
)
from tuner.report.wording import make_printable, say_estimate, say_rate, say_ratio
from tuner.statistics.curves.sweep import Tried

LONGEST_LABEL = 16
SYMBOLS = {"best": "◆", "near": "●", "other": "○"}
LEGEND = f"{SYMBOLS['best']} best  {SYMBOLS['near']} within 3 % of it  {SYMBOLS['other']} other"


def sweep_screen(sweep: Sweep) -> Group:
    """Return what a sweep has shown: the best value, the range that is as good, the curve."""
    parts: list[RenderableType] = [Text(make_printable(name_best(sweep)), style="bold")]
    parts += [Text(line) for line in (say_tolerance(sweep), f"{say_effort(sweep)}.") if line]
    parts += [Text(""), draw_curve(sweep), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(sweep)]
    followers = list_followers(sweep)
    if followers:
        parts.append(Text(f"Follows: {make_printable(', '.join(followers))}", style="dim"))
    return Group(*parts, Text(""), Text(make_printable(advise(sweep)), style="bold"))


def draw_curve(sweep: Sweep) -> DrawnRows:
    """Draw the curve, with as many columns of figures as the terminal has room for."""
    tried, known = sweep.sweeping.tried, sweep.estimates
    labels = ["", *(shorten(make_printable(sweep.show(value)), LONGEST_LABEL) for value in sweep.values)]
    ratios = ["", *(say_ratio(each.ratio) if each else "" for each in known)]
    whole = ["", *(say_estimate(each) if each else "" for each in known)]
    rates = ["requests/s", *(say_rate(arm.goodput_rps) if arm.starts else "" for arm in sweep.arms)]
    return DrawnRows(
        sets=([labels, rates, whole], [labels, whole], [labels, ratios], [labels]),
        draw=lambda columns: draw_estimates(known, [_symbol(sweep, each) for each in tried], columns),
        styles=[
            "bold green" if each.index == sweep.sweeping.best else "yellow" if each.fault else ""
            for each in tried
        ],
        least=LEAST_BAR, most=MOST_BAR,
    )  # fmt: skip


def _symbol(sweep: Sweep, tried: Tried) -> str:
    is_best = tried.index == sweep.sweeping.best
    return SYMBOLS["best" if is_best else "near" if tried.is_tolerated else "other"]
