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
        self._own_folder()
        self._run("initdb", "--username=tuner", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")

    def follow(self, primary: "Postgres") -> None:
        """Make and start a hot standby of another one, which from now on waits for it with every commit."""
        self._own_folder()
        source = f"--dbname=host={primary.folder} user=tuner"
        self._run("pg_basebackup", source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        self.start()
        primary.tell("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.tell("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "promote", "--wait", "--silent")

    def tell(self, statement: str) -> None:
        """Run a statement."""
        command = ("psql", f"--host={self.folder}", "--username=tuner", "--dbname=postgres", "--quiet")
        subprocess.run((*command, f"--command={statement}"), check=True, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [f"--{each}" for each in (*SETTINGS, f"unix_socket_directories={self.folder}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_user("postgres", *settings), stdout=log, stderr=log, cwd=self.folder
            )
        while self._ready().returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()

    def stop(self, *, mode: str = "fast") -> None:
        """Stop the server: whoever is connected is cut off; `immediate` is as if it had crashed."""
        if self._process is not None:
            self._run("pg_ctl", "stop", f"--mode={mode}", "--wait", "--silent")
            self._process.wait()
            self._process = None

    def _own_folder(self) -> None:
        account = pwd.getpwnam(USER)
        if os.geteuid() == 0:
            os.chown(self.folder, account.pw_uid, account.pw_gid)

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
    with _folder_of_one() as server:
        server.make()
        server.start()
        yield server


@contextmanager
def open_standby(primary: Postgres) -> Iterator[Postgres]:
    """Run a hot standby of an instance."""
    with _folder_of_one() as server:
        server.follow(primary)
        yield server


@contextmanager
def _folder_of_one() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="tuner-postgres-"))
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
