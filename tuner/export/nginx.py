"""A patch for /etc/nginx, and the patch that takes it back.

A fragment in conf.d is not enough: it is included into `http`, while worker_processes and
worker_connections belong to `main` and `events`, and Debian's nginx.conf sets sendfile, tcp_nopush, gzip and
access_log in `http` already; nginx refuses a directive that is given twice in one block ("directive is
duplicate"). So what the installed nginx.conf has is changed there, and new directives of `http` go to conf.d.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tuner.export.nginx_outline import Directive, read_outline
from tuner.export.patches import make_patch
from tuner.export.provenance import comment, describe_origin
from tuner.export.rendered import SITE, Rendered
from tuner.ports import Files

if TYPE_CHECKING:
    from tuner.report.summary import Summary

ROOT = PurePosixPath("/etc/nginx")
MAIN_FILE = ROOT / "nginx.conf"
SITE_FILE = ROOT / "sites-available/default"
FRAGMENT = "conf.d/tuner.conf"
INSTALLED = (MAIN_FILE, SITE_FILE)
PATCH, UNDO, LISTING = "tuner-nginx.patch", "tuner-nginx-undo.patch", "tuner-nginx-settings.conf"
BLOCKS = ((), ("events",), ("http",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one directive was and becomes in one block; no lines means that it is not given."""

    context: tuple[str, ...]
    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]


def export_nginx(summary: "Summary", rendered: Rendered, installed: Files) -> dict[str, bytes]:
    """Write the patch and its undo; without an installed nginx.conf, a listing by block."""
    changes = compare(read_rendered(rendered.default), read_rendered(rendered.winner))
    if not changes:
        return {}
    if MAIN_FILE not in installed:
        return {LISTING: write_listing(summary, changes).encode()}
    files = apply_changes(summary, changes, {path: content.decode() for path, content in installed.items()})
    origin = describe_origin(summary)
    head = comment(
        *origin,
        f"apply: patch -p1 -d {ROOT} < {PATCH} && nginx -t && systemctl restart nginx",
        f"undo:  patch -p1 -d {ROOT} < {UNDO} && nginx -t && systemctl restart nginx",
    )
    ordered = sorted(files.items())
    forward = "".join(make_patch(name, before, after) for name, (before, after) in ordered)
    backward = "".join(make_patch(name, after, before) for name, (before, after) in ordered)
    return {PATCH: (head + forward).encode(), UNDO: (head + backward).encode()}


def read_rendered(files: Files) -> list[Directive]:
    """Read the directives of all rendered files, without the blocks."""
    found: list[Directive] = []
    for path, content in sorted(files.items()):
        if path.suffix == ".conf":
            found += [each for each in read_outline(content.decode()) if each.body_end < 0]
    return found


def compare(before: Sequence[Directive], after: Sequence[Directive]) -> list[Change]:
    """Find the directives that differ, block by block, in the order of the file."""
    keys = list(dict.fromkeys((block_of(each), each.name) for each in [*after, *before]))
    changes = []
    for context, name in keys:
        old, new = (
            tuple(each.line for each in side if (block_of(each), each.name) == (context, name))
            for side in (before, after)
        )
        if old != new:
            changes.append(Change(context=context, name=name, old=old, new=new))
    return changes


def block_of(directive: Directive) -> tuple[str, ...]:
    """Name the block in which a directive would be set for all servers; `listen` keeps its own."""
    return ("http", "server") if directive.name == "listen" else directive.context[:1]


def apply_changes(
    summary: "Summary", changes: Sequence[Change], texts: dict[PurePosixPath, str]
) -> dict[str, tuple[str | None, str]]:
    """Change the installed files; file name below /etc/nginx → text before (None: no such file) and after."""
    text = texts[MAIN_FILE]
    fragment: list[str] = []
    for change in changes:
        given = find_given(text, change)
        if change.name == "listen":
            continue
        if given or change.context != ("http",) or not includes_fragments(text):
            text = change_block(text, change, given)
        else:
            fragment += localize(change.new, ())
    files: dict[str, tuple[str | None, str]] = {"nginx.conf": (texts[MAIN_FILE], text)}
    if fragment:
        lines = "".join(f"{line}\n" for line in fragment)
        files[FRAGMENT] = (None, comment(*describe_origin(summary)) + lines)
    listen = next((change for change in changes if change.name == "listen"), None)
    if listen is not None and SITE_FILE in texts:
        site = texts[SITE_FILE]
        files["sites-available/default"] = (site, change_listen(site, listen))
    return {name: pair for name, pair in files.items() if pair[0] != pair[1]}


