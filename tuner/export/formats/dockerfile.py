"""Lines for a Dockerfile, with the files that they copy.

An image holds files. The kernel's settings and the limits of a container are given where it is started, so
they stand in the head as options of `docker run`.
"""

import json
import shlex

from tuner.export.formats.containers import describe_node, find_open_files, image_files, split_settings
from tuner.export.host_change import FileChange, HostChange, describe_change
from tuner.export.rewritten import NEW_MODE
from tuner.report.summary import Summary

FOLDER = "tuner-dockerfile"


def write_dockerfile(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write the lines, and beside them the files that they copy; the undo is to leave them out."""
    settings, files = split_settings(change), image_files(change)
    options = [f"--sysctl {shlex.quote(f'{each.key}={each.after}')}" for each in settings.of_pod]
    options += [f"--ulimit nofile={limit}:{limit}" for limit in find_open_files(change)]
    head = describe_change(
        summary,
        change,
        f"apply: put these lines at the end of a Dockerfile that has the folder {FOLDER} next to it",
        "undo:  leave these lines out, and build again",
        *([f"start containers with: docker run {' '.join(options)} IMAGE"] if options else []),
        *describe_node(settings),
    )
    lines = [
        f"COPY {_mode(each)}{json.dumps([f'{FOLDER}/files{each.path}', str(each.path)])}" for each in files
    ]
    lines += [f"RUN {json.dumps(each.check)}" for each in change.services if each.check is not None]
    return {
        f"{FOLDER}/Dockerfile": (head + "".join(f"{line}\n" for line in lines)).encode(),
        **{f"{FOLDER}/files{each.path}": each.after for each in files if each.after is not None},
    }


def _mode(file: FileChange) -> str:
    """Return the option that sets the mode of a file; empty for the usual mode, as old builders lack it."""
    return "" if file.mode == NEW_MODE else f"--chmod={file.mode:04o} "
