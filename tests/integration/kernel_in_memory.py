"""A machine's kernel that can be set without setting that of this machine: /proc/sys and /sys in memory."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tuner.export.boot_files import read_value
from tuner.ports import ABSENT, Command, Completed, FileReader, FileState

KEYS = ("net/core", "net/ipv4", "fs", "vm")
"""Below /proc/sys, read from this machine."""
NOT_READ = {"conf", "neigh", "route", "tcp_fastopen_key", "netdev_rss_key"}
CHOICES = {
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
}
CARD = PurePosixPath("/sys/class/net/eth0")
QUEUES = 2


class KernelInMemory:
    """It takes any value, as most of Linux does, and of a choice it shows all words."""

    name = "kernel"

    def __init__(self) -> None:
        below = (path for folder in KEYS for path in (Path("/proc/sys") / folder).rglob("*"))
        keys = {path: _read(path) for path in below if not NOT_READ & set(path.parts)}
        self._values = {str(path): text for path, text in keys.items() if text is not None}
        self._values |= CHOICES | {"/sys/devices/system/cpu/online": "0-1"}
        policy = "/sys/devices/system/cpu/cpufreq/policy0/scaling"
        self._values[f"{policy}_governor"] = "powersave"
        self._values[f"{policy}_available_governors"] = "performance schedutil powersave"
        self._values |= {
            f"{CARD}/{name}": value
            for name, value in (
                ("tx_queue_len", "1000"), ("gro_flush_timeout", "0"), ("napi_defer_hard_irqs", "0"),
                ("threaded", "0"),
                *((f"queues/rx-{queue}/rps_cpus", "0") for queue in range(QUEUES)),
                *((f"queues/rx-{queue}/rps_flow_cnt", "0") for queue in range(QUEUES)),
                *((f"queues/tx-{queue}/xps_cpus", "0") for queue in range(QUEUES)),
            )
        }  # fmt: skip

    def has(self, path: str) -> bool:
        """Tell whether there is such a file or folder."""
        return any(each == path or each.startswith(f"{path}/") for each in self._values)

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return tuple(self.run(each.argv) for each in commands)

    def run(self, argv: Sequence[str], **_how: object) -> Completed:
        keys = [path for path in self._values if path.startswith("/proc")]
        printed = {
            "grep": "".join(f"{path}:{self._values[path]}\n" for path in keys),
            "find": "".join(f"{path}\n" for path in keys),
            "sh": "".join(f"{path}\t{self._values[path]}\n" for path in self._values if path not in keys),
            "cat": "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n",
            "uname": "6.18.44\n",
        }[argv[0]]
        return Completed(argv=tuple(argv), returncode=0, stdout=printed.encode(), stderr=b"", duration_s=0.0)

    def look(self, _paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:  # noqa: ARG002
        return self

    def read(self, path: PurePosixPath) -> FileState:
        text = self._values.get(str(path))
        return ABSENT if text is None else FileState(content=f"{text}\n".encode())

    def write(self, path: PurePosixPath, state: FileState) -> None:
        value = read_value(state.content or b"")
        words = CHOICES.get(str(path), "").replace("[", "").replace("]", "").split()
        assert not words or value in words
        self._values[str(path)] = " ".join(f"[{word}]" if word == value else word for word in words) or value


def _read(path: Path) -> str | None:
    """Return a value that may be written; None for directories and what can only be read."""
    try:
        return path.read_text().strip() if path.is_file() and path.stat().st_mode & 0o200 else None
    except OSError:
        return None
