"""Who works on a study, as a table of 80 columns."""

from tuner.report.fleet import Fleet, HostRow
from tuner.report.wording import make_printable

LONGEST_HOST = 24
HEAD = ("host", "measures", "since", "heard", "trials", "/hour", "failed", "lost")


def fleet_text(fleet: Fleet) -> str:
    """Return a line for the study, and one for each host."""
    hosts = f"{len(fleet.hosts)} host{'' if len(fleet.hosts) == 1 else 's'}"
    told = (
        f"{fleet.study}: {fleet.state}, {hosts}, {fleet.trials} trials, {fleet.per_hour:.0f} trials per hour"
    )
    rows = [HEAD, *map(_cells, fleet.hosts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(_pad(cell, widths, index) for index, cell in enumerate(row)).rstrip() for row in rows)
    return "\n".join((told, "", *lines))


def _pad(cell: str, widths: list[int], index: int) -> str:
    """Align words to the left and numbers to the right."""
    return cell.ljust(widths[index]) if index < 2 else cell.rjust(widths[index])  # noqa: PLR2004 - host, measures


def _cells(row: HostRow) -> tuple[str, ...]:
    name = make_printable(row.host)
    return (
        name if len(name) <= LONGEST_HOST else f"{name[: LONGEST_HOST - 1]}…",
        row.doing or "–",
        _say_seconds(row.since_s),
        _say_seconds(row.silent_s),
        str(row.trials),
        f"{row.per_hour:.0f}",
        str(row.failed),
        str(row.lost),
    )


def _say_seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.0f} s"
