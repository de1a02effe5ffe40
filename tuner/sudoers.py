"""The sudoers file with which an ordinary user may run managed studies: what needs root, nothing else.

Syntax: sudoers(5). A command with arguments allows exactly these arguments.
"""

import re
from collections.abc import Sequence

from tuner.errors import TargetError
from tuner.ports import Argv, Command, Host

HEADER = """\
# Lets {user} tune the services of this host. Check with: visudo -cf FILE; then put it into /etc/sudoers.d/.
"""
SPECIAL = re.compile(r"([,:=\\*?\[\]!])")
"""What has a meaning in a command's arguments, and is escaped to mean itself."""
USER = re.compile(r"[a-z_][a-z0-9_-]*\$?")
"""useradd(8)"""


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
        message = f"{host.name}: {user!r} is no user name for a sudoers file. Log in as an ordinary user."
        raise TargetError(message)
    programs = list(dict.fromkeys(argv[0] for argv in (*commands, *open_ended)))
    found = host.run_all(
        [Command(argv=("sh", "-c", 'command -v -- "$1"', "find", each)) for each in programs]
    )
    if len(found) < len(programs) or found[-1].returncode != 0:
        message = f"{host.name}: there is no program {programs[len(found) - 1]!r}. Install it."
        raise TargetError(message)
    paths = {
        program: completed.stdout.decode(errors="replace").strip()
        for program, completed in zip(programs, found, strict=True)
    }
    exact = [" ".join(map(_escape, (paths[argv[0]], *argv[1:]))) for argv in dict.fromkeys(commands)]
    more = [" ".join((*map(_escape, (paths[argv[0]], *argv[1:])), "*")) for argv in open_ended]
    lines = [*exact, *more]
    listed = ", \\\n    ".join(lines)
    return f"{HEADER.format(user=user)}{user} ALL=(root) NOPASSWD: \\\n    {listed}\n"


def _escape(word: str) -> str:
    """Escape one word. Raises TargetError for what no sudoers file can hold."""
    if not word.isprintable() or '"' in word:
        message = f"sudoers: {word!r} cannot be written into a sudoers file. Let root run this study."
        raise TargetError(message)
    return SPECIAL.sub(r"\\\1", word).replace(" ", r"\ ")
