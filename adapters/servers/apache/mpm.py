"""The multi-processing modules: the directives of each, and what it makes of their values without a word."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tuner.ports import Config, Facts, Scalar

SETTING = "MPM"
"""The parameter that chooses one; it is the module that is loaded, and no directive."""
EVENT, WORKER, PREFORK = "event", "worker", "prefork"
DIRECTIVES = frozenset(
    {
        *("ServerLimit", "ThreadLimit", "ThreadsPerChild", "MaxRequestWorkers", "StartServers"),
        *("MinSpareThreads", "MaxSpareThreads", "MinSpareServers", "MaxSpareServers"),
        *("AsyncRequestWorkerFactor", "ThreadStackSize"),
    }
)
"""What not every MPM knows, or not with the same default."""

THREADS_BESIDE_WORKERS = 2
_NEEDS_PREFORK = frozenset({"mpm_itk", "ruid2"})
"""Beside mod_php, which distributions build without thread safety: what changes the user of its process."""

Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mpm:
    """One multi-processing module."""

    name: str
    server: str
    """The adapter that tunes an installed Apache with it."""
    defaults: Mapping[str, Scalar]
    """What it does without a line, of the directives that are its own; another MPM refuses those."""
    sizes: tuple[str, ...]
    """What it judges together."""
    limits: tuple[str, ...]
    """Room for the sizes: they follow from them."""
    force: Callable[[Numbers, int], dict[str, int]]
    """Returns what it makes of sizes and limits, given its number of listening sockets."""


def _force_threads(number: Numbers, buckets: int) -> dict[str, int]:
    """Keep to the order of event_check_config and event_run, which worker.c has line by line.

    `Processes` is how many of them ServerLimit and MaxRequestWorkers allow.
    """
    limit = min(max(number["ServerLimit"], 1), 20_000)
    most_threads = min(max(number["ThreadLimit"], 1), 100_000)
    threads = max(min(number["ThreadsPerChild"], most_threads), 1)
    processes = max(min(max(number["MaxRequestWorkers"], threads) // threads, limit), buckets)
    least = max(number["MinSpareThreads"], 1, threads * (buckets - 1) + buckets)
    return {
        "ServerLimit": limit,
        "ThreadLimit": most_threads,
        "ThreadsPerChild": threads,
        "MaxRequestWorkers": processes * threads,
        "StartServers": min(max(number["StartServers"], 1, buckets), processes),
        "MinSpareThreads": least,
        "MaxSpareThreads": max(number["MaxSpareThreads"], least + (threads + 1) * buckets),
        "Processes": processes,
    }


def _force_threads_of_worker(number: Numbers, buckets: int) -> dict[str, int]:
    """Lower ThreadLimit where worker.c does (MAX_THREAD_LIMIT), which event.c lets be five times as high."""
    return _force_threads({**number, "ThreadLimit": min(number["ThreadLimit"], 20_000)}, buckets)


def _force_processes(number: Numbers, buckets: int) -> dict[str, int]:
    """Keep to the order of prefork_check_config and prefork_run (server/mpm/prefork/prefork.c)."""
    limit = min(max(number["ServerLimit"], 1), 200_000)
    workers = max(min(number["MaxRequestWorkers"], limit), buckets)
    least = max(number["MinSpareServers"], buckets)
    return {
        "ServerLimit": limit,
        "MaxRequestWorkers": workers,
        "StartServers": min(max(number["StartServers"], buckets), workers),
        "MinSpareServers": least,
        "MaxSpareServers": max(number["MaxSpareServers"], least + buckets),
    }


# Of each MPM the file mpm_default.h has them.
_OF_THREADS: Mapping[str, Scalar] = {
    "ServerLimit": 16, "ThreadLimit": 64, "ThreadsPerChild": 25, "MaxRequestWorkers": 400, "StartServers": 3,
    "MinSpareThreads": 75, "MaxSpareThreads": 250, "ThreadStackSize": 0,
}  # fmt: skip
_OF_PROCESSES: Mapping[str, Scalar] = {
    "ServerLimit": 256, "MaxRequestWorkers": 256, "StartServers": 5, "MinSpareServers": 5,
    "MaxSpareServers": 10,
}  # fmt: skip
_SIZES_OF_THREADS = (
    "ThreadsPerChild", "MaxRequestWorkers", "StartServers", "MinSpareThreads", "MaxSpareThreads",
)  # fmt: skip
MPMS: Mapping[str, Mpm] = {
    each.name: each
    for each in (
        Mpm(
            name=EVENT,
            server="apache",
            defaults={**_OF_THREADS, "AsyncRequestWorkerFactor": 2},
            sizes=_SIZES_OF_THREADS,
            limits=("ServerLimit", "ThreadLimit"),
            force=_force_threads,
        ),
        Mpm(
            name=WORKER,
            server="apache-worker",
            defaults=_OF_THREADS,
            sizes=_SIZES_OF_THREADS,
            limits=("ServerLimit", "ThreadLimit"),
            force=_force_threads_of_worker,
        ),
        Mpm(
            name=PREFORK,
            server="apache-prefork",
            defaults=_OF_PROCESSES,
            sizes=("MaxRequestWorkers", "StartServers", "MinSpareServers", "MaxSpareServers"),
            limits=("ServerLimit",),
            force=_force_processes,
        ),
    )
}


def loaded_mpm(facts: Facts) -> Mpm:
    """Return the MPM of an installed server, which has loaded exactly one."""
    return next(each for each in MPMS.values() if f"mpm_{each.name}" in facts.modules)


def count_own_threads(config: Config) -> int:
    """Return how many threads a complete child has: one, or its workers, one listener and the main thread.

    (server/mpm/event/event.c and server/mpm/worker/worker.c, start_threads.)
    """
    threads = config.get("ThreadsPerChild")
    return 1 if threads is None else int(threads) + THREADS_BESIDE_WORKERS


def count_connections(config: Config) -> int:
    """Return how many connections one child holds at the most; each takes an open file.

    With event some more than its workers wait between two requests (server/mpm/event/event.c,
    connections_above_limit).
    """
    threads, factor = int(config.get("ThreadsPerChild", 1)), int(config.get("AsyncRequestWorkerFactor", 0))
    return threads * (factor + 1)


def name_forbidden(wanted: str, modules: frozenset[str]) -> tuple[str, ...]:
    """Return a sentence for each loaded module that does not work under the MPM that is wanted."""
    if wanted == PREFORK:
        return ("mod_http2 serves no HTTP/2 under prefork",) if "http2" in modules else ()
    needing = sorted(each for each in modules if each.startswith("php") or each in _NEEDS_PREFORK)
    return tuple(f"mod_{each} needs prefork" for each in needing)
