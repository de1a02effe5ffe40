"""Reads one running server at two moments: processes, sockets, control group, configuration, status page."""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.advice.control_group import count_in_groups, find_group_facts, group_files
from tuner.advice.rule_file import RuleFile
from tuner.advice.rules import Rules
from tuner.advice.status_page import StatusPage, ask_status, read_counters, read_gauges
from tuner.errors import TargetError
from tuner.hosts.control_groups import find_groups
from tuner.hosts.machine import parse_cpus
from tuner.kit import readback
from tuner.kit.config_files import find_readable
from tuner.kit.packages import PROCPS, say_install
from tuner.measure import procfs
from tuner.ports import ABSENT, Command, FileReader, Files, FileState, Host, Installation, Scalar

MOST_WORKERS = 64
"""Workers that are looked at; of more, every so many-th."""
CLOCK_S = 2.0
"""Logs, files and clocks have whole seconds."""
GROWN_TICKS = 1
"""CPU time (10 ms) after which a worker has served requests, so that its memory tells what one takes."""
MIB = 2**20
MANY = 1_000_000
"""Processes that start where no control group limits them."""
UNSET = "none"
"""Value of what a configuration does not set."""
UPTIME = PurePosixPath("/proc/uptime")
LIST_PROCESSES = (
    "sh",
    "-c",
    "ps -o pidns=,mntns= -p $$ && exec ps -ww -eo pid=,ppid=,euid=,pidns=,mntns=,args=",
)
# Of the process with the most: its open files, its sockets.
_OPEN_FILES = r"""
find "$@" -mindepth 1 -maxdepth 1 -printf "%h %l\n" 2>/dev/null | awk '
  ++files[$1] > most { most = files[$1] }
  $2 ~ /^socket:/ && ++sockets[$1] > held { held = sockets[$1] }
  END { print most + 0, held + 0 }'
"""
# tcp_info: milliseconds since data was last sent and received.
_COUNT_CONNECTIONS = """
ss -HtniO state established "$1" | awk '
  function told(name) { return match($0, " " name ":[0-9]+") ? substr($0, RSTART + length(name) + 2) + 0 : 0 }
  { count++ }
  told("bytes_sent") > 0 && told("lastsnd") > 300 && told("lastsnd") <= told("lastrcv") { idle++ }
  END { print count + 0, idle + 0 }'
"""
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_PID = re.compile(r"pid=(\d+)")
_CAP_SYS_RESOURCE = 24
"""Who has it may raise a hard limit (capabilities(7), include/uapi/linux/capability.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    """One row of the process table."""

    pid: int
    parent: int
    command: str
    user: int = 0
    """Its effective user id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that runs, and what was found of its installation."""

    name: str
    rules: Rules
    first: RunningProcess
    workers: tuple[RunningProcess, ...]
    """The first process itself, where it has no other."""
    installation: Installation

    @property
    def pids(self) -> frozenset[int]:
        """Return the first process and all workers."""
        return frozenset((self.first.pid, *(each.pid for each in self.workers)))

    @property
    def looked_at(self) -> tuple[int, ...]:
        """Return the workers that are looked at one by one."""
        step = max(1, len(self.workers) // MOST_WORKERS)
        return tuple(each.pid for each in self.workers[::step])

    @property
    def text(self) -> str:
        """Return all of its configuration, without comments."""
        text = "\n".join(content.decode(errors="replace") for content in self.installation.files.values())
        return _COMMENT.sub("", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The accept queue of a listening socket."""

    waiting: int
    limit: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLook:
    """What a server shows at one moment."""

    files: FileReader
    groups: tuple[PurePosixPath, ...]
    """Its control group and those above it."""
    queues: tuple[Queue, ...]
    page: StatusPage
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The facts of a server, and what could not be read."""

    values: dict[str, Scalar] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


class KnownFiles:
    """Files as they were read at one moment."""

    def __init__(self, contents: Mapping[PurePosixPath, FileState]) -> None:
        self._contents = contents

    def read(self, path: PurePosixPath) -> FileState:
        return self._contents.get(path, ABSENT)


def list_processes(host: Host) -> tuple[RunningProcess, ...]:
    """List the processes of a host, without those of its containers. Raises TargetError without ps."""
    listed = host.run(LIST_PROCESSES, timeout_s=5)
    own, *rows = [line.split(None, 5) for line in listed.stdout.decode(errors="replace").splitlines()] or [[]]
    if listed.returncode != 0:
        raise TargetError(f"{host.name}: ps lists no processes. Install it: {say_install(host, PROCPS)}")
    return tuple(
        RunningProcess(pid=int(row[0]), parent=int(row[1]), user=int(row[2]), command=row[5])
        for row in rows
        if len(row) == 6 and all(one in {"-", mine} for one, mine in zip(row[3:5], own, strict=False))  # noqa: PLR2004 - columns
    )


def find_first(processes: Sequence[RunningProcess], pattern: str) -> tuple[RunningProcess, ...]:
    """Return the processes that match and whose parents do not, those of root first.

    Any user may give a process such a title.
    """
    matching = {each.pid: each for each in processes if re.search(pattern, each.command)}
    first = (each for each in matching.values() if each.parent not in matching)
    return tuple(sorted(first, key=lambda each: each.user != 0))


def find_workers(
    processes: Sequence[RunningProcess], first: RunningProcess, pattern: str | None
) -> tuple[RunningProcess, ...]:
    """Return the descendants of a process that match; itself where there is none."""
    found: list[RunningProcess] = []
    parents = {first.pid}
    while parents:
        children = [each for each in processes if each.parent in parents]
        found += children
        parents = {each.pid for each in children}
    return tuple(each for each in found if re.search(pattern or "", each.command)) or (first,)


def look_at_server(host: Host, server: RunningServer, before: ServerLook | None = None) -> ServerLook:
    """Read what a server shows now; a status page that did not answer before is not asked again."""
    pids = dict.fromkeys((server.first.pid, *server.looked_at))
    names = ("stat", "status", "limits", "smaps_rollup", "schedstat")
    paths = [PurePosixPath(f"/proc/{pid}/{name}") for pid in pids for name in names]
    paths.append(UPTIME)
    groups = find_groups(host.read(PurePosixPath(f"/proc/{server.first.pid}/cgroup")).content or b"")
    paths += group_files(groups)
    look, at_s = host.look(paths), time.monotonic()
    files = KnownFiles(_read_permitted(look, paths))
    queues = _read_queues(host, server)
    return ServerLook(
        files=files, groups=groups, queues=queues, at_s=at_s,
        page=before.page if before and not before.page.text else ask_status(
            host, server.rules.file.status, server.text, _ports(server, queues)
        ),
    )  # fmt: skip


def _read_permitted(look: FileReader, paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, FileState]:
    """Read those files that this user may read."""
    found: dict[PurePosixPath, FileState] = {}
    for path in paths:
        with suppress(TargetError):
            found[path] = look.read(path)
    return found


def find_server_facts(
    host: Host, server: RunningServer, before: ServerLook, after: ServerLook
) -> ServerFacts:
    """Return the facts of a server from two looks at it."""
    facts = ServerFacts()
    counted, earlier = _count(server, after), _count(server, before)
    passed = {name: max(0.0, count - earlier.get(name, 0.0)) for name, count in counted.items()}
    facts.values.update({f"{name}_ever": count for name, count in counted.items()})
    facts.values.update(passed)
    passed_s = max(0.001, after.at_s - before.at_s)
    used = passed["cpu_ticks"] / procfs.USER_HZ / passed_s
    facts.values.update(cpu_used=used, cpu_wanted=max(used, passed["scheduled_ns"] / 1e9 / passed_s))
    periods = passed.get("quota_periods", 0.0)
    facts.values["throttled_share"] = passed["throttled_periods"] / periods if periods else 0.0
    _find_ages(facts, host, server, after)
    facts.values.update(find_group_facts(after.files, after.groups))
    _find_allowed(facts, server.first.pid, after.files)
    _find_processes(facts, host, server, after)
    if queues := (*before.queues, *after.queues):
        fullest = max(queues, key=lambda each: each.waiting / max(1, each.limit))
        facts.values.update(
            queue_waiting=fullest.waiting, queue_limit=fullest.limit, queue_address=fullest.address
        )
        # At one moment, a request may be there that the next free worker takes at once.
        longest = (max((each.waiting for each in look.queues), default=0) for look in (before, after))
        facts.values["queue_lasting"] = min(longest)
    _find_connections(facts, host, server, after)
    _find_configured(facts, server, after)
    _find_room(facts, host, server.installation.log)
    return facts


def _find_ages(facts: ServerFacts, host: Host, server: RunningServer, look: ServerLook) -> None:
    """Find since when the server runs, and since when it runs with the configuration that it has."""
    stats = (look.files.read(PurePosixPath(f"/proc/{pid}/stat")).content for pid in _pids(server))
    booted_s = float((look.files.read(UPTIME).content or b"0").split()[0])
    ages = [booted_s - procfs.parse_process(each).started_ticks / procfs.USER_HZ for each in stats if each]
    if not ages:
        return
    facts.values.update(uptime_s=max(ages), settled_s=max(ages))
    if server.installation.files and (workers := ages[1:]):
        asked = ("stat", "-c", "%Y", "--", *map(str, server.installation.files))
        changed, now = host.run_all([Command(argv=asked, may_fail=True), Command(argv=("date", "+%s"))])
        times = [int(each) for each in changed.stdout.split() if each.isdigit()]
        # Workers that are younger than a change have read it (a reload starts new ones).
        changed_s = int(now.stdout) - max(times, default=0)
        if 0 <= changed_s < min(workers) - CLOCK_S:
            facts.unread.append(
                "the settings that its workers use: a file of its configuration changed after they started. "
                "Reload the server, and look again"
            )
        facts.values["settled_s"] = min(max(ages), max(changed_s, *workers))


def _count(server: RunningServer, look: ServerLook) -> dict[str, float]:
    """Return everything that a look counted since the start."""
    counted = {"cpu_ticks": float(sum(_read_ticks(look.files, pid) for pid in _pids(server)))}
    # sched-stats.rst: nanoseconds on a CPU, and waiting for one, of each main thread
    waits = (look.files.read(PurePosixPath(f"/proc/{pid}/schedstat")).content for pid in server.looked_at)
    counted["scheduled_ns"] = float(sum(sum(map(int, each.split()[:2])) for each in waits if each))
    counted |= count_in_groups(look.files, look.groups)
    status = server.rules.file.status
    return counted | (read_counters(status, look.page.text) if status else {})


def _pids(server: RunningServer) -> tuple[int, ...]:
    return tuple(dict.fromkeys((server.first.pid, *server.looked_at)))


def _find_allowed(facts: ServerFacts, pid: int, files: FileReader) -> None:
    """Find the CPUs that a first process may use, and the limit of open files that it may set."""
    if cpus := parse_cpus(readback.read_status(files, pid, "Cpus_allowed_list") or ""):
        quota = float(facts.values.get("cpu_quota", len(cpus)))
        facts.values["cpus_allowed"] = min(len(cpus), math.ceil(quota))
    limits = (files.read(PurePosixPath(f"/proc/{pid}/limits")).content or b"").decode(errors="replace")
    hard = re.search(r"^Max open files\s+\S+\s+(\d+)", limits, re.MULTILINE)
    rights = int(readback.read_status(files, pid, "CapEff") or "0", base=16)
    if hard and not rights >> _CAP_SYS_RESOURCE & 1:
        facts.values["open_files_most"] = int(hard[1])


def add_room(facts: Mapping[str, Scalar], host: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Add what a server may still take: no more than its host has, and than its control group allows."""
    rooms = [float(host["available_mib"])] if "available_mib" in host else []
    if "memory_limit_mib" in facts:
        used = facts.get("group_used_mib", facts.get("used_mib", 0))
        rooms.append(max(0.0, float(facts["memory_limit_mib"]) - float(used)))
    tasks = max(0.0, float(facts.get("tasks_limit", MANY)) - float(facts.get("tasks", 0)))
    found = {"open_files_most": host.get("open_files_max", 0), "cpus_allowed": host.get("cores", 1), **facts}
    found["tasks_room"] = tasks
    return found | ({"room_mib": min(rooms)} if rooms else {})


