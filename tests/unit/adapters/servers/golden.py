"""Golden cases of the servers: FOLDER/ADAPTER/KIND-NAME.json beside what the real program read or printed.

render   config, site, facts in the JSON; the files it must become as render-NAME.FILE
check    check-NAME.txt is what `-t` printed; the JSON lists the refusals
log      log-NAME.txt is a server's own log; the JSON lists the complaints
detect   answers of the host, and the facts
running  answers of the host while the server ran, the configuration asked, and what was active

`capture.py` makes them again from the programs on this machine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.caddy import Caddy
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.haproxy import Haproxy
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.sysctl import Sysctl
from tuner.errors import TargetError
from tuner.ports import ABSENT, Command, Completed, Facts, FileState, PrivateServer, Site

FOLDER = Path(__file__).parent
ADAPTERS: Mapping[str, PrivateServer] = {
    server.name: server for server in (Apache(), Caddy(), H2o(), Haproxy(), Nginx(), Sysctl())
}


def cases(kind: str) -> list[Path]:
    """Find every case of one kind, of every adapter."""
    found = (case for adapter in ADAPTERS for case in sorted((FOLDER / adapter).glob(f"{kind}-*.json")))
    # A server's own file may be JSON as well: render-NAME.FILE.json
    return [case for case in found if "." not in case.stem]


def read(case: Path) -> tuple[PrivateServer, dict[str, Any]]:
    """Read a case and the adapter that it is about."""
    return ADAPTERS[case.parent.name], json.loads(case.read_text())


def printed(case: Path) -> bytes:
    """Read what the program printed or logged."""
    return case.with_suffix(".txt").read_bytes()


def site_of(stored: Mapping[str, Any]) -> Site:
    return Site(
        directory=PurePosixPath(stored["directory"]),
        document_root=PurePosixPath(stored["document_root"]),
        port=stored["port"],
        cpus=frozenset(stored["cpus"]),
    )


def facts_of(stored: Mapping[str, Any]) -> Facts:
    return Facts(
        version=tuple(stored["version"]),
        program=PurePosixPath(stored["program"]),
        modules=frozenset(stored["modules"]),
        current=stored["current"],
        cores=stored["cores"],
    )


def describe(facts: Facts) -> dict[str, Any]:
    return {
        "version": list(facts.version),
        "program": str(facts.program),
        "modules": sorted(facts.modules),
        "current": dict(facts.current),
        "cores": facts.cores,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProcess:
    """A process of which only its id matters."""

    pid: int

    def poll(self) -> int | None:
        return None

    def output(self) -> bytes:
        return b""

    def stop(self, *, timeout_s: float) -> None:
        """It has ended long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHost:
    """A host that answers what a real one once answered."""

    commands: Mapping[str, str]
    files: Mapping[str, str]
    name: str = field(default="recorded")

    def run(self, argv: Sequence[str], **_how: object) -> Completed:
        command = " ".join(argv)
        if command not in self.commands:
            message = f"recorded: {argv[0]}: command not found"
            raise TargetError(message)
        answer = self.commands[command].encode()
        return Completed(argv=tuple(argv), returncode=0, stdout=answer, stderr=b"", duration_s=0.0)

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return tuple(self.run(each.argv) for each in commands)

    def read(self, path: PurePosixPath) -> FileState:
        content = self.files.get(str(path))
        return ABSENT if content is None else FileState(content=content.encode())
