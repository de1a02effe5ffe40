"""Puts a winner on a host for good: it comes back by itself unless it is confirmed in time.

As `commit confirmed` of routers and `netplan try` do: who cuts himself off gets the old settings back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.commands.preview import diff_files
from tuner.commands.session import Reading
from tuner.deploy.managed import ManagedTarget
from tuner.errors import UsageError
from tuner.export import boot_files, kernel_settings, refuse_less_capacity, without_winner
from tuner.export.provenance import comment, describe_origin
from tuner.interrupts import uninterrupted
from tuner.ports import Config, Files, Host
from tuner.report.summary import Summary
from tuner.restore.journal import Journal, open_journal
from tuner.restore.lease import Lease
from tuner.restore.recovery import LastApply, find_applied
from tuner.space import Space
from tuner.study import Study, TargetSettings
from tuner.study.folder import refuse_writable_study
from tuner.study.open_storage import is_there
from tuner.study.study_log import logged

PURPOSE = "apply"
SYSCTL_FILE = PurePosixPath("/etc/sysctl.d/99-tuner.conf")
"""Read after the files of packages and most of the administrator's own (sysctl.d(5))."""
TMPFILES_FILE = PurePosixPath("/etc/tmpfiles.d/99-tuner.conf")
"""Writes settings under /sys at boot (tmpfiles.d(5))."""
RULES_FILE = PurePosixPath("/etc/udev/rules.d/99-tuner.rules")
"""Writes settings of network cards when they appear, which may be later than that (udev(7))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an apply writes on a host."""

    host: Host
    target: ManagedTarget
    config: Config
    files: Files
    risks: Mapping[str, Sequence[str]]
    """Risk → settings of it, which the study had to allow."""
    warnings: tuple[str, ...]
    """What else changes the host."""

    def as_json(self) -> dict[str, object]:
        """Return the same as `as_text`, for a program."""
        diffs = diff_files(self.host, self.files)
        return {
            "host": self.host.name,
            "files": {str(path): diff for path, diff in diffs.items() if diff},
            "risks": {risk: list(names) for risk, names in self.risks.items()},
            "warnings": list(self.warnings),
            "restarts": [service.name for service in self.target.services],
        }

    def as_text(self) -> str:
        """Return it as differences to what is there, with the risks and what is restarted."""
        services = ", ".join(service.name for service in self.target.services)
        lines = [f"apply changes on {self.host.name}:"]
        lines += [diff.rstrip("\n") for diff in diff_files(self.host, self.files).values() if diff]
        lines += [f"risk       {', '.join(names)}: {risk}" for risk, names in self.risks.items()]
        lines += [f"warning    {each}" for each in self.warnings]
        return "\n".join([*lines, *([f"restarts   {services}"] if services else []), "nothing was changed"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was put on a host."""

    files: tuple[PurePosixPath, ...]
    warnings: tuple[str, ...]
    """What else changes the host."""


def plan_change(
    reading: Reading, *, host_name: str | None, url: str | None, confirm_within_s: float
) -> Change:
    """Find out what putting the winner on a host writes; nothing is changed.

    Args:
        reading: the study; what differs from its default is applied, whatever else that host has.
        host_name: `local` or an ssh:// URL; the study's own target by default.
        url: what must answer; by default what the study loads, of a private instance `/`.
        confirm_within_s: seconds until the host takes it back.

    Raises:
        UsageError: the study has no winner, the host lacks a parameter of it, or it would hold less than now.
        TargetError: the host cannot be changed, or somebody else looks after it.
    """
    settings, winner = reading.settings, reading.summary.winner
    if winner is None:
        raise without_winner(reading.summary, "apply")
    refuse_less_capacity(reading.summary, "apply")
    chosen = {name: pair[1] for name, pair in reading.space.changes(winner.config).items()}
    there = settings_for(settings, host_name, url, confirm_within_s)
    host = plugins.make_host(there.target.host)
    found = find_target(there, host)
    target, space = found.target, found.space
    config = space.complete(chosen)
    warnings = tuple(map(str, target.refuse_conflicts(space.changes(config, derived=True))))
    _refuse_less_than_in_force(settings, space, chosen, host.name)
    before = {path: host.read(path).content or b"" for path in (SYSCTL_FILE, TMPFILES_FILE, RULES_FILE)}
    files = with_lasting_values(target.files(config), reading.summary, before)
    risks = {
        risk: own
        for risk, names in space.risks.items()
        if (own := [name for name in names if name in chosen])
    }
    return Change(host=host, target=target, config=config, files=files, risks=risks, warnings=warnings)


def apply_winner(
    reading: Reading, *, host_name: str | None, url: str | None, confirm_within_s: float
) -> Applied:
    """Put the winner on a host, check that it serves, and leave a watchdog that takes it back.

    Takes what `plan_change` takes, and raises what it raises, and:
        UsageError: for root, others may write to the study file.
        TargetError: another tuner is at work.
        TrialFailed: the host refuses the settings; everything is as before.
        RestoreFailed: it refused them and something could not be put back.
    """
    refuse_writable_study(reading.settings.path)
    change = plan_change(reading, host_name=host_name, url=url, confirm_within_s=confirm_within_s)
    host, target, files = change.host, change.target, change.files
    with logged(reading.settings.folder), open_journal() as journal:
        lease = Lease(
            host, journal=journal, purpose=PURPOSE, study=reading.settings.name, watchdog_s=confirm_within_s
        )
        try:
            lease.arm(target.services, urls=target.urls, files=target.files_read)
            with target.held_by(lease), target.deploy(change.config, files=files):
                lease.await_confirmation()
        except BaseException:
            with uninterrupted():
                lease.restore()
            raise
        # From here on the host alone decides: by its deadline, `tuner confirm`, or `tuner apply --undo`. The
        # copy here stays until it has: the host may lose what it keeps.
    return Applied(files=tuple(files), warnings=change.warnings)


def find_own_apply(settings: Study, host: Host, journal: Journal) -> LastApply | None:
    """Return what was applied last on a host, if it is of this study; None when nothing is applied there.

    Raises:
        UsageError: it is of another study, or there is none and this study never ran.
        TargetError: nothing was ever applied there, or root is needed.
    """
    applied = find_applied(host, journal)
    if applied is not None and applied.study in {settings.name, ""}:
        return applied
    if applied is not None:
        raise UsageError(
            f"{settings.path}: the last apply on {host.name} belongs to the study {applied.study}, not to "
            f"{settings.name}. Name the file of the study {applied.study}."
        )
    if not is_there(settings.storage_url):
        raise UsageError(
            f"{settings.path}: this study never ran, and nothing is applied on {host.name}. Run the study "
            "first."
        )
    return None


def _refuse_less_than_in_force(settings: Study, space: Space, chosen: Config, host: str) -> None:
    """Raise UsageError when the host holds more at once than it would with these settings."""
    if space.allows_less:
        return
    fitted = space.complete(chosen, fit=True)
    if all(fitted.get(name) == value for name, value in chosen.items()):
        return
    if lacks := space.lacks(space.open().complete(chosen, fit=True)):
        raise UsageError(
            f"{settings.name}: the winner has less capacity than {host} has now: {'; '.join(lacks)}. Tune "
            f"{host} itself with `mode: managed`, or write `- {{allow: [capacity]}}` under `space:`."
        )


def settings_for(settings: Study, host_name: str | None, url: str | None, watchdog_s: float) -> Study:
    """Return the study's settings for the installed services of a host."""
    is_private = not settings.target.is_managed
    path = url or ("/" if is_private else settings.load.path)
    own = {"host": host_name or settings.target.host, "mode": "managed", "watchdog_s": watchdog_s}
    target = TargetSettings().model_copy(update=own)  # a change may wait longer than a study
    return replace(settings, target=target, load=replace(settings.load, path=path))


def with_lasting_values(files: Files, summary: Summary, before: Files) -> Files:
    """Add the files that set the kernel's values again at the next boot, after what they set already.

    Args:
        files: what is applied.
        summary: the study that found it.
        before: these files as an earlier apply left them.
    """
    lines = find_lasting_lines(files)
    head = comment(*describe_origin(summary))
    lasting = {
        place: "".join((head, *_keep_others(before.get(place, b""), own, place), *own))
        for place, own in lines.items()
    }
    return {**files, **{path: text.encode(errors="surrogateescape") for path, text in lasting.items()}}


def find_lasting_lines(files: Files) -> dict[PurePosixPath, list[str]]:
    """Return the lines that set the kernel's values at boot, by the file that holds them."""
    lines: dict[PurePosixPath, list[str]] = {}
    for path, content in files.items():
        if path.is_relative_to(kernel_settings.ROOT):
            line = kernel_settings.write_line(path, kernel_settings.read_value(content))
            lines.setdefault(SYSCTL_FILE, []).append(line)
        elif path.is_relative_to(boot_files.ROOT):
            is_of_card = boot_files.is_of_card(path)
            write = boot_files.write_rule if is_of_card else boot_files.write_line
            place = RULES_FILE if is_of_card else TMPFILES_FILE
            lines.setdefault(place, []).append(write(path, boot_files.read_value(content)))
    return lines


def _keep_others(before: bytes, own: Sequence[str], place: PurePosixPath) -> list[str]:
    """Return what a file sets already, but for what is set anew."""
    keys = {_key(line, place) for line in own}
    written = before.decode(errors="surrogateescape").splitlines()
    lines = [line for line in written if line.strip() and not line.lstrip().startswith(("#", ";"))]
    return [f"{line}\n" for line in lines if _key(line, place) not in keys]


def _key(line: str, place: PurePosixPath) -> str:
    """Read what a line sets; a key of sysctl.d(5) may be written with dots or slashes."""
    if place == SYSCTL_FILE:
        return line.partition("=")[0].strip().replace("/", ".")
    # All but the value, which stands last.
    return line.rpartition('="' if place == RULES_FILE else " ")[0]
