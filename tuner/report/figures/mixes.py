"""Figures of mixes of requests: the share of each kind as it was asked for, and as it was sent."""

from collections.abc import Mapping

from tuner.report.fidelity import Fidelity, name_kind
from tuner.report.figures.theme import Figure, axis, colour, label, make_figure, marker, tip
from tuner.report.wording import say_percent

ROW_PX, FRAME_PX = 24, 80
MOST_ROWS = 20
"""The rest is in the table."""


def draw_mixes(found: Mapping[str, Fidelity]) -> dict[str, Figure]:
    """Draw each mix, by the name of its figure."""
    return {f"mix-{place}": draw_mix(each) for place, each in enumerate(found.values())}


def draw_mix(found: Fidelity) -> Figure:
    """Draw the share of each kind of request: a bar for what was asked for, a diamond for what was sent."""
    shown = sorted(
        zip(found.kinds, found.asked_shares, found.sent_shares, strict=True), key=lambda each: -each[1]
    )[:MOST_ROWS]
    places = list(range(len(shown)))
    tips = [
        tip(f"{name_kind(kind)}: asked {say_percent(asked, 2)}, sent {say_percent(sent, 2)}")
        for kind, asked, sent in shown
    ]
    both = {"y": places, "hoverinfo": "text", "hovertext": tips}
    traces = [
        {
            "type": "bar", "orientation": "h", "name": "asked for",
            "x": [round(100 * asked, 4) for _, asked, _ in shown], "marker": {"color": colour("pale")},
            **both,
        },
        {
            "type": "scatter", "mode": "markers", "name": "sent",
            "x": [round(100 * sent, 4) for _, _, sent in shown], "marker": marker("ink", "diamond"), **both,
        },
    ]  # fmt: skip
    return make_figure(
        f"Requests as asked: {say_percent(found.match, 2)}", traces, height=FRAME_PX + ROW_PX * len(shown),
        x=axis("share of the requests, %", rangemode="tozero"),
        y=axis(
            autorange="reversed", showgrid=False, tickvals=places,
            ticktext=[label(name_kind(kind)) for kind, _, _ in shown],
        ),
        bargap=0.35,
    )  # fmt: skip
