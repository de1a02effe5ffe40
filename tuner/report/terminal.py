"""What a person sees on a terminal: the end of a study, a comparison, a space."""

import os.path
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tuner.records import Metric
from tuner.report.rows import (
    Row,
    arm_rows,
    capacity_rows,
    describe_growth,
    describe_limit,
    describe_rates,
    describe_tail,
    describe_unlike_rates,
    host_rows,
    load_rows,
    memory_cells,
    table_of_arms,
)
from tuner.report.wording import (
    NOTHING,
    NOTHING_BETTER,
    capitalize,
    make_printable,
    say_age,
    say_comparison,
    say_found,
    say_gain,
    say_lacks,
    say_metric,
    say_quantile,
    say_rate,
    say_rejection,
    say_robustness,
    say_speedup,
    say_tail,
    say_trend,
    say_unproven,
)

if TYPE_CHECKING:
    from tuner.report.summary import Comparison, Summary
    from tuner.statistics.confirmation.paired_gain import Gain
    from tuner.study import Study


SETTINGS_SHOWN = 8
"""On a short screen."""


def final_screen(
    summary: "Summary",
    *,
    report: str | None = None,
    exports: Sequence[str] = (),
    warnings: Sequence[str] = (),
    is_short: bool = False,
) -> Group:
    """Return how a study ended, with the verdict last, where a terminal shows it.

    Args:
        summary: the study.
        report: path of its page.
        exports: paths of its exports.
        warnings: about the exports; they stand above them.
        is_short: whether details are left out, so that 24 lines are enough for most studies.
    """
    from tuner.report.summary import as_candidate

    measured = summary if summary.found is None else as_candidate(summary)
    parts: list[RenderableType] = _changes(summary, is_short=is_short)
    parts += [] if is_short else _capacity(measured)
    parts += _limits(measured)
    parts += _robustness(summary, is_short=is_short)
    parts += [] if is_short else _mixes(summary)
    parts += _everywhere(summary)
    if summary.front and not is_short:
        parts += [Text(""), _front(summary)]
    parts += _places(summary, report, exports, warnings, is_short=is_short)
    parts += [Text(""), arms_table(arm_rows(measured), bold=summary.side)]
    if summary.latency is not None:
        rate = f"p99 at {say_rate(summary.latency.rate_rps)} requests/s: "
        default, winner = summary.latency.default_p99, summary.latency.winner_p99
        parts.append(Text(f"{rate}{say_quantile(default)} → {say_quantile(winner)}"))
    if (memory := memory_cells(measured)) and not is_short:
        parts.append(Text(f"memory of the server: {' → '.join(memory)}"))
    rates = describe_unlike_rates(measured)
    notes = ((rates, "dim"), (describe_tail(summary), "yellow"), (describe_limit(summary), "dim"))
    parts += [Text(note, style=style) for note, style in notes if note]
    parts += [Text(""), *_age(summary.gain, ("default", summary.side))]
    if summary.reason:
        parts.append(Text(make_printable(summary.reason)))
    parts.append(headline(summary))
    return Group(*(parts[1:] if parts[0] == Text("") else parts))


def _changes(summary: "Summary", *, is_short: bool = False) -> list[RenderableType]:
    """Return what is written, where there is something to write."""
    return _difference(summary, is_short=is_short) if summary.shipped else []


def _places(
    summary: "Summary", report: str | None, exports: Sequence[str], warnings: Sequence[str], *, is_short: bool
) -> list[RenderableType]:
    """Return where exports and report are; of many exports, on a short screen, their folder."""
    places = Table.grid(padding=(0, 2))
    places.add_column(no_wrap=True)
    places.add_column(overflow="fold")  # a path that is cut off names no file
    if exports:
        doubt = say_unproven(summary.gain)
        shown = _name_folder(exports) if is_short else [make_printable(path) for path in exports]
        listed = Text("\n".join(shown))
        places.add_row("exports", Text(f"{doubt}\n" if doubt else "", style="bold yellow") + listed)
    if report is not None:
        places.add_row("report", Text(make_printable(report)))
    if not places.row_count:
        return []
    return [Text(""), *(Text(make_printable(each), style="bold red") for each in warnings), places]


def _name_folder(paths: Sequence[str]) -> list[str]:
    """Return the folder of several files with their number; one file as it is."""
    if len(paths) == 1:
        return [make_printable(paths[0])]
    return [make_printable(f"{os.path.commonpath(paths)}/ ({len(paths)} files)")]


