"""The example of docs/python.md, run as it stands on a finished study."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.finished_study import finish
from tests.testbed.processors import idle_processors_here
from tuner.study import load_study

pytestmark = pytest.mark.more

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_example_prints_the_gain_exports_it_and_holds_a_gate(tuner: CommandLine):
    study = tuner.write("nginx.yaml")
    finish(load_study(study), {"worker_connections": 2000})
    example, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

    with idle_processors_here() as through:
        ran = subprocess.run(
            [*through, sys.executable, "-c", example], cwd=tuner.folder, env=tuner.environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(
        r"\d\.\d\d× \[.*\], 4 pairs\n(no slower|slower|cannot tell): test: .* \(margin 5 %\)\n", ran.stdout
    )
    assert b"worker_connections 2000;" in b"".join(
        path.read_bytes() for path in (tuner.folder / "out").iterdir()
    )
