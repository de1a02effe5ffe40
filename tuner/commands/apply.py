"""Puts a winner on a host for good: it comes back by itself unless it is confirmed in time.

As `commit confirmed` of routers and `netplan try` do: who cuts himself off gets the old settings back.
"""

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.commands.session import Reading
from tuner.errors import UsageError
from tuner.export import refuse_less_capacity
from tuner.export.kernel_settings import ROOT, read_value, write_line
from tuner.export.provenance import comment, describe_origin
from tuner.interrupts import uninterrupted
from tuner.ports import Config, Files
from tuner.report.summary import Summary
from tuner.restore.journal import open_journal
from tuner.restore.lease import Lease
from tuner.space import Space
from tuner.study import Study, TargetSettings

PURPOSE = "apply"
SYSCTL_FILE = PurePosixPath("/etc/sysctl.d/99-tuner.conf")
"""Read after the files of packages and most of the administrator's own (sysctl.d(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was put on a host."""

    files: tuple[PurePosixPath, ...]
    warnings: tuple[str, ...]
    """What else changes the host."""


def apply_winner(
    reading: Reading, *, host_name: str | None, url: str | None, confirm_within_s: float
) -> Applied:
    """Put the winner on a host, check that it serves, and leave a watchdog that takes it back.

    Args:
        reading: the study; what differs from its default is applied, whatever else that host has.
        host_name: `local` or an ssh:// URL; the study's own target by default.
        url: what must answer; by default what the study loads, of a private instance `/`.
        confirm_within_s: seconds until the host takes it back.

    Raises:
        UsageError: the study has no winner, the host lacks a parameter of it, or it would hold less than now.
        TargetError: the host cannot be changed, somebody else looks after it, or another tuner is at work.
        TrialFailed: the host refuses the settings; everything is as before.
        RestoreFailed: it refused them and something could not be put back.
    """
    settings, winner = reading.settings, reading.summary.winner
    if winner is None:
        raise UsageError(
            f"{settings.name}: there is no winner to apply, the study is {reading.summary.state}. Finish it "
            "with `tuner run`; if nothing beat the default, there is nothing to apply."
        )
    refuse_less_capacity(reading.summary, "apply")
    chosen = {name: pair[1] for name, pair in reading.space.changes(winner.config).items()}
    there = _settings_for(settings, host_name, url, confirm_within_s)
    host = plugins.make_host(there.target.host)
    found = find_target(there, host)
    target, space = found.target, found.space
    warnings = tuple(map(str, target.refuse_conflicts(chosen)))
    _refuse_less_than_in_force(settings, space, chosen, host.name)
    config = space.complete(chosen)
    files = with_lasting_values(target.files(config), reading.summary, host.read(SYSCTL_FILE).content or b"")
    with open_journal() as journal:
        lease = Lease(
            host, journal=journal, purpose=PURPOSE, study=settings.name, watchdog_s=confirm_within_s
        )
        try:
            lease.arm(target.services, urls=(target.url,), files=target.files_read)
            with target.held_by(lease), target.deploy(config, files=files):
                pass
        except BaseException:
            with uninterrupted():
                lease.restore()
            raise
        # From here on the host alone decides: by its deadline, `tuner confirm`, or `tuner apply --undo`. The
        # copy here stays until it has: the host may lose what it keeps.
    return Applied(files=tuple(files), warnings=warnings)


def _refuse_less_than_in_force(settings: Study, space: Space, chosen: Config, host: str) -> None:
    """Raise UsageError when the host holds more at once than it would with these settings."""
    if space.allows_less:
        return
    fitted = space.complete(chosen, fit=True)
    if all(fitted.get(name) == value for name, value in chosen.items()):
        return
    if lacks := space.lacks(space.open().complete(chosen, fit=True)):
        raise UsageError(
            f"{settings.name}: {host} holds more now than it would with the winner: {'; '.join(lacks)}. Tune "
            "that host itself, with `mode: managed`, or write `- {allow: [capacity]}` under `space:`."
        )


def _settings_for(settings: Study, host_name: str | None, url: str | None, watchdog_s: float) -> Study:
    """Return the study's settings for a managed target."""
    is_private = not settings.target.is_managed
    path = url or ("/" if is_private else settings.load.path)
    target = TargetSettings(host=host_name or settings.target.host, mode="managed", watchdog_s=watchdog_s)
    return replace(settings, target=target, load=replace(settings.load, path=path))


def with_lasting_values(files: Files, summary: Summary, before: bytes) -> Files:
    """Add the file that sets the kernel's values again at the next boot, after what it sets already."""
    values = {path: content for path, content in files.items() if path.is_relative_to(ROOT)}
    if not values:
        return files
    head = comment(*describe_origin(summary))
    lines = [write_line(path, read_value(content)) for path, content in values.items()]
    keys = {_key(line) for line in lines}
    kept = [
        f"{line}\n"
        for line in before.decode(errors="surrogateescape").splitlines()
        if "=" in line and not line.lstrip().startswith(("#", ";")) and _key(line) not in keys
    ]
    return {**files, SYSCTL_FILE: "".join((head, *kept, *lines)).encode(errors="surrogateescape")}


def _key(line: str) -> str:
    """Read what a line sets; a key may be written with dots or slashes (sysctl.d(5))."""
    return line.partition("=")[0].strip().replace("/", ".")
