"""Describe what starts, reloads and stops an installed service: systemd, an init script or the program."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.ports import Argv, Command, Completed, Host, Service

SPARE_TASKS = 64
"""Tasks besides those that serve: for the first process, helpers and those that are still ending."""

_UNIT_DIRECTORIES = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
# Stops a daemon that only its pid file knows. The id may be another program's by now, so its title is read.
# Not with `read`, which fails where the line has no end, as php-fpm writes it. Words are kept whole without
# quotes, which no sudoers file can hold.
_STOP = (
    "set -f; IFS=; pid=$(cat -- $1) && grep -qaF -e $2 /proc/$pid/cmdline && kill -TERM $pid"
    " && while grep -qaF -e $2 /proc/$pid/cmdline; do sleep 0.1; done; exit 0"
)
# A daemon leaves its starter's process group a moment after that has ended (daemon(7)), so that who cleans up
# behind the starter could meet it there.
_APART = ("setsid", "--wait")


def name_service(host: Host, names: Sequence[str]) -> str:
    """Return the first of these names that a service of the host has; the first where none has."""
    if len(names) > 1:
        for name in names:
            _, *found = host.run_all(probe_service(name))
            if any(each.returncode == 0 for each in found):
                return name
    return names[0]


def probe_service(name: str) -> tuple[Command, ...]:
    """Return the commands whose results `describe_service` reads."""
    # Where systemd is not the first process, units are of no use (sd_booted(3)).
    tests = (
        ("-d", "/run/systemd/system"),
        *(("-e", f"{directory}/{name}.service") for directory in _UNIT_DIRECTORIES),
        ("-x", f"/etc/init.d/{name}"),
    )
    return tuple(Command(argv=("test", *test), may_fail=True) for test in tests)


def describe_service(
    name: str,
    probed: Sequence[Completed],
    *,
    check: Argv,
    start: Argv,
    reload: Argv | None,
    title: str,
    pid_file: PurePosixPath,
) -> Service:
    """Return systemd's commands where it runs and has the unit, else the init script's, else the program's.

    Args:
        name: of the unit and of the init script.
        probed: what the commands of `probe_service` gave.
        check: accepts the configuration.
        start: starts the program itself as a daemon.
        reload: lets the running program itself read its configuration again.
        title: what the command line of its first process has in it.
        pid_file: where it leaves its process id.
    """
    has_systemd, *units, script = (each.returncode == 0 for each in probed)
    is_systemd = has_systemd and any(units)
    stop: Argv = ("sh", "-c", _STOP, f"stop-{name}", str(pid_file), title)
    restart: Argv | None = None
    if is_systemd:
        stop, start, restart, reload = (
            ("systemctl", verb, name) for verb in ("stop", "start", "restart", "reload")
        )
    elif script:
        stop, reload = (("service", name, verb) for verb in ("stop", "reload"))
        # service(8) takes away the environment that the service had.
        start = (f"/etc/init.d/{name}", "start")
    return Service(
        name=name,
        check=check,
        stop=stop,
        start=start if is_systemd else (*_APART, *start),
        restart=restart,
        reload=reload,
        is_systemd=is_systemd,
        pid_file=pid_file,
        title=title,
    )


def find_service(
    host: Host,
    name: str,
    *,
    check: Argv,
    start: Argv,
    reload: Argv | None = None,
    title: str,
    pid_file: PurePosixPath,
) -> Service:
    """Ask the host what starts the service, and describe it as `describe_service` does."""
    return describe_service(
        name, host.run_all(probe_service(name)),
        check=check, start=start, reload=reload, title=title, pid_file=pid_file,
    )  # fmt: skip