def _find_processes(facts: ServerFacts, host: Host, server: RunningServer, look: ServerLook) -> None:
    """Find number, threads, memory, open files and limits of the workers."""
    looked_at, scale = server.looked_at, len(server.workers) / len(server.looked_at)
    threads = [readback.read_status(look.files, pid, "Threads") for pid in looked_at]
    facts.values.update(
        workers=len(server.workers), threads=round(scale * sum(map(int, filter(None, threads))))
    )
    limits = [readback.read_open_files_limit(look.files, pid) for pid in looked_at]
    if known := [each for each in limits if each is not None]:
        facts.values["open_files_limit"] = min(known)
    if sizes := find_sizes(look.files, looked_at):
        facts.values.update({**sizes, "used_mib": scale * sizes["used_mib"]})
    else:
        facts.unread.append("memory of its workers (/proc/PID/smaps_rollup). Run as root to read it")
    folders = (f"/proc/{pid}/fd" for pid in looked_at)
    counted = host.run(("sh", "-c", _OPEN_FILES, "open-files", *folders), timeout_s=5).stdout.split()
    if len(counted) == 2 and int(counted[0]):  # noqa: PLR2004 - files and sockets
        # With `reuseport`, each worker also has open the listening sockets of the others.
        of_others = len(look.queues) - len({each.address for each in look.queues})
        facts.values.update(open_files=int(counted[0]), sockets=int(counted[1]) - of_others)
    else:
        facts.unread.append("open files of its workers (/proc/PID/fd). Run as root to read them")


