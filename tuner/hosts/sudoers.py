"""The sudoers file with which an ordinary user may run managed studies: what needs root, nothing else.

Syntax: sudoers(5). A command with arguments allows exactly these arguments, one without allows any, and `""`
allows none. sudo compares the arguments joined by spaces: where a word ends is not part of it.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from tuner.errors import TargetError
from tuner.ports import Argv, Command, Completed, FileReader, FileState, Host, Process, Sandbox

HEADER = """\
# Lets {user} tune the services of this host. Check with: visudo -cf FILE; then put it into /etc/sudoers.d/.
"""
SPECIAL = re.compile(r"([,:=#*?\[\]! ])")
"""What has a meaning in a command's arguments, and is escaped to mean itself."""
BACKSLASH = r"\\\\"
"""One that means itself: two remain when the file was read, and they are a pattern of fnmatch(3)."""
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
PLAIN_USER = re.compile(r"[a-z_][a-z0-9_-]*\$?")
"""useradd(8); other names need quotes: without, one in capitals is an alias, and `ALL` is everybody."""
PROGRAM = re.compile(r"/[A-Za-z0-9/._+-]+")
NO_ARGUMENTS = '""'


def write_sudoers(host: Host, user: str, commands: Sequence[Argv], *, open_ended: Sequence[Argv] = ()) -> str:
    """Write the file for the commands that a study needs on a host.

    Args:
        host: where it will be used.
        user: who logs in there.
        commands: with exactly these arguments.
        open_ended: with these arguments first, and any others.

    Raises TargetError for a program that is not there, or a user name that sudoers cannot hold.
    """
    if not USER.fullmatch(user):
        raise TargetError(
            f"{host.name}: a sudoers file cannot contain the user name {user!r}. Log in as an ordinary user."
        )
    programs = list(dict.fromkeys(argv[0] for argv in (*commands, *open_ended)))
    found = host.run_all(
        [Command(argv=("sh", "-c", 'command -v -- "$1"', "find", each)) for each in programs]
    )
    if len(found) < len(programs) or found[-1].returncode != 0:
        raise TargetError(
            f"{host.name}: the program {programs[len(found) - 1]!r} is missing. Install this program."
        )
    paths = {
        program: completed.stdout.decode(errors="replace").strip()
        for program, completed in zip(programs, found, strict=True)
    }
    for program, path in paths.items():
        if not PROGRAM.fullmatch(path):
            raise TargetError(
                f"{host.name}: a sudoers file cannot contain {path!r}, the path of {program!r}. Run tuner "
                "as root."
            )
    exact = [_command(paths[argv[0]], argv[1:]) for argv in dict.fromkeys(commands)]
    more = [" ".join((paths[argv[0]], *map(_escape, argv[1:]), "*")) for argv in open_ended]
    listed = ", \\\n    ".join([*exact, *more])
    name = user if PLAIN_USER.fullmatch(user) else f'"{user}"'
    return f"{HEADER.format(user=user)}{name} ALL=(root) NOPASSWD: \\\n    {listed}\n"


def _command(path: str, arguments: Sequence[str]) -> str:
    return " ".join((path, *map(_escape, arguments))) if arguments else f"{path} {NO_ARGUMENTS}"


def _escape(word: str) -> str:
    """Escape one word. Raises TargetError for what no sudoers file can hold."""
    # Spaces at an end are lost, and a caret in front may begin a regular expression.
    if not word or word != word.strip() or word[0] == "^" or '"' in word or not word.isprintable():
        raise TargetError(f"sudoers: a sudoers file cannot contain {word!r}. Run tuner as root.")
    return SPECIAL.sub(r"\\\1", word.replace("\\", BACKSLASH))


class RootCommandRecorder:
    """Does what the host does, and keeps the commands that needed root.

    Until `is_root` is set, they are run as the user who asks.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.is_root = False
        self.commands: list[Argv] = []

    @property
    def name(self) -> str:
        return self._host.name

    def run(self, argv: Sequence[str], *, as_root: bool = False, **how: Any) -> Completed:  # noqa: ANN401 - as Host.run
        if as_root:
            self.commands.append(tuple(argv))
        return self._host.run(argv, as_root=as_root and self.is_root, **how)

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self.commands += [command.argv for command in commands if command.as_root]
        return self._host.run_all([replace(each, as_root=each.as_root and self.is_root) for each in commands])

    def start(self, argv: Sequence[str], **how: Any) -> Process:  # noqa: ANN401 - as Host.start
        return self._host.start(argv, **how)

    def read(self, path: PurePosixPath) -> FileState:
        return self._host.read(path)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self._host.look(paths, trees=trees)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._host.write(path, state)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        return self._host.sandbox(share=share)
