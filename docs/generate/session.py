"""Records what commands print on a terminal as pictures: `python -m docs.generate.session STUDY FOLDER`.

The study is one that has run, such as tune/nginx.yaml after `make tune SERVER=nginx`.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

COLUMNS = 80
COMMANDS = ("show", "explain")
# A picture in a page loads no fonts; any font of the reader's with letters of one width will do.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> int:
    """Run each command on the study and draw its output."""
    study, folder = map(Path, sys.argv[1:])
    for command in COMMANDS:
        picture = draw(f"tuner {command} {study.name}", run(command, study))
        (folder / f"{command}.svg").write_text(picture)
    return 0


def run(command: str, study: Path) -> str:
    """Return what a command prints on a terminal, with its colours."""
    return subprocess.run(  # noqa: S603 - the command of this very project
        [Path(sys.executable).with_name("tuner"), command, study.name],
        cwd=study.parent, env={**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"},
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip


def draw(typed: str, printed: str) -> str:
    """Return a picture (SVG) of a terminal: a command, and below it what it printed."""
    terminal = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    terminal.print(Text(f"$ {typed}", style="bold"))
    terminal.print(Text.from_ansi(printed), soft_wrap=True)
    return terminal.export_svg(title="tuner", code_format=FORMAT)


if __name__ == "__main__":
    sys.exit(main())
