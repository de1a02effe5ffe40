"""Another time of day, and an I/O error on one file, for all programs of a test host; see shim.c."""

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.testbed.host import TestHost

SOURCE = Path(__file__).with_name("shim.c")
LIBRARY = "usr/local/lib/testbed-shim.so"
STATE = "run/testbed-faults"


class Shim(NamedTuple):
    """What the programs see that were started with it."""

    library: Path
    state: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What a program of this machine is started with, to see it, too."""
        return {"LD_PRELOAD": str(self.library), "TESTBED_FAULTS": str(self.state)}

    def set_faults(self, *, clock_offset_s: int = 0, bad_file: Path | None = None) -> None:
        """Shift the time of day; let whoever reads a file get EIO."""
        found = None if bad_file is None else bad_file.stat()
        device, inode = (found.st_dev, found.st_ino) if found else (0, 0)
        # In place: it is mapped.
        with self.state.open("r+b") as file:
            file.write(struct.pack("qQQ", clock_offset_s, device, inode))


def build(folder: Path) -> Shim:
    """Compile it into a folder, for programs of this machine."""
    library = folder / "testbed-shim.so"
    command = ["cc", "-O1", "-fPIC", "-shared", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return _with_state(library, folder / "testbed-faults")


def preload(host: TestHost, built: Shim) -> Shim:
    """Let every program that a host starts from now on see its faults."""
    library = host.root / LIBRARY
    library.write_bytes(built.library.read_bytes())
    shim = _with_state(library, host.root / STATE)
    (host.root / "etc/ld.so.preload").write_text(f"/{LIBRARY}\n")
    return shim


def _with_state(library: Path, state: Path) -> Shim:
    shim = Shim(library=library, state=state)
    state.write_bytes(bytes(struct.calcsize("qQQ")))
    os.chmod(state, 0o644)  # noqa: PTH101 - the process's umask does not count
    return shim
