"""Runs a server for real and keeps what it was asked and answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tuner.ports import Completed, Facts, FileState, Host, Process, Sandbox, Server, Site
from tuner.space import SpaceFacts, load_space

SPACES = {"apache": "apache-event"}
"""Server → its space, where that has another name."""
ALLOWED = {"allow": ["capacity"]}


@dataclass
class RecordingHost:
    """Passes everything on, and keeps the last answer to each question."""

    host: Host
    commands: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    name: str = "recording"

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        completed = self.host.run(argv, **options)
        self.commands[" ".join(argv)] = (completed.stderr + completed.stdout).decode()
        return completed

    def read(self, path: PurePosixPath) -> FileState:
        state = self.host.read(path)
        self.files[str(path)] = None if state.content is None else state.content.decode()
        return state


def configuration(adapter: str, **values: Any) -> dict[str, Any]:
    """Give the packaged configuration of a server on two CPUs under 100 connections, with these values."""
    facts = SpaceFacts(
        names={
            "cores": 2,
            "memory_mib": 4096,
            "connections": 100,
            "open_files_max": 1048576,
            "somaxconn": 4096,
        }
    )
    space = load_space([SPACES.get(adapter, adapter), ALLOWED], facts=facts, base=Path())
    return space.for_server(space.complete(values), adapter)


def put_site(
    sandbox: Sandbox,
    server: Server,
    config: Mapping[str, Any],
    facts: Facts,
    changes: Sequence[tuple[bytes, bytes]] = (),
) -> Site:
    site = Site(directory=sandbox.directory / server.name, document_root=sandbox.directory / "www")
    sandbox.write(site.document_root / "index.html", FileState(content=b"golden\n", mode=0o644))
    for path, content in server.render(config, site, facts).items():
        for old, new in changes:
            content = content.replace(old, new, 1)  # noqa: PLW2901
        sandbox.write(path, FileState(content=content))
    return site


def start(
    sandbox: Sandbox,
    server: Server,
    site: Site,
    config: Mapping[str, Any],
    facts: Facts,
    open_files: int | None = None,
) -> Process:
    limit = open_files or server.needs(config).open_files
    process = sandbox.start(server.start(site, facts) or (), open_files=limit)
    url = "http://127.0.0.1:8080/index.html"
    asked = (
        "curl",
        "-s",
        "--retry",
        "20",
        "--retry-delay",
        "0",
        "--retry-connrefused",
        "--max-time",
        "5",
        url,
    )
    sandbox.run(asked, timeout_s=20)
    return process