def find_sizes(files: FileReader, pids: Iterable[int]) -> dict[str, float]:
    """Return the memory of workers, in MiB: of all, of one, and of one that has served requests.

    The last is 0 where none has: a new worker shares most of its memory with the first process. Nothing is
    returned where memory cannot be read.
    """
    sizes = {pid: size for pid in pids if (size := _read_size_mib(files, pid)) is not None}
    grown = [size for pid, size in sizes.items() if _read_ticks(files, pid) >= GROWN_TICKS]
    if not sizes:
        return {}
    used = sum(sizes.values())
    return {
        "used_mib": used, "worker_mib": used / len(sizes), "grown_mib": sum(grown) / max(1, len(grown)),
    }  # fmt: skip


def _read_ticks(files: FileReader, pid: int) -> int:
    """Return the CPU time of a process in ticks; 0 of one that has ended."""
    content = files.read(PurePosixPath(f"/proc/{pid}/stat")).content
    return sum(procfs.parse_process(content).cpu_ticks[:2]) if content else 0


def _read_size_mib(files: FileReader, pid: int) -> float | None:
    """Return the memory of a process, with its part of what it shares."""
    content = files.read(PurePosixPath(f"/proc/{pid}/smaps_rollup")).content or b""
    found = re.search(rb"^Pss:\s+(\d+) kB", content, re.MULTILINE)
    return int(found[1]) / 1024 if found else None


