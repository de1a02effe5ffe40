"""What every user of the machine may read and run: the checkout and its Python may be private."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
AS_NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--")


def python_for_everybody() -> str:
    """Find a Python that nobody may run: this one may live in a private home."""
    # Through env, because setpriv itself still finds programs with the rights of root.
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        version = [*AS_NOBODY, "env", candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.run(version, capture_output=True, check=False, cwd="/").returncode == 0:
            return candidate
    pytest.fail("no Python 3.11 or later that every user may run: install python3")


@contextmanager
def copied_for_everybody() -> Iterator[Path]:
    """Copy what a host adapter needs, and what is run as another user, to where every user may read."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own directories are private
    try:
        (directory / "tuner" / "adapters").mkdir(parents=True)
        for name in ("__init__.py", "errors.py"):
            shutil.copy(CHECKOUT / "tuner" / name, directory / "tuner" / name)
        for name in ("ports", "kit"):
            shutil.copytree(CHECKOUT / "tuner" / name, directory / "tuner" / name)
        shutil.copy(CHECKOUT / "adapters" / "__init__.py", directory / "tuner" / "adapters")
        shutil.copytree(CHECKOUT / "adapters" / "hosts", directory / "tuner" / "adapters" / "hosts")
        for program in ("use_sandbox_as_user.py", "hostile_server.py", "hold_hostile_server.py"):
            shutil.copy(HERE / program, directory)
        for path in (directory, *directory.rglob("*")):
            path.chmod(0o755)
        yield directory
    finally:
        shutil.rmtree(directory)
