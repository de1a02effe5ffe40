"""A program of tuner on a test host itself, as root there: its host is `local`."""

import ctypes
import os
import signal
import sys

VARIABLE = "FAULTS_INSIDE"
"""The first process of that host."""
NAMESPACES = ("net", "ipc", "uts", "pid", "mnt")


def enter(first: int) -> None:
    """Go on in a child that is in the namespaces of a first process; end as that child does."""
    library = ctypes.CDLL(None, use_errno=True)
    for opened in [os.open(f"/proc/{first}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]:
        if library.setns(opened, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(opened)
    os.chdir("/")
    if (child := os.fork()) == 0:
        return
    # The child's group is this one's: what ends it is not for whoever waits.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    sys.stdout.flush()
    if code < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(code)
