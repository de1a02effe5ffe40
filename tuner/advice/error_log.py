"""Reads the end of a server's error log, and of the file that it was before its rotation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from tuner.advice.findings import RECENT_S
from tuner.advice.log_lines import JOURNAL, TAIL_BYTES, LogLine, cut_messages, quote_line, read_lines
from tuner.advice.server_look import RunningServer
from tuner.ports import Command, Completed, Host

READ_S = 5.0
TAIL = f"{TAIL_BYTES // 1024} KiB"
JOURNAL_LINES = 2000
_JOURNAL = (
    *("journalctl", "--quiet", "--no-pager", f"--lines={JOURNAL_LINES}", "--output=short-iso", "--unit"),
)
_ABSENT, _IRREGULAR = 3, 4
# Whoever opens a pipe, such as the standard error of a container, waits.
_TAIL = f'[ -e "$1" ] || exit {_ABSENT}; [ -f "$1" ] || exit {_IRREGULAR}; exec tail -c {TAIL_BYTES} -- "$1"'
_LIST_ROTATED = 'stat -c "%Y %n" -- "$1"[.-][0-9]* 2>/dev/null'
_ROTATED = re.compile(r"[.-]\d[\d.-]*(?P<compressed>\.(?:gz|xz|bz2|zst))?")
"""What logrotate(8) adds to a name: .1, .2.gz or, with dateext, -20261127."""
_TROUBLES = {
    _ABSENT: "this file is missing, or you may not open its folder. Run as root, or correct the path",
    _IRREGULAR: "this is not a regular file, so it keeps no lines. Read the lines where they go",
}
_CLOSED = "this file cannot be read. Run as root, or correct its permissions"
_COMPRESSED = "this file is compressed. Read it yourself, or add delaycompress to the log rotation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLog:
    """The end of an error log."""

    lines: tuple[LogLine, ...] = ()
    unread: tuple[str, ...] = ()
    """What could not be read, and why."""


def read_error_log(host: Host, server: RunningServer, now: datetime) -> ErrorLog:
    """Return the end of a server's log: of its file, or of systemd's journal where it has none."""
    log, service, file = server.installation.log, server.installation.service, server.rules.file
    unit = f"{file.advice}.service" if service is None else service.name
    found = _read_journal(host, unit, now) if log is None else read_log_file(host, log, now)
    if (
        log is not None and file.error_log and not found.lines
    ):  # without a syslog daemon, the journal has them
        journal = _read_journal(host, unit, now)
        found = journal if journal.lines else found
    unread = list(found.unread)
    lines = tuple(cut_messages(found.lines, file.message, server.pids))
    if found.lines and not lines:
        unread.append(f"its error log: no line has the usual form of {file.title}. Use the default format")
    if file.shared_log and (sharing := re.search(file.shared_log, server.text, re.MULTILINE)):
        shown = quote_line(sharing[0])
        unread.append(f"its error log: `{shown}` lets scripts write whole lines into it. Remove this setting")
        return ErrorLog(unread=tuple(unread))
    if file.quiet_log and (hiding := re.search(file.quiet_log, server.text, re.MULTILINE)):
        shown = quote_line(hiding[0])
        unread.append(f"its error log: `{shown}` hides lines that show limits. Set the default level")
    elif file.loud_log and server.text and not re.search(file.loud_log, server.text):
        unread.append("its error log: the default level hides warnings that show limits. Set the level warn")
    return ErrorLog(lines=lines, unread=tuple(unread))


def _read_journal(host: Host, unit: str, now: datetime) -> ErrorLog:
    (told,) = host.run_all([Command(argv=(*_JOURNAL, unit), timeout_s=READ_S, may_fail=True)])
    if told.stdout.strip():
        lines = tuple(read_lines(told.stdout, JOURNAL, now=now))
        cut = say_cut(lines, now, f"{JOURNAL_LINES:,} lines") if len(lines) >= JOURNAL_LINES else ""
        return ErrorLog(lines=lines, unread=(f"its error log in the journal: {cut}",) if cut else ())
    return ErrorLog(unread=("its error log: neither a file nor systemd's journal has it",))


def read_log_file(host: Host, log: PurePosixPath, now: datetime) -> ErrorLog:
    """Return the end of a log, after the end of the newest file that it was before its rotation.

    Args:
        host: where the log is.
        log: the file that the server writes.
        now: the host's time in its own zone.
    """
    listed, ended = host.run_all((_ask(_LIST_ROTATED, log), _ask(_TAIL, log)))
    unread = [] if _is_whole(ended) else [f"its error log {log}: {_TROUBLES.get(ended.returncode, _CLOSED)}"]
    plain: list[PurePosixPath] = []
    for changed_s, path, is_compressed in sorted(_read_listed(listed.stdout, log), reverse=True):
        if not is_compressed:
            plain.append(path)
        elif changed_s >= now.timestamp() - RECENT_S:
            unread.append(f"its rotated error log {path}: {_COMPRESSED}")
    before = host.run_all([_ask(_TAIL, plain[0])])[0].stdout if plain else b""
    lines: list[LogLine] = []
    for path, tail in ((plain[0] if plain else log, before), (log, ended.stdout)):
        read = tuple(read_lines(tail, str(path), now=now))
        lines += read
        if len(tail) >= TAIL_BYTES and (cut := say_cut(read, now, TAIL)):
            unread.append(f"its error log {path}: {cut}")
    return ErrorLog(lines=tuple(lines), unread=tuple(unread))


def say_cut(lines: Sequence[LogLine], now: datetime, end: str) -> str:
    """Return that only the end of a log was read; empty if it has all of the last hour."""
    first_s = next((each.at_s for each in lines if each.at_s is not None), None)
    if first_s is not None and first_s < now.timestamp() - RECENT_S:
        return ""
    since = "" if first_s is None else f" (since {datetime.fromtimestamp(first_s, now.tzinfo):%H:%M})"
    return f"only the last {end}{since} were read. Search the lines before it yourself"


def _ask(script: str, log: PurePosixPath) -> Command:
    return Command(argv=("sh", "-c", script, "log", str(log)), timeout_s=READ_S, may_fail=True)


def _is_whole(ended: Completed) -> bool:
    return ended.returncode == 0 and not ended.timed_out


def _read_listed(listed: bytes, log: PurePosixPath) -> Iterator[tuple[int, PurePosixPath, bool]]:
    """Yield of each rotated file when it changed last, its path, and whether it is compressed."""
    for row in listed.decode(errors="replace").splitlines():
        changed, _, name = row.partition(" ")
        added = _ROTATED.fullmatch(name.removeprefix(str(log))) if name.startswith(str(log)) else None
        if added and changed.isdigit():
            yield int(changed), PurePosixPath(name), added["compressed"] is not None
