"""Looks at a host and its running servers, and names the limits that they meet."""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

from tuner import plugins
from tuner.advice.error_log import READ_S, TAIL, read_error_log, say_cut
from tuner.advice.findings import Advice, Finding, SeenServer, judge, rank
from tuner.advice.host_look import (
    choose_queues,
    count_ports,
    find_here,
    find_host_facts,
    find_queues,
    look_at_host,
)
from tuner.advice.log_lines import TAIL_BYTES, LogLine, cut_messages, read_clock, read_lines
from tuner.advice.rule_file import RuleFile
from tuner.advice.rules import FOLDER, Rules, read_file, read_rules, rule_files
from tuner.advice.server_look import (
    RunningServer,
    add_room,
    find_first,
    find_server_facts,
    find_workers,
    list_processes,
    look_at_server,
    read_named_files,
)
from tuner.commands.worth_trying import Tunable, find_worth_trying
from tuner.corpus.corpus_study import CorpusStudy
from tuner.corpus.files import read_corpus
from tuner.errors import TargetError, UsageError
from tuner.hosts.machine import Machine, read_machine
from tuner.hosts.sudoers import RootCommandRecorder
from tuner.ports import Command, Facts, Files, Host, Installation, InstalledServer, LookedAtServer
from tuner.space.parameters import identifier
from tuner.space.problems import problem, suggest
from tuner.space.sources import merge, read_sources

LOOK_S = 1.0
"""Counters are compared over at least this time."""
_NOW = Command(argv=("date", "+%s%z"))
_KERNEL_LOG = Command(
    argv=("sh", "-c", f"dmesg --time-format=iso | tail -c {TAIL_BYTES}"), timeout_s=READ_S, may_fail=True
)


def advise(host: Host, names: Collection[str] = (), *, corpus: Path | None = None) -> Advice:
    """Look at a host, and name the limits of its servers. Nothing is loaded, changed, or asked as root.

    Args:
        host: where they run.
        names: servers, or the kernel alone; every known server that runs when there are none.
        corpus: folder of earlier studies, which say what is worth trying; None without.

    Raises:
        UsageError: a name is unknown, or the corpus holds a file that is none of a corpus.
        TargetError: the host cannot be read, or a server that is named does not run.
    """
    files = _choose_files(names)
    unread: list[str] = []
    studies = () if corpus is None else read_corpus(corpus)
    host = RootCommandRecorder(host)  # which lets nothing run as root
    machine, before = read_machine(host), look_at_host(host)
    queues = find_queues(host)
    kernel_rules, kernel_found = _find_kernel(host, files, unread)
    kernel = kernel_found.installation.facts.current
    servers = tuple(_find_running(host, files, names, unread))
    first = [look_at_server(host, each) for each in servers]
    tunable = [*map(_as_tunable, filter(_is_found, servers)), kernel_found]
    tries = [each for one in tunable for each in _find_tries(one, machine, studies, unread)]
    time.sleep(max(0.0, LOOK_S - (time.monotonic() - before.at_s)))
    last = [look_at_server(host, each, begun) for each, begun in zip(servers, first, strict=True)]
    after = look_at_host(host)
    look_s = after.at_s - before.at_s
    scope = {
        **find_host_facts(machine, before, after),
        **count_ports(host, after),
        **choose_queues(queues, find_queues(host)),
        **{identifier(name): value for name, value in kernel.items()},
    }
    now, kernel_log = _read_kernel_log(host, kernel_rules.file.message, unread)
    findings: list[Finding] = []
    for server, begun, ended in zip(servers, first, last, strict=True):
        read = find_server_facts(host, server, begun, ended)
        log = read_error_log(host, server, now)
        unread += [f"{server.name}: {each}" for each in (*read.unread, *log.unread)]
        current = server.installation.facts.current
        own = {
            "server": server.name,
            **{identifier(name): value for name, value in current.items()},
            **add_room(read.values, scope),
        }
        findings += judge(
            SeenServer(
                server=server.name, rules=server.rules, scope={**scope, **own}, current={**kernel, **current},
                kernel=kernel, files=server.installation.files, log=log.lines,
                kernel_log=kernel_log, now_s=now.timestamp(),
                started_s=now.timestamp() - float(read.values.get("settled_s", 0)),
                tuned=_find_tuned(_as_tunable(server)) if _is_found(server) else (),
            )
        )  # fmt: skip
    findings += judge(
        SeenServer(
            server="kernel", rules=kernel_rules, scope=scope, current=kernel, kernel=kernel, files={},
            log=(), kernel_log=kernel_log, now_s=now.timestamp(), started_s=0.0, here=find_here(host),
            tuned=_find_tuned(kernel_found),
        )
    )  # fmt: skip
    proposed = {each.name for finding in findings for each in finding.proposals}
    findings += [each for each in tries if each.limit not in proposed]
    return Advice(
        host=host.name, servers=servers, findings=rank(findings), unread=tuple(dict.fromkeys(unread)),
        look_s=look_s, corpus=corpus, is_of_kernel=len(files) == 1,
        # A study of a server that does not speak HTTP needs the address of a page.
        need_url=frozenset(each.name for each in servers if each.installation.port is None),
    )  # fmt: skip


def list_rules(names: Collection[str] = ()) -> tuple[RuleFile, ...]:
    """Return the rules for these servers and the kernel, and those that servers share.

    Raises UsageError for a wrong name.
    """
    files = _choose_files(names)
    parts = dict.fromkeys(part for file in files.values() for part in file.parts)
    shared = (read_file(FOLDER / "parts" / f"{part}.yaml")[1] for part in parts)
    return (*files.values(), *shared)


