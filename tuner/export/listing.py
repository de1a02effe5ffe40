"""The settings of a private instance as lines to merge by hand: for installed files that cannot be rewritten.

Which lines belong together is read off the indentation, so no syntax of a server is known here.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tuner.export.lowered import describe_lowered
from tuner.export.provenance import comment, describe_origin
from tuner.export.rendered import SITE, Rendered
from tuner.report.summary import Summary


def export_listing(summary: Summary, server: str, rendered: Rendered) -> dict[str, bytes]:
    """Write the lines that differ between the default and the winner, each within its sections."""
    lines = list(_list_files(rendered))
    if not lines:
        return {}
    head = [
        *describe_origin(summary),
        f"the installed files are not changed: {rendered.reason or 'tuner does not know where they are'}",
        f"apply: put these lines into the files of {server}, each into its section, in place of the text",
        "after `was:`; then check the configuration and restart the server",
        "undo: restore the text after `was:`",
        *describe_lowered(summary.space, rendered.lowered),
    ]
    if any(str(SITE.directory) in line for line in lines):
        head.append(f"{SITE.directory} stands for the directory of your own logs")
    text = comment(*head) + "\n" + "".join(f"{line}\n" for line in lines)
    return {f"tuner-{server}-settings.conf": text.encode()}


def _list_files(rendered: Rendered) -> Iterator[str]:
    """Yield the changes of each file; where an instance has several, below the name of the file."""
    for path, content in sorted(rendered.winner.items()):
        before, after = rendered.default.get(path, b"").decode().splitlines(), content.decode().splitlines()
        changes = list(list_changes(before, after))
        if changes and len(rendered.winner) > 1:
            yield f"# file: {path.name}"
        yield from changes


def list_changes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that are new, what they replace as comments, and the sections around them."""
    shown: set[int] = set()
    replaced: dict[int, list[str]] = {}
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, begin, end, new_begin, new_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        replaced[new_begin] = [line for line in before[begin:end] if line.strip()]
        shown |= set(range(new_begin, new_end))
        for line in (*replaced[new_begin], *after[new_begin:new_end]):
            shown |= _find_sections(after, new_begin, _indent(line))
    for index, line in enumerate((*after, "")):
        for old in replaced.get(index, ()):
            yield f"{old[: _indent(old)]}# was: {old.strip()}"
        if index in shown and line.strip():
            yield line


def _find_sections(lines: Sequence[str], place: int, indent: int) -> set[int]:
    """Return the lines that open and close the sections around a place."""
    found: set[int] = set()
    for opening in range(place - 1, -1, -1):
        if lines[opening].strip() and _indent(lines[opening]) < indent:
            indent = _indent(lines[opening])
            rest = range(opening + 1, len(lines))
            behind = next(
                (each for each in rest if lines[each].strip() and _indent(lines[each]) <= indent), None
            )
            found.add(opening)
            # A closing brace holds no word; the line behind a section of YAML belongs to the next one.
            if behind is not None and not any(sign.isalnum() for sign in lines[behind]):
                found.add(behind)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
