"""Name the commands that start and stop an installed service: systemd's, an init script's, or its own."""

from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Argv, Command, FileReader, Service

# sd_booted(3): this directory is there exactly when systemd runs as the service manager.
ASK_FOR_SYSTEMD = Command(argv=("test", "-d", "/run/systemd/system"), may_fail=True)
_SYSTEMCTL = "/usr/bin/systemctl"
_SERVICE = "/usr/sbin/service"
_VERBS = ("stop", "start", "reload")


def init_script(name: str) -> PurePosixPath:
    """Name the init script of a service."""
    return PurePosixPath("/etc/init.d") / name


def make_service(
    name: str,
    *,
    check: Argv | None,
    own: Argv | None,
    verbs: tuple[str, str, str] = _VERBS,
    pid_file: PurePosixPath,
    is_systemd: bool,
    look: FileReader,
) -> Service:
    """Choose who starts and stops a service.

    Args:
        name: of its unit or init script.
        check: what must accept the configuration first.
        own: how the program itself is controlled where nobody manages it, but for the last word; None when
            it cannot be.
        verbs: that last word, to stop, start and reload.
        pid_file: where it writes its process id.
        is_systemd: whether systemd manages the machine.
        look: knows whether there is an init script.

    Raises:
        TargetError: nobody manages it, and it cannot be controlled by itself.
    """
    if is_systemd:
        commands: list[Argv] = [(_SYSTEMCTL, verb, name) for verb in _VERBS]
    elif look.read(init_script(name)).content is not None:
        commands = [(_SERVICE, name, verb) for verb in _VERBS]
    elif own is None:
        raise TargetError(
            f"{name}: neither systemd nor {init_script(name)} is there to start it. Install one of them."
        )
    else:
        commands = [(*own, verb) for verb in verbs]
    stop, start, reload = commands
    return Service(
        name=name,
        check=check,
        stop=stop,
        start=start,
        reload=reload,
        is_systemd=is_systemd,
        pid_file=pid_file,
    )
