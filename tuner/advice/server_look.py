"""Reads one running server at two moments: processes, sockets, control group, configuration, status page."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.advice.rules import Rules
from tuner.errors import TargetError
from tuner.kit import readback
from tuner.measure import procfs
from tuner.ports import ABSENT, Command, FileReader, Files, FileState, Host, Installation, Scalar

MOST_WORKERS = 64
"""Workers that are looked at; of more, every so many-th."""
MOST_PORTS = 3
"""Ports at which a status page is looked for."""
LARGEST_PAGE = 2**16
MIB = 2**20
UPTIME = PurePosixPath("/proc/uptime")
GROUPS = PurePosixPath("/sys/fs/cgroup")
LIST_PROCESSES = ("sh", "-c", "ps -o pidns=,mntns= -p $$ && exec ps -ww -eo pid=,ppid=,pidns=,mntns=,args=")
# One row for each process: how many files it has open, and whose.
_OPEN_FILES = r'find "$@" -mindepth 1 -maxdepth 1 -printf "%h\n" 2>/dev/null | sort | uniq -c'
_PID = re.compile(r"pid=(\d+)")
_COUNTED = {
    "cpu.stat": {"nr_throttled": "throttled_periods", "nr_periods": "quota_periods"},
    "memory.events": {"max": "memory_limit_hits", "oom_kill": "group_oom_kills"},
    "pids.events": {"max": "tasks_refused"},
}
"""Files of a control group with counters (cgroup-v2.rst): the kernel's names → facts."""
_LIMITS = {"memory.max": ("memory_limit_mib", MIB), "pids.max": ("tasks_limit", 1)}
_GROUP_FILES = (*_COUNTED, *_LIMITS, "cpu.max", "pids.current")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    """One row of the process table."""

    pid: int
    parent: int
    command: str


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
    def looked_at(self) -> tuple[int, ...]:
        """Return the workers that are looked at one by one."""
        step = max(1, len(self.workers) // MOST_WORKERS)
        return tuple(each.pid for each in self.workers[::step])

    @property
    def text(self) -> str:
        """Return all of its configuration."""
        return "\n".join(content.decode(errors="replace") for content in self.installation.files.values())


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
    page: str
    """Its status page; empty where none is configured, or it does not answer."""


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
    own, *rows = [line.split(None, 4) for line in listed.stdout.decode(errors="replace").splitlines()] or [[]]
    if listed.returncode != 0:
        raise TargetError(f"{host.name}: ps lists no processes. Install it: apt-get install procps")
    return tuple(
        RunningProcess(pid=int(row[0]), parent=int(row[1]), command=row[4])
        for row in rows
        if len(row) == 5 and all(one in {"-", mine} for one, mine in zip(row[2:4], own, strict=False))  # noqa: PLR2004 - columns
    )


def find_first(processes: Sequence[RunningProcess], pattern: str) -> tuple[RunningProcess, ...]:
    """Return the processes that match and whose parents do not."""
    matching = {each.pid: each for each in processes if re.search(pattern, each.command)}
    return tuple(each for each in matching.values() if each.parent not in matching)


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


def look_at_server(host: Host, server: RunningServer) -> ServerLook:
    """Read what a server shows now; nothing is asked as root."""
    pids = dict.fromkeys((server.first.pid, *server.looked_at))
    names = ("stat", "status", "limits", "smaps_rollup")
    paths = [PurePosixPath(f"/proc/{pid}/{name}") for pid in pids for name in names]
    paths.append(UPTIME)
    groups = _find_groups(host.read(PurePosixPath(f"/proc/{server.first.pid}/cgroup")).content or b"")
    paths += [group / name for group in groups for name in _GROUP_FILES]
    look = host.look(paths)
    queues = _read_queues(host, server)
    return ServerLook(
        files=KnownFiles({path: look.read(path) for path in paths}), groups=groups, queues=queues,
        page=_ask_status(host, server, queues),
    )  # fmt: skip


def find_server_facts(
    host: Host, server: RunningServer, before: ServerLook, after: ServerLook, look_s: float
) -> ServerFacts:
    """Return the facts of a server from two looks at it."""
    facts = ServerFacts()
    counted, earlier = _count(server, after), _count(server, before)
    passed = {name: max(0.0, count - earlier.get(name, 0.0)) for name, count in counted.items()}
    facts.values.update({f"{name}_ever": count for name, count in counted.items()})
    facts.values.update(passed)
    facts.values["cpu_used"] = passed["cpu_ticks"] / procfs.USER_HZ / look_s
    if periods := passed.get("quota_periods"):
        facts.values["throttled_share"] = passed["throttled_periods"] / periods
    if (started := after.files.read(PurePosixPath(f"/proc/{server.first.pid}/stat")).content) is not None:
        booted_s = float((after.files.read(UPTIME).content or b"0").split()[0])
        facts.values["uptime_s"] = booted_s - procfs.parse_process(started).started_ticks / procfs.USER_HZ
    facts.values.update(_find_group_limits(after))
    _find_processes(facts, host, server, after)
    if queues := (*before.queues, *after.queues):
        fullest = max(queues, key=lambda each: each.waiting / max(1, each.limit))
        facts.values.update(queue_waiting=fullest.waiting, queue_limit=fullest.limit)
    _find_connections(facts, host, server, after)
    _find_configured(facts, server, after)
    _find_room(facts, host, server.installation.log)
    return facts


def _find_groups(content: bytes) -> tuple[PurePosixPath, ...]:
    """Return the control group of version 2 and those above it, but not the root of all."""
    found = re.search(rb"^0::(/\S+)$", content, re.MULTILINE)
    own = GROUPS / found[1].decode().lstrip("/") if found else GROUPS
    return tuple(each for each in (own, *own.parents) if GROUPS in each.parents)


def _count(server: RunningServer, look: ServerLook) -> dict[str, float]:
    """Return everything that a look counted since the start."""
    stats = (look.files.read(PurePosixPath(f"/proc/{pid}/stat")).content for pid in _pids(server))
    counted = {
        "cpu_ticks": float(sum(sum(procfs.parse_process(each).cpu_ticks[:2]) for each in stats if each))
    }
    for group in reversed(look.groups):  # what is closer counts
        for name, names in _COUNTED.items():
            counted |= procfs.parse_named(look.files.read(group / name).content or b"", names)
    status = server.rules.file.status
    return counted | (_read_numbers(status.counters, look.page) if status else {})


def _pids(server: RunningServer) -> tuple[int, ...]:
    return tuple(dict.fromkeys((server.first.pid, *server.looked_at)))


def _read_numbers(patterns: Mapping[str, str], text: str) -> dict[str, float]:
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: float(each[1]) for name, each in found.items() if each is not None}


