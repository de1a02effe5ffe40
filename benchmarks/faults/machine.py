"""Faults of the machine: its disk, its process table, its clock, its service manager, its packages."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.faults.kinds import Kind, Machine, Promise, Run, watchdog_has_fired
from benchmarks.faults.look import changed_files, is_armed
from benchmarks.faults.servers import SERVERS, ServerOnHost
from tests.testbed.host import TestHost

DAY_S = 86_400
READ_ONLY = ("/etc", "/usr", "/var")
"""What of the root file system is written to; /run and /tmp have their own."""
WITH_FILES = tuple(name for name, server in SERVERS.items() if server.spaces)


# ------------------------------------------------------------------------------------------------ read-only
def become_read_only(run: Run) -> None:
    """Do as a file system does after an error: whoever opens a file for writing gets EROFS.

    What is open for writing stays so, unlike in a real one.
    """
    for directory in READ_ONLY:
        run.host.run(["mount", "--bind", "-o", "ro", directory, directory])
    run.end()


def become_writable(run: Run) -> None:
    """End that."""
    for directory in READ_ONLY:
        run.host.run(["umount", "--lazy", directory])


# ------------------------------------------------------------------------------------------------ I/O error
def damage_changed_file(run: Run) -> None:
    """What tuner wrote cannot be read any more; a file in its place could.

    Nobody can tell whether another hand has edited it, so that it may have to stay.
    """
    _damage(run, run.rng.choice(changed_files(run.host)))


def damage_other_file(run: Run) -> None:
    """A file that the server needs for a start cannot be read."""
    _damage(run, str(run.server.needed))


def damage_original(run: Run) -> None:
    """An original that the keeper keeps cannot be read."""
    kept = sorted((run.host.root / "var/lib/tuner/run/journal").glob("*/content"))
    if kept:
        _damage(run, "/" + str(run.rng.choice(kept).relative_to(run.host.root)))
    else:
        run.end()


def _damage(run: Run, path: str) -> None:
    with_path = run.host.root / path.lstrip("/")
    if with_path.exists():
        run.shims[0].set_faults(bad_file=with_path)
    run.end()


def repair(run: Run) -> None:
    """Let every file be read again."""
    run.shims[0].set_faults()


# -------------------------------------------------------------------------------------------- process table
def fill_process_table(run: Run) -> None:
    """Let no process of the host fork for some seconds, in which the tuner ends: a full control group."""
    group = _group_of_processes() / f"testbed-full-{run.host.pid}"
    group.mkdir()
    try:
        for _ in range(3):  # those that come meanwhile
            for pid in [run.host.pid, *run.host.processes()]:
                _move(pid, group)
        (group / "pids.max").write_text("1")
        run.end()
        time.sleep(run.rng.uniform(1, 6))
    finally:
        (group / "pids.max").write_text("max")
        while (pids := (group / "cgroup.procs").read_text().split()) and pids != ["0"]:
            for pid in pids:
                _move(int(pid), group.parent)
        group.rmdir()


def _group_of_processes() -> Path:
    old = Path("/sys/fs/cgroup/pids")
    return old if old.is_dir() else Path("/sys/fs/cgroup")


def _move(pid: int, group: Path) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return


# ---------------------------------------------------------------------------------------------------- clock
def set_clock_ahead(run: Run) -> None:
    """It is a day later, for the host, for the controller or for both."""
    _set_clock(run, DAY_S)


def set_clock_back(run: Run) -> None:
    """It is a day earlier."""
    _set_clock(run, -DAY_S)


def _set_clock(run: Run, offset_s: int) -> None:
    for shim in run.rng.choice([run.shims[:1], run.shims[1:], run.shims]):
        shim.set_faults(clock_offset_s=offset_s)
    was_armed = is_armed(run.host)
    time.sleep(run.rng.uniform(1, 6))
    if run.process.poll() is None and was_armed and watchdog_has_fired(run.host):
        run.notes.append("the host was put back because of the clock, while the controller lived")
    run.end()


# ------------------------------------------------------------------------------------ services and packages
def mask_service(run: Run) -> None:
    """Somebody decides that the service must not be started any more; it runs on."""
    service = run.server.services[0]
    run.others.add(f"/etc/systemd/system/{service}.service")
    run.host.run(["systemctl", "mask", "--quiet", service])
    time.sleep(run.rng.uniform(0, 4))
    run.end()


def unmask_service(run: Run) -> None:
    """Allow it again."""
    run.host.run(["systemctl", "unmask", "--quiet", run.server.services[0]])


def upgrade_package(run: Run) -> None:
    """Replace the program, and let the package's own scripts restart the service, as dpkg does."""
    program = run.host.root / str(run.server.program).lstrip("/")
    arriving = program.with_name(program.name + ".dpkg-new")
    shutil.copy2(program, arriving)
    arriving.rename(program)
    configure_packages(run.host, run.server)
    time.sleep(run.rng.uniform(0, 3))
    run.end()


def configure_packages(host: TestHost, server: ServerOnHost) -> None:
    """Run the maintainer scripts of an upgrade; what they change, they change once."""
    for package in server.packages:
        script = f"/var/lib/dpkg/info/{package}.postinst"
        settings = ["DEBIAN_FRONTEND=noninteractive", f"DPKG_MAINTSCRIPT_PACKAGE={package}"]
        settings += ["DPKG_MAINTSCRIPT_NAME=postinst"]
        host.run(["env", *settings, script, "configure", "99"], check=False)


OF_THE_MACHINE: Mapping[str, Kind] = {
    "root read-only": Kind(strike=become_read_only, mend=become_writable, promise=Promise.LATER),
    "I/O error on a changed file": Kind(
        strike=damage_changed_file, mend=repair, is_shimmed=True, promise=Promise.LATER, needs_change=True,
        servers=WITH_FILES,
    ),
    "I/O error on a file of the server": Kind(
        strike=damage_other_file, mend=repair, is_shimmed=True, promise=Promise.LATER,
        servers=tuple(name for name, server in SERVERS.items() if server.needed),
    ),
    "I/O error on a kept original": Kind(
        strike=damage_original, mend=repair, is_shimmed=True, promise=Promise.LATER, needs_change=True
    ),
    "process table full": Kind(strike=fill_process_table),
    "clock a day ahead": Kind(strike=set_clock_ahead, mend=repair, is_shimmed=True),
    "clock a day back": Kind(strike=set_clock_back, mend=repair, is_shimmed=True),
    "service masked": Kind(
        strike=mask_service, mend=unmask_service, machine=Machine.SYSTEMD, promise=Promise.LATER,
        servers=WITH_FILES,
    ),
    "package upgraded": Kind(strike=upgrade_package, prepare=configure_packages),
}  # fmt: skip
