"""What `tuner verify` and `tuner gate` print on a terminal of any width."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tuner.ports import Scalar
from tuner.records import Metric
from tuner.report.regression import BASELINE, NEW, AppliedSetting, Measurement, NonInferiority, Verification
from tuner.report.rows import table_of_arms
from tuner.report.terminal import arms_table, fitting_table
from tuner.report.wording import NOTHING, capitalize, make_printable, say_gain, say_metric, say_value
from tuner.statistics.confirmation.paired_gain import Gain

COLORS: Mapping[str, str] = {
    "active": "bold green", "holds": "bold green", "no slower": "bold green",
    "cannot tell": "bold yellow",
}  # fmt: skip
"""Of the headline; everything else is bad news."""
BAD = "bold red"


def verification_screen(found: Verification) -> Group:
    """Return whether a winner is active, each setting, what has changed around it, and its gain."""
    parts: list[RenderableType] = [_say(f"{found.headline}.", COLORS.get(found.verdict, BAD))]
    parts += [_say(text) for text in (found.failure, found.reason) if text]
    parts += [Text(""), _settings(found)]
    parts += [_say(f"{each.name}: {each.drift}.", "red") for each in found.drifted]
    if found.measured is not None and found.measured.comparison is not None:
        parts += [Text(""), *_gains(found.before, found.measured), Text("")]
        comparison = found.measured.comparison
        sides = [("default", comparison.first), ("winner", comparison.second)]
        parts.append(arms_table(table_of_arms(sides)))
    parts += [Text(""), *_changed(found)]
    parts += [_say(f"{capitalize(each).rstrip('.')}.", "yellow") for each in found.remarks]
    return Group(*parts)


def _settings(found: Verification) -> Table:
    """Return a row for each setting: wanted and found."""
    table = fitting_table("setting", "wanted", "found", "")
    for each in found.settings:
        table.add_row(
            Text(make_printable(each.name), style="bold"), _show(found, each, each.wanted),
            _show(found, each, each.found), Text(say_state(found, each), style="red" if each.drift else ""),
        )  # fmt: skip
    return table


def say_state(found: Verification, setting: AppliedSetting) -> str:
    """Return what became of one setting, in two words at the most."""
    if setting.drift:
        return "drifted"
    if found.failure:
        return "not running"
    return "active" if setting.found is not None else "not read back"


def show_value(found: Verification, name: str, value: Scalar | None) -> str:
    """Return a value as people read it."""
    return NOTHING if value is None or value == "" else make_printable(found.space.show(name, value))


def _show(found: Verification, setting: AppliedSetting, value: Scalar | None) -> Text:
    return Text(show_value(found, setting.name, value))


def _gains(before: Gain, measured: Measurement) -> list[RenderableType]:
    """Return the gain now and then, below each other."""
    table = Table.grid(padding=(0, 2))
    if measured.comparison is not None:
        table.add_row("gain now", Text(say_gain(measured.comparison.gain), style="bold"))
    table.add_row("in the study", say_gain(before))
    return [table]


def _changed(found: Verification) -> list[RenderableType]:
    """Return in what the surroundings differ from those of the study."""
    if not found.changed:
        return [_say("Machine and versions are those of the study.", "dim")]
    return [Text("Since the study:", style="bold"), *(_say(f"  {each}") for each in found.changed)]


def non_inferiority_screen(found: NonInferiority) -> Group:
    """Return whether the new side passes, by what, and how both sides fared."""
    parts: list[RenderableType] = [_say(f"{found.headline}.", COLORS.get(found.finding, BAD))]
    parts += [_say(found.reason)] if found.reason else []
    comparison = found.measured.comparison
    if comparison is not None:
        gain = comparison.gain
        parts += [Text(""), _say(say_ratio_of(found, gain), "bold")]
        parts += [_say(f"under {name}: {say_gain(each)}") for name, each in gain.by_load.items()]
        sides = [(found.sides[BASELINE], comparison.first), (found.sides[NEW], comparison.second)]
        parts += [Text(""), arms_table(table_of_arms(sides))]
    if found.changes:
        table = fitting_table("setting", found.sides[BASELINE], found.sides[NEW])
        for name, (old, new) in found.changes.items():
            table.add_row(Text(make_printable(name), style="bold"), *map(_plain, (old, new)))
        parts += [Text(""), table]
    parts += [Text(""), _say(f"{found.workload}.", "dim")]
    parts += [_say(f"{each.rstrip('.')}.", "yellow") for each in found.notes]
    return Group(*parts)


def say_ratio_of(found: NonInferiority, gain: Gain) -> str:
    """Write the ratio of both sides with its interval, and how many pairs there might have been."""
    what = "" if gain.metric is Metric.GOODPUT else f" in {say_metric(gain.metric)}"
    return (
        f"{found.sides[NEW]} is {say_gain(gain)} (of at most {found.measured.most_pairs}) of "
        f"{found.sides[BASELINE]}{what}"
    )


def _plain(value: Scalar | None) -> Text:
    return Text(NOTHING if value is None else make_printable(say_value(value)))


def _say(text: str, style: str = "") -> Text:
    return Text(make_printable(text), style=style)
