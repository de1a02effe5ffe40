"""Unified diffs that `patch -p1` applies and `patch -p1 -R` takes back."""

from difflib import unified_diff
from io import StringIO

NO_LINE_END = "\\ No newline at end of file\n"


def make_patch(name: str, before: str | None, after: str | None) -> str:
    """Write the difference of one file; None stands for a file that does not exist."""
    lines = unified_diff(
        split_lines(before),
        split_lines(after),
        fromfile="/dev/null" if before is None else _mark_end(f"a/{name}"),
        tofile="/dev/null" if after is None else _mark_end(f"b/{name}"),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_LINE_END}" for line in lines)


def _mark_end(name: str) -> str:
    """Return a name as patch takes it: one with blanks ends at a tab."""
    return f"{name}\t" if " " in name else name


def split_lines(text: str | None) -> list[str]:
    """Split at line feeds alone, as patch does: a page break or a lone carriage return ends no line."""
    return list(StringIO(text, newline="\n"))
