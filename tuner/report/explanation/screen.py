"""An explanation as `tuner explain` shows it: effects with bars, as wide as the terminal."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tuner.explain.explanation import CurvePoint, Depth, Effect, Explanation, Finding, Other, Setting
from tuner.report.summary import Summary
from tuner.report.terminal import FittingTable, fitting_table, headline
from tuner.report.wording import NOTHING, make_printable, say_estimate, say_percent
from tuner.space import Space

STYLES = {Finding.HELPS: "green", Finding.HARMFUL: "red"}
"""Colours of findings; grey is what is not shown to do anything."""
UNSHOWN = "dim"
LEAST_BAR = 12
NARROWEST_SCALE = 0.05
"""In log points: bars of effects that are next to nothing stay short."""
MOST_POINTS = 24

EffectRow = tuple[Text, Effect, str, str]
"""What has the effect, the effect, what is found, and the colour of its bar."""


class EffectBar:
    """An effect on a logarithmic scale: filled from 1× to the estimate, a line over its interval."""

    def __init__(self, effect: Effect, scale: tuple[float, float], style: str) -> None:
        """Take an effect, the log ratios at both ends of the scale, and a colour."""
        self._effect, self._scale, self._style = effect, scale, style

    def __str__(self) -> str:
        """Return a word as long as the shortest bar, by which a table knows whether it fits."""
        return "-" * LEAST_BAR

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        """Take all the room that there is."""
        return Measurement(min(LEAST_BAR, options.max_width), options.max_width)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw with what the terminal's encoding has."""
        full, line = "#-" if options.ascii_only else "█─"
        (low, high), cells = self._scale, options.max_width
        one, end, first, last = (
            round((min(max(log, low), high) - low) / (high - low) * (cells - 1))
            for log in (0.0, self._effect.log, math.log(self._effect.low), math.log(self._effect.high))
        )
        filled, covered = range(min(one, end), max(one, end) + 1), range(first, last + 1)
        signs = (full if at in filled else line if at in covered else " " for at in range(cells))
        yield Text("".join(signs).rstrip(), style=self._style)


def explain_screen(summary: Summary) -> Group:
    """Return the explanation of a study."""
    found = summary.explanation or Explanation(metric="", refusal="It was read without an explanation.")
    said = headline(summary)
    if found.refusal:
        return Group(said, _text(found.refusal))
    space = summary.space
    sections: list[tuple[str, RenderableType | None]] = [
        ("Conclusions", _list([*found.conclusions])),
        ("Effect per setting", _settings(space, found)),
        ("Effect of other settings", _others(space, found.others)),
        ("Ranges that keep the gain", _tolerances(space, found)),
        ("Interactions between settings", _interactions(found)),
        *([_beside(space, found.beside)] if found.beside is not None else []),
        ("", _text(_say_foot(found), "dim")),
    ]
    parts: list[RenderableType] = [said]
    for title, drawn in sections:
        if drawn is not None:
            parts += [Text(""), *([Text(title, style="bold")] if title else []), drawn]
    return Group(*parts)


def _say_foot(found: Explanation) -> str:
    pairs = "with the pairs of the confirmation" if found.is_confirmed else "before any confirmation"
    return (
        f"These effects come from one model of {found.trials} trials, {pairs}. Intervals are 95 % CIs. "
        "The effects of the settings multiply to the gain. For more about one setting, add --parameter NAME."
    )


def _text(text: str, style: str = "") -> Text:
    return Text(make_printable(text), style=style)


def _list(sentences: Sequence[str]) -> Table | None:
    """Return sentences as a list, with their lines below each other."""
    table = Table.grid(padding=(0, 1))
    for each in sentences:
        table.add_row("-", _text(each))
    return table if sentences else None


