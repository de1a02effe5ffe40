"""Two small servers with settings of their own, on real programs: tests of deploying need no Apache.

`PageServer` answers every request with one file; `KernelSettings` only writes below /proc/sys.
"""

import json
import sys
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.ports import (
    FASTCGI,
    HTTP,
    Argv,
    Completed,
    Config,
    Facts,
    Files,
    Host,
    Needs,
    Process,
    Scalar,
    Site,
)

SCRIPT = b"""
import json, os, socket, sys, time
settings = json.load(open(sys.argv[1]))
if "--check" in sys.argv:
    sys.exit(settings.get("refusal"))
print("starting", flush=True)
if "last_words" in settings:
    sys.exit(settings["last_words"])
if settings.get("never_listens"):
    time.sleep(60)
for _ in range(settings.get("children", 0)):
    if os.fork() == 0:
        break
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", settings["port"]))
listener.listen(settings.get("backlog", 100))
page = open(settings["page"], "rb").read()
hoard = []
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    if settings.get("silent"):
        time.sleep(60)
    hoard.append(b"x" * settings.get("leaked_bytes", 0))
    status = settings.get("status", 200)
    head = "HTTP/1.1 %d x\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n" % (status, len(page))
    connection.sendall(head.encode() + page)
    connection.close()
    with open(settings["log"], "a") as log:
        log.write("notice: answered %d\\nerror: status %d\\n" % (status, status))
"""


class PageServer:
    """Serves /index.html of the document root; its parameters are what may go wrong."""

    name: ClassVar[str] = "page"
    package: ClassVar[str] = "python3"

    def detect(self, host: Host) -> Facts:
        _ = host
        return Facts(
            program=PurePosixPath(sys.executable),
            version=sys.version_info[:3],
            passes_to=frozenset({HTTP, FASTCGI}),
        )

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        _ = facts
        settings = {
            **config,
            "port": site.port,
            "backend": site.backend.address if site.backend else None,
            "page": str(site.document_root / "index.html"),
            "log": str(site.directory / "error.log"),
        }
        return {
            site.directory / "server.py": SCRIPT,
            site.directory / "settings.json": json.dumps(settings).encode(),
        }

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (*(self.start(site, facts) or ()), "--check")

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        lines = checked.stderr.decode().splitlines()
        return tuple(line for line in lines if line.startswith("refused"))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        files = (str(site.directory / "server.py"), str(site.directory / "settings.json"))
        return (str(facts.program), "-I", "-S", *files)

    def needs(self, config: Config) -> Needs:
        limit = config.get("open_files")
        return Needs(open_files=None if limit is None else int(limit))

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        _ = facts
        found: dict[str, Scalar] = {}
        if "backlog" in config:
            sockets = host.run(("ss", "-ltnH", f"sport = :{site.port}"), timeout_s=5).stdout.split()
            found["backlog"] = int(sockets[2])
        if "open_files" in config and process is not None:
            limits = host.read(PurePosixPath(f"/proc/{process.pid}/limits")).content or b""
            row = next(line for line in limits.decode().splitlines() if line.startswith("Max open files"))
            found["open_files"] = int(row.split()[3])
        return found

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return tuple(line for line in log.decode().splitlines() if line.startswith("error"))


class KernelSettings:
    """Writes parameters named like net.core.somaxconn; starts nothing."""

    name: ClassVar[str] = "kernel"
    package: ClassVar[str] = ""

    def detect(self, host: Host) -> Facts:
        _ = host
        return Facts(port=None)

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        _ = site, facts
        return {_file_of(name): str(value).encode() for name, value in config.items()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        _ = site, facts
        return None

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        _ = checked
        return ()

    def start(self, site: Site, facts: Facts) -> Argv | None:
        _ = site, facts
        return None

    def needs(self, config: Config) -> Needs:
        _ = config
        return Needs()

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        _ = site, facts, process
        return {name: int(host.read(_file_of(name)).content or b"-1") for name in config}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        _ = log
        return ()


def split(config: Config, server: str) -> Config:
    """Give kernel settings to one, everything else to the other."""
    return {name: value for name, value in config.items() if name.startswith("net.") == (server == "kernel")}


def _file_of(name: str) -> PurePosixPath:
    return PurePosixPath("/proc/sys") / name.replace(".", "/")
