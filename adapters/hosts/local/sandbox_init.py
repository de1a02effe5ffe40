"""First process of a sandbox: makes its network, its files and its view of processes; ends it with the tuner.

Run as `python -I -S sandbox_init.py DIRECTORY [SHARE]` in fresh network, process, IPC and mount namespaces.
It says `ready PID` and then answers requests, one line each, until its input ends. That happens in any case
when the tuner is gone, and the kernel kills what is in a process namespace together with its first process
(pid_namespaces(7)). Nothing is imported that is not needed: each start of a server waits for this.
"""
# pathlib is one of those: 15 ms.
# ruff: noqa: PTH102, PTH103, PTH115, PTH118, PTH211, SIM105

import ctypes
import fcntl
import os
import sys

# Not `signal` and `socket`, which build enums at import: 10 ms. typeshed does not know `_signal`.
from _signal import SIG_IGN, SIGCHLD, signal  # type: ignore[import-not-found]
from _socket import AF_INET, SOCK_DGRAM, socket

MEMORY = "/dev/shm"  # noqa: S108 - POSIX shared memory lives here (shm_overview(7)), so it must be private too
TEMPORARY = "/tmp"  # noqa: S108 - programs expect it; it stays the host's own
HIDDEN = "/run"
"""Sockets of the host's services are here: a network namespace does not keep root from connecting to them."""
DEVICES = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
# linux/sockios.h, linux/if.h: struct ifreq is a name of 16 bytes and a union of 24.
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
# sys/mount.h, linux/mount.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = (
    0x1,
    0x2,
    0x4,
    0x8,
    0x20,
    0x1000,
    0x4000,
)
MOUNT_ATTR_RDONLY = 0x1
# sys/prctl.h
PR_SET_NO_NEW_PRIVS = 38
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
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    bring_up_loopback()
    # The /proc seen here is still the host's: it tells our pid as the tuner knows it.
    pid = os.readlink("/proc/self").encode()
    make_files_private(directory, share)
    settings = make_processes_private()
    answer(b"ready " + pid)
    for line in sys.stdin.buffer:
        verb, path, *content = line.split()
        name = os.path.relpath(bytes.fromhex(path.decode()), b"/proc")
        if verb == b"read":
            answer(read(name, settings))
        else:
            answer(write(name, bytes.fromhex(b"".join(content).decode()), settings))


def bring_up_loopback() -> None:
    """Set the interface `lo` up; the kernel gives it its addresses (netdevice(7))."""
    with_socket = socket(AF_INET, SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + IFF_UP.to_bytes(2, sys.byteorder) + bytes(22)
    fcntl.ioctl(with_socket, SIOCSIFFLAGS, request)
    with_socket.close()


def make_files_private(directory: str, share: str | None) -> None:
    """Mount memory for the sandbox's own files, and everything else read-only."""
    source = None if share is None else os.open(share, os.O_PATH | os.O_DIRECTORY)
    make_devices_private()
    mount("tmpfs", HIDDEN, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755")
    mount("tmpfs", MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    os.makedirs(directory, mode=0o755)
    if source is not None:
        # Through the descriptor, because no parent has to be open to the server, and MEMORY may be one.
        shared = os.path.join(directory, "shared")
        os.mkdir(shared)
        mount(f"/proc/self/fd/{source}", shared, None, MS_BIND | MS_REC)
        os.close(source)
    mount(TEMPORARY, TEMPORARY, None, MS_BIND | MS_REC)  # to stay writable, it must be a mount
    if set_attributes("/", AT_RECURSIVE, MountAttributes(set=MOUNT_ATTR_RDONLY)):
        for path in ("/proc", MEMORY, TEMPORARY):
            set_attributes(path, 0, MountAttributes(clear=MOUNT_ATTR_RDONLY))


def make_devices_private() -> None:
    """Mount only the devices that every program needs: a read-only mount protects no disk."""
    devices = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755")
    for name, device in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_EXCL, 0o666))
        mount(f"/proc/self/fd/{device}", f"/dev/{name}", None, MS_BIND)
        os.close(device)
    for name, target in DEVICE_LINKS.items():
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    os.mkdir(MEMORY)


def make_processes_private() -> int:
    """Show the sandbox's own processes alone, and the kernel's settings for reading; open them for ourselves.

    Where a container hides parts of /proc, the kernel permits no fresh one (mount_too_revealing in
    fs/namespace.c); then the host's stays.
    """
    safely = MS_NOSUID | MS_NODEV | MS_NOEXEC
    try:  # contextlib takes a millisecond to import
        mount("proc", "/proc", "proc", safely)
    except PermissionError:
        pass
    writable = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    # What belongs to the user 0 may be written without any capability: core_pattern, sysrq-trigger.
    mount("/proc", "/proc", None, MS_BIND | MS_REC)
    mount("none", "/proc", None, MS_REMOUNT | MS_BIND | MS_RDONLY | safely)
    return writable


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


def read(name: bytes, directory: int) -> bytes:
    """Read a file of the kernel as this network namespace sees it."""
    try:
        descriptor = os.open(name, os.O_RDONLY, dir_fd=directory)
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


def write(name: bytes, content: bytes, directory: int) -> bytes:
    """Write a value in one call, as the kernel wants it."""
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=directory)
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
    """Return what failed, and with which error."""
    return what + b" %d" % (error.errno or 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)  # noqa: PLR2004 - the script itself is the first
