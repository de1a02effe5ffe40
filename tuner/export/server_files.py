"""The files of one server in the form that fits them, and the change of all servers as a person pastes it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import dropwhile

from tuner.errors import TargetError, UsageError
from tuner.export.boot_files import are_boot_files, export_boot_files
from tuner.export.drop_in import export_drop_in
from tuner.export.host_change import FileChange, find_change, installed_of
from tuner.export.kernel_settings import are_kernel_settings, export_kernel_settings
from tuner.export.listing import export_listing
from tuner.export.provenance import comment, describe_by_hand
from tuner.export.rendered import Rendered
from tuner.export.rewritten import Rewritten, export_rewritten
from tuner.report.summary import Summary
from tuner.report.wording import can_be_copied


def export_server(summary: Summary, server: str, found: Rendered | Rewritten) -> dict[str, bytes]:
    """Write one server's files: keys of the kernel, a drop-in, a patch or a listing."""
    if isinstance(found, Rewritten):
        if are_kernel_settings(found.after):
            return export_kernel_settings(
                summary, found.before, found.after, is_present=True, by_hand=found.by_hand,
                lowered=found.lowered,
            )  # fmt: skip
        if are_boot_files(found.after):
            return export_boot_files(summary, found.before, found.after, by_hand=found.by_hand)
        return export_rewritten(summary, server, found)
    if are_kernel_settings(found.winner):
        return export_kernel_settings(summary, found.default, found.winner, is_present=False)
    if found.drop_in is not None:
        return export_drop_in(summary, server, found, found.drop_in)
    return export_listing(summary, server, found)


def write_change(summary: Summary, differences: Mapping[str, Rendered | Rewritten]) -> str:
    """Write a patch of the installed files, and of those that set the kernel's values at each boot.

    After it stands what has to be changed by hand. For a server whose installed files are not changed, its
    export stands there, without the head.

    Args:
        summary: a study with a winner, or with a candidate in its place.
        differences: server → what the choice makes of its files.
    """
    parts: list[str] = []
    with suppress(UsageError, TargetError):  # no installed file differs, or one has a strange path
        change = find_change(summary, differences).with_boot_files("")
        parts += map(_write_patch, change.files)
    installed = [one for each in differences.values() if (one := installed_of(each)) is not None]
    parts.append(comment(*(line for one in installed for line in describe_by_hand(summary, one.by_hand))))
    for name, each in differences.items():
        if installed_of(each) is None:
            parts += _write_first(export_server(summary, name, each))
    return "".join(parts)


def _write_patch(change: FileChange) -> str:
    """Return the patch of one file; a remark for content that is not the same after it was pasted."""
    try:
        texts = [each.decode() for each in (change.before, change.after) if each is not None]
    except UnicodeDecodeError:
        texts = ["\0"]
    if all(map(can_be_copied, texts)):
        return change.write_patch(context=1)
    return comment(f"{change.path}: has signs that cannot be pasted. Use the files of an export.")


def _write_first(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the first file of an export without its head; the others are its undo."""
    for name, content in list(files.items())[:1]:
        lines = content.decode(errors="replace").splitlines(keepends=True)
        body = "".join(dropwhile(lambda line: line.startswith("# "), lines)).strip("\n")
        yield f"# {name}\n{body}\n"
