"""A cable that can be made slow and lossy while it is in use; the kernel's own, netem, may be missing."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.testbed.namespaces import ENVIRONMENT

LINK = Path(__file__).with_name("link.py")


class Cable:
    """Two devices of a namespace between which `link.py` carries the frames."""

    def __init__(self, pid: int, near: str, far: str) -> None:
        self._process = subprocess.Popen(
            # In the network alone, where the machine's Python can be run; it ends with its input.
            ["nsenter", f"--target={pid}", "--net", "--", sys.executable, "-I", "-S", str(LINK), near, far],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        if self._process.stdout.readline() != b"ready\n":
            message = "testbed: no TAP devices can be made. Is there /dev/net/tun?"
            raise RuntimeError(message)
        self._delay_s = 0.0
        self._loss = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def delay(self, delay_s: float) -> None:
        """Let every frame wait so long, on its way there and on its way back."""
        self._delay_s = delay_s
        self._tell()

    def lose(self, share: float) -> None:
        """Lose this share of all frames."""
        self._loss = share
        self._tell()

    def _tell(self) -> None:
        self._process.stdin.write(f"{self._delay_s} {self._loss}\n".encode())
        self._process.stdin.flush()
