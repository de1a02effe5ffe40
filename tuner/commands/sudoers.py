"""`tuner check --sudoers`: the sudoers file for what a study runs as root on its target."""

from collections.abc import Callable, Iterable

from tuner import plugins
from tuner.deploy.discovery import find_services, first_process
from tuner.deploy.manner import look_at_manner
from tuner.errors import TargetError
from tuner.hosts.sudoers import RootCommandRecorder, write_sudoers
from tuner.ports import Argv, InstalledServer, Service
from tuner.restore.keeper.requests import KEEPER, commands_needing_root
from tuner.space.problems import in_file
from tuner.study import Study


def make_sudoers(settings: Study, *, warn: Callable[[str], None]) -> str:
    """Return the sudoers file for the user that the study logs in as.

    Nothing may be allowed yet, so everything is asked without root first, and as root where that fails.
    When both fail, the file holds what was asked for, and `warn` is told to ask again with it.
    """
    host = plugins.make_host(settings.target.host)
    with in_file(settings.path):
        adapters = [
            plugins.make_installed_server(name, **settings.adapter_options(name)) for name in settings.servers
        ]
    user = host.run(("id", "-un"), timeout_s=10.0).stdout.decode(errors="replace").strip()
    recorder = RootCommandRecorder(host)
    services: tuple[Service, ...] = ()
    try:
        services = _find_services(recorder, adapters)
    except TargetError as error:
        if not recorder.commands:
            raise
        warn(
            f"{settings.path}: this sudoers file is incomplete: {error} Install the missing program and run "
            "the same command again. Then tuner prints the complete file."
        )
    commands = dict.fromkeys((*_commands_of(services), *recorder.commands))
    return write_sudoers(host, user, tuple(commands), open_ended=[KEEPER])


def _find_services(recorder: RootCommandRecorder, adapters: Iterable[InstalledServer]) -> tuple[Service, ...]:
    try:
        return find_services(recorder, adapters)
    except TargetError as refused:
        recorder.is_root = True
        try:
            return find_services(recorder, adapters)
        except TargetError:
            raise refused from None


def _commands_of(services: Iterable[Service]) -> tuple[Argv, ...]:
    """Return every command that a study runs as root; the keeper stops, starts and reloads services."""
    commands: list[Argv] = list(commands_needing_root())
    for service in services:
        commands += [] if service.check is None else [service.check]
        pid = first_process(service)
        commands += [pid.argv, look_at_manner(service).argv] if pid.as_root else []
    return tuple(dict.fromkeys(commands))