def _find_group_limits(look: ServerLook) -> dict[str, Scalar]:
    """Return the lowest limits of the control groups."""
    found: dict[str, float] = {}
    for group in look.groups:
        words = {name: (look.files.read(group / name).content or b"max").split() for name in _GROUP_FILES}
        limits = {fact: (words[name][:1], unit) for name, (fact, unit) in _LIMITS.items()}
        if len(words["cpu.max"]) == 2 and words["cpu.max"][0].isdigit():  # noqa: PLR2004 - quota and period
            limits["cpu_quota"] = (words["cpu.max"][:1], int(words["cpu.max"][1]))
        for fact, (limit, unit) in limits.items():
            if limit and limit[0].isdigit():
                found[fact] = min(int(limit[0]) / unit, found.get(fact, float("inf")))
        if words["pids.current"][:1] not in ([], [b"max"]):
            found.setdefault("tasks", float(words["pids.current"][0]))
    return dict(found)


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
    sizes = [size for pid in looked_at if (size := _read_size_mib(look.files, pid)) is not None]
    if sizes:
        facts.values["worker_mib"] = sum(sizes) / len(sizes)
        facts.values["used_mib"] = scale * sum(sizes)
    else:
        facts.unread.append("memory of its workers (/proc/PID/smaps_rollup). Run as root to read it")
    folders = (f"/proc/{pid}/fd" for pid in looked_at)
    listed = host.run(("sh", "-c", _OPEN_FILES, "open-files", *folders), timeout_s=5).stdout.split()[::2]
    if listed:
        facts.values["open_files"] = max(map(int, listed))
    else:
        facts.unread.append("open files of its workers (/proc/PID/fd). Run as root to read them")


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
        return not owners.isdisjoint({server.first.pid, *(each.pid for each in server.workers)})
    return server.installation.port is not None and f":{server.installation.port} " in row


def _ports(server: RunningServer, queues: Iterable[Queue]) -> list[int]:
    ends = (each.address.rpartition(":")[2] for each in queues)
    own = server.installation.port
    return list(dict.fromkeys([*([own] if own else []), *(int(each) for each in ends if each.isdigit())]))


def _find_connections(facts: ServerFacts, host: Host, server: RunningServer, look: ServerLook) -> None:
    if ports := _ports(server, look.queues):
        wanted = " or ".join(f"sport = :{port}" for port in ports)
        count = ("sh", "-c", 'ss -Htn state established "$1" | wc -l', "count", wanted)
        if (number := host.run(count, timeout_s=5).stdout.strip()).isdigit():
            facts.values["connections"] = int(number)


def _ask_status(host: Host, server: RunningServer, queues: Iterable[Queue]) -> str:
    """Return the status page that the configuration names; empty where there is none, or no answer."""
    status = server.rules.file.status
    configured = status and re.search(status.configured, server.text, re.MULTILINE | re.DOTALL)
    if status is None or not configured:
        return ""
    numbers = {**status.counters, **status.gauges}
    path = configured[1].lstrip("/") + (status.query or "")
    for port in _ports(server, queues)[:MOST_PORTS]:
        argv = ("curl", "-sS", "--max-time", "1", f"http://127.0.0.1:{port}/{path}")
        with suppress(TargetError):
            page = host.run(argv, timeout_s=2).stdout[:LARGEST_PAGE].decode(errors="replace")
            if _read_numbers(numbers, page):
                return page
    return ""


def _find_configured(facts: ServerFacts, server: RunningServer, look: ServerLook) -> None:
    """Find what the configuration and the status page say."""
    file, text = server.rules.file, server.text
    if file.status:
        gauges = _read_numbers(file.status.gauges, look.page)
        facts.values.update(gauges)
        if not gauges and re.search(file.status.configured, text, re.MULTILINE | re.DOTALL):
            facts.unread.append("its status page: it did not answer within 1 s")
    for name, pattern in file.values.items():
        if found := re.search(pattern, text, re.MULTILINE):
            number = re.fullmatch(r"\d{1,15}", found[1])
            facts.values[name] = int(found[1]) if number else found[1]


def _find_room(facts: ServerFacts, host: Host, log: PurePosixPath | None) -> None:
    if log is not None:
        shown = host.run(("df", "-P", "-B", str(MIB), "--", str(log.parent)), timeout_s=5)
        rows = [row.split() for row in shown.stdout.decode(errors="replace").splitlines()]
        if shown.returncode == 0 and len(rows) > 1 and rows[1][3].isdigit():
            facts.values["log_disk_free_mib"] = int(rows[1][3])


def read_named_files(host: Host, names: Iterable[str]) -> Files:
    """Read those files that there are."""
    paths = tuple(map(PurePosixPath, names))
    look = host.look(paths)
    return {path: content for path in paths if (content := look.read(path).content) is not None}
