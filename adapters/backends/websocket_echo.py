"""An application that sends every WebSocket message back, on the library websockets."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tuner.errors import UsageError
from tuner.kit.packages import say_extra
from tuner.ports import WEBSOCKET, Argv, Backend

PROGRAM = Path(__file__).with_name("_echo_program.py")


class WebSocketEcho:
    """An application that sends every WebSocket message back."""

    name: ClassVar[str] = "websocket-echo"
    speaks: ClassVar[str] = WEBSOCKET

    def command(self) -> Argv:
        if find_spec("websockets") is None:
            raise UsageError(
                f"backend: {self.name} needs the Python package websockets, which is not installed. "
                f"Install this package: {say_extra('websocket')}"
            )
        return (sys.executable, "-I", str(PROGRAM), "{port}")


if TYPE_CHECKING:
    _backend: Backend = WebSocketEcho()
