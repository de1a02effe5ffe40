"""`tuner check` of a managed study: what is installed, what stands in the way. It only reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuner import plugins
from tuner.campaign.prepare import Rig, find_target, prepare
from tuner.commands.check import capacity_lines, refuse_failures
from tuner.commands.preview import Preview, preview
from tuner.deploy.managed import ManagedTarget
from tuner.deploy.managed_server import Installed, first_process
from tuner.errors import TargetError, TrialFailed, UsageError
from tuner.hosts.conflicts import Conflict
from tuner.hosts.root_commands import WitnessedHost
from tuner.hosts.sudoers import write_sudoers
from tuner.measure.window import run_window
from tuner.ports import Argv, Host
from tuner.records import Window
from tuner.restore.keeper.requests import KEEPER, commands_needing_root
from tuner.restore.recovery import describe_use
from tuner.study import Study
from tuner.study.presets import PRESETS
from tuner.study.trust import name_programs, refuse_own_settings, refuse_untrusted

LOAD_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedFindings:
    """What a check saw of a host with installed services."""

    rig: Rig
    target: ManagedTarget
    window: Window
    conflicts: tuple[Conflict, ...]
    preview: Preview
    shows_plan: bool

    def as_text(self) -> str:
        """Say everything in a few lines; with the plan when it was asked for."""
        rig, found = self.rig, self.rig.fingerprint
        settings = rig.settings
        lines = [
            f"study      {settings.name} ({settings.path})",
            f"host       {rig.host.name}: {found.host}, Linux {found.kernel}, {found.cores} CPUs",
            *(f"server     {_describe(part)}" for part in self.target.parts),
            f"load       {settings.load.describe()}; {found.generator}",
            f"placement  {rig.placement.note}",
            f"space      {len(self.preview.reaches)} parameters are tuned, from their present values on",
            *(f"left out   {name}: {reason}" for name, reason in rig.space.left_out.items()),
            f"now        {self.window.goodput_rps:,.0f} requests/s, {self.window.failures.total} failures",
            *capacity_lines(rig, "now"),
            *(f"warning    {each.gate}: {each.reason}" for each in self.window.verdicts),
            *(f"warning    {each}" for each in self.conflicts),
        ]
        if self.shows_plan:
            lines.append(self.preview.as_text())
        else:
            lines.append(f"changes    shown by: tuner check {settings.path} --plan")
        return "\n".join([*lines, f"ready      tuner run {settings.path}"])

    def as_json(self) -> Mapping[str, Any]:
        """Give the same for scripts."""
        found = self.rig.fingerprint
        return {
            "study": self.rig.settings.name,
            "servers": dict(found.servers),
            "generator": found.generator,
            "host": found.host,
            "kernel": found.kernel,
            "co_located": found.co_located,
            "parameters": [each.name for each in self.preview.reaches],
            "left_out": dict(self.rig.space.left_out),
            "now": {"goodput_rps": self.window.goodput_rps, "failures": self.window.failures.total},
            "capacity": {"default": self.rig.space.capacity(self.rig.space.default())},
            "warnings": [
                *(f"{each.gate}: {each.reason}" for each in self.window.verdicts),
                *map(str, self.conflicts),
            ],
            "plan": self.preview.as_json(),
        }


def check_managed(settings: Study, *, trusts: bool, shows_plan: bool) -> ManagedFindings:
    """Look at everything that a run needs, and change nothing.

    Args:
        settings: the study.
        trusts: whether its own commands are run, and settings that tuner's own spaces do not have are shown.
        shows_plan: whether the text holds the plan.

    Raises TargetError for what a run would stumble over.
    """
    if not trusts:
        refuse_untrusted(settings.path, name_programs(settings))
    rig = prepare(settings)
    if not trusts:
        refuse_own_settings(settings.path, rig.space, rig.facts.values())
    target = rig.target
    if not isinstance(target, ManagedTarget):
        message = f"{settings.path}: target: it is a sandbox. Write `mode: managed` for installed services."
        raise UsageError(message)
    if used := describe_use(rig.host):
        raise TargetError(" ".join(used))
    plan = PRESETS[settings.preset].fit(minutes=settings.minutes, trials=settings.trials)
    seen = preview(rig, target, plan)
    conflicts = target.refuse_conflicts()
    try:
        with target.aimed():
            window = run_window(target.as_found(), rig.load, LOAD_S)
    except TrialFailed as failed:
        message = f"{rig.host.name}: what is installed cannot be measured ({failed.kind}). {failed}"
        raise TargetError(message) from failed
    refuse_failures(settings, window)
    return ManagedFindings(
        rig=rig, target=target, window=window, conflicts=conflicts, preview=seen, shows_plan=shows_plan
    )


def print_sudoers(settings: Study) -> str:
    """Write the sudoers file for the user that the study logs in as."""
    host = WitnessedHost(plugins.make_host(settings.target.host))
    target = find_target(settings, host).target
    commands = (*commands_of(target), *host.as_root)
    return write_sudoers(host, user_of(host), commands, open_ended=[KEEPER])


def commands_of(target: ManagedTarget) -> tuple[Argv, ...]:
    """Name every command that a study runs as root on the host, besides the keeper."""
    commands: list[Argv] = list(commands_needing_root())
    for part in target.parts:
        service = part.installation.service
        if service is not None:
            # The keeper stops, starts and reloads it.
            commands += [] if service.check is None else [service.check]
            pid = first_process(service)
            commands += [pid.argv] if pid.as_root else []
    return tuple(dict.fromkeys(commands))


def _describe(part: Installed) -> str:
    installation = part.installation
    version = ".".join(map(str, installation.facts.version))
    service = installation.service
    if service is None:
        return f"{part.name} {version}".strip()
    how = f"systemd's {service.name}" if service.is_systemd else f"the service {service.name}"
    files = ", ".join(map(str, installation.files))
    return f"{part.name} {version}, {how}, {len(installation.files)} files read: {files}"


def user_of(host: Host) -> str:
    """Ask who we are on the host."""
    return host.run(("id", "-un"), timeout_s=10.0).stdout.decode(errors="replace").strip()
