"""A profile of TuneD: settings of the kernel by its own plugins, files of servers by its script plugin.

What TuneD changes it puts back itself when another profile is chosen (tuned.conf(5), tuned-profiles(7)).
"""

from dataclasses import replace

from tuner.export.formats.shell import APPLY, UNDO, write_scripts
from tuner.export.host_change import HostChange, describe_change
from tuner.report.summary import Summary

NAME = "tuner"
SCRIPT = """\
#!/bin/sh
# Called by TuneD: the profile is chosen, left, or asked whether it is still active.
set -eu
cd "$(dirname "$0")"
case $1 in
  start) sh ./{apply} ;;
  # On a shutdown the files stay; with another profile they go.
  stop) if [ "${{2:-}}" = full_rollback ]; then sh ./{undo}; fi ;;
  verify) sh ./{apply} --check ;;
esac
"""


def write_tuned(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write the folder of the profile; with scripts where files of servers change."""
    made = f"chmod +x /etc/tuned/{NAME}/script.sh && " if change.files else ""
    head = describe_change(
        summary,
        change,
        f"apply: cp -r {NAME} /etc/tuned/ && {made}tuned-adm profile {NAME}",
        *_describe_restart(change),
        "to keep another profile as well: tuned-adm profile OTHER tuner",
        "undo:  tuned-adm profile OTHER, or tuned-adm off; then rm -r the profile's folder",
    )
    lines = ["[main]", "summary=Settings that tuner found"]
    sysctls = [each for each in change.settings if each.is_sysctl]
    others = [each for each in change.settings if not each.is_sysctl]
    lines += ["", "[sysctl]", *(f"{each.key}={each.after}" for each in sysctls)] if sysctls else []
    lines += ["", "[sysfs]", *(f"{each.path}={each.after}" for each in others)] if others else []
    files: dict[str, bytes] = {}
    if change.files:
        lines += ["", "[script]", "script=${i:PROFILE_DIR}/script.sh"]
        files = {f"{NAME}/script.sh": SCRIPT.format(apply=APPLY, undo=UNDO).encode()}
        # TuneD has plugins for the settings, and none for files.
        files |= write_scripts(summary, replace(change, settings=()), NAME)
    text = head + "".join(f"{line}\n" for line in lines)
    return {f"{NAME}/tuned.conf": text.encode(), **files}


def _describe_restart(change: HostChange) -> list[str]:
    """Return a line about services that only a restart gives the limits of the kernel."""
    names = " ".join(each.name for each in change.services)
    if not names or not change.settings:
        return []
    return [f"then restart {names}: a listening socket keeps the limits with which it was opened"]
