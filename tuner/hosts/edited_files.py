"""Finds files that were edited after their server has read them: the first restart would activate them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.hosts.conflicts import Conflict
from tuner.ports import Command, Host

# A reload makes new children; a unit of systemd changes its state as well (proc_pid_stat(5), 22: starttime).
SHOW_EDITED = r"""
pid=$1 unit=$2
shift 2
started() { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 20; }
boot=$(sed -n 's/^btime //p' /proc/stat) ticks=$(getconf CLK_TCK) first=
for process in $(cat "/proc/$pid/task/$pid/children"); do
  own=$(started "$process") && [ -n "$own" ] || continue
  if [ -z "$first" ] || [ "$own" -lt "$first" ]; then first=$own; fi
done
loaded=$((boot + ${first:-$(started "$pid")} / ticks + 1))
if [ -n "$unit" ]; then
  changed=$(systemctl show --value --property=StateChangeTimestampMonotonic -- "$unit")
  [ "$((boot + changed / 1000000 + 1))" -le "$loaded" ] || loaded=$((boot + changed / 1000000 + 1))
fi
for file; do
  edited=$(stat -L -c %Y -- "$file") || continue
  [ "$edited" -le "$loaded" ] || printf '%s\n' "$file"
done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server, and the files that it reads when it starts."""

    name: str
    pid: int
    unit: str
    """Of systemd; empty without."""
    files: Sequence[PurePosixPath]


def find_unloaded(host: Host, servers: Sequence[RunningServer]) -> Iterator[Conflict]:
    """Yield one warning for each server that has not read its files as they are now."""
    done = host.run_all([_look_at(server) for server in servers])
    for server, completed in zip(servers, done, strict=False):
        edited = completed.stdout.decode(errors="replace").splitlines()
        if edited:
            yield Conflict(
                what=(
                    f"{server.name} has not loaded the latest edits of these files; the first trial loads "
                    "these edits"
                ),
                where=", ".join(edited),
                remedy=f"Check the edits and reload {server.name}, or undo them.",
            )


def _look_at(server: RunningServer) -> Command:
    arguments = (str(server.pid), server.unit, *map(str, server.files))
    return Command(argv=("sh", "-c", SHOW_EDITED, "look", *arguments), may_fail=True)
