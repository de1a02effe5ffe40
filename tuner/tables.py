"""Tables for the terminal: two configurations side by side, the parameters of a space."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tuner.wording import make_printable, say_failures, say_gain, say_milliseconds, say_rate

if TYPE_CHECKING:
    from tuner.session import Comparison


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
    headline = f"{make_printable(second)} is {say_gain(comparison.gain)} of {make_printable(first)}"
    return Group(Text(f"{headline}: {comparison.gain.verdict}", style="bold"), Text(""), table)


def parameter_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Show a space: every parameter with kind, range, default, risk, and why it is tuned."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("parameter", "kind", "range", "default", "risk", "why"):
        table.add_column(title, overflow="fold")
    for row in rows:
        cells = [row.get(key) for key in ("name", "kind", "range", "default", "risk", "why")]
        table.add_row(*(make_printable("" if cell is None else str(cell)) for cell in cells))
    return table
