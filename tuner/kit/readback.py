"""Read back what a running server really got, from the kernel and from its status page."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.kit.packages import CURL, say_install
from tuner.kit.programs import COMMAND_TIMEOUT_S
from tuner.ports import Argv, Completed, FileReader, Host, Site

SETTLE_S = 1.0
PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSocket:
    """One socket that waits for connections."""

    address: str
    queue: int
    """Connections that may wait: min(backlog, net.core.somaxconn at the time of listen()) (ss(8), Send-Q)."""


def read_listening_sockets(host: Host, port: int) -> tuple[ListeningSocket, ...]:
    """Read which sockets listen on the port."""
    return parse_listening_sockets(host.run(listen_queues_command(port), timeout_s=COMMAND_TIMEOUT_S))


def listen_queues_command(port: int) -> Argv:
    """Return the command that lists the sockets that listen on a port."""
    return ("ss", "-ltnH", f"sport = :{port}")


def parse_listening_sockets(listed: Completed) -> tuple[ListeningSocket, ...]:
    """Parse what `ss` printed."""
    rows = (line.split() for line in listed.stdout.decode(errors="replace").splitlines())
    return tuple(
        ListeningSocket(address=row[3], queue=int(row[2]))
        for row in rows
        if len(row) > 3 and row[0] == "LISTEN"  # noqa: PLR2004 - columns
    )


def read_listen_queues(host: Host, port: int) -> tuple[int, ...]:
    """Read the active accept-queue length for each socket that listens on the port."""
    return tuple(socket.queue for socket in read_listening_sockets(host, port))


def walk_processes(look: FileReader, pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it, parents first."""
    yield pid
    children = look.read(PurePosixPath(f"/proc/{pid}/task/{pid}/children")).content
    for child in (children or b"").split():
        yield from walk_processes(look, int(child))


def read_command_line(look: FileReader, pid: int) -> str:
    """Read a process's command line; empty when it is gone."""
    content = look.read(PurePosixPath(f"/proc/{pid}/cmdline")).content or b""
    return content.replace(b"\0", b" ").decode(errors="replace").strip()


def read_status(look: FileReader, pid: int, field: str) -> str | None:
    """Read one field of /proc/PID/status, such as Threads."""
    content = (look.read(PurePosixPath(f"/proc/{pid}/status")).content or b"").decode(errors="replace")
    found = re.search(rf"^{field}:\s*(.*)$", content, re.MULTILINE)
    return found[1].strip() if found else None


def read_open_files_limit(look: FileReader, pid: int) -> int | None:
    """Read the soft RLIMIT_NOFILE of a process."""
    content = (look.read(PurePosixPath(f"/proc/{pid}/limits")).content or b"").decode(errors="replace")
    found = re.search(r"^Max open files\s+(\d+)", content, re.MULTILINE)
    return int(found[1]) if found else None


def settle(read: Callable[[], int], expected: int) -> int:
    """Read a count until it is as high as expected, or has not changed for a second.

    A server may answer while it still forks or makes threads.
    """
    count, changed_s = read(), time.monotonic()
    while count < expected and time.monotonic() < changed_s + SETTLE_S:
        time.sleep(PAUSE_S)
        before, count = count, read()
        if count != before:
            changed_s = time.monotonic()
    return count


def status_command(port: int, page: str, certificate: PurePosixPath | None = None) -> Argv:
    """Return the command that asks for a page of the server on this port, by its path without the slash.

    With the file of its certificate it is asked over TLS, and has to be that server.
    """
    asked = ("curl", "-sS", "--max-time", "5")
    if certificate is None:
        return (*asked, f"http://127.0.0.1:{port}/{page}")
    return (*asked, "--http1.1", "--cacert", str(certificate), f"https://127.0.0.1:{port}/{page}")


def ask_status(host: Host, site: Site, page: str, *, server: str) -> Completed:
    """Ask a private instance for the page. Raises TargetError when there is no curl.

    What came may be no status.
    """
    certificate = None if site.certificate is None else site.certificate.file
    try:
        return host.run(status_command(site.port, page, certificate), timeout_s=COMMAND_TIMEOUT_S)
    except TargetError as error:
        raise lack_curl(host, server, error) from error


def lack_curl(host: Host, server: str, error: TargetError) -> TargetError:
    """Return the error for a host without curl, by which a server's status is read."""
    return TargetError(
        f"{host.name}: tuner needs curl to read the status of {server} ({error}). Install curl: "
        f"{say_install(host, CURL)}"
    )
