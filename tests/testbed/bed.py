"""Test hosts on this machine: each with a network, processes, a root directory and an sshd of its own.

    with open_testbed() as bed:
        web = bed.add_host("web", user=User(name="deploy", password="secret", sudo=Sudo.PASSWORD))
        bed.delay(web, round_trip_ms=100)
        subprocess.run(["tuner", "check", …], env={**os.environ, "HOME": str(bed.home)})

A bridge in a namespace of its own connects the hosts with each other and, through the interface `testbed-N`
with the network 198.18.N.0/24 (RFC 2544: for tests), with this machine. All of it, that interface included,
exists as long as the first processes of the namespaces do, and those end with the process of the tests,
killed or not. Nothing in a host can change the machine's files, nor its kernel's settings (only /proc/sys/net
can be written, which is the host's own). A host may have systemd, and then it can be restarted.
"""

import contextlib
import itertools
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.testbed.cable import Cable
from tests.testbed.disk import Disk, make_disk
from tests.testbed.host import ROOT, TestHost, User
from tests.testbed.namespaces import hold_namespaces, kill_each, run_in, wait_until_gone

DISK = "256m"
"""What a host can write to its disk. It is memory, taken only as it is used."""
SWITCH = f"""
read -r pid _ </proc/self/stat
# Disks of hosts that can be restarted, and their groups of processes
mount -t tmpfs -o size={DISK} tmpfs /mnt
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link add bridge type bridge && ip link set bridge up && echo "ready $pid"
exec env --ignore-signal=CHLD cat >/dev/null
"""
HOST_INIT = Path(__file__).with_name("host_init.sh")
NETWORKS = 256


class Testbed:
    """A network with hosts; made by `open_testbed`."""

    __test__ = False

    def __init__(self, home: Path, switch: int, network: int, stack: contextlib.ExitStack) -> None:
        self.home = home
        """Home of a user of ssh: .ssh with a key that all hosts accept, and known_hosts with theirs."""
        self.address = f"198.18.{network}.1"
        """Of this machine, as the hosts see it."""
        self.hosts: dict[str, TestHost] = {}
        self._switch = switch
        self._network = network
        self._stack = stack
        self._numbers = itertools.count(2)
        self._cables: dict[str, Cable] = {}
        self._pids: list[int] = []
        self._disks: dict[str, Disk] = {}
        # After the hosts have ended, for their ends stand later in the stack.
        stack.callback(self._remove_groups)

    @property
    def known_hosts(self) -> Path:
        """The host keys of all hosts."""
        return self.home / ".ssh/known_hosts"

    def add_host(
        self, name: str, *, user: User = ROOT, disk: str = DISK, systemd: bool = False, lasting: bool = False
    ) -> TestHost:
        """Start a host whose sshd lets that user and root in; it is ready when this returns.

        With systemd it has booted as a machine does that has no services yet. With it, or with a disk that
        is lasting, the host can be started again.
        """
        address = f"198.18.{self._network}.{next(self._numbers)}"
        host = TestHost(
            name=name, pid=0, address=address, user=user, switch=self._switch, home=self.home,
            has_systemd=systemd, has_disk=systemd or lasting,
        )  # fmt: skip
        if host.has_disk:
            run_in(self._switch, ["mkdir", "-p", f"/mnt/{name}"])
        if lasting:
            run_in(self._switch, ["mount", "-t", "tmpfs", "-o", f"size={disk}", "tmpfs", f"/mnt/{name}"])
        host = self._start(host, disk)
        host.prepare()
        self.hosts[name] = host
        return host

    def add_forgetful_host(self, name: str, *, has_journal: bool = True) -> TestHost:
        """Start a host with systemd that loses at a restart what was not synced; see disk.py.

        Sync its disk when it is as it shall be found: `sync`.
        """
        self._disks[name] = make_disk(self.home, name, f"/mnt/{name}", self._switch, has_journal=has_journal)
        return self.add_host(name, systemd=True)

    def sync(self, host: TestHost) -> None:
        """Bring to the disk of such a host what was written so far."""
        self._disks[host.name].sync()

    def restart(self, host: TestHost) -> TestHost:
        """Cut a host's power, and start it again from its disk; it is ready when this returns."""
        if host.name in self._disks:
            self._forget_what_was_not_synced(host)
        else:
            kill_each([host.pid])
            wait_until_gone(host.pid)
        # The link goes with the host, in the kernel's own time.
        run_in(self._switch, ["ip", "link", "del", host.name], check=False)
        host = self._start(host, DISK)
        if host.has_systemd:
            host.wait_until_booted()
        else:
            host.start_sshd()
        self.hosts[host.name] = host
        return host

    def _forget_what_was_not_synced(self, host: TestHost) -> None:
        disk = self._disks[host.name]
        # Before the end of the host: with its last process the kernel unmounts its root, and syncs it.
        kill_each([host.pid, *host.processes()], signal.SIGSTOP)
        recorded = disk.record()
        kill_each([host.pid])
        wait_until_gone(host.pid)
        disk.change_for(recorded)
        self._disks[host.name] = recorded

    def _start(self, host: TestHost, disk: str) -> TestHost:
        command = ["sh", str(HOST_INIT), host.name, disk]
        if host.has_disk:
            more = ["systemd"] if host.has_systemd else []
            first = hold_namespaces([*command, f"/mnt/{host.name}", *more], mounts_of=self._switch)
        else:
            first = hold_namespaces(command)
        pid = self._stack.enter_context(first)
        self._pids.append(pid)
        # The same hardware address after a restart: neighbours remember it.
        hardware = "02:00:" + ":".join(f"{int(part):02x}" for part in host.address.split("."))
        ip_batch(
            f"link add {host.name} netns {self._switch} type veth "
            f"peer name eth0 address {hardware} netns {pid}"
        )
        ip_batch(f"link set {host.name} master bridge up", pid=self._switch)
        ip_batch(
            "link set lo up",
            f"addr add {host.address}/24 dev eth0",
            "link set eth0 up",
            f"route add default via {self.address}",
            pid=pid,
        )
        return replace(host, pid=pid)

    def delay(self, host: TestHost, *, round_trip_ms: float) -> None:
        """Make the way to a host and back take so much longer."""
        self._cable_of(host).delay(round_trip_ms / 2000)

    def loss(self, host: TestHost, share: float) -> None:
        """Lose a share of the frames to and from a host, at random."""
        self._cable_of(host).lose(share)

    def _remove_groups(self) -> None:
        for pid in self._pids:
            find = ["find", f"/sys/fs/cgroup/testbed-{pid}", "-depth", "-type", "d", "-delete"]
            run_in(self._switch, find, check=False)

    def _cable_of(self, host: TestHost) -> Cable:
        """Put a cable in between that can be slow and lossy; without one, Python is not in the way."""
        if host.name not in self._cables:
            number = len(self._cables)
            near, far, stub = f"near{number}", f"far{number}", f"stub{number}"
            self._cables[host.name] = self._stack.enter_context(Cable(self._switch, near, far))
            ip_batch(
                f"link add {stub} type bridge",
                f"link set {stub} up",
                f"link set {near} master bridge up",
                f"link set {far} master {stub} up",
                f"link set {host.name} master {stub}",
                pid=self._switch,
            )
        return self._cables[host.name]


