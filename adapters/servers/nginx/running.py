"""Read back what a running nginx has really got."""

from collections.abc import Callable

from tuner.kit import readback
from tuner.ports import Config, Facts, FileReader, Host, Scalar

_WORKER_TITLE = "nginx: worker process"
_LEAVING = "shutting down"


def read_running(
    host: Host,
    reader: FileReader,
    config: Config,
    facts: Facts,
    *,
    port: int | None,
    master: int,
    is_settled: bool,
) -> Config:
    """Read back those parameters of a configuration that can be read back.

    Args:
        host: lists the sockets.
        reader: knows the master's process tree.
        config: what was asked.
        facts: of the program.
        port: where it listens, if that is known.
        master: id of the first process; 0 where there is none.
        is_settled: whether its workers and their threads are all there; otherwise they are waited for.
    """
    sockets = readback.read_listening_sockets(host, port) if port else ()
    found: dict[str, Scalar] = {}
    if sockets:
        found["listen_backlog"] = min(socket.queue for socket in sockets)
    if master:
        settle = _read_once if is_settled else readback.settle
        found |= _read_workers(reader, config, facts, master, settle)
        workers = len(_find_workers(reader, master))
        if workers > 1 and sockets:  # one worker has one listener of each address either way
            addresses = len({socket.address for socket in sockets})
            found["listen_reuseport"] = len(sockets) == workers * addresses
    return {name: value for name, value in found.items() if name in config}


def _read_workers(
    reader: FileReader,
    config: Config,
    facts: Facts,
    master: int,
    settle: Callable[[Callable[[], int], int], int],
) -> dict[str, Scalar]:
    asked = config.get("worker_processes", 1)
    expected = facts.cores if asked == "auto" else int(asked)
    count = settle(lambda: len(_find_workers(reader, master)), expected)
    workers = _find_workers(reader, master)
    if not workers:
        return {"worker_processes": 0}
    found: dict[str, Scalar] = {"worker_processes": asked if count == expected else count}
    if (limit := readback.read_open_files_limit(reader, workers[0])) is not None:
        found["worker_rlimit_nofile"] = limit
    if not _allowed(reader, master).isdigit():  # on one CPU all workers share it either way
        pinned = all(_allowed(reader, pid).isdigit() for pid in workers)
        found["worker_cpu_affinity"] = "auto" if pinned else "off"
    if config.get("aio") == "threads" and "thread_pool_threads" in config:
        threads = int(config["thread_pool_threads"])
        found["thread_pool_threads"] = settle(lambda: _count_threads(reader, workers[0]) - 1, threads)
    return found


def _find_workers(reader: FileReader, master: int) -> list[int]:
    """Find the workers, without those of before a reload that finish their last requests."""
    titles = {pid: readback.read_command_line(reader, pid) for pid in readback.walk_processes(reader, master)}
    return [pid for pid, title in titles.items() if title.startswith(_WORKER_TITLE) and _LEAVING not in title]


def _allowed(reader: FileReader, pid: int) -> str:
    return readback.read_status(reader, pid, "Cpus_allowed_list") or ""


def _count_threads(reader: FileReader, pid: int) -> int:
    return int(readback.read_status(reader, pid, "Threads") or 1)


def _read_once(read: Callable[[], int], expected: int) -> int:  # noqa: ARG001 - as `settle`
    return read()