def _read_queues(host: Host, server: RunningServer) -> tuple[Queue, ...]:
    """Read the accept queues of a server: those of its processes, or at its port where owners are hidden."""
    commands = [Command(argv=("ss", f"-Hl{kind}np"), may_fail=True) for kind in "tx"]
    rows = [
        row for done in host.run_all(commands) for row in done.stdout.decode(errors="replace").splitlines()
    ]
    words = [(row, row.split()) for row in rows if _is_own(row, server)]
    found = [(each[1:4] if each[0] == "LISTEN" else each[2:5]) for _, each in words if len(each) > 4]  # noqa: PLR2004 - columns
    return tuple(
        Queue(waiting=int(waiting), limit=int(limit), address=address)
        for waiting, limit, address in found
        if waiting.isdigit() and limit.isdigit()
    )


def _is_own(row: str, server: RunningServer) -> bool:
    owners = set(map(int, _PID.findall(row)))
    if owners:
        return not owners.isdisjoint(server.pids)
    return server.installation.port is not None and f":{server.installation.port} " in row


def _ports(server: RunningServer, queues: Iterable[Queue]) -> list[int]:
    ends = (each.address.rpartition(":")[2] for each in queues)
    own = server.installation.port
    return list(dict.fromkeys([*([own] if own else []), *(int(each) for each in ends if each.isdigit())]))


def _find_connections(facts: ServerFacts, host: Host, server: RunningServer, look: ServerLook) -> None:
    """Count established connections, and those of them on which nothing came since the last response."""
    if ports := _ports(server, look.queues):
        wanted = " or ".join(f"sport = :{port}" for port in ports)
        counted = host.run(("sh", "-c", _COUNT_CONNECTIONS, "count", wanted), timeout_s=5).stdout.split()
        if len(counted) == 2 and counted[0].isdigit():  # noqa: PLR2004 - all and idle ones
            facts.values.update(connections=int(counted[0]), idle_connections=int(counted[1]))


def _find_configured(facts: ServerFacts, server: RunningServer, look: ServerLook) -> None:
    """Find what the configuration and the status page say."""
    file, text = server.rules.file, server.text
    if file.status:
        facts.values.update(read_gauges(file.status, look.page.text))
    if look.page.trouble:
        facts.unread.append(f"its status page {look.page.trouble}")
    if text:
        facts.values.update(find_configured(file, text))


def find_configured(file: RuleFile, text: str) -> dict[str, Scalar]:
    """Return what rules read in the text of a configuration."""
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in file.values.items()}
    said = {name: each[1] if each else UNSET for name, each in found.items()}
    return {name: int(each) if re.fullmatch(r"\d{1,15}", each) else each for name, each in said.items()}


def _find_room(facts: ServerFacts, host: Host, log: PurePosixPath | None) -> None:
    if log is not None:
        shown = host.run(("df", "-P", "-B", str(MIB), "--", str(log.parent)), timeout_s=5)
        rows = [row.split() for row in shown.stdout.decode(errors="replace").splitlines()]
        if shown.returncode == 0 and len(rows) > 1 and rows[1][3].isdigit():
            facts.values["log_disk_free_mib"] = int(rows[1][3])


def read_named_files(host: Host, names: Iterable[str]) -> Files:
    """Read those files that there are. Raises TargetError for what is no file, or too long."""
    paths = find_readable(host, map(PurePosixPath, names))
    states = _read_permitted(host.look(paths), paths)
    return {path: state.content for path, state in states.items() if state.content is not None}
