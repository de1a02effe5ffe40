"""The password of sudo: asked once, kept in memory, sent through a shell's input alone."""

import getpass
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tuner.adapters.hosts.ssh.requests import ANSWER_S, Secret, misunderstood
from tuner.errors import TargetError

if TYPE_CHECKING:
    from tuner.adapters.hosts.ssh.shell import RemoteShell

TERMINAL = "/dev/tty"


def ask_on_terminal(question: str) -> str:
    """Ask for a password. Raises TargetError when nobody can be asked."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        raise TargetError(
            f"{question} tuner has no terminal to ask you. Allow sudo without a password for tuner's "
            "commands: `tuner check STUDY --sudoers` prints the sudoers file."
        ) from error
    return getpass.getpass(f"{question} ")


class Sudo:
    """The password of one user on one host.

    Args:
        name: of the host, for the question and for errors.
        ask_password: is called with a question.
    """

    def __init__(self, name: str, ask_password: Callable[[str], str]) -> None:
        self._name = name
        self._ask_password = ask_password
        self._password: Secret | None = None
        self._asking = threading.Lock()

    def unlock(self, shell: "RemoteShell") -> None:
        """Let sudo remember it for a shell, as long as it does so. Raises TargetError when it is wrong."""
        with self._asking:
            if self._password is None:
                # What comes after a newline would be read as a request.
                told = self._ask_password(f"{self._name}: sudo wants the password.").partition("\n")[0]
                self._password = Secret(told.encode() + b"\n")
                del told
            secret = self._password
        frames = shell.ask(b"tuner_unlock", then=secret, timeout_s=ANSWER_S)
        if len(frames) != 1 or frames[0].kind != "ran":
            raise misunderstood("end", self._name)
        frame = frames[0]
        if frame.words[0] != "0":
            with self._asking:
                self._password = None
            said = frame.err.decode(errors="replace").strip().rpartition("\n")[2]
            raise TargetError(
                f"{self._name}: sudo refused the password: {said}. Try again, or correct the sudoers file."
            )