def _draw_effects(rows: Sequence[EffectRow]) -> FittingTable | None:
    """Return a row with a bar for each effect, all on one scale."""
    if not rows:
        return None
    scale = _find_scale([effect for _, effect, *_ in rows])
    table = FittingTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, show_header=False)
    table.add_column(ratio=3, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_column(ratio=2, min_width=LEAST_BAR)
    for what, effect, finding, style in rows:
        table.add_row(what, say_estimate(effect), Text(finding, style=style), EffectBar(effect, scale, style))
    return table


def _find_scale(effects: Sequence[Effect]) -> tuple[float, float]:
    """Return the ends of a scale for these effects in log points, which wide intervals do not stretch far."""
    logs = [0.0, NARROWEST_SCALE, *(each.log for each in effects)]
    most = 3 * max(map(abs, logs))
    ends = [math.log(end) for each in effects for end in (each.low, each.high)]
    return max(min(*logs, *ends), -most), min(max(*logs, *ends), most)


def _settings(space: Space, found: Explanation) -> FittingTable | None:
    rows: list[EffectRow] = []
    for setting in found.settings:
        change = f"{_show(space, setting.parameter, setting.default)} → " + _show(
            space, setting.parameter, setting.value
        )
        what = Text.assemble((setting.parameter, "bold"), f" {make_printable(change)}")
        for each in setting.mechanisms:
            what.append(f"\n{make_printable(f'with it, {each.sentence}')}", style="dim")
        rows.append((what, setting.effect, _say_finding(setting), STYLES.get(setting.finding, UNSHOWN)))
    if rows and found.gain is not None:
        rows.append((Text("all of them"), found.gain, "", "cyan"))
    return _draw_effects(rows)


def _say_finding(setting: Setting) -> str:
    if setting.finding is Finding.UNKNOWN:
        return f"{say_percent(setting.chance, 0)} likely"
    if setting.finding is Finding.NO_EFFECT and setting.bound is not None:
        return f"± {say_percent(setting.bound)}"
    return setting.finding.value


def _others(space: Space, others: Sequence[Other]) -> Group | None:
    """Draw those whose effect is known, and name the rest by what is found."""
    drawn: list[EffectRow] = [
        (
            _text(f"{each.parameter} {_show(space, each.parameter, each.value)}"),
            each.effect,
            each.finding.value,
            STYLES.get(each.finding, UNSHOWN),
        )
        for each in others
        if each.effect is not None and each.value is not None
    ]
    rest = [each for each in others if each.effect is None or each.value is None]
    named = Table.grid(padding=(0, 2))
    for finding in Finding:
        told = [
            each.parameter if each.bound is None else f"{each.parameter} (± {say_percent(each.bound)})"
            for each in rest
            if each.finding is finding
        ]
        if told:
            named.add_row(Text(finding.value, style="dim"), _text(", ".join(told)))
    parts = [each for each in (_draw_effects(drawn), named if named.row_count else None) if each is not None]
    return Group(*parts) if parts else None


def _tolerances(space: Space, found: Explanation) -> Table | None:
    table = Table.grid(padding=(0, 2))
    for each in found.tolerances:
        low, high = (_show(space, each.parameter, end) for end in (each.low, each.high))
        loss = f"within {say_percent(each.loss)}"
        table.add_row(Text(loss, style="dim"), _text(f"{each.parameter} {low} to {high}"))
    return table if table.row_count else None


def _interactions(found: Explanation) -> FittingTable | None:
    return _draw_effects([
        (_text(" and ".join(each.parameters)), each.effect, "", "cyan") for each in found.interactions
    ])  # fmt: skip


def _beside(space: Space, beside: Explanation) -> tuple[str, RenderableType | None]:
    """Return title and rows of what the settings do to a second objective, of which less is better."""
    if beside.refusal:
        return "", _text(f"{beside.metric}: {beside.refusal}")
    rows = [
        (
            _text(f"{each.parameter} {_show(space, each.parameter, each.value)}"), each.effect, "",
            "green" if each.effect.high < 1 else "red" if each.effect.low > 1 else UNSHOWN,
        )
        for each in beside.settings
    ]  # fmt: skip
    return f"Effect per setting on {beside.metric}; below 1 is better", _draw_effects(rows)


def depth_screen(space: Space, depth: Depth) -> Group:
    """Return everything that is known of one parameter."""
    texts = [depth.why, depth.also and f"Also: {depth.also}"]
    parts: list[RenderableType] = [_text(depth.parameter, "bold"), *map(_indented, filter(None, texts))]
    parts += [_indented(depth.source, "dim")] if depth.source else []
    if depth.acts_when:
        parts.append(_indented(f"Acts when {depth.acts_when} (known from {depth.acts_source})"))
    told = [*_say_depth(space, depth)]
    parts += [Text(""), *map(_indented, told)] if told else []
    if depth.curve:
        parts += [Text(""), _draw_curve(space, depth)]
    return Group(*parts)


def _indented(text: str, style: str = "") -> Padding:
    return Padding(_text(text, style), (0, 0, 0, 2))


def _say_depth(space: Space, depth: Depth) -> Iterator[str]:
    name, setting, other = depth.parameter, depth.setting, depth.other
    if setting is not None:
        change = f"{_show(space, name, setting.default)} → {_show(space, name, setting.value)}"
        yield f"{change}: effect {say_estimate(setting.effect)}, its share of the gain"
        yield f"effect if reverted: {say_estimate(setting.if_reverted)}; {_say_finding(setting)}"
        for each in setting.mechanisms:
            yield f"with it, {each.sentence}"
    if other is not None:
        told = {"": other.finding.value}.get(other.reason, f"{other.finding.value}: {other.reason}")
        bound = "" if other.bound is None else f" beyond ± {say_percent(other.bound)}"
        yield f"{told}{bound}"
    if depth.tolerance is not None:
        low, high = (_show(space, name, end) for end in (depth.tolerance.low, depth.tolerance.high))
        yield f"{low} to {high}: within {say_percent(depth.tolerance.loss)}"
    for pair in depth.interactions:
        yield f"{' and '.join(pair.parameters)} together: {say_estimate(pair.effect)}"


def _draw_curve(space: Space, depth: Depth) -> Table:
    """Return the response curve: value, at the winner, at the default, trials with this very value."""
    table = fitting_table("value", "as chosen", "at the default", "trials", "")
    for column in table.columns[:-1]:
        column.no_wrap = True
    points = _thin(depth.curve)
    scale = _find_scale([point.at_winner for point in points if point.at_winner is not None])
    for point in points:
        table.add_row(
            _text(_show(space, depth.parameter, point.value)),
            NOTHING if point.at_winner is None else say_estimate(point.at_winner),
            NOTHING if point.at_default is None else say_estimate(point.at_default),
            str(point.trials or NOTHING),
            "" if point.at_winner is None else EffectBar(point.at_winner, scale, "cyan"),
        )
    return table


def _thin(curve: Sequence[CurvePoint]) -> Sequence[CurvePoint]:
    """Return at most so many points, the ends and those with the most trials kept."""
    if len(curve) <= MOST_POINTS:
        return curve
    step = (len(curve) - 1) / (MOST_POINTS - 1)
    return [curve[round(step * index)] for index in range(MOST_POINTS)]


def _show(space: Space, name: str, value: object) -> str:
    return NOTHING if value is None else space.show(name, value)  # type: ignore[arg-type]
