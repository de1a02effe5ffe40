"""A private PostgreSQL for tests: reached through a socket in a temporary folder, and gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = max(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None
)
"""Debian keeps them where no PATH looks."""
USER = "nobody"
"""PostgreSQL refuses to run as root."""
SETTINGS = (
    "listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=300", "shared_buffers=64MB",
)  # fmt: skip


@dataclass
class Postgres:
    """One instance of the server."""

    folder: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        """Where a study stores."""
        return f"postgresql://tuner@/postgres?host={self.folder}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def make(self) -> None:
        """Make the files of an empty database."""
        account = pwd.getpwnam(USER)
        if os.geteuid() == 0:
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "--username=tuner", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [f"--{each}" for each in (*SETTINGS, f"unix_socket_directories={self.folder}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_user("postgres", *settings), stdout=log, stderr=log, cwd=self.folder
            )
        while self._ready().returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()

    def stop(self) -> None:
        """Stop the server as a machine does that is shut down: whoever is connected is cut off."""
        if self._process is not None:
            self._run("pg_ctl", "stop", "--mode=fast", "--wait", "--silent")
            self._process.wait()
            self._process = None

    def _ready(self) -> "subprocess.CompletedProcess[bytes]":
        command = [str(_programs() / "pg_isready"), "-q", "-h", str(self.folder), "-t", "5"]
        return subprocess.run(command, check=False)

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            self._as_user(program, *options), check=True, stdout=subprocess.DEVNULL, cwd=self.folder
        )

    def _as_user(self, program: str, *options: str) -> list[str]:
        account = pwd.getpwnam(USER)
        ids = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
        become = ["setpriv", *ids] if os.geteuid() == 0 else []
        return [*become, str(_programs() / program), "-D", str(self.folder / "data"), *options]


def _programs() -> Path:
    assert PROGRAMS is not None, "PostgreSQL is not installed: make setup"
    return PROGRAMS


@contextmanager
def open_postgres() -> Iterator[Postgres]:
    """Run an instance of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tuner-postgres-"))
    server = Postgres(folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
