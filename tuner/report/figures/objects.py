"""Figures as plotly's objects, for notebooks and scripts."""

from typing import TYPE_CHECKING

from tuner.report.figures.theme import Figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

TITLE_PX = 48
"""Above the figure, for its heading, which the report writes itself."""


def to_plotly(figure: Figure) -> "go.Figure":
    """Return a figure as an object of plotly."""
    import plotly.graph_objects as go

    made = go.Figure(figure["data"], {**figure["layout"], "template": "none"})
    return made.update_layout(margin_t=TITLE_PX, height=figure["layout"]["height"] + TITLE_PX, autosize=True)


def to_bundle(figure: Figure, **options: object) -> object:
    """Return a figure as a notebook shows it."""
    return to_plotly(figure)._repr_mimebundle_(**options)
