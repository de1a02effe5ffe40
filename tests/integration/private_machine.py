"""A machine of its own for tests that change one: private mounts, processes and network, root inside.

Everything in it ends with it. /srv/served is what may be changed, /var/lib is empty. A service `demo` runs:
/srv/in-force is a copy of the configuration that it was started with.
"""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.ports import ABSENT, Command, Completed, FileReader, FileState, Service

SERVED = PurePosixPath("/srv/served")
CONFIGURATION = SERVED / "demo.conf"
SETTING = PurePosixPath("/proc/sys/net/core/somaxconn")
"""Of this machine's own network."""
PREPARE = f"""
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs /etc/cron.d
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir {SERVED}
printf 'demo 1\\n' > {CONFIGURATION}
chmod 640 {CONFIGURATION}
chown 7:8 {CONFIGURATION}
touch -d 2001-01-01 {CONFIGURATION}
cat > /srv/demo << 'END'
#!/bin/bash
case $1 in
    start)
        grep -q demo {CONFIGURATION} || {{ echo "demo: no configuration" >&2; exit 1; }}
        setsid --fork bash -c 'echo $$ > /srv/demo.pid; exec sleep infinity' < /dev/null > /dev/null 2>&1
        until [ -s /srv/demo.pid ]; do sleep 0.01; done
        cp {CONFIGURATION} /srv/in-force
        echo started >> /srv/demo.log
        ;;
    stop)
        [ ! -e /srv/demo.pid ] || kill "$(cat /srv/demo.pid)"
        rm -f /srv/demo.pid
        ;;
esac
END
chmod 755 /srv/demo
/srv/demo start
"""
DEMO = Service(
    name="demo",
    check=None,
    stop=("/srv/demo", "stop"),
    start=("/srv/demo", "start"),
    reload=None,
    pid_file=PurePosixPath("/srv/demo.pid"),
)


class PrivateHost(LocalHost):
    """The local host, seen from inside; `run` goes through nsenter, so a test may kill what it likes."""

    def __init__(self, first_pid: int) -> None:
        self.first_pid = first_pid

    def run(self, argv: Sequence[str], **how: Any) -> Completed:
        return super().run([*self.entrance, *argv], **how)

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

    def everything(self) -> str:
        """Tell all that must be as before: files with content, mode, owner and time, setting, service."""
        return self.sh(
            f"""
            find {SERVED} -type d -printf '%p %m %U %G\\n' -o -printf '%p %y %m %U %G %T@ %l\\n' | sort
            find {SERVED} -type f -print0 | sort -z | xargs -0 sha256sum
            cat {SETTING} /srv/in-force
            kill -0 "$(cat /srv/demo.pid)"
            find /etc/systemd/system /etc/cron.d -type f
            """
        )

    def log(self) -> str:
        """Read what the keeper has written down."""
        return self.sh("cat /var/lib/tuner/log")

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
        if state.mode is not None and not path.is_relative_to("/proc"):
            self.sh(
                'chown "$2" "$1"; chmod "$3" "$1"', str(path), f"{state.uid}:{state.gid}", f"{state.mode:o}"
            )


@contextlib.contextmanager
def private_machine(shell: str = "dash") -> Iterator[PrivateHost]:
    """Open a machine whose /bin/sh is the given shell."""
    bind = "" if shell == "dash" else f"mount --bind $(command -v {shell}) $(readlink -f /bin/sh)"
    script = f"{PREPARE}\n{bind}\nip link set lo up\necho ready\nsleep infinity & wait"
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
