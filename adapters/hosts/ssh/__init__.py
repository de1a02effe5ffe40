"""Another machine, reached over SSH."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import PurePosixPath

from tuner.adapters.hosts.ssh.address import read_address
from tuner.adapters.hosts.ssh.machine import RemoteMachine
from tuner.adapters.hosts.ssh.sudo import Sudo, ask_on_terminal
from tuner.ports import Sandbox


class SshHost(RemoteMachine):
    """A machine that is reached over SSH as `ssh://user@host:port`, as ssh_config says. Nothing is installed.

    Args:
        url: where it is.
        ask_password: is called with a question when sudo there wants a password, once at most.
    """

    def __init__(self, url: str, *, ask_password: Callable[[str], str] = ask_on_terminal) -> None:
        # Half a second of imports, which a list of adapters need not wait for.
        from tuner.adapters.hosts.ssh.connection import Connection
        from tuner.adapters.hosts.ssh.shell import COMMAND, Shells

        name = str(address := read_address(url))
        self._connection = Connection(address)
        shells = Shells(partial(self._connection.open_channel, COMMAND), name)
        super().__init__(name, shells, unlock=Sudo(name, ask_password).unlock)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        from tuner.adapters.hosts.ssh.sandbox import open_sandbox

        return open_sandbox(self._connection, self._shells, share, name=self.name)

    def close(self) -> None:
        """Close the connection; what was started over it ends."""
        self._shells.close()
        self._connection.close()
