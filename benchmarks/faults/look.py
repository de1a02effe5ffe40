"""What is to be seen of a test host and of a study before and after a fault."""

import contextlib
import functools
import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.servers import ServerOnHost
from tests.testbed.host import TestHost

LOOKED_AT = ("etc", "var/lib", "usr/lib/systemd")
OTHERS_STATE = ("/var/lib/tuner", "/var/lib/nginx", "/var/lib/systemd", "/var/lib/php/sessions")
"""What the keeper and running services write for themselves."""
COMM_CHARACTERS = 15
"""What the kernel keeps of a program's name."""
TICK_S = 0.05
"""In these the kernel counts when a process began and when a file was changed, and some more."""
REMEMBERED_FILES = 50_000
LOOK_AT_SETTINGS = "grep -rs '' /proc/sys/net/core /proc/sys/net/ipv4/tcp_* | sort | sed 's/:/: /'"
ASK = "curl -sS -m 5 -o /dev/null -w 'page: %{{http_code}}\\n' 'http://127.0.0.1{page}' 2> /dev/null"


def look_at(host: TestHost, page: str = "/") -> str:
    """Describe all that a run may change on a host, a line each, and what a page answers."""
    script = f"{LOOK_AT_SETTINGS}\n" + ASK.format(page=page)
    asked = host.run(["sh", "-c", script], check=False).stdout.decode(errors="replace")
    return "\n".join([*describe_files(host.root), asked])


def see(host: TestHost, server: ServerOnHost) -> str:
    """Look at a host, and whether its server has been started since its files were last written."""
    started_s = [start_of(pid) for pid in host.processes(server.program.name[:COMM_CHARACTERS])]
    written_s = max(((host.root / path).stat().st_ctime for path in server.rewritten), default=0.0)
    is_in_force = bool(started_s) and written_s < min(started_s) + TICK_S
    return f"{look_at(host, server.page)}active: {'what' if is_in_force else 'not what'} its files say\n"


def start_of(pid: int) -> float:
    """Return when a process was started, in seconds since the epoch; see proc_pid_stat(5)."""
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    try:
        stat_line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return float("inf")
    return booted_s + int(stat_line.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def describe_files(root: Path) -> Iterator[str]:
    """Yield a line for every file: kind, mode, owner, ACL and attributes; below /etc also the content."""
    # Paths are strings here: thousands of files are looked at several times a second.
    start = len(str(root))
    for top in LOOKED_AT:
        for directory, names, files in os.walk(root / top):
            inside = directory[start:]
            names[:] = sorted(name for name in names if f"{inside}/{name}" not in OTHERS_STATE)
            for name in sorted([*names, *files]):
                with contextlib.suppress(FileNotFoundError):
                    found = os.lstat(path := f"{directory}/{name}")
                    has_content = top == "etc" and stat.S_ISREG(found.st_mode)
                    # What was changed just now may change again within the same tick of the kernel's clock.
                    is_settled = time.time() - found.st_ctime > TICK_S
                    describe = _describe if is_settled else _describe.__wrapped__
                    yield f"{inside}/{name}: {describe(path, found.st_ino, found.st_ctime_ns, has_content)}"


@functools.lru_cache(maxsize=REMEMBERED_FILES)
def _describe(name: str, inode: int, changed_ns: int, has_content: bool) -> str:  # noqa: ARG001, FBT001 - of the key
    """Describe a file; whatever changes it, its access list or its attributes sets its time of change."""
    path = Path(name)
    found = path.lstat()
    words = [stat.filemode(found.st_mode), str(found.st_uid), str(found.st_gid)]
    if stat.S_ISLNK(found.st_mode):
        words.append(f"-> {path.readlink()}")
    # Access control lists are among them.
    words += [
        f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}"
        for name in sorted(os.listxattr(path, follow_symlinks=False))
    ]
    if has_content:
        words.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return " ".join(words)


def differing(before: str, after: str) -> dict[str, str]:
    """Return what differs: by path, or by `page`, the lines before and after."""
    first, second = _by_path(before), _by_path(after)
    return {
        path: f"{path}: {first.get(path, 'absent')} before, {second.get(path, 'absent')} now"
        for path in sorted({*first, *second})
        if first.get(path) != second.get(path)
    }


def _by_path(look: str) -> dict[str, str]:
    return {path: rest for path, _, rest in (line.partition(": ") for line in look.splitlines()) if path}


def has_changed(host: TestHost) -> bool:
    """Check whether the keeper has ever written a file there, or a setting."""
    log = host.root / "var/lib/tuner/log"
    with contextlib.suppress(OSError):
        said = log.read_text()
        return " put " in said or " set " in said
    return False


def has_tried(host: TestHost) -> bool:
    """Check whether the keeper has come to the end of a restore that leaves something."""
    with contextlib.suppress(OSError):
        return " troubles are left" in (host.root / "var/lib/tuner/log").read_text()
    return False


def changed_files(host: TestHost) -> list[str]:
    """Read from the keeper's log which files it has written, settings of the kernel not among them."""
    with contextlib.suppress(OSError):
        lines = (host.root / "var/lib/tuner/log").read_text().splitlines()
        return sorted({line.partition(": put ")[2] for line in lines if ": put /" in line})
    return []


def contents_of(host: TestHost) -> dict[str, bytes]:
    """Read all files in /etc, by their paths on the host."""
    found = {}
    for directory, _, names in os.walk(host.root / "etc"):
        for name in names:
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                found[f"/{path.relative_to(host.root)}"] = path.read_bytes()
    return found


def is_armed(host: TestHost) -> bool:
    """Check whether somebody owns the host."""
    return (host.root / "var/lib/tuner/run/owner").exists()


def windows_of(study: Path) -> set[str]:
    """Read which windows the study's storage holds: the trials' numbers with the windows' begin."""
    database = study.with_suffix(".study") / "study.db"
    if not database.exists():
        return set()
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute(
                "SELECT trial_id, key FROM trial_user_attributes WHERE key LIKE 'window%'"
            ).fetchall()
        except sqlite3.OperationalError:
            return set()
    return {f"{trial} {key}" for trial, key in rows}
