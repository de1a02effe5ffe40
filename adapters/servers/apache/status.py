"""Read back what a running Apache has really got: from its own status page and from the kernel."""

import re
from collections import Counter
from collections.abc import Sequence

from tuner.kit import programs, readback
from tuner.ports import Command, Completed, Config, FileReader, Host, Installation, Scalar

PAGE = "server-status?auto"
"""The page of mod_status that programs read."""

# A child runs its workers, one listener and the main thread (server/mpm/event/event.c, start_threads).
THREADS_BESIDE_WORKERS = 2
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


def read_scoreboard(answer: Completed) -> str | None:
    """Find the scoreboard: one character per worker slot that MaxRequestWorkers allows (mod_status.c)."""
    found = re.search(r"^Scoreboard: (\S+)", programs.decode(answer), re.MULTILINE)
    return found[1] if found else None


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


def judge_children(counts: list[int], config: Config) -> dict[str, Scalar]:
    """Tell from the threads of each child what was asked of the MPM."""
    if not counts:
        return {"StartServers": 0}
    started = int(config.get("StartServers", 1))
    threads = expected_threads(config)
    complete = counts.count(threads)
    usual = threads if complete >= started else Counter(counts).most_common(1)[0][0]
    return {
        # MinSpareThreads may already have added children to those of the start.
        "StartServers": min(max(len(counts), complete), started),
        "ThreadsPerChild": usual - THREADS_BESIDE_WORKERS,
    }


def expected_threads(config: Config) -> int:
    """Say how many threads a complete child has."""
    return int(config.get("ThreadsPerChild", 1)) + THREADS_BESIDE_WORKERS


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
        # The one with one thread is mod_cgid's daemon, or a child that has just begun.
        counts = [count for count in count_threads(look, pid) if count > 1]
        found |= judge_children(counts, config)
    return found


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
        if (scoreboard := read_scoreboard(answer)) is not None:
            found["MaxRequestWorkers"] = len(scoreboard)
    return found
