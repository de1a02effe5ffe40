"""The text of a pull request: verdict, the effect of each change, the differences, and the way back."""

import re
import shlex

from tuner.export.formats.containers import name_setting
from tuner.export.host_change import FileChange, HostChange
from tuner.export.provenance import explained_settings
from tuner.export.result_tables import result_as_markdown
from tuner.report.summary import Summary
from tuner.report.tables import escape_markdown, markdown_table
from tuner.report.wording import make_lines_printable, say_estimate

NAME = "tuner.md"


def write_markdown(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write one page with the differences, and how they are taken back."""
    parts = [result_as_markdown(summary).rstrip("\n")]
    if effects := _effects(summary):
        parts += ["#### Effect per setting", "\n".join(effects)]
    parts += ["#### Files", *(_fenced(each) for each in change.files)] if change.files else []
    if change.settings:
        rows = [(name_setting(each), each.before, each.after) for each in change.settings]
        parts += [
            "#### Settings of the kernel",
            "\n".join(markdown_table(("setting", "before", "after"), rows)),
        ]
    if change.notes:
        parts += ["#### Notes", "\n".join(f"- {escape_markdown(note.strip())}" for note in change.notes)]
    parts += ["#### Undo", _way_back(change)]
    return {NAME: ("\n\n".join(parts) + "\n").encode(errors="replace")}


def _effects(summary: Summary) -> list[str]:
    show = summary.space.show
    rows = [
        (
            setting.parameter,
            show(setting.parameter, setting.default),
            show(setting.parameter, setting.value),
            say_estimate(setting.effect),
        )
        for setting in explained_settings(summary)
    ]
    return markdown_table(("setting", "default", summary.side, "effect, 95 % CI"), rows) if rows else []


def _fenced(file: FileChange) -> str:
    """Return the difference of a file, in a fence that is longer than any in it."""
    if file.is_private:
        return f"- {escape_markdown(str(file.path))}: not shown, because not every user may read this file"
    patch = make_lines_printable(file.write_patch().rstrip("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", patch)), default=0))
    return f"{fence}diff\n{patch}\n{fence}"


def _way_back(change: HostChange) -> str:
    lines = [
        "Revert this commit, then check the configuration and restart the services:",
        "",
        "```sh",
    ]
    lines += [f"sysctl -w {each.key}='{each.before}'" for each in change.settings if each.is_sysctl]
    lines += [f"echo '{each.before}' > {each.path}" for each in change.settings if not each.is_sysctl]
    for service in change.services:
        check = f"{shlex.join(service.check)} && " if service.check else ""
        verb = "reload" if service.may_reload else "restart"
        told = ("systemctl", verb, service.name) if service.is_systemd else ("service", service.name, verb)
        lines.append(f"{check}{shlex.join(told)}")
    return "\n".join([*lines, "```"])
