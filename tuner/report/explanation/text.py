"""An explanation as text of 80 columns: what `tuner explain` prints."""

import textwrap
from collections.abc import Iterator, Sequence

from tuner.explain.explanation import CurvePoint, Depth, Explanation, Finding, Other, Setting
from tuner.report.summary import Summary
from tuner.report.wording import NOTHING, make_printable, say_estimate, say_gain, say_percent
from tuner.space import Space

WIDTH = 80


def explain_summary(summary: Summary) -> str:
    """Return the explanation of a study."""
    found = summary.explanation or Explanation(metric="", refusal="It was read without an explanation.")
    gain = summary.gain
    if gain is None:
        said = f"{summary.study}: {summary.state}, no confirmed gain."
    else:
        said = f"{summary.study}: {gain.verdict}, {say_gain(gain)} of {summary.side} against default."
    return explanation_text(summary.space, found, said)


def explanation_text(space: Space, found: Explanation, headline: str) -> str:
    """Return what an explanation says: conclusions, settings, other settings, tolerances, interactions."""
    if found.refusal:
        return _wrap(f"{headline} {found.refusal}", "")
    parts = [
        [_wrap(headline, "")],
        _conclusions(found),
        _settings(space, found),
        _others(space, found.others),
    ]
    parts += [_tolerances(space, found), _interactions(found)]
    if found.beside is not None:
        parts.append(_beside(space, found.beside))
    parts.append([_wrap(_foot(found), "")])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _foot(found: Explanation) -> str:
    pairs = "the pairs of the confirmation included" if found.is_confirmed else "no confirmation among them"
    return (
        f"From {found.trials} trials, {pairs}, by one model of all; intervals are of 95 %. "
        "The effects of the settings multiply to the gain. More of one setting: --parameter NAME."
    )


def _conclusions(found: Explanation) -> list[str]:
    said = [_wrap(each, "- ") for each in found.conclusions]
    return ["Conclusions", *said] if said else []


def _settings(space: Space, found: Explanation) -> list[str]:
    if not found.settings:
        return []
    rows = ["Effect per setting"]
    for setting in found.settings:
        change = f"{setting.parameter} {_show(space, setting.parameter, setting.default)} → " + _show(
            space, setting.parameter, setting.value
        )
        rows.append(_wrap(change, f"{say_estimate(setting.effect):<19} {_say_finding(setting):<13} "))
        rows += [_wrap(f"with it, {each.sentence}", " " * 36) for each in setting.mechanisms]
    if found.gain is not None:
        rows.append(f"{say_estimate(found.gain):<19} {'':<13} all of them")
    return rows


def _say_finding(setting: Setting) -> str:
    if setting.finding is Finding.UNKNOWN:
        return f"{say_percent(setting.chance, 0)} likely"
    if setting.finding is Finding.NO_EFFECT and setting.bound is not None:
        return f"± {say_percent(setting.bound)}"
    return setting.finding.value


def _others(space: Space, others: Sequence[Other]) -> list[str]:
    """Write one paragraph for each finding."""
    rows = []
    for finding in Finding:
        told = [_say_other(space, each) for each in others if each.finding is finding]
        if told:
            rows.append(_wrap(", ".join(told), f"{finding.value:<12}"))
    return ["Effect of other settings", *rows] if rows else []


def _say_other(space: Space, other: Other) -> str:
    if other.effect is not None and other.value is not None:
        return f"{other.parameter} {_show(space, other.parameter, other.value)}: {say_estimate(other.effect)}"
    return other.parameter if other.bound is None else f"{other.parameter} (± {say_percent(other.bound)})"


def _tolerances(space: Space, found: Explanation) -> list[str]:
    rows = []
    for each in found.tolerances:
        low, high = (_show(space, each.parameter, end) for end in (each.low, each.high))
        loss = f"within {say_percent(each.loss)}"
        rows.append(_wrap(f"{each.parameter} {low} to {high}", f"{loss:<12}"))
    return ["Ranges that keep the gain", *rows] if rows else []


