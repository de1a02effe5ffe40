"""Refuses services whose process could not be made again without systemd: a restart would lose something."""

import re

from tuner.errors import TargetError
from tuner.ports import Command, Host, Service

TIMEOUT_S = 5.0
# No quotes: no sudoers file can hold them.
LOOK_AT_MANNER = (
    "set -f; IFS=; pid=$(cat -- $1) && cd /proc/$pid && unset IFS && cat status && set -- $(grep PPid status)"
    " && cat ../$2/status; echo cut $(grep -zcvF = environ); exit 0"
)
"""Prints the status of a process and of its parent, and how many entries of its environment are none."""
_WORD = re.compile(r"^(Pid|PPid|NSsid|cut)[:\s]+(.*)$", re.MULTILINE)


def look_at_manner(service: Service) -> Command:
    """Return the command that shows how a service's first process was started."""
    argv = ("sh", "-c", LOOK_AT_MANNER, "look", str(service.pid_file))
    return Command(argv=argv, timeout_s=TIMEOUT_S, as_root=True)


def refuse_lost_manner(host: Host, service: Service) -> None:
    """Raise TargetError where a restart without systemd could not make the process that runs now again."""
    told = host.run_all([look_at_manner(service)])[0].stdout.decode(errors="replace")
    words: dict[str, list[str]] = {}
    for word, value in _WORD.findall(told):
        words.setdefault(word, []).append(value.strip())
    sessions = words.get("NSsid", [])
    if words.get("Pid", [])[:1] == ["1"]:
        raise TargetError(
            f"{host.name}: {service.name} is the first process of its container, so a restart would end the "
            "container. Start the service as a daemon under an init process in the container."
        )
    # A daemon has left its parent. php-fpm has a session of its own in the foreground, too.
    is_child = words.get("PPid", ["1"])[0] not in {"0", "1"}
    if is_child or (len(sessions) == 2 and sessions[0] == sessions[1]):  # noqa: PLR2004 - its own and its parent's
        raise TargetError(
            f"{host.name}: {service.name} is supervised by process {words['PPid'][0]}, which would notice a "
            "restart. Start the service as a daemon, or with systemd."
        )
    if service.uses_environment and words.get("cut", ["0"]) != ["0"]:
        raise TargetError(
            f"{host.name}: {service.name} may need environment variables (`env`, `clear_env`) that its "
            "process title has overwritten, so a restart would lose them. Start the service with systemd."
        )
