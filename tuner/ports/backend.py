"""The port Backend: an application that comes with tuner or another package, to be started behind servers."""

from typing import ClassVar, Protocol

from tuner.ports.host import Argv


class Backend(Protocol):
    """An application that a study names in `backend:` instead of a command of its own."""

    name: ClassVar[str]
    speaks: ClassVar[str]
    """The protocol in which it is asked."""

    def command(self) -> Argv:
        """Return the command that listens on `{port}` of 127.0.0.1.

        Raises UsageError naming what has to be installed.
        """
