"""The arrows of the architecture, as pyproject.toml states them for import-linter."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_the_way_that_the_contracts_say():
    linter = Path(sys.executable).with_name("lint-imports")

    checked = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
