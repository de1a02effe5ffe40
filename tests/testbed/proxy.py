"""`tuner proxy` for tests: on a port of its own, killed and begun again there."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

TUNER = Path(sys.executable).with_name("tuner")
TICKS = os.sysconf("SC_CLK_TCK")


class Proxy:
    """One that is begun at once."""

    def __init__(self, study: Path) -> None:
        self._study = study
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.begin()

    def begin(self) -> None:
        """Begin it, and wait until it answers."""
        command = [TUNER, "proxy", self._study, "--listen", self.address]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"grpc://{self.address}\n"

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has taken since it was begun."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICKS

    def kill(self) -> None:
        """Kill it at once."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """End it politely; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)
        return self.process.returncode
