"""What a winner changes on a host, apart from how it is written: the start of every format for operators.

A server's adapter has said which files differ; here they are told apart into files, settings of the kernel
and what has to be run. A format that is made from this needs to know no server.
"""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner.deploy.systemd_limits import touches_units
from tuner.errors import UsageError
from tuner.export import boot_files, kernel_settings
from tuner.export.lowered import describe_lowered
from tuner.export.provenance import describe_by_hand, write_head
from tuner.export.rendered import Rendered
from tuner.export.rewritten import NEW_MODE, Rewritten, make_patch, refuse_strange
from tuner.ports import Argv
from tuner.report.summary import Summary

SYSCTL_FILE = PurePosixPath("/etc/sysctl.d") / kernel_settings.NAME
TMPFILES_FILE = PurePosixPath("/etc/tmpfiles.d") / boot_files.NAME
RULES_FILE = PurePosixPath("/etc/udev/rules.d") / boot_files.RULES
ABSENT = "absent"
"""Stands for the checksum of a file that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file on the host; None stands for a file that is not there."""

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    server: str = ""
    """Whose file it is; empty for those that keep settings of the kernel over a boot."""
    mode: int = NEW_MODE

    @property
    def is_private(self) -> bool:
        """Return whether not everybody may read it, as it may hold a password."""
        return not self.mode & stat.S_IROTH

    def write_patch(self, context: int = 3) -> str:
        """Write the difference as `patch -p1 -d /` takes it, with some unchanged lines around each change."""
        before, after = (
            None if content is None else content.decode(errors="replace")
            for content in (self.before, self.after)
        )
        return make_patch(str(self.path).lstrip("/"), before, after, context)

    @property
    def sums(self) -> tuple[str, str]:
        """Return the SHA-256 of both contents, or ABSENT."""
        before, after = (
            ABSENT if content is None else hashlib.sha256(content).hexdigest()
            for content in (self.before, self.after)
        )
        return before, after


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """One value under /proc/sys or /sys, as the kernel prints it: fields apart by single blanks."""

    path: PurePosixPath
    before: str
    after: str

    @property
    def key(self) -> str:
        """Return the name by which sysctl(8) knows a value under /proc/sys."""
        return kernel_settings.write_key(self.path)

    @property
    def is_sysctl(self) -> bool:
        """Return whether the value stands under /proc/sys."""
        return self.path.is_relative_to(kernel_settings.ROOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceChange:
    """A service that has to take its files anew."""

    name: str
    check: Argv | None
    """Must exit with 0 before the service is told."""
    may_reload: bool
    """Whether a reload puts all of these settings into force."""
    is_systemd: bool = True
    """Whether systemd runs it, instead of a script of init."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChange:
    """Everything that a winner changes on a host."""

    files: tuple[FileChange, ...]
    settings: tuple[SettingChange, ...]
    services: tuple[ServiceChange, ...]
    notes: tuple[str, ...]
    """What the change lowers, and what has to be done by hand."""

    @property
    def touches_units(self) -> bool:
        """Return whether systemd has to read its units again."""
        return touches_units({each.path: b"" for each in self.files})

    def reversed(self) -> "HostChange":
        """Return the change that takes this one back."""
        return replace(
            self,
            files=tuple(replace(each, before=each.after, after=each.before) for each in self.files),
            settings=tuple(replace(each, before=each.after, after=each.before) for each in self.settings),
        )

    def with_boot_files(self, head: str) -> "HostChange":
        """Return the change with the files that set the kernel's values again at each boot."""
        made = tuple(
            FileChange(path=path, before=None, after=(head + "".join(lines)).encode())
            for path, lines in _lasting_lines(self.settings).items()
        )
        return replace(self, files=(*self.files, *made))


def _lasting_lines(settings: Iterable[SettingChange]) -> Mapping[PurePosixPath, list[str]]:
    lines: dict[PurePosixPath, list[str]] = {}
    for each in settings:
        if each.is_sysctl:
            lines.setdefault(SYSCTL_FILE, []).append(kernel_settings.write_line(each.path, each.after))
        elif boot_files.is_of_card(each.path):
            lines.setdefault(RULES_FILE, []).append(boot_files.write_rule(each.path, each.after))
        else:
            lines.setdefault(TMPFILES_FILE, []).append(boot_files.write_line(each.path, each.after))
    return lines


def find_change(summary: Summary, differences: Mapping[str, Rendered | Rewritten]) -> HostChange:
    """Return what the winner changes on the host, of all servers together.

    Raises:
        UsageError: no installed file differs, so that there is nothing that could be put on a host.
    """
    found = {name: one for name, each in differences.items() if (one := installed_of(each)) is not None}
    files = tuple(each for name, one in found.items() for each in _changed_files(name, one))
    settings = tuple(each for one in found.values() for each in _changed_settings(one))
    by_hand = tuple(_describe_rendered(differences))
    if not files and not settings:
        raise UsageError(
            f"{summary.study}: the winner changes no installed file and no kernel setting"
            f"{''.join(f'; {each}' for each in by_hand)}. Choose --format json, or the name of a server."
        )
    services = tuple(
        ServiceChange(
            name=one.service.name,
            check=one.service.check,
            is_systemd=one.service.is_systemd,
            # A listener keeps the limits of the kernel of the moment at which it was opened, and a process
            # those of its unit.
            may_reload=not settings and not touches_units(one.after) and _may_reload(summary, name, one),
        )
        for name, one in found.items()
        if one.service is not None and (settings or any(_changed_files(name, one)))
    )
    notes = (
        *(line for one in found.values() for line in describe_lowered(summary.space, one.lowered)),
        *(line for one in found.values() for line in describe_by_hand(summary, one.by_hand)),
        *(line for one in found.values() for line in one.doubts),
        *by_hand,
    )
    return HostChange(files=files, settings=settings, services=services, notes=notes)


def installed_of(difference: Rendered | Rewritten) -> Rewritten | None:
    """Return what becomes of the installed files; None where they are not changed."""
    return difference if isinstance(difference, Rewritten) else difference.installed


def _changed_files(server: str, rewritten: Rewritten) -> Iterator[FileChange]:
    for path, content in sorted(rewritten.after.items()):
        if not _is_setting(path) and rewritten.before.get(path) != content:
            refuse_strange(path)
            yield FileChange(
                path=path, before=rewritten.before.get(path), after=content, server=server,
                mode=rewritten.modes.get(path, NEW_MODE),
            )  # fmt: skip


def _changed_settings(rewritten: Rewritten) -> Iterator[SettingChange]:
    for path, content in sorted(rewritten.after.items()):
        if not _is_setting(path) or path not in rewritten.before:
            continue
        read = kernel_settings if path.is_relative_to(kernel_settings.ROOT) else boot_files
        before, after = read.read_value(rewritten.before[path]), read.read_value(content)
        if before != after:
            yield SettingChange(path=path, before=before, after=after)


def _is_setting(path: PurePosixPath) -> bool:
    return path.is_relative_to(kernel_settings.ROOT) or path.is_relative_to(boot_files.ROOT)


def _may_reload(summary: Summary, server: str, rewritten: Rewritten) -> bool:
    """Return whether every changed setting of a server says that a reload is enough, and its service can."""
    if rewritten.service is None or rewritten.service.reload is None or summary.winner is None:
        return False
    changed = summary.space.changes(summary.winner.config, derived=True)
    own = [name for name in changed if summary.space.server_of(name) == server]
    return bool(own) and all(summary.space.apply_of(name) == "reload" for name in own)


def _describe_rendered(differences: Mapping[str, Rendered | Rewritten]) -> Iterator[str]:
    """Yield a line for each server whose installed files are not changed."""
    for server, each in differences.items():
        if isinstance(each, Rendered) and each.installed is None and each.default != each.winner:
            reason = f" ({each.reason.rstrip('.')})" if each.reason else ""
            yield f"{server} is not changed here{reason}; see --format {server}"


def describe_change(summary: Summary, change: HostChange, *more: str) -> str:
    """Return the head of a file: where the settings come from, how it is used, what else has to be done."""
    return write_head(summary, *more, *change.notes)
