"""A command that is printed runs as it was meant, whatever the names in it hold."""

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

import tuner
from tuner.cli import app
from tuner.shell_words import quote_word, write_command

NAMES = ("a.yaml", "a b.yaml", "$(touch x).yaml", "it's \"q\" `id`.yaml", "-x.yaml", "--yes", "a;b&c|d.yaml",
         "~", "größe.yaml", "*?[a].yaml", "a\\b.yaml", "")  # fmt: skip
UNSEEN = ("a\nb.yaml", "a\tb'\\.yaml", "a\u202eb", os.fsdecode(b"caf\xe9.yaml"))
COMMANDS = "|".join(each.callback.__name__ for each in app.registered_commands if each.callback)
BEFORE_A_VALUE = re.compile(rf"\btuner (?:{COMMANDS}|corpus add)(?: [\w.-]+)* (?:-\S+ )?$")


def run(shell: str, command: str) -> list[bytes]:
    """Return the words that a shell gives to the program."""
    script = f"tuner() {{ for word; do printf '%s\\0' \"$word\"; done; }}\n{command}\n"
    done = subprocess.run([shell, "-c", os.fsencode(script)], capture_output=True, check=True, timeout=60)
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize(("names", "shell"), [(NAMES, "sh"), (UNSEEN, "bash")])
def test_a_shell_reads_every_name_as_it_is(names: tuple[str, ...], shell: str) -> None:
    words = run(shell, write_command("tuner", *names))

    assert words == [os.fsencode(name) for name in names]
    assert write_command("tuner", *names).isprintable()


def test_a_path_is_no_option() -> None:
    assert write_command("tuner", "run", PurePosixPath("-x.yaml"), "--yes") == "tuner run ./-x.yaml --yes"


def _texts(path: Path) -> Iterator[tuple[int, str, ast.FormattedValue]]:
    """Yield the text before each value of a formatted string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            before = ""
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield node.lineno, before, part
                    before += "\0"
                else:
                    before += str(ast.literal_eval(part))


def test_no_message_puts_a_value_into_a_command_by_itself() -> None:
    """A table of the servers that are known has their names, which need no quotes."""
    root = Path(tuner.__file__).parent
    found = [
        f"{path.relative_to(root)}:{line}"
        for path in sorted(root.rglob("*.py"))
        for line, before, value in _texts(path)
        if BEFORE_A_VALUE.search(before) and value.format_spec is None
    ]

    assert BEFORE_A_VALUE.search("Next: tuner run ")
    assert BEFORE_A_VALUE.search("tuner apply STUDY --host ")
    assert found == []


def test_a_word_is_left_as_it_is_where_it_can_be() -> None:
    assert quote_word("/srv/web-1_a.yaml") == "/srv/web-1_a.yaml"