def headline(summary: "Summary") -> Text:
    """Return how a study ended, or how far it is, in one line."""
    name = make_printable(summary.study)
    if summary.gain is not None:
        gain = (say_gain(summary.gain), "bold green" if summary.gain.is_proven else "bold yellow")
        what = "" if summary.metric is Metric.GOODPUT else f"{say_metric(summary.metric)}: "
        is_gain = summary.gain.verdict == "improved"
        verdict = ": " if is_gain else f": {summary.gain.verdict}, "
        paired = (f" of {summary.side} against default", "dim")
        return Text.assemble((name, "bold"), verdict, what, gain, paired)
    if summary.found is not None:
        said = say_found(summary.found.speedup, summary.found.reason)
        return Text.assemble((name, "bold"), ": ", (said, "bold yellow"))
    if summary.state == "finished":
        if summary.is_too_noisy:
            return Text.assemble((name, "bold"), f": {NOTHING_BETTER} before the host became too noisy")
        reason = make_printable(summary.stop_reason)
        said = reason if reason.startswith(NOTHING_BETTER) else f"{NOTHING_BETTER} ({reason})"
        return Text.assemble((name, "bold"), f": {said if reason else NOTHING_BETTER}")
    best = ""
    if summary.incumbent is not None:
        best = f"; best so far {say_speedup(summary.incumbent[1])}, an estimate, not confirmed"
    return Text.assemble((name, "bold"), f": {summary.state}{best}")


def _age(gain: "Gain | None", sides: Sequence[str]) -> list[RenderableType]:
    """Return for which seconds under load a gain holds, and a warning when it moves with them."""
    if gain is None or gain.age is None:
        return []
    trend = say_trend(gain.age, [make_printable(side) for side in sides])
    warning = [Text(capitalize(trend), style="yellow")] if trend else []
    return [Text(say_age(gain.age), style="dim"), *warning]


def _everywhere(summary: "Summary") -> list[RenderableType]:
    """Return both sides under each of several loads, and on each of several hosts."""
    titles = ("default", summary.side, "failures", "gain", "")
    tables = (
        (("load", "weight", *titles), load_rows(summary), summary.across),
        (("host", *titles), host_rows(summary), summary.across_hosts),
    )
    return [
        part
        for head, rows, across in tables
        if rows
        for part in (
            Text(""),
            _judged(head, rows),
            Text(f"The gain of the study is the {across}.", style="dim"),
        )
    ]


def _judged(head: Row, rows: Sequence[Row]) -> Table:
    """Return a table of rows that end in a verdict, which gives their colour."""
    table, colors = fitting_table(*head, right=True), {"improved": "green", "worse": "bold red"}
    for *cells, verdict in rows:
        table.add_row(*map(make_printable, cells), Text(verdict), style=colors.get(verdict, ""))
    return table


def arms_table(rows: Sequence[Row], *, bold: str = "") -> Table:
    """Return a head and rows of arms as a table."""
    table = fitting_table(*rows[0], right=True)
    for row in rows[1:]:
        table.add_row(*map(make_printable, row), style="bold" if row[0] == bold else "")
    return table


class FittingTable(Table):
    """A table; where the terminal is too narrow for it, each row is a list of its cells."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left = options.max_width - sum(width + self.padding[1] for width in self._least_widths())
        if left >= 0:
            # Given out by hand: rich takes from the widest columns, and cuts off their words.
            for column, least in () if self.expand else zip(self.columns, self._least_widths(), strict=True):
                whole = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
                column.width = least + min(left, whole - least)
                left -= column.width - least
            yield from super().__rich_console__(console, options)
            return
        titles = [str(column.header) for column in self.columns]
        for name, *cells in zip(*(column.cells for column in self.columns), strict=True):
            row = Table.grid(padding=(0, 2))
            row.add_column(no_wrap=True)
            row.add_column(overflow="fold")
            for title, cell in zip(titles[1:], cells, strict=True):
                row.add_row(Text(title, style="dim"), cell)
            yield from (Text(str(name), style="bold"), Padding(row, (0, 0, 0, 2)))

    def _least_widths(self) -> list[int]:
        """Return what each column takes; figures stand at the right and are not broken."""
        return [
            max(
                cell_len(part)
                for cell in (column.header, *column.cells)
                for part in ([str(cell)] if column.justify == "right" else str(cell).split() or [""])
            )
            for column in self.columns
        ]


def fitting_table(*titles: str, right: bool = False) -> Table:
    """Make a table without lines; all columns but the first may stand at the right."""
    table = FittingTable(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    for index, title in enumerate(titles):
        table.add_column(make_printable(title), justify="right" if right and index else "left")
    return table


def _front(summary: "Summary") -> Table:
    """Return the configurations that none beats in both objectives, with their numbers."""
    table = fitting_table("pick", "goodput", summary.cost or "", "trials", "settings that change")
    for number, choice in enumerate(summary.front, 1):
        changes = summary.show_changes(choice.config)
        table.add_row(
            f"{number} (winner)" if summary.is_winner(choice.config) else str(number),
            say_speedup(choice.goodput) if changes else "1",
            say_speedup(choice.cost) if changes else "1",
            str(choice.trials),
            Text(make_printable(", ".join(changes)) or "none: the default"),
        )
    return table


def _difference(summary: "Summary", *, is_short: bool) -> list[RenderableType]:
    """List what is written, and below each setting what else it does; the first few on a short screen."""
    rows = [
        [
            make_printable(each)
            for each in (name, summary.space.show(name, old), summary.space.show(name, new))
        ]
        for name, (old, new) in summary.shipped.items()
    ]
    names, olds, news = (max(map(len, column)) for column in zip(*rows, strict=True))
    parts: list[RenderableType] = []
    for setting, (name, old, new) in zip(summary.shipped, rows, strict=True):
        derived = "  derived" if setting not in summary.changes else ""
        parts.append(
            Text.assemble(
                (name.ljust(names), "bold"), "  ", (old.ljust(olds), "red"), "  →  ",
                (new.ljust(news) if derived else new, "green"), (derived, "dim"),
            )
        )  # fmt: skip
        if not is_short and (also := summary.space.also(setting)):
            parts.append(_indented(also, style="dim"))
    if is_short and len(parts) > SETTINGS_SHOWN:
        parts[SETTINGS_SHOWN - 1 :] = [Text(f"… and {len(parts) - SETTINGS_SHOWN + 1} more", style="dim")]
    return parts


def _mixes(summary: "Summary") -> list[RenderableType]:
    """Return how well each mix of requests was sent as asked."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, each in summary.fidelity.items():
        table.add_row("mix", Text(make_printable(f"{name}: {each}" if name else str(each))))
    return [Text(""), table] if table.row_count else []


