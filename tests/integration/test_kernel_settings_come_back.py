"""Settings of the kernel come back as they were: choices, settings that change others, those of the machine.

What belongs to the whole machine is changed for a moment, where that is harmless: whether programs get huge
pages for shared memory when they ask for it, and how readily names of files are forgotten.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from tests.integration.private_machine import DEMO, PrivateHost
from tuner.ports import Files
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease

SHARED_PAGES = PurePosixPath("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
NAMES = PurePosixPath("/proc/sys/vm/vfs_cache_pressure")
FORWARD = PurePosixPath("/proc/sys/net/ipv4/ip_forward")
OF_LOOPBACK = PurePosixPath("/proc/sys/net/ipv4/conf/lo/forwarding")
"""Both of the test's own network; writing the first sets all of the second kind."""


def change(machine: PrivateHost, journal: Journal, files: Files) -> Lease:
    lease = Lease(machine, journal=journal, study="a study", watchdog_s=120.0)
    lease.arm((DEMO,))
    lease.note_changed(machine.run_all((lease.command_to_change(files),)))
    return lease


@contextmanager
def looked_after(path: PurePosixPath, value: str) -> Iterator[None]:
    """Put a setting of this machine back in any case, by the value that the kernel takes for it."""
    try:
        yield
    finally:
        Path(path).write_text(f"{value}\n")


def test_of_a_choice_the_word_in_force_is_put_back(machine: PrivateHost, journal: Journal):
    before = machine.read(SHARED_PAGES).content or b""
    words = before.decode().split()
    chosen = next(word for word in words if word.startswith("["))
    other = next(word for word in words if word in {"advise", "never"})

    with looked_after(SHARED_PAGES, chosen.strip("[]")):
        lease = change(machine, journal, {SHARED_PAGES: f"{other}\n".encode()})
        assert f"[{other}]" in (machine.read(SHARED_PAGES).content or b"").decode()
        written = lease.restore()

        assert machine.read(SHARED_PAGES).content == before
        assert SHARED_PAGES in written


def test_a_key_of_the_whole_machine_comes_back(machine: PrivateHost, journal: Journal):
    before = machine.read(NAMES).content or b""

    with looked_after(NAMES, before.decode().strip()):
        lease = change(machine, journal, {NAMES: b"%d\n" % (int(before) + 1)})
        assert int(machine.read(NAMES).content or b"") == int(before) + 1
        lease.restore()

        assert machine.read(NAMES).content == before


def test_what_another_setting_changes_on_its_way_back_is_put_back_again(
    machine: PrivateHost, journal: Journal
):
    machine.sh(f"echo 1 > {OF_LOOPBACK}")
    assert machine.read(FORWARD).content == b"0\n"

    lease = change(machine, journal, {FORWARD: b"1\n", OF_LOOPBACK: b"0\n"})
    lease.restore()

    assert (machine.read(FORWARD).content, machine.read(OF_LOOPBACK).content) == (b"0\n", b"1\n")
