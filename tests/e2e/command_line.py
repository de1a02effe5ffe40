"""The command line as a user has it: a folder, arguments, exit codes; as a subprocess or in this process."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest

from tuner import cli
from tuner.cli.verbosity import Verbosity

TUNER = Path(sys.executable).with_name("tuner")

STUDY = """\
study: {name}
servers: [{server}]
space: [{space}]
target: {{host: local, mode: sandbox}}
load: {{generator: wrk, path: {path}, connections: {connections}, keepalive: {keepalive}}}
content: {content}
budget: {{preset: quick}}
"""
VALUES = {
    "name": "test",
    "server": "nginx",
    "space": "nginx",
    "path": "/index.html",
    "connections": 20,
    "keepalive": "true",
    "content": "builtin",
}


def was_too_noisy(completed: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether noise ended a run; noise that passed is told on stderr alone, and the run went on."""
    said = {0: "", 1: completed.stdout}.get(completed.returncode, completed.stderr)
    return "too noisy" in said


@dataclass(frozen=True)
class CommandLine:
    """Runs tuner in a folder; everything that it starts carries a mark."""

    folder: Path
    mark: str = field(default_factory=lambda: f"TUNER_TEST={uuid.uuid4()}")
    variables: Mapping[str, str] = field(default_factory=dict)
    """More of its environment."""
    through: Sequence[str] = ()
    """Put before every command; see `idle_processors_here`."""

    @property
    def environment(self) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {**os.environ, name: value, "COLUMNS": "200", **self.variables}

    def write(self, file: str = "study.yaml", text: str | None = None, **changes: object) -> Path:
        """Write a study file: a whole text, or the usual one with some values changed."""
        path = self.folder / file
        path.write_text(STUDY.format(**{**VALUES, **changes}) if text is None else text)
        return path

    def run(
        self,
        *arguments: object,
        timeout_s: float = 120,
        environment: Mapping[str, str] | None = None,
        through: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `through` is put before it (prlimit, unshare …)."""
        return subprocess.run(
            [*self.through, *through, str(TUNER), *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def call(
        self, *arguments: object, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, without the second that an interpreter takes to start.

        For commands that end by themselves and leave the signals and streams of their process alone.
        """
        stdout, stderr = StringIO(), StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
            patch.chdir(self.folder)
            for name, value in {**self.environment, **(environment or {})}.items():
                patch.setenv(name, value)
            for level in ("quiet", "verbose", "debug"):
                patch.setattr(Verbosity, level, False)
            patch.setattr(sys, "argv", ["tuner", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(arguments, ended.value.code, stdout.getvalue(), stderr.getvalue())

    def run_in_peace(self, *arguments: object, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a study; where the host was too noisy to measure on, from the start again, twice at most."""
        for _ in range(3):
            completed = self.run(*arguments, timeout_s=timeout_s)
            if not was_too_noisy(completed):
                break
            for folder in self.folder.glob("*.study"):
                shutil.rmtree(folder)
            time.sleep(10)
        return completed

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command in a session of its own, to be signalled."""
        return subprocess.Popen(
            [*self.through, str(TUNER), *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """Find every process that this command line, or what it started, has left."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    marked = self.mark.encode() in (entry / "environ").read_bytes()
                except OSError:
                    continue
                if marked:
                    found.append(int(entry.name))
        return found
