"""Read back what a running Apache has really got: from its own status page and from the kernel."""

import re
from collections import Counter
from collections.abc import Sequence

from tuner.adapters.servers.apache.mpm import (
    PREFORK,
    SETTING,
    THREADS_BESIDE_WORKERS,
    count_own_threads,
    loaded_mpm,
)
from tuner.kit import programs, readback
from tuner.ports import Command, Completed, Config, Facts, FileReader, Host, Installation, Scalar

PAGE = "server-status?auto"
"""The page of mod_status that programs read."""

# `Listen 80` is the first of these; the sockets that are made besides for more buckets are the second.
_ANY_ADDRESS = frozenset({"*", "0.0.0.0", "[::]"})  # noqa: S104 - read, not bound
_MODULES_WITH_THREADS = frozenset(
    {
        "http2",
        "md",
        "proxy_hcheck",
        "heartmonitor",
        "heartbeat",
        "wsgi",
        "perl",
        "pagespeed",
        "jk",
        "cluster_slots",
    }
)
"""Modules that run threads of their own in each child, so that its threads do not tell its workers."""


def judge_status(answer: Completed) -> dict[str, Scalar]:
    """Tell the MPM and the workers that it allows from a status page; nothing where it is none.

    The scoreboard has one character for each of those workers (mod_status.c).
    """
    printed = programs.decode(answer)
    scoreboard = re.search(r"^Scoreboard: (\S+)", printed, re.MULTILINE)
    if scoreboard is None:
        return {}
    running = re.search(r"^ServerMPM: (\S+)", printed, re.MULTILINE)
    return {"MaxRequestWorkers": len(scoreboard[1]), **({SETTING: running[1]} if running else {})}


def judge_listeners(
    sockets: Sequence[readback.ListeningSocket], config: Config, cores: int
) -> dict[str, Scalar]:
    """Tell what was asked of listen(), and how many sockets of one address share the connections."""
    if not sockets:
        return {}
    addresses = (socket.address.rpartition(":")[0] for socket in sockets)
    buckets = max(Counter("*" if each in _ANY_ADDRESS else each for each in addresses).values())
    asked = int(config.get("ListenCoresBucketsRatio", 0))
    expected = max(1, cores // asked) if asked else 1
    return {
        "ListenBacklog": min(socket.queue for socket in sockets),
        "ListenCoresBucketsRatio": asked if buckets == expected else cores // buckets,
    }


def judge_children(counts: list[int], config: Config, besides: int = 0) -> dict[str, Scalar]:
    """Tell from the threads of each child what was asked of the MPM.

    Args:
        counts: threads of each child.
        config: what was asked.
        besides: threads of modules among them, as asked.
    """
    if not counts:
        return {"StartServers": 0}
    started = int(config.get("StartServers", 1))
    threads = count_own_threads(config) + besides
    complete = counts.count(threads)
    usual = threads if complete >= started else Counter(counts).most_common(1)[0][0]
    return {
        # MinSpareThreads may already have added children to those of the start.
        "StartServers": min(max(len(counts), complete), started),
        "ThreadsPerChild": usual - besides - THREADS_BESIDE_WORKERS,
    }


def count_threads(look: FileReader, parent: int) -> list[int]:
    """Count the threads of each child process that is the server's: its command line is its parent's."""
    own = readback.read_command_line(look, parent)
    servers = [
        pid for pid in readback.walk_processes(look, parent) if readback.read_command_line(look, pid) == own
    ]
    return [int(readback.read_status(look, pid, "Threads") or 0) for pid in servers[1:]]


def read_installed(
    host: Host, look: FileReader, config: Config, installation: Installation, pid: int
) -> dict[str, Scalar]:
    """Read back what an installed service has got, as far as it lets itself be asked.

    Processes and threads are those of one moment: while children still start, there may be too few.
    """
    found: dict[str, Scalar] = {}
    facts, port = installation.facts, installation.port
    if port is not None:
        found |= _ask_listener(host, config, installation, port)
    if pid and facts.modules.isdisjoint(_MODULES_WITH_THREADS):
        found |= judge_children(_count_workers(look, facts, pid), config)
    return found


def _count_workers(look: FileReader, facts: Facts, pid: int) -> list[int]:
    """Count the threads of each child that serves; under prefork mod_cgid's daemon looks like one of them."""
    counts = count_threads(look, pid)
    if loaded_mpm(facts).name == PREFORK:
        return counts[: len(counts) - ("cgid" in facts.modules)]
    # The one with one thread is mod_cgid's daemon, or a child that has just begun.
    return [count for count in counts if count > 1]


def _ask_listener(host: Host, config: Config, installation: Installation, port: int) -> dict[str, Scalar]:
    """Ask the kernel and, where there is one, the status page."""
    facts = installation.facts
    questions = [Command(argv=readback.listen_queues_command(port), may_fail=True)]
    if "status" in facts.modules:
        questions.append(Command(argv=readback.status_command(port, PAGE), may_fail=True))
    listed, *answers = host.run_all(questions)
    found = judge_listeners(readback.parse_listening_sockets(listed), config, facts.cores)
    if config.get("ListenBacklog") == facts.current.get("ListenBacklog"):
        # As it was found; net.core.somaxconn may have been below it all the time.
        found.pop("ListenBacklog", None)
    for answer in answers:
        found |= judge_status(answer)
    return found
