"""An installed service in a sandbox: this machine's own files, copied, at their usual places.

Nothing of it reaches the machine: the copies are mounted over the originals in the sandbox alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import cast

from tuner.adapters.hosts.local import LocalHost
from tuner.ports import ABSENT, Files, FileState, Host, Sandbox
from tuner.testing.machines import ANSWER_S, CopiedMachine, succeed


@contextmanager
def installed(*directories: str, empty: Sequence[str] = ()) -> Iterator[Sandbox]:
    """Open a sandbox in which these directories are copies, and those in `empty` are new."""
    with LocalHost().sandbox() as sandbox:
        for directory in (*directories, *empty):
            copy = str(backing(sandbox, PurePosixPath(directory)))
            run(sandbox, "mkdir", "-p", copy)
            if directory in directories:
                run(sandbox, "cp", "-a", f"{directory}/.", copy)
            mount(sandbox, "--bind", copy, directory)
        yield sandbox


def backing(sandbox: Sandbox, path: PurePosixPath) -> PurePosixPath:
    """Say where the sandbox keeps what stands at a path."""
    return sandbox.directory / path.relative_to("/")


def put(sandbox: Sandbox, files: Files) -> None:
    """Write files at the places where the service looks for them."""
    for path, content in files.items():
        sandbox.write(backing(sandbox, path), FileState(content=content, mode=0o644))


def remove(sandbox: Sandbox, files: Files) -> None:
    """Take them away again."""
    for path in files:
        sandbox.write(backing(sandbox, path), ABSENT)


def run(sandbox: Sandbox, *argv: str) -> str:
    """Run a command that must succeed; give what it printed."""
    ended = sandbox.run(argv, timeout_s=20)
    assert ended.returncode == 0, ended.stderr.decode() + ended.stdout.decode()
    return ended.stdout.decode()


def sh(sandbox: Sandbox, script: str) -> str:
    """Run a script that must succeed; return what it printed."""
    return run(sandbox, "sh", "-c", script)


def mount(sandbox: Sandbox, *argv: str) -> None:
    """Mount something in a sandbox, from outside: no program inside it may."""
    enter = ("nsenter", f"--target={sandbox.pid}", "--mount", "--pid", "--net", "--")
    ended = LocalHost().run([*enter, "mount", *argv], timeout_s=10)
    assert ended.returncode == 0, ended.stderr.decode()


def switch_mpm(sandbox: Sandbox, wanted: str) -> Host:
    """Return a copy of this machine on which an administrator has chosen another MPM."""
    machine = CopiedMachine(sandbox)
    for command in (("a2dismod", "-q", "mpm_event"), ("a2enmod", "-q", f"mpm_{wanted}")):
        succeed(machine.run(command, timeout_s=ANSWER_S))
    return cast("Host", machine)