def _robustness(summary: "Summary", *, is_short: bool) -> list[RenderableType]:
    """Show how the winner fares under loads that it was not tuned on, and what was rejected.

    On a short screen warnings alone, and one rejection where a rejected one is not shown anyway.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    found = summary.winner_elsewhere
    for each in () if is_short else summary.robustness:
        if each.is_rejected and each is not found:
            table.add_row("rejected", Text(say_robustness(each, "candidate"), style="yellow"))
    elsewhere = [] if is_short else [dict(each.config) for each in summary.robustness if each.is_rejected]
    others = [each for each in summary.rejections if not summary.is_winner(each.config)]
    first = others[:1] if summary.gain is not None and not summary.gain.is_proven else []
    for rejection in first if is_short else summary.rejections:
        if dict(rejection.config) not in elsewhere:
            said = f"{', '.join(summary.show_changes(rejection.config))}: {say_rejection(rejection.reason)}"
            table.add_row("rejected", Text(make_printable(said), style="yellow"))
    is_told = found is not None and (not is_short or found.is_rejected or bool(found.warnings))
    if is_told and found is not None and (told := say_robustness(found, summary.side)):
        style = "bold red" if found.is_rejected else "yellow" if found.warnings else ""
        table.add_row("robustness", Text(told, style=style))
    return [Text(""), table] if table.row_count else []


def _capacity(summary: "Summary") -> list[RenderableType]:
    """Return what default and winner hold at once below each other, server by server."""
    rows = capacity_rows(summary)
    table = Table.grid(padding=(0, 2))
    for server, default, winner in rows:
        of_server = f" of {make_printable(server)}" if len(rows) > 1 else ""
        table.add_row(Text(f"capacity{of_server}", style="dim"), Text("default", style="dim"), Text(default))
        if winner != NOTHING:
            table.add_row("", Text(summary.side, style="bold"), Text(winner))
    return [Text(""), table] if rows else []


def _limits(summary: "Summary") -> list[RenderableType]:
    """Return that the winner needs much more memory, or has less capacity, than the default."""
    parts: list[RenderableType] = []
    if growth := describe_growth(summary):
        parts.append(Text(make_printable(growth), style="bold yellow"))
    if summary.lacks:
        lacks = make_printable("; ".join(summary.lacks))
        text = f"The {summary.side} has less capacity than the default: {lacks}."
        held_back = " It is neither exported nor applied without `allow: [capacity]`."
        parts.append(Text(text + (held_back if summary.is_held_back else ""), style="bold red"))
    return parts


def comparison_table(comparison: "Comparison", first: str, second: str) -> Group:
    """Return two configurations that were measured in pairs, and the gain of the second over the first."""
    names, gain = {"first": first, "second": second}, comparison.gain
    reason = [Text(make_printable(comparison.reason))] if comparison.reason else []
    warnings = [
        Text(say_lacks(names[side], lacks), style="yellow") for side, lacks in comparison.lacks.items()
    ]
    table = arms_table(table_of_arms([(first, comparison.first), (second, comparison.second)]))
    age = _age(gain, (first, second))
    loads = [
        Text(make_printable(f"under {name}: {say_gain(each)}, {each.verdict}"))
        for name, each in gain.by_load.items()
    ]
    headline = Text(say_comparison(gain, first, second), style="bold")
    if tail := say_tail(gain, make_printable(first), make_printable(second)):
        warnings.append(Text(capitalize(tail), style="yellow"))
    rates = describe_rates(comparison.first, comparison.second)
    notes = [Text(rates, style="dim")] if rates else []
    return Group(headline, *reason, *loads, *age, *warnings, Text(""), table, *notes)


def parameter_list(
    rows: Sequence[Mapping[str, Any]], dead: Mapping[str, str], presets: Sequence[Mapping[str, Any]]
) -> Group:
    """Return a space: every parameter with range, default and risk, why it is tuned and who says so."""
    parts: list[RenderableType] = []
    for row in rows:
        head = Text.assemble(
            (make_printable(row["name"]), "bold"), make_printable(f"  {row['kind']}, {row['range']}")
        )
        head.append(make_printable(f"  default {row['default']}"), style="green")
        marks = [row["unit"], row["risk"], row["apply"], row["scope"]]
        head.append(f"  ({', '.join(make_printable(str(mark)) for mark in marks if mark)})", style="dim")
        parts += [head, _indented(row["why"])]
        parts += [_indented(f"Also: {row['also']}")] if row["also"] else []
        parts.append(_indented(row["source"], style="dim"))
        if row["acts_when"]:
            parts.append(_indented(f"Acts when {row['acts_when']}"))
            parts.append(_indented(row["acts_source"], style="dim"))
        if row["hint"]:
            parts += [_indented(_say_hint(row["hint"])), _indented(row["hint"]["source"], style="dim")]
    titles = {
        is_first: [(each["name"], each["title"]) for each in presets if each["try_first"] is is_first]
        for is_first in (True, False)
    }
    for title, entries in (
        ("presets, tried first", titles[True]),
        ("recipes, measured only when you name them", titles[False]),
        ("obsolete, though old guides still recommend them", list(dead.items())),
    ):
        if entries:
            parts += [Text(""), Text(title, style="bold")]
            parts += [_indented(f"{name}: {said}") for name, said in entries]
    return Group(*parts)


def _say_hint(hint: Mapping[str, Any]) -> str:
    """Return a hint as a line: which way, how likely, under which load."""
    better = hint["direction"] if "direction" in hint else _say_value(hint["value"])
    under = f", when {hint['when']}" if "when" in hint else ""
    return f"Hint: {better} helps, {hint['odds']:g} to 1{under}"


def _say_value(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def study_list(studies: "Sequence[Study]") -> Group:
    """Return studies with what each asks and where that comes from."""
    parts: list[RenderableType] = []
    for each in studies:
        parts += [Text(make_printable(each.name), style="bold"), _indented(each.title)]
        parts.append(_indented(each.source, style="dim"))
    return Group(*parts)


def searched_list(load: str, found: Mapping[str, Any]) -> Group:
    """Show what a study searches under its load, and what not with the reasons."""
    inert = {name: each["reason"] for name, each in found["cannot_act"].items()}
    sources = {name: each["source"] for name, each in found["cannot_act"].items()}
    parts: list[RenderableType] = [
        Text(f"tuned under {make_printable(load)}", style="bold"),
        _indented(", ".join(found["searched"])),
    ]
    for title, reasons in (
        (
            "tuned because the study names them, though they have no effect under this load",
            found["searched_all_the_same"],
        ),
        ("not tuned: no effect under this load", inert),
        ("not tuned: held at a value", found["held"]),
        ("not available here, or not used", found["left_out"]),
    ):
        if reasons:
            parts += [Text(""), Text(title, style="bold")]
        for name, reason in reasons.items():
            parts.append(_indented(f"{name}: {reason}"))
            if reasons is inert:
                parts.append(_indented(f"Source: {sources[name]}", style="dim"))
    return Group(*parts, *_adjusted_presets(found["presets"]))


def _adjusted_presets(presets: Mapping[str, Mapping[str, str]]) -> list[RenderableType]:
    """Show what of each preset is not as its author wrote it."""
    parts: list[RenderableType] = []
    for preset, adjusted in presets.items():
        if adjusted:
            parts += [Text(""), Text(f"{make_printable(preset)}: differs from the preset", style="bold")]
            parts += [_indented(f"{name}: {reason}") for name, reason in adjusted.items()]
    return parts


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(make_printable(text), style=style), (0, 0, 0, 4))
