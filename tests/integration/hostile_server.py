"""Tries, from inside a sandbox, to get out of it, and prints what came of it. Run as a program.

Its arguments are what it could not know by itself: the pid of a process of the host and that of the sandbox's
first process as the host knows them, and a file of the host.
"""

# ruff: noqa: PTH116, PTH123, PTH208 - it asks the kernel, and each call by itself

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, CLONE_NEWNS, CLONE_NEWUSER = 0x4206, 0x20000, 0x10000000
MS_BIND, MS_REMOUNT, MNT_DETACH = 0x1000, 0x20, 2


def main(controller: int, first: int, file: str) -> None:
    """Try everything and print what worked."""
    attempts: dict[str, Callable[[], object]] = {
        f"{what} of {name}": attempt
        for name, pid in {"the controller": controller, "the first process": first, "process 1": 1}.items()
        for what, attempt in against(pid).items()
    }
    attempts |= {
        "write a host file": lambda: os.open(file, os.O_WRONLY),
        "write a host file through the first process": lambda: os.open(f"/proc/1/root{file}", os.O_WRONLY),
        "kill the controller": lambda: os.kill(controller, signal.SIGCONT),
        "make a device": lambda: os.mknod("/dev/shm/disk", 0o60600, os.makedev(254, 0)),  # noqa: S108
        "open a disk": open_disk,
        "set core_pattern": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "set a network setting": lambda: os.open("/proc/sys/net/core/somaxconn", os.O_WRONLY),
        "ask the host's systemd": lambda: os.stat("/run/systemd"),
        "unshare mounts": lambda: call(libc.unshare, CLONE_NEWNS),
        **{
            f"{what} as root of a user namespace": partial(in_user_namespace, attempt)
            for what, attempt in by_mounting().items()
            if what != "mount on /etc"  # there it may: nobody else sees it
        },
        "chroot": lambda: os.chroot("/tmp"),  # noqa: S108
        "set the clock": lambda: call(libc.settimeofday, None, ctypes.byref(ctypes.c_int64(0))),
        "see others": see_others,
        # Last: where one works, what follows sees what was hidden.
        **by_mounting(),
    }
    sys.stdout.write(json.dumps({name: attempted(attempt) for name, attempt in attempts.items()}))


def by_mounting() -> dict[str, Callable[[], object]]:
    """What to try with the right to mount."""
    again = MS_REMOUNT | MS_BIND
    return {
        "mount on /etc": lambda: call(libc.mount, b"tmpfs", b"/etc", b"tmpfs", 0, None),
        "make / writable": lambda: call(libc.mount, b"none", b"/", None, again, None),
        "make /proc writable": lambda: call(libc.mount, b"none", b"/proc", None, again, None),
        "uncover /proc": lambda: call(libc.umount2, b"/proc", MNT_DETACH),
        "uncover /run": lambda: call(libc.umount2, b"/run", MNT_DETACH),
        "uncover /dev": lambda: call(libc.umount2, b"/dev", MNT_DETACH),
    }


def in_user_namespace(attempt: Callable[[], object]) -> None:
    """Try something where this process has every capability, over what is made there (user_namespaces(7))."""
    call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNS)
    attempt()


def against(pid: int) -> dict[str, Callable[[], object]]:
    """What to try against one process."""
    return {
        "root": lambda: os.listdir(f"/proc/{pid}/root"),
        "cwd": lambda: os.listdir(f"/proc/{pid}/cwd"),
        "environ": lambda: read(f"/proc/{pid}/environ"),
        "memory": lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR),
        "a descriptor": lambda: os.open(f"/proc/{pid}/fd/0", os.O_RDONLY),
        "mount namespace": lambda: enter(f"/proc/{pid}/ns/mnt"),
        "network namespace": lambda: enter(f"/proc/{pid}/ns/net"),
        "ptrace": lambda: call(libc.ptrace, PTRACE_SEIZE, pid, None, None),
    }


def open_disk() -> None:
    """Open the first disk or memory device that is there."""
    for name in ("vda", "sda", "nvme0n1", "xvda", "mem", "kmsg", "loop0", "kvm"):
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDWR))
        except OSError as error:
            last = error
        else:
            return
    raise last


def see_others() -> None:
    """Find a process that is neither the first one nor this or an ancestor of it."""
    known = {1, os.getpid(), os.getppid()}
    if not {int(name) for name in os.listdir("/proc") if name.isdigit()} - known:
        raise ProcessLookupError


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def enter(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        call(libc.setns, descriptor, 0)
    finally:
        os.close(descriptor)


def call(function: Callable[..., int], *arguments: object) -> None:
    """Call a function of the C library. Raises OSError."""
    if function(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def attempted(attempt: Callable[[], object]) -> str:
    """Tell what came of it: `done`, or the kernel's word. In a child: what worked ends with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
            said = "done"
        except OSError as error:
            said = error.strerror or type(error).__name__
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
