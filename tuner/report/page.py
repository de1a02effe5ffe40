"""The report: one self-contained HTML page, the same bytes for the same summary.

Every string in it may come from a log or a configuration. HTML is escaped by Jinja2, labels in figures by
`drawing.as_text`, and the figures' JSON by `embed`, because `</script>` ends a script wherever it stands.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuner.records import Role, State
from tuner.report.rows import TABLES, describe_limit
from tuner.report.wording import (
    NOTHING_BETTER,
    capitalize,
    say_age,
    say_change,
    say_gain,
    say_metric,
    say_percent,
    say_ratio,
    say_speedup,
    say_trend,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tuner.report.summary import Summary
    from tuner.statistics.age import Age


STATES = (State.COMPLETE, State.PRUNED, State.FAILED, State.INVALID, State.RUNNING)

CAPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "pairs": "Each diamond is one pair of fresh starts, measured next to each other in random order.",
        "timeline": "Speedup relative to the level of the control at that time, with 95 % intervals; open "
        "symbols were stopped early. Logarithmic axis.",
        "front": "Numbers are the picks of the table below; up is more goodput, left is cheaper, both "
        "relative to the default. Dots are single starts as they were measured; a pick's goodput is an "
        "estimate, drawn towards the others' the fewer starts speak for it. Logarithmic axes.",
        "parallel": "One line per start of the search through the parameters that matter most; off and other "
        "special values stand below the range.",
        "failures": "Starts that gave no measurement.",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFigure:
    """One figure of the page."""

    name: str
    title: str
    caption: str
    height: int
    json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict on the first screen."""

    tone: str
    """good, plain or open: chooses the colour."""
    figure: str
    text: str


def render_report(summary: "Summary") -> str:
    """Render the page. Takes about a second: plotly and Jinja2 are imported here and nowhere else."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    age = summary.gain.age if summary.gain is not None else None
    environment = Environment(
        loader=PackageLoader("tuner", ""), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report_page.html.j2").render(
        summary=summary, headline=describe_verdict(summary),
        conclusions=summary.explanation.conclusions if summary.explanation else (),
        age=describe_age(age), trends=describe_trends(age),
        figures=draw_figures(summary), slices=draw_slices(summary), counts=count_starts(summary),
        plotly_js=get_plotlyjs(), limit=describe_limit(summary),
        **{name: rows_of(summary) for name, rows_of in TABLES.items()},
    )  # fmt: skip


def describe_verdict(summary: "Summary") -> Headline:
    """Return how the study ended, or how far it is."""
    gain = summary.gain
    if gain is not None and gain.verdict == "improved":
        return Headline(
            tone="good", figure=say_gain(gain),
            text=f"{capitalize(say_metric(gain.metric))} with the winner relative to the default, with the "
            f"{say_percent(1 - gain.alpha)} interval, from pairs of fresh starts that the search never saw.",
        )  # fmt: skip
    if gain is not None:
        return Headline(
            tone="plain", figure=say_gain(gain),
            text=f"{gain.verdict.capitalize()}. {summary.reason} Keep the default.",
        )  # fmt: skip
    if summary.state == "finished":
        return Headline(
            tone="plain", figure=capitalize(NOTHING_BETTER), text=f"{_say_end(summary)}Keep the default.",
        )  # fmt: skip
    if summary.incumbent is None:
        return Headline(tone="open", figure="No result yet", text=f"The study is {summary.state}.")
    _, best = summary.incumbent
    return Headline(
        tone="open",
        figure=f"{say_ratio(best.ratio)} so far, not confirmed",
        text=f"The study is {summary.state}. The best configuration stands at {say_speedup(best)}, shrunk "
        "for being the best of many; only a confirmation can tell what it is worth.",
    )


def describe_age(age: "Age | None") -> str:
    """Return for which seconds under load the gain holds, with a warning when it moves with them."""
    sentences = (say_age(age), say_trend(age))
    return " ".join(f"{capitalize(each)}." for each in sentences if each)


def describe_trends(age: "Age | None") -> str:
    """Return what changes between the youngest windows and the oldest; empty when no start has two."""
    if age is None:
        return ""
    sides = (("default", age.default), ("winner", age.winner), ("their ratio", age.ratio))
    moved = [f"{name} {say_change(trend)}" for name, trend in sides if trend is not None]
    return f"From the youngest windows to the oldest: {'; '.join(moved)}." if moved else ""


def _say_end(summary: "Summary") -> str:
    """Return why a study ended without a winner, but for what the headline says."""
    known = summary.stop_reason.startswith(NOTHING_BETTER)
    said = "" if known else f"{capitalize(summary.stop_reason or 'the study is finished')}. "
    return said + (f"{summary.reason} " if summary.reason else "")


def draw_figures(summary: "Summary") -> dict[str, PageFigure | None]:
    """Draw every figure for which there is something to show; the others are None."""
    from tuner.report import setting_figures, start_figures

    made = (
        ("pairs", "Confirmation, pair by pair", start_figures.draw_pairs(summary)),
        (
            "timeline",
            "Every start over time",
            start_figures.draw_timeline(summary) if summary.speedups else None,
        ),
        ("front", "Goodput against its cost", start_figures.draw_front(summary)),
        ("parallel", "Parallel coordinates", setting_figures.draw_parallel(summary)),
        ("failures", "Failed starts by class", setting_figures.draw_failures(summary)),
    )
    return {
        name: None if figure is None else make_page_figure(name, title, CAPTIONS[name], figure)
        for name, title, figure in made
    }


def draw_slices(summary: "Summary") -> list[PageFigure]:
    """Draw one small figure per parameter, what is changed first."""
    from tuner.report import setting_figures

    drawn = []
    for index, name in enumerate(setting_figures.varied_parameters(summary)):
        figure = setting_figures.draw_slice(summary, name)
        if figure is not None:
            drawn.append(make_page_figure(f"slice-{index}", name, "", figure))
    return drawn


def make_page_figure(name: str, title: str, caption: str, figure: "go.Figure") -> PageFigure:
    """Join a figure and its texts; the page reserves its height, so that nothing jumps while it is drawn."""
    return PageFigure(
        name=name, title=title, caption=caption, height=int(figure.layout.height), json=embed(figure)
    )


def embed(figure: "go.Figure") -> str:
    """Write a figure as JSON that may stand inside a script element."""
    text: str = figure.to_json(engine="json")
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def count_starts(summary: "Summary") -> list[tuple[str, list[int]]]:
    """Count starts by role (rows) and state (columns of the page's table)."""
    counts = Counter((start.role, start.state) for start in summary.starts)
    return [
        (role.value, [counts[role, state] for state in STATES])
        for role in Role
        if any(counts[role, state] for state in STATES)
    ]
