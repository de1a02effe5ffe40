"""What the sandboxes of this machine and of hosts over SSH have in common: what may be done inside."""

import os
from abc import abstractmethod
from contextlib import AbstractContextManager
from pathlib import PurePosixPath

from tuner.adapters.hosts.command_runner import CommandRunner
from tuner.errors import TargetError
from tuner.ports import Argv, FileState, Sandbox

DIRECTORY = PurePosixPath("/dev/shm/tuner")  # noqa: S108 - on a memory-backed mount of the sandbox's own
SETTINGS = "/proc/sys/net/"
"""What belongs to a network namespace: the only settings that do not outlive the sandbox."""
NAMESPACES = ("--net", "--pid", "--ipc", "--mount")
OUT_OF_MEMORY_SCORE = "500"
"""proc(5), oom_score_adj: when memory runs out, the server has to go, not the tuner that must notice it."""
KEPT_CAPABILITIES = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7,
    "net_bind_service": 10, "ipc_lock": 14, "sys_nice": 23, "sys_resource": 24,
}  # fmt: skip
"""What a server uses that begins as root: it becomes another user, listens on port 80, sets limits and
priorities, pins memory for the network. By number, because older programs lack the names of newer ones."""
NOT_PERMITTED = (
    "A sandbox needs namespaces. Run tuner as root (in a container: with CAP_SYS_ADMIN and CAP_NET_ADMIN), "
    "or allow namespaces for ordinary users: `sysctl kernel.unprivileged_userns_clone=1` on Debian, `sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, and `user.max_user_namespaces` and "
    "`user.max_net_namespaces` above 0."
)


class IsolatedHost(CommandRunner):
    """Keeps what is written where it ends with the sandbox."""

    @property
    def directory(self) -> PurePosixPath:
        return DIRECTORY

    def write(self, path: PurePosixPath, state: FileState) -> None:
        place = PurePosixPath(os.path.normpath(path))
        if str(place).startswith(SETTINGS):
            self._write_setting(place, state)
        elif place.is_relative_to(DIRECTORY):
            self._write_own(place, state)
        else:
            raise TargetError(
                f"{self.name}: {place} is outside the sandbox. In the sandbox, only {DIRECTORY} and "
                f"{SETTINGS.rstrip('/')} can be written."
            )

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        raise TargetError(
            f"{self.name}: a sandbox cannot contain another (share: {share}). Open the second sandbox on the "
            "host."
        )

    @abstractmethod
    def _write_setting(self, path: PurePosixPath, state: FileState) -> None:
        """Write a setting of the sandbox's network."""

    @abstractmethod
    def _write_own(self, path: PurePosixPath, state: FileState) -> None:
        """Write a file below DIRECTORY."""


def enter(pid: int, *options: str, as_user: bool) -> Argv:
    """Return the program that enters the sandbox of which `pid` is the first process."""
    user = ("--user", "--preserve-credentials") if as_user else ()
    return ("nsenter", f"--target={pid}", *options, *user, *NAMESPACES, "--")


def drop_powers(last_capability: int | None) -> Argv:
    """Return the program that keeps a command from more than a server needs (capabilities(7)).

    Nothing can be given up without the right to do so: an ordinary user's command has lost every capability
    when it entered, and root in a container may lack that right. Then there is no last capability.
    """
    wrapper: Argv = ("setpriv", "--no-new-privs")
    if last_capability is not None:
        every = range(last_capability + 1)
        dropped = ",".join(f"-cap_{each}" for each in every if each not in KEPT_CAPABILITIES.values())
        # Inheritable ones would come back with the next program that root runs.
        inherited = ",".join(f"-cap_{each}" for each in every)
        wrapper = (*wrapper, f"--bounding-set={dropped}", f"--inh-caps={inherited}")
    return (*wrapper, "--")
