"""Tables for other programs: the Markdown of GitHub and GitLab, and CSV for spreadsheets."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from tuner.ports import Scalar
from tuner.report.summary import Arm
from tuner.report.wording import make_printable
from tuner.statistics.response_curve import Estimate

_MARKUP = re.compile(r"[\\`*<>|\[\]#~]|(?<![^\W_])_|_(?![^\W_])")
"""Between letters or digits an underscore is none (CommonMark, emphasis): names of settings stay readable."""
FORMULA = ("=", "+", "-", "@")
"""What a formula begins with (OWASP, CSV Injection)."""
OF_RATIO = ("ratio", "low", "high")
OF_ARM = ("goodput_rps", "latency_p99_ms", "failures", "requests", "trials", "failed_trials")


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Return a table in Markdown, line by line; with `numbers` all but the first column stand right."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(head) - 1))]
    shown = [list(map(escape_markdown, row)) for row in (head, *rows)]
    return [f"| {' | '.join(row)} |" for row in (shown[0], rule, *shown[1:])]


def markdown_list(texts: Iterable[str]) -> list[str]:
    """Return foreign texts as a list in Markdown, line by line."""
    return [f"- {escape_markdown(each)}" for each in texts]


def join_markdown(*parts: str | Sequence[str]) -> str:
    """Return texts, tables and lists with an empty line between them; what is empty is left out."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts if part) + "\n"


def escape_markdown(text: str) -> str:
    """Write foreign text so that Markdown takes none of its signs for markup."""
    return _MARKUP.sub(r"\\\g<0>", make_printable(text))


def write_csv(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV (RFC 4180, but lines end as on this machine); None is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_tame(each) for each in row] for row in (head, *rows))
    return text.getvalue()


def _tame(field: object) -> object:
    """Return a field that no spreadsheet takes for a formula; numbers are none."""
    if not isinstance(field, str):
        return field
    text = make_printable(field)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def write_arms_csv(
    first: str,
    arms: Sequence[tuple[Scalar, Estimate | None, Arm]],
    more: Mapping[str, Sequence[object]],
) -> str:
    """Return a line for each configuration: its ratio to the baseline, what it gave, all its settings.

    Args:
        first: title of the column with what each is called.
        arms: what it is called, its ratio, and what its trials gave.
        more: title → of each configuration something else that is known of it.
    """
    settings = list(dict.fromkeys(name for _, _, arm in arms for name in arm.config))
    rows = (
        [
            plain(name), *list_interval(estimate), *_figures(arm),
            *(values[index] for values in more.values()),
            *(plain(arm.config.get(setting)) for setting in settings),
        ]
        for index, (name, estimate, arm) in enumerate(arms)
    )  # fmt: skip
    return write_csv((first, *OF_RATIO, *OF_ARM, *more, *settings), rows)


def list_interval(estimate: Estimate | None) -> tuple[float | None, ...]:
    """Return an estimate and the ends of its interval; empty fields where there is none."""
    return (None, None, None) if estimate is None else (estimate.ratio, estimate.low, estimate.high)


def _figures(arm: Arm) -> tuple[float | None, ...]:
    goodput = arm.goodput_rps if arm.requests else None
    return (goodput, arm.latency_p99_ms, arm.failures, arm.requests, arm.trials, arm.failed_trials)


def plain(value: Scalar | None) -> object:
    """Return a value as a file of a server would have it; what is inactive is None."""
    return ("on" if value else "off") if isinstance(value, bool) else value
