"""Another machine, reached over SSH."""

import getpass
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import PurePosixPath

from tuner.adapters.hosts.ssh.address import read_address
from tuner.adapters.hosts.ssh.machine import RemoteMachine
from tuner.adapters.hosts.ssh.sudo import Sudo
from tuner.errors import TargetError
from tuner.ports import Sandbox

TERMINAL = "/dev/tty"


def ask_on_terminal(question: str) -> str:
    """Ask for a password. Raises TargetError when nobody can be asked."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        message = (
            f"{question} There is no terminal to ask at. Let sudo run what is needed without a password: "
            "`tuner check` prints the sudoers file."
        )
        raise TargetError(message) from error
    return getpass.getpass(f"{question} ")


class SshHost(RemoteMachine):
    """A machine that is reached over SSH as `ssh://user@host:port`; ssh_config is heeded, nothing installed.

    Args:
        url: where it is.
        ask_password: is called with a question when sudo there wants a password, once at most.
    """

    def __init__(self, url: str, *, ask_password: Callable[[str], str] = ask_on_terminal) -> None:
        # Half a second of imports, which a list of adapters need not wait for.
        from tuner.adapters.hosts.ssh.connection import Connection
        from tuner.adapters.hosts.ssh.shell import COMMAND
        from tuner.adapters.hosts.ssh.shells import Shells

        address = read_address(url)
        self._connection = Connection(address)
        self._own_shells = Shells(partial(self._connection.open_channel, COMMAND), str(address))
        sudo = Sudo(str(address), ask_password)
        super().__init__(str(address), self._own_shells, unlock=sudo.unlock, signal=self._own_shells.signal)

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        from tuner.adapters.hosts.ssh.sandbox import open_sandbox

        return open_sandbox(self._connection, self._own_shells, share, name=self._name)

    def close(self) -> None:
        """Close the connection; what was started over it ends."""
        self._own_shells.close()
        self._connection.close()
