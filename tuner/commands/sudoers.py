"""`tuner check --sudoers`: the sudoers file for what a study runs as root on its target."""

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.deploy.discovery import first_process
from tuner.deploy.managed import ManagedTarget
from tuner.hosts.root_commands import RootCommandRecorder
from tuner.hosts.sudoers import write_sudoers
from tuner.ports import Argv
from tuner.restore.keeper.requests import KEEPER, commands_needing_root
from tuner.study import Study


def make_sudoers(settings: Study) -> str:
    """Return the sudoers file for the user that the study logs in as."""
    host = RootCommandRecorder(plugins.make_host(settings.target.host))
    target = find_target(settings, host).target
    user = host.run(("id", "-un"), timeout_s=10.0).stdout.decode(errors="replace").strip()
    return write_sudoers(host, user, (*_commands_of(target), *host.commands), open_ended=[KEEPER])


def _commands_of(target: ManagedTarget) -> tuple[Argv, ...]:
    """Return every command that a study runs as root; the keeper stops, starts and reloads services."""
    commands: list[Argv] = list(commands_needing_root())
    for service in target.services:
        commands += [] if service.check is None else [service.check]
        pid = first_process(service)
        commands += [pid.argv] if pid.as_root else []
    return tuple(dict.fromkeys(commands))