@contextlib.contextmanager
def open_testbed() -> Iterator[Testbed]:
    """Make an empty network, and take it down with all its hosts. Needs root."""
    with tempfile.TemporaryDirectory(prefix="testbed-") as directory, contextlib.ExitStack() as stack:
        home = Path(directory)
        (home / ".ssh").mkdir(mode=0o700)
        (home / ".ssh/known_hosts").touch(mode=0o600)
        make_key(home / ".ssh/id_ed25519")
        switch = stack.enter_context(hold_namespaces(["sh", "-c", SWITCH]))
        network = connect(switch)
        # The kernel would do it as well, in its own time.
        stack.callback(ip_batch, f"link del testbed-{network}")
        yield Testbed(home, switch, network, stack)


def connect(switch: int) -> int:
    """Connect this machine with the switch; tell the number of a network that nobody else uses."""
    for number in range(NETWORKS):
        # The kernel gives a name once: whoever has it has the network, too.
        ends = [f"testbed-{number}", "type", "veth", "peer", "controller", "netns", str(switch)]
        made = subprocess.run(["ip", "link", "add", *ends], capture_output=True, check=False)
        if made.returncode == 0:
            ip_batch("link set controller master bridge up", pid=switch)
            ip_batch(f"addr add 198.18.{number}.1/24 dev testbed-{number}", f"link set testbed-{number} up")
            return number
        if b"File exists" not in made.stderr:
            message = f"testbed: no interface can be made: {made.stderr!r}. Run the tests as root."
            raise RuntimeError(message)
    message = f"testbed: all {NETWORKS} networks are in use. Look for tests that hang."
    raise RuntimeError(message)


def ip_batch(*lines: str, pid: int | None = None) -> None:
    """Run several `ip` commands at once, in the namespaces of a first process or on this machine."""
    batch = "".join(f"{line}\n" for line in lines).encode()
    if pid is not None:
        run_in(pid, ["ip", "-batch", "-"], stdin=batch)
    else:
        subprocess.run(["ip", "-batch", "-"], input=batch, check=True, capture_output=True)


def make_key(path: Path) -> None:
    """Make a key pair without a passphrase."""
    command = shlex.split("ssh-keygen -q -t ed25519 -N '' -C testbed -f")
    subprocess.run([*command, str(path)], check=True, capture_output=True)