def _interactions(found: Explanation) -> list[str]:
    rows = [
        _wrap(" and ".join(each.parameters), f"{say_estimate(each.effect):<19} ")
        for each in found.interactions
    ]
    return ["Interactions between settings", *rows] if rows else []


def _beside(space: Space, beside: Explanation) -> list[str]:
    """Write what the settings do to a second objective, of which less is better."""
    if beside.refusal:
        return [_wrap(f"{beside.metric}: {beside.refusal}", "")]
    rows = [f"Effect per setting on {beside.metric}; below 1 is better"]
    rows += [
        _wrap(
            f"{each.parameter} {_show(space, each.parameter, each.value)}",
            f"{say_estimate(each.effect):<19} ",
        )
        for each in beside.settings
    ]
    return rows if len(rows) > 1 else []


def depth_text(space: Space, depth: Depth) -> str:
    """Return everything that is known of one parameter."""
    name = depth.parameter
    parts = [
        [
            name,
            *(
                _wrap(text, "  ")
                for text in (depth.why, depth.also and f"Also: {depth.also}", depth.source)
                if text
            ),
        ]
    ]
    if depth.acts_when:
        parts[0].append(_wrap(f"Acts when {depth.acts_when} (known from {depth.acts_source})", "  "))
    parts.append([*_say_depth(space, depth)])
    parts.append(_curve(space, depth))
    return "\n\n".join("\n".join(part) for part in parts if part)


def _say_depth(space: Space, depth: Depth) -> Iterator[str]:
    name, setting, other = depth.parameter, depth.setting, depth.other
    if setting is not None:
        change = f"{_show(space, name, setting.default)} → {_show(space, name, setting.value)}"
        yield _wrap(f"{change}: effect {say_estimate(setting.effect)}, its share of the gain", "  ")
        yield _wrap(f"effect if reverted: {say_estimate(setting.if_reverted)}; {_say_finding(setting)}", "  ")
        for each in setting.mechanisms:
            yield _wrap(f"with it, {each.sentence}", "  ")
    if other is not None:
        told = {"": other.finding.value}.get(other.reason, f"{other.finding.value}: {other.reason}")
        bound = "" if other.bound is None else f" beyond ± {say_percent(other.bound)}"
        yield _wrap(f"{told}{bound}", "  ")
    if depth.tolerance is not None:
        low, high = (_show(space, name, end) for end in (depth.tolerance.low, depth.tolerance.high))
        yield _wrap(f"{low} to {high}: within {say_percent(depth.tolerance.loss)}", "  ")
    for pair in depth.interactions:
        yield _wrap(f"{' and '.join(pair.parameters)} together: {say_estimate(pair.effect)}", "  ")


def _curve(space: Space, depth: Depth) -> list[str]:
    """Write the response curve: value, at the winner, at the default, trials with this very value."""
    if not depth.curve:
        return []
    rows = [
        (
            _show(space, depth.parameter, point.value),
            NOTHING if point.at_winner is None else say_estimate(point.at_winner),
            NOTHING if point.at_default is None else say_estimate(point.at_default),
            str(point.trials or NOTHING),
        )
        for point in _thin(depth.curve)
    ]
    titles = ("value", "as chosen", "at the default", "trials")
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (titles, *rows)]  # fmt: skip


MOST_POINTS = 24


def _thin(curve: Sequence[CurvePoint]) -> Sequence[CurvePoint]:
    """Return at most so many points, the ends and those with the most trials kept."""
    if len(curve) <= MOST_POINTS:
        return curve
    step = (len(curve) - 1) / (MOST_POINTS - 1)
    return [curve[round(step * index)] for index in range(MOST_POINTS)]


def _show(space: Space, name: str, value: object) -> str:
    return NOTHING if value is None else space.show(name, value)  # type: ignore[arg-type]


def _wrap(text: str, head: str) -> str:
    """Break a text at 80 columns; what follows its head is indented like it."""
    indent = " " * len(head)
    return textwrap.fill(
        make_printable(text), WIDTH, initial_indent=head, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
