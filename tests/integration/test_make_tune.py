"""How `make tune` ends, for each way in which `tuner run` may. A stand-in takes the place of tuner."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

CHECKOUT = Path(__file__).parents[2]
STAND_IN = """\
#!/bin/sh
case $1 in
init) shift; while [ "$1" != -o ]; do shift; done; : >"$2" ;;
run) exit %d ;;
show) printf '{"state": "%s", "trials": "'; head -c 1000000 /dev/zero | tr '\\0' x; printf '"}\\n' ;;
esac
"""


@pytest.fixture
def server():
    """Return a name that no study of this checkout has; what is made for it goes again."""
    name = f"stand-in-{uuid4().hex[:8]}"
    yield name
    (CHECKOUT / "tune" / f"{name}.yaml").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("code", "state", "ends"),
    [
        (0, "finished", 0),
        (1, "finished", 0),
        (1, "stopped", 1),
        (2, "finished", 2),
        (3, "stopped", 3),
        (4, "stopped", 4),
        (5, "finished", 5),
        (130, "stopped", 130),
    ],
)
def test_make_tune_ends_with_an_error_only_where_the_study_did(tmp_path, server, code, state, ends):
    stand_in = tmp_path / "tuner"
    stand_in.write_text(STAND_IN % (code, state))
    stand_in.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)

    done = subprocess.run(
        ["make", "-s", "tune", f"SERVER={server}", f"BIN={tmp_path}"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    # make says which code its command had, and ends with 2 itself.
    assert done.returncode == (2 if ends else 0), done.stderr
    assert not ends or f"Error {ends}" in done.stderr
