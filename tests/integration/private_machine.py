"""A machine of its own for tests that change one: private mounts, processes and network, root inside.

Everything in it ends with it. /srv/served is what may be changed, /var/lib is empty.
"""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.ports import ABSENT, Command, Completed, CpuSet, FileReader, FileState

SERVED = PurePosixPath("/srv/served")
PREPARE = f"""
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs /etc/cron.d
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir {SERVED}
"""


class PrivateHost(LocalHost):
    """The local host, seen from inside; `run` goes through nsenter, so a test may kill what it likes."""

    def __init__(self, first_pid: int) -> None:
        self.first_pid = first_pid

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cpus: CpuSet | None = None,
        stdin: bytes = b"",
        open_files: int | None = None,
        as_root: bool = False,
    ) -> Completed:
        return super().run(
            [*self.entrance, *argv],
            timeout_s=timeout_s,
            cpus=cpus,
            stdin=stdin,
            open_files=open_files,
            as_root=as_root,
        )

    @property
    def entrance(self) -> tuple[str, ...]:
        return ("nsenter", f"--target={self.first_pid}", "--net", "--pid", "--mount", "--")

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        ended = []
        for each in commands:
            ended.append(
                self.run(each.argv, timeout_s=each.timeout_s, stdin=each.stdin, as_root=each.as_root)
            )
            if ended[-1].returncode != 0 and not each.may_fail:
                break
        return tuple(ended)

    def sh(self, script: str, *arguments: str) -> str:
        """Run a script of the test that must succeed."""
        ended = self.run(["bash", "-euc", script, "test", *arguments], timeout_s=30)
        assert ended.returncode == 0, (script, ended.stdout, ended.stderr)
        return ended.stdout.decode()

    def read(self, path: PurePosixPath) -> FileState:
        facts = self.run(["stat", "-L", "-c", "%a %u %g", path], timeout_s=10)
        if facts.returncode != 0:
            return ABSENT
        mode, uid, gid = facts.stdout.split()
        content = self.run(["cat", path], timeout_s=10).stdout
        return FileState(content=content, mode=int(mode, 8), uid=int(uid), gid=int(gid))

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:  # noqa: ARG002
        return self

    def write(self, path: PurePosixPath, state: FileState) -> None:
        if state.content is None:
            self.sh('rm -f "$1"', str(path))
            return
        ended = self.run(["tee", str(path)], timeout_s=10, stdin=state.content)
        assert ended.returncode == 0
        if state.mode is not None:
            self.sh(
                'chown "$2" "$1"; chmod "$3" "$1"', str(path), f"{state.uid}:{state.gid}", f"{state.mode:o}"
            )


@contextlib.contextmanager
def private_machine(shell: str = "dash") -> Iterator[PrivateHost]:
    """Open a machine whose /bin/sh is the given shell."""
    bind = "" if shell == "dash" else f"mount --bind $(command -v {shell}) $(readlink -f /bin/sh)"
    script = f"{PREPARE}\n{bind}\nip link set lo up\necho ready\nexec sleep infinity"
    namespaces = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    first = subprocess.Popen(
        ["unshare", *namespaces, "bash", "-euc", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"ready\n"
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
        wait_until(lambda: bool(children.read_text()))
        yield PrivateHost(int(children.read_text().split()[0]))
    finally:
        first.kill()
        first.wait()
        if first.stdout is not None:
            first.stdout.close()
