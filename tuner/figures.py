"""Figures of results, as plotly's objects: for notebooks, for scripts, and to be restyled.

    from tuner import load_study, read
    from tuner.figures import plot_effects

    plot_effects(read(load_study(Path("nginx.yaml"))).summary).show()

The report shows the same ones. Each raises UsageError where a study has nothing to draw.
"""

from typing import TYPE_CHECKING

from tuner.errors import UsageError
from tuner.report.contest import Contest
from tuner.report.contest.page import draw_contest
from tuner.report.curve import Curve
from tuner.report.curve.page import draw_curve
from tuner.report.figures.effects import draw_costs, draw_effects, draw_others
from tuner.report.figures.mixes import draw_mix
from tuner.report.figures.objects import to_plotly
from tuner.report.figures.settings import draw_parallel, draw_slice
from tuner.report.figures.theme import Figure
from tuner.report.figures.trials import draw_front, draw_history, draw_pairs
from tuner.report.summary import Summary
from tuner.report.sweep import Sweep
from tuner.report.sweep.page import draw_sweep

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = [
    "plot_confirmation", "plot_contest", "plot_costs", "plot_curve", "plot_effects", "plot_history",
    "plot_mix", "plot_other_settings", "plot_parallel_coordinate", "plot_pareto_front", "plot_slice",
    "plot_sweep",
]  # fmt: skip


def plot_effects(summary: Summary) -> "go.Figure":
    """Plot the effect of each setting of the winner as a waterfall, with 95 % intervals."""
    return _made(summary, draw_effects(summary.explanation) if summary.explanation else None, "no effects")


def plot_other_settings(summary: Summary) -> "go.Figure":
    """Plot what the best or worst value of each setting at its default would do, with 95 % intervals."""
    found = summary.explanation
    return _made(
        summary, draw_others(summary.space, found) if found else None, "no effects of other settings"
    )


def plot_costs(summary: Summary) -> "go.Figure":
    """Plot what each setting does to the second objective, of which less is better."""
    return _made(summary, draw_costs(summary.explanation) if summary.explanation else None, "no costs")


def plot_history(summary: Summary) -> "go.Figure":
    """Plot the ratio of every trial to the baseline, in the order in which they were made."""
    return _made(summary, draw_history(summary), "no measured trial")


def plot_confirmation(summary: Summary) -> "go.Figure":
    """Plot the ratio of each pair of the confirmation, and their mean with its interval."""
    return _made(summary, draw_pairs(summary), "no confirmation")


def plot_pareto_front(summary: Summary) -> "go.Figure":
    """Plot goodput against the cost, with the configurations that none beats in both."""
    return _made(summary, draw_front(summary), "no second objective")


def plot_mix(summary: Summary, load: str = "") -> "go.Figure":
    """Plot the share of each kind of request: as asked for, and as sent.

    Raises:
        UsageError: the study has no such load, or its load generator does not count requests by kind.
    """
    found = summary.fidelity.get(load)
    return _made(summary, draw_mix(found) if found else None, f"no mix {load!r} with counted requests")


def plot_slice(summary: Summary, parameter: str) -> "go.Figure":
    """Plot the ratio of every trial against its value of one parameter.

    Raises:
        UsageError: no parameter of the study has this name, or no trial has a value of it.
    """
    if parameter not in {each.name for each in summary.space.parameters}:
        raise UsageError(f"{summary.study}: the study tunes no parameter {parameter!r}.")
    return _made(summary, draw_slice(summary, parameter), f"no trial with a value of {parameter}")


def plot_parallel_coordinate(summary: Summary) -> "go.Figure":
    """Plot each trial of the search as a line through the parameters that matter most."""
    return _made(summary, draw_parallel(summary), "no trials of a search in two parameters")


def plot_sweep(sweep: Sweep) -> "go.Figure":
    """Plot the response curve of a sweep with its intervals."""
    return to_plotly(draw_sweep(sweep))


def plot_curve(curve: Curve) -> "go.Figure":
    """Plot goodput, failures and p99 over the number of connections."""
    return to_plotly(draw_curve(curve))


def plot_contest(contest: Contest) -> "go.Figure":
    """Plot the ratio of each entrant to the first one, with its interval."""
    return to_plotly(draw_contest(contest))


def _made(summary: Summary, figure: Figure | None, nothing: str) -> "go.Figure":
    if figure is None:
        raise UsageError(f"{summary.study}: the study has {nothing} to plot.")
    return to_plotly(figure)
