"""First process of a sandbox: makes its network and its memory-backed files, and ends it with the tuner.

Run as `python -I -S _sandbox_init.py DIRECTORY [SHARE]` in fresh network, process, IPC and mount namespaces.
It says `ready PID` and then answers requests, one line each, until its input ends. That happens in any case
when the tuner is gone, and the kernel kills what is in a process namespace together with its first process
(pid_namespaces(7)). Nothing is imported that is not needed: each start of a server waits for this.
"""
# pathlib is one of those: 15 ms.
# ruff: noqa: PTH102, PTH103, PTH115, PTH118

import ctypes
import fcntl
import os
import sys

# Not `signal` and `socket`, which build enums at import: 10 ms. typeshed does not know `_signal`.
from _signal import SIG_IGN, SIGCHLD, signal  # type: ignore[import-not-found]
from _socket import AF_INET, SOCK_DGRAM, socket

MEMORY = "/dev/shm"  # noqa: S108 - POSIX shared memory lives here (shm_overview(7)), so it must be private too
WRITABLE = ("/proc", MEMORY, "/tmp")  # noqa: S108 - programs expect it; it stays the host's own
# linux/sockios.h, linux/if.h: struct ifreq is a name of 16 bytes and a union of 24.
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
# sys/mount.h, linux/mount.h
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC = 0x2, 0x4, 0x1000, 0x4000
MOUNT_ATTR_RDONLY = 0x1
# mount_setattr(2), since Linux 5.12; the number is the same on every architecture.
SYS_MOUNT_SETATTR = 442
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
CHUNK_BYTES = 2**16

libc = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """struct mount_attr of linux/mount.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


def main(directory: str, share: str | None) -> None:
    """Prepare the sandbox, then serve until the input ends."""
    signal(SIGCHLD, SIG_IGN)  # orphans are reaped by the kernel
    bring_up_loopback()
    make_files_private(directory, share)
    # The /proc seen here is the host's: it tells our pid as the tuner knows it.
    answer(b"ready " + os.readlink("/proc/self").encode())
    for line in sys.stdin.buffer:
        verb, path, *content = line.split()
        if verb == b"read":
            answer(read(bytes.fromhex(path.decode())))
        else:
            answer(write(bytes.fromhex(path.decode()), bytes.fromhex(b"".join(content).decode())))


def bring_up_loopback() -> None:
    """Set the interface `lo` up; the kernel gives it its addresses (netdevice(7))."""
    with_socket = socket(AF_INET, SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + IFF_UP.to_bytes(2, sys.byteorder) + bytes(22)
    fcntl.ioctl(with_socket, SIOCSIFFLAGS, request)
    with_socket.close()


def make_files_private(directory: str, share: str | None) -> None:
    """Put the sandbox's files into memory of its own, and everything else out of its reach for writing."""
    source = None if share is None else os.open(share, os.O_PATH | os.O_DIRECTORY)
    mount("tmpfs", MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    os.makedirs(directory, mode=0o755)
    if source is not None:
        # Through the descriptor, because no parent has to be open to the server, and MEMORY may be one.
        shared = os.path.join(directory, "shared")
        os.mkdir(shared)
        mount(f"/proc/self/fd/{source}", shared, None, MS_BIND | MS_REC)
        os.close(source)
    mount("/tmp", "/tmp", None, MS_BIND | MS_REC)  # noqa: S108 - to stay writable, it must be a mount
    if set_attributes("/", AT_RECURSIVE, MountAttributes(set=MOUNT_ATTR_RDONLY)):
        for path in WRITABLE:
            set_attributes(path, 0, MountAttributes(clear=MOUNT_ATTR_RDONLY))


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount something (mount(2)). Raises OSError."""
    arguments = [None if text is None else text.encode() for text in (source, target, kind, options)]
    if libc.mount(*arguments[:3], ctypes.c_ulong(flags), arguments[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target}: {os.strerror(number)}")


def set_attributes(path: str, flags: int, attributes: MountAttributes) -> bool:
    """Change attributes of a mount; tell whether it worked: kernels before 5.12, some containers do not."""
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    result = libc.syscall(
        ctypes.c_long(SYS_MOUNT_SETATTR), AT_FDCWD, path.encode(), flags, ctypes.byref(attributes), size
    )
    return bool(result == 0)


def answer(line: bytes) -> None:
    """Send one line to the tuner."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def read(path: bytes) -> bytes:
    """Read a file of the kernel as this network namespace sees it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        return complain(b"open", error)
    try:
        content = b""
        while chunk := os.read(descriptor, CHUNK_BYTES):
            content += chunk
        status = os.fstat(descriptor)
    except OSError as error:
        return complain(b"use", error)
    finally:
        os.close(descriptor)
    return b"ok %d %d %d " % (status.st_mode & 0o7777, status.st_uid, status.st_gid) + content.hex().encode()


def write(path: bytes, content: bytes) -> bytes:
    """Write a value in one call, as the kernel wants it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    except OSError as error:
        return complain(b"open", error)
    try:
        os.write(descriptor, content)
    except OSError as error:
        return complain(b"use", error)
    finally:
        os.close(descriptor)
    return b"ok"


def complain(what: bytes, error: OSError) -> bytes:
    """Say what failed, and with which error."""
    return what + b" %d" % (error.errno or 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)  # noqa: PLR2004 - the script itself is the first
