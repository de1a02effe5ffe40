"""Figures of the trials: all of them over time, the confirmation's pairs, goodput against its cost."""

from tuner.records import State, Trial
from tuner.report.figures.theme import (
    ROLES,
    Figure,
    RatioAxis,
    Trace,
    axis,
    colour,
    error,
    level,
    make_figure,
    marker,
    tip,
)
from tuner.report.summary import Summary
from tuner.report.wording import make_printable, say_estimate, say_ratio, say_speedup
from tuner.statistics.pareto import costs

HISTORY_PX, FRONT_PX = 360, 340
PAIR_PX, PAIRS_FRAME_PX = 24, 70
REASON_SHOWN, CHANGES_SHOWN = 160, 8


def draw_history(summary: Summary) -> Figure | None:
    """Draw the ratio of every trial to the baseline, in the order in which they were made."""
    measured = [trial for trial in summary.trials if trial.number in summary.speedups]
    if not measured:
        return None
    ends = [end for trial in measured for end in summary.speedups[trial.number].interval()]
    ratios = RatioAxis.fit([*ends, *(summary.speedups[trial.number].ratio for trial in measured)])
    traces = [
        _draw_trials(summary, group, ratios, *look)
        for role, look in ROLES.items()
        if (group := [trial for trial in measured if trial.role is role])
    ]
    if summary.climb:
        numbers, best = zip(*summary.climb, strict=True)
        traces.append(
            {
                "type": "scatter", "mode": "lines", "name": "best so far", "hoverinfo": "skip",
                "x": [*numbers], "y": [ratios.clamp(each) for each in best],
                "line": {"shape": "hv", "dash": "dot", "color": colour("good"), "width": 1.6},
            }
        )  # fmt: skip
    lost = [trial for trial in summary.trials if trial.state in {State.FAILED, State.INVALID}]
    if lost:
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": "no measurement", "hoverinfo": "text",
                "x": [trial.number for trial in lost], "y": [ratios.low * 1.02] * len(lost),
                "hovertext": [tip(describe_trial(summary, trial)) for trial in lost],
                "marker": marker("bad", "x"),
            }
        )  # fmt: skip
    return make_figure(
        "Every trial over time", traces, height=HISTORY_PX, x=axis("trial"),
        y=ratios.describe("relative to the baseline"), shapes=[level(1)],
    )  # fmt: skip


def _draw_trials(
    summary: Summary, group: list[Trial], ratios: RatioAxis, name: str, tone: str, symbol: str
) -> Trace:
    speedups = [summary.speedups[trial.number] for trial in group]
    at = [ratios.clamp(each.ratio) for each in speedups]
    ends = [tuple(ratios.clamp(end) for end in each.interval()) for each in speedups]
    hollow = f"{symbol.removesuffix('-open')}-open"
    symbols = [hollow if trial.state is State.PRUNED else symbol for trial in group]
    return {
        "type": "scatter", "mode": "markers", "name": name, "hoverinfo": "text",
        "x": [trial.number for trial in group], "y": at,
        "hovertext": [tip(describe_trial(summary, trial)) for trial in group],
        "marker": {**marker(tone), "symbol": symbols},
        "error_y": error(at, [(low, high) for low, high in ends], tone, thickness=1, width=0),
    }  # fmt: skip


def describe_trial(summary: Summary, trial: Trial) -> str:
    """Return number, role, ratio and changes of one trial, a line each."""
    lines = [f"trial {trial.number}, {trial.role.label}, {trial.state.value}"]
    if trial.number in summary.speedups:
        lines.append(say_speedup(summary.speedups[trial.number]))
    if trial.failure is not None:
        lines.append(f"{trial.failure.kind}: {trial.failure.reason[:REASON_SHOWN]}")
    changes = summary.show_changes(trial.config)
    lines += changes[:CHANGES_SHOWN]
    if len(changes) > CHANGES_SHOWN:
        lines.append(f"… and {len(changes) - CHANGES_SHOWN} more")
    return "\n".join(map(make_printable, lines))


def draw_pairs(summary: Summary) -> Figure | None:
    """Draw the ratio of every confirmation pair, and their mean with its interval."""
    pairs, gain = summary.pair_ratios, summary.gain
    if not pairs or gain is None:
        return None
    ratios = RatioAxis.fit([*pairs.values(), gain.low, gain.high])
    names = [f"pair {number}" for number in range(1, len(pairs) + 1)]
    traces: list[Trace] = [
        {
            "type": "scatter", "mode": "markers", "name": "pairs", "showlegend": False, "hoverinfo": "text",
            "x": [ratios.clamp(each) for each in pairs.values()], "y": names,
            "hovertext": [
                f"{name}: {say_ratio(each)}" for name, each in zip(names, pairs.values(), strict=True)
            ],
            "marker": marker("good", "diamond"),
        },
        {
            "type": "scatter", "mode": "markers", "name": "together", "showlegend": False,
            "hoverinfo": "text", "x": [gain.ratio], "y": ["together"],
            "hovertext": [say_estimate(gain)], "marker": marker("ink", "circle", 10),
            "error_x": error([gain.ratio], [(gain.low, gain.high)], "ink", thickness=2, width=5),
        },
    ]  # fmt: skip
    return make_figure(
        "Confirmation, pair by pair", traces, height=PAIRS_FRAME_PX + PAIR_PX * (len(pairs) + 1),
        x=ratios.describe(f"{summary.side} relative to the default"),
        y=axis(autorange="reversed", showgrid=False), shapes=[level(1, is_upright=True)],
    )  # fmt: skip


def draw_front(summary: Summary) -> Figure | None:
    """Draw goodput against the cost: every trial, and the line of what nobody beats in both."""
    if summary.cost is None or not summary.front:
        return None
    paid, front = costs(summary.trials, summary.cost), summary.front
    both = [trial for trial in summary.trials if trial.number in paid and trial.number in summary.speedups]
    gains = [summary.speedups[trial.number].ratio for trial in both]
    across = RatioAxis.fit(
        [*(paid[trial.number].ratio for trial in both), *(choice.cost.ratio for choice in front)]
    )
    upward = RatioAxis.fit([*gains, *(choice.goodput.ratio for choice in front)])
    traces: list[Trace] = [
        {
            "type": "scatter", "mode": "markers", "name": "trials", "hoverinfo": "text",
            "x": [across.clamp(paid[trial.number].ratio) for trial in both],
            "y": [upward.clamp(each) for each in gains],
            "hovertext": [tip(describe_trial(summary, trial)) for trial in both],
            "marker": marker("pale", size=6),
        },
        {
            "type": "scatter", "mode": "lines+markers+text", "name": "not beaten in both",
            "hoverinfo": "text",
            "x": [across.clamp(choice.cost.ratio) for choice in front],
            "y": [upward.clamp(choice.goodput.ratio) for choice in front],
            "text": [str(number) for number in range(1, len(front) + 1)], "textposition": "top left",
            "hovertext": [
                f"pick {number}: {say_ratio(choice.goodput.ratio)} goodput, "
                f"{say_ratio(choice.cost.ratio)} cost"
                for number, choice in enumerate(front, 1)
            ],
            "line": {"shape": "hv", "color": colour("good"), "width": 1.4},
            "marker": marker("good", "diamond"),
        },
    ]  # fmt: skip
    return make_figure(
        "Goodput against its cost", traces, height=FRONT_PX,
        x=across.describe(f"{summary.cost}, relative to the default"),
        y=upward.describe("goodput, relative to the default"),
        shapes=[level(1), level(1, is_upright=True)],
    )  # fmt: skip
