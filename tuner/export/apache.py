"""A file for Apache's conf-available, and a script that takes it away again.

Debian includes conf-enabled after mods-enabled (apache2.conf), and of a directive that is given twice at
server level the last one counts, so the fragment overrides mods-available/mpm_event.conf.
"""

import shlex
from typing import TYPE_CHECKING

from tuner.export.provenance import comment, describe_origin
from tuner.export.rendered import SITE, Rendered
from tuner.ports import Files

if TYPE_CHECKING:
    from tuner.report.summary import Summary

NAME, UNDO = "tuner-apache.conf", "tuner-apache-undo.sh"
DIRECTORY = "/etc/apache2/conf-available"


def export_apache(summary: "Summary", rendered: Rendered, _installed: Files) -> dict[str, bytes]:
    """Write the directives that differ, at server level."""
    before, after = read_files(rendered.default), read_files(rendered.winner)
    lines: list[str] = []
    elsewhere: list[str] = []
    for name in dict.fromkeys([*after, *before]):
        old, new = before.get(name, []), after.get(name, [])
        added = [line for line in new if line not in old]
        dropped = [line for line in old if line not in new]
        if any(is_private(line) for line in (*added, *dropped)):
            elsewhere += [f"instead of {line}" for line in dropped] + [f"use {line}" for line in added]
        else:
            lines += added
            elsewhere += [] if added else [f"without {line}" for line in dropped]
    if not lines and not elsewhere:
        return {}
    head = comment(
        *describe_origin(summary),
        f"apply: cp {NAME} {DIRECTORY}/ && a2enconf {NAME.removesuffix('.conf')} && apachectl configtest",
        "then stop and start Apache: a reload changes neither ServerLimit, ThreadLimit nor ListenBacklog",
        f"undo: sh {UNDO}",
    )
    tail = comment("", "change by hand, where your sites have it:", *elsewhere) if elsewhere else ""
    tail = tail.replace(str(SITE.directory), "${APACHE_LOG_DIR}")
    return {NAME: (head + "".join(f"{line}\n" for line in lines) + tail).encode(), UNDO: write_undo(summary)}


def is_private(line: str) -> bool:
    """Tell whether a directive names a file of the private instance, as a site's CustomLog does."""
    return str(SITE.directory) in line


def write_undo(summary: "Summary") -> bytes:
    """Write the commands that take the fragment away."""
    path = shlex.quote(f"{DIRECTORY}/{NAME}")
    return (
        "#!/bin/sh\n"
        + comment(*describe_origin(summary), "takes these settings away again; run as root")
        + "set -eu\n"
        + f"a2disconf {NAME.removesuffix('.conf')}\n"
        + f"rm -f {path}\n"
        + "apachectl configtest\n"
        + 'echo "Stop and start Apache now: systemctl restart apache2"\n'
    ).encode()


def read_files(files: Files) -> dict[str, list[str]]:
    """Read the directives of all files by lower-case name, with the blanks between words made one.

    Directives within sections count like those outside: the sections are the private instance's own.
    """
    found: dict[str, list[str]] = {}
    for path, content in sorted(files.items()):
        if path.suffix != ".conf":
            continue
        for line in content.decode().replace("\\\n", " ").splitlines():
            words = line.split()
            if words and not words[0].startswith(("#", "<")):
                found.setdefault(words[0].lower(), []).append(" ".join(words))
    return found