def _choose_files(names: Collection[str]) -> dict[Path, RuleFile]:
    """Return the kernel's file of rules and those of the servers. Raises UsageError for a wrong name."""
    files = {path: read_file(path)[1] for path in rule_files()}
    known = {name for file in files.values() for name in (file.advice, *file.servers)}
    for name in sorted(set(names) - known):
        raise problem("advise", f"there are no rules for {name!r}", suggest(name, known))
    return {
        path: file
        for path, file in files.items()
        if not names or not file.processes or not {file.advice, *file.servers}.isdisjoint(names)
    }


def _find_kernel(host: Host, files: Mapping[Path, RuleFile], unread: list[str]) -> tuple[Rules, Tunable]:
    """Return the kernel's rules and settings."""
    path, file = next((path, file) for path, file in files.items() if not file.processes)
    adapter, installation = find_installation(host, file, unread)
    found = Tunable(title=file.advice, adapter=adapter, space=file.spaces[adapter], installation=installation)
    return read_rules(path, version=installation.facts.version), found


def _as_tunable(server: RunningServer) -> Tunable:
    space = server.rules.file.spaces.get(server.name, "")
    return Tunable(title=server.name, adapter=server.name, space=space, installation=server.installation)


def _is_found(server: RunningServer) -> bool:
    """Return whether an adapter has found the installed server, so that a study can tune it."""
    return server.installation.service is not None


def _find_tuned(tunable: Tunable) -> frozenset[str]:
    """Return the settings that a study of an installed server can change."""
    parameters = merge(read_sources([tunable.space], Path.cwd())).parameters if tunable.space else {}
    return frozenset(parameters.keys() & tunable.installation.facts.current.keys())


def _find_tries(
    tunable: Tunable, machine: Machine, studies: Sequence[CorpusStudy], unread: list[str]
) -> tuple[Finding, ...]:
    """Return what is worth trying; nothing of a server whose values are not known."""
    if not tunable.space or not tunable.installation.facts.current:
        return ()
    try:
        return find_worth_trying(tunable, machine, studies)
    except UsageError as error:
        unread.append(f"{tunable.title}: what is worth trying: {error}")
        return ()


def _find_running(
    host: Host, files: Mapping[Path, RuleFile], names: Collection[str], unread: list[str]
) -> Iterator[RunningServer]:
    """Yield the servers that run. Raises TargetError for one that is named and does not."""
    processes = list_processes(host)
    for path, file in files.items():
        if not file.processes:
            continue
        running = find_first(processes, file.processes)
        if not running:
            if names:
                raise TargetError(f"{host.name}: {file.advice} does not run. Start the server first.")
            continue
        if len(running) > 1:
            which = f"the one with process {running[0].pid} is looked at"
            unread.append(f"{file.advice}: {len(running)} of it run here; {which}")
        name, installation = find_installation(host, file, unread, running[0].command)
        yield RunningServer(
            name=name, rules=read_rules(path, version=installation.facts.version), first=running[0],
            workers=find_workers(processes, running[0], file.workers), installation=installation,
        )  # fmt: skip


def find_installation(
    host: Host, file: RuleFile, unread: list[str], command: str = ""
) -> tuple[str, Installation]:
    """Return the adapter that knows an installation, and what it found; else what the rules' files hold.

    Args:
        host: where it is.
        file: the rules of the server.
        unread: takes why its configuration is not known.
        command: of its first process; empty for the kernel.
    """
    told = re.findall(file.configuration, command) if file.configuration else []
    said: list[str] = []
    for name in file.servers:
        adapter = plugins.make_server(name)
        if isinstance(adapter, InstalledServer):
            try:
                if isinstance(adapter, LookedAtServer):
                    return name, adapter.find_running(host, command)
                found = adapter.find(host)
            except TargetError as error:
                said.append(str(error))
                continue
            if _has_read(found, told):
                return name, found
            said.insert(0, f"it runs with {', '.join(told)}, which is not that of the installed service")
            break
    files: Files = {}
    try:
        files = read_named_files(
            host, [each for each in told if each.startswith("/")] if told else file.files
        )
    except TargetError as error:
        said.append(str(error))
    if told and not said and not files:
        said.append(f"{', '.join(told)} cannot be read. Run as root, or start it with an absolute path")
    if said:
        unread.append(f"{file.advice}: its configuration: {said[0]}")
    log = PurePosixPath(file.error_log) if file.error_log else None
    return file.servers[0], Installation(facts=Facts(), files=files, service=None, log=log)


def _has_read(found: Installation, told: Sequence[str]) -> bool:
    """Return whether what a process was told to read, files or folders, is that of an installation."""
    paths = {path for file in found.files for path in (file, *file.parents)}
    return paths.issuperset(map(PurePosixPath, told))


def _read_kernel_log(host: Host, form: str | None, unread: list[str]) -> tuple[datetime, tuple[LogLine, ...]]:
    """Return the host's time in its own zone, and the end of the kernel's log."""
    told, log = host.run_all((_NOW, _KERNEL_LOG))
    now = read_clock(told.stdout)
    if not log.stdout:
        unread.append("kernel: its log (dmesg). Run as root to read it")
    lines = tuple(read_lines(log.stdout, "dmesg", now=now))
    if len(log.stdout) >= TAIL_BYTES and (cut := say_cut(lines, now, TAIL)):
        unread.append(f"kernel: its log (dmesg): {cut}")
    return now, tuple(cut_messages(lines, form))
