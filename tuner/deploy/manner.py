"""Refuses services whose process could not be made again without systemd: a restart would lose something."""

from tuner.errors import TargetError
from tuner.ports import Host, Service

TIMEOUT_S = 5.0
LOOK_AT_MANNER = (
    "set -f; IFS=; pid=$(cat -- $1) && unset IFS && set -- $(sed s/.*\\)// /proc/$pid/stat)"
    " && echo process $pid $2 $4 && echo parent $(set -- $(sed s/.*\\)// /proc/$2/stat) && echo $4)"
    " && echo cut $(grep -zcv ^[^=][^=]*= /proc/$pid/environ); exit 0"
)
"""Prints process, parent and session; the parent's session; how many entries of its environment are none."""


def refuse_lost_manner(host: Host, service: Service) -> None:
    """Raise TargetError where a restart without systemd could not make the process that runs now again."""
    look = ("sh", "-c", LOOK_AT_MANNER, "look", str(service.pid_file))
    told = host.run(look, timeout_s=TIMEOUT_S, as_root=True).stdout.decode(errors="replace")
    words = dict(line.partition(" ")[::2] for line in told.splitlines())
    process = words.get("process", "").split()
    if process[:1] == ["1"]:
        raise TargetError(
            f"{host.name}: {service.name} is the first process of its container, which would end with it. "
            "Start it as a daemon under an init there."
        )
    if process[2:] and process[2] == words.get("parent"):
        raise TargetError(
            f"{host.name}: {service.name} is kept by process {process[1]}, which would notice a restart. "
            "Start it as a daemon, or with systemd."
        )
    if service.uses_environment and words.get("cut", "0") != "0":
        raise TargetError(
            f"{host.name}: {service.name} may need its environment (`env`, `clear_env`), which its title has "
            "overwritten: a restart would lose it. Start it with systemd, whose unit knows it."
        )
