"""Tables for the terminal: two configurations side by side, the parameters of a space."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tuner.report.wording import make_printable, say_failures, say_gain, say_milliseconds, say_rate

if TYPE_CHECKING:
    from tuner.commands.session import Comparison


def comparison_table(comparison: "Comparison", first: str, second: str) -> Group:
    """Show two configurations that were measured in pairs, and the gain of the second over the first."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("")
    for title in ("requests/s", "p99", "failures", "starts"):
        table.add_column(title, justify="right")
    for name, arm in ((first, comparison.first), (second, comparison.second)):
        table.add_row(
            make_printable(name),
            say_rate(arm.goodput_rps),
            say_milliseconds(arm.latency_p99_ms),
            say_failures(arm.failures, arm.requests),
            str(arm.starts),
        )
    sides = {"first": first, "second": second}
    warnings = [
        Text(
            f"{make_printable(sides[side])} holds less than the default: {make_printable('; '.join(lacks))}. "
            "Its figures say nothing of slow clients.",
            style="yellow",
        )
        for side, lacks in comparison.lacks.items()
    ]
    headline = f"{make_printable(second)} is {say_gain(comparison.gain)} of {make_printable(first)}"
    return Group(Text(f"{headline}: {_judge(comparison)}", style="bold"), *warnings, Text(""), table)


def _judge(comparison: "Comparison") -> str:
    """Say what the interval shows; a whole interval below 1 is a loss, not only an unproven gain."""
    return "worse" if comparison.gain.high < 1 else comparison.gain.verdict


def parameter_list(
    rows: Sequence[Mapping[str, Any]], dead: Mapping[str, str], presets: Sequence[Mapping[str, Any]]
) -> Group:
    """Show a space: every parameter with range, default and risk, why it is tuned and who says so."""
    parts: list[RenderableType] = []
    for row in rows:
        head = Text.assemble(
            (make_printable(row["name"]), "bold"), make_printable(f"  {row['kind']}, {row['range']}")
        )
        head.append(make_printable(f"  default {row['default']}"), style="green")
        marks = [row["unit"], row["risk"], row["apply"], row["scope"]]
        head.append(f"  ({', '.join(make_printable(str(mark)) for mark in marks if mark)})", style="dim")
        parts += [
            head,
            Padding(Text(make_printable(row["why"])), (0, 0, 0, 4)),
            *([Padding(Text(make_printable(f"Also: {row['also']}")), (0, 0, 0, 4))] if row["also"] else []),
            Padding(Text(make_printable(row["source"]), style="dim"), (0, 0, 0, 4)),
        ]
    for title, entries in (
        ("presets, tried first", [(preset["name"], preset["title"]) for preset in presets]),
        ("not tuned, though old guides give them", list(dead.items())),
    ):
        if entries:
            parts += [Text(""), Text(title, style="bold")]
            parts += [
                Padding(Text(make_printable(f"{name}: {said}")), (0, 0, 0, 4)) for name, said in entries
            ]
    return Group(*parts)