def find_given(text: str, change: Change) -> list[Directive]:
    """Find where a text gives the directive of a change already."""
    return [
        each for each in read_outline(text) if each.name == change.name and each.context == change.context
    ]


def includes_fragments(text: str) -> bool:
    """Tell whether the main file includes conf.d."""
    return any(
        each.name == "include" and each.context == ("http",) and "conf.d/" in " ".join(each.arguments)
        for each in read_outline(text)
    )


def change_block(text: str, change: Change, given: Sequence[Directive]) -> str:
    """Replace the directive where it is given, else add it to its block."""
    lines = localize(change.new, given)
    if given:
        first = given[0]
        for extra in reversed(given[1:]):
            text = remove_line(text, extra)
        if not lines:
            return remove_line(text, first)
        return text[: first.begin] + f"\n{indent_of(text, first.begin)}".join(lines) + text[first.end :]
    if not change.context:
        return "".join(f"{line}\n" for line in lines) + text
    block = next((each for each in read_outline(text) if (*each.context, each.name) == change.context), None)
    if block is None:
        name = change.context[-1]
        return f"{name} {{\n" + "".join(f"\t{line}\n" for line in lines) + "}\n" + text
    return text[: block.body_end] + "".join(f"\t{line}\n" for line in lines) + text[block.body_end :]


def remove_line(text: str, directive: Directive) -> str:
    """Take a directive out, and its line when nothing else stands there."""
    begin = text.rfind("\n", 0, directive.begin) + 1
    end = text.find("\n", directive.end)
    end = len(text) if end < 0 else end + 1
    alone = not text[begin : directive.begin].strip() and not text[directive.end : end].strip()
    return text[:begin] + text[end:] if alone else text[: directive.begin] + text[directive.end :]


def indent_of(text: str, place: int) -> str:
    """Return the blanks before a place in its line."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def localize(lines: Iterable[str], given: Sequence[Directive]) -> list[str]:
    """Replace the private instance's log by the one that the installed file names, else Debian's."""
    logs = [word for each in given for word in each.arguments if word.startswith("/")]
    log = logs[0] if logs else "/var/log/nginx/access.log"
    return [line.replace(str(SITE.access_log), log) for line in lines]


def change_listen(text: str, change: Change) -> str:
    """Give the default server's sockets the options; an address may have them in one place only."""
    wanted = options_of(change.new)
    spoken = {option.partition("=")[0] for option in (*wanted, *options_of(change.old))}
    for each in reversed(read_outline(text)):
        if each.name == "listen" and "default_server" in each.arguments:
            kept = [word for word in each.arguments if word.partition("=")[0] not in spoken]
            text = text[: each.begin] + " ".join(("listen", *kept, *wanted)) + ";" + text[each.end :]
    return text


def options_of(lines: Sequence[str]) -> list[str]:
    """Take the socket options of listen directives: all but address and default_server."""
    options = [word for line in lines for word in line.rstrip(";").split()[2:]]
    return [word for word in dict.fromkeys(options) if word != "default_server"]


def write_listing(summary: "Summary", changes: Sequence[Change]) -> str:
    """List the changes by block, for configurations that are laid out in another way."""
    parts = [
        comment(
            *describe_origin(summary),
            f"{MAIN_FILE} is not on this machine: merge these by hand, each into its block; then nginx -t",
            "undo: put back the values that are given after `was`",
        )
    ]
    for context in dict.fromkeys(change.context for change in changes):
        lines = []
        for change in changes:
            if change.context == context:
                was = " ".join(localize(change.old, ())) or "not given"
                new = localize(change.new, ())
                lines += [f"{line}  # was: {was}" for line in new] or [f"# without: {was}"]
        indent = "    " * len(context)
        opening = "".join(f"{'    ' * depth}{name} {{\n" for depth, name in enumerate(context))
        closing = "".join(f"{'    ' * depth}}}\n" for depth in reversed(range(len(context))))
        parts.append(opening + "".join(f"{indent}{line}\n" for line in lines) + closing)
    return "\n".join(parts)
