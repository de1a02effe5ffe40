"""What else has a hand on a host is found, named, and refused or warned of."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.hosts.conflicts import Conflict, find_conflicts
from tuner.hosts.inventory import SHOW_SYSCTLS
from tuner.ports import Argv, Completed
from tuner.testing.fakes import MemoryHost, completed

SOMAXCONN = "net.core.somaxconn"
CONF = PurePosixPath("/etc/nginx/nginx.conf")
MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw,nosuid 0 0
sysfs /sys sysfs ro,nosuid 0 0
"""


SCRIPTS = {
    "processes": "/comm",
    "profile": "active_profile",
    "sysctls": "sysctl.d",
    "systemd": "ls -d /run/systemd/system",
    "mounts": "/proc/self/mounts",
    "container": "systemd-detect-virt",
    "enforcing": "/selinux/enforce",
    "free": "df ",
    "confined": "attr/current",
    "locks": "/proc/locks",
    "timers": "cron.d/certbot",
    "along": "RequiredBy",
    "triggers": "test -s",
    "head": "head ",
}
"""What is asked for → what the script that asks holds."""


def host(**shown: str) -> MemoryHost:
    """Make a host whose shell prints what the test says."""
    printed = {"processes": "systemd\nsshd\nnginx\n", "mounts": MOUNTS, "free": DF.format(4_000_000)} | shown

    def sh(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        (asked,) = [name for name, part in SCRIPTS.items() if part in argv[2]]
        text = printed.get(asked, "")
        return completed(argv, stdout=text.encode(), returncode=0 if text else 1)

    return MemoryHost(name="web1", commands={"sh": sh})


DF = """\
Filesystem     1024-blocks    Used Available Capacity Mounted on
/dev/sda1         20000000 1000000 {} 5% /
"""


def find(there: MemoryHost, *tuned: str, pids: tuple[int, ...] = ()) -> tuple[Conflict, ...]:
    return find_conflicts(there, tuned or ("worker_processes",), [CONF], pids=pids)


def only(there: MemoryHost, *tuned: str, pids: tuple[int, ...] = ()) -> Conflict:
    (conflict,) = find(there, *tuned, pids=pids)
    assert conflict.remedy.endswith(".")
    return conflict


def test_a_host_that_nobody_else_looks_after_has_no_conflict():
    assert find(host(), "worker_processes", SOMAXCONN, pids=(7,)) == ()


def test_certificate_clients_and_package_managers_are_refused_while_they_are_at_work():
    assert only(host(processes="nginx\ncertbot\n")).is_refused
    by_lock = only(host(locks="/etc/letsencrypt/.certbot.lock\n/var/lib/letsencrypt/.certbot.lock\n"))
    assert (by_lock.is_refused, by_lock.what.partition(" ")[0]) == (True, "certbot")
    upgrade = only(host(locks="/run/unattended-upgrades.lock\n"))
    assert (upgrade.is_refused, upgrade.where) == (True, "/run/unattended-upgrades.lock is locked")


def test_units_that_restart_with_a_service_are_named():
    found = only(host(along="nginx worker.service\nnginx nginx.socket\n"))

    assert not found.is_refused
    assert "worker.service, nginx.socket depend on nginx" in str(found)


def test_what_will_be_at_work_is_a_warning():
    timer = only(host(timers="certbot.timer\n"))
    assert (timer.is_refused, timer.where) == (False, "certbot.timer")
    assert "systemctl stop certbot.timer" in timer.remedy
    assert "move /etc/cron.d/certbot away" in only(host(timers="/etc/cron.d/certbot\n")).remedy
    triggers = only(host(triggers="/var/lib/dpkg/triggers/Unincorp\n"))
    assert (triggers.is_refused, triggers.where) == (False, "/var/lib/dpkg/triggers/Unincorp")


def test_everything_is_asked_in_one_batch():
    there = host()
    batches = []
    there.run_all = lambda commands: batches.append(commands) or MemoryHost.run_all(there, commands)

    find(there, SOMAXCONN, pids=(7,))

    assert len(batches) == 1


def test_no_name_of_a_file_becomes_part_of_a_script():
    there = host()

    find_conflicts(there, [], [PurePosixPath("/etc/$(reboot);'\"`id`\n")])

    assert all("reboot" not in argv[2] for argv in there.ran)
    assert any(argv[-1] == "/etc/$(reboot);'\"`id`\n" for argv in there.ran)


@pytest.mark.parametrize(("tuned", "refused"), [("worker_processes", False), (SOMAXCONN, True)])
def test_tuned_is_in_the_way_when_it_sets_what_is_tuned(tuned, refused):
    found = only(host(processes="tuned\n", profile="throughput-performance\n"), tuned)

    assert found.is_refused is refused
    assert "throughput-performance" in found.what
    assert "tuned-adm off" in found.remedy


@pytest.mark.parametrize(
    ("process", "tuned", "refused"),
    [
        ("bpftune", SOMAXCONN, True),
        ("bpftune", "vm.swappiness", False),
        ("irqbalance", SOMAXCONN, False),
        ("puppet", "worker_processes", False),
        ("chef-client", "worker_processes", False),
        ("salt-minion", "worker_processes", False),
        ("dpkg", "worker_processes", True),
        ("apt-get", "worker_processes", True),
        ("dnf", SOMAXCONN, True),
        ("apk", SOMAXCONN, True),
        ("pacman", SOMAXCONN, True),
    ],
)
def test_programs_that_change_a_host_are_named(process, tuned, refused):
    found = only(host(processes=f"systemd\n{process}\nnginx\n"), tuned)

    assert process in found.what
    assert found.is_refused is refused


@pytest.mark.parametrize("process", ["unattended-upgr", "tuned-ppd", "puppetdb", "rpmbuild", "nginx"])
def test_programs_that_are_called_nearly_so_are_none_of_them(process):
    assert find(host(processes=f"{process}\n"), SOMAXCONN) == ()


MARKED = [
    "# Ansible managed\nworker_processes 2;\n",
    "# {{ ansible_managed }}: Ansible managed: nginx.conf.j2 modified on 2026-01-01\n",
    "# This file is managed by Puppet. Do not edit.\n",
    "# HEADER: This file was autogenerated\n# File managed by Puppet\n",
    "#\n# Generated by Chef for web1\n#\n",
    "; Managed by Salt, changes are lost\n",
    "# This file is under Puppet control\n",
]


@pytest.mark.parametrize("head", MARKED)
def test_a_file_that_configuration_management_writes_is_named(head):
    found = only(host(head=head))

    assert not found.is_refused
    assert found.where == str(CONF)


@pytest.mark.parametrize(
    "head", ["user www-data;\n", "# how to use ansible: see wiki\n", "# chef's choice\n", ""]
)
def test_a_file_that_only_speaks_of_it_is_not(head):
    assert find(host(head=head)) == ()


def test_an_agent_that_runs_and_owns_the_file_is_in_the_way():
    found = find(host(processes="puppet\n", head=MARKED[2]))

    assert [each.is_refused for each in found] == [True, False]
    assert "puppet agent --disable" in found[0].remedy


def sysctls(**files: str) -> str:
    return "".join(f"\x1e{path}\n{content}" for path, content in files.items())


@pytest.mark.parametrize(
    ("path", "line", "wins"),
    [
        ("/etc/sysctl.d/99-zz.conf", "net.core.somaxconn = 128", True),
        ("/etc/sysctl.d/local.conf", "net.core.somaxconn=128", True),
        ("/usr/lib/sysctl.d/99-vendor.conf", "net.core.somaxconn = 128", True),
        ("/run/sysctl.d/zz.conf", "-net.core.somaxconn = 128", True),
        ("/etc/sysctl.d/zz.conf", "net/core/somaxconn = 128", True),
        ("/etc/sysctl.d/zz.conf", "net.core.* = 128", True),
        ("/etc/sysctl.d/99-sysctl.conf", "net.core.somaxconn = 128", False),
        ("/usr/lib/sysctl.d/10-network.conf", "net.core.somaxconn = 128", False),
        ("/etc/sysctl.d/zz.conf", "# net.core.somaxconn = 128", False),
        ("/etc/sysctl.d/zz.conf", "; net.core.somaxconn = 128", False),
        ("/etc/sysctl.d/zz.conf", "net.core.somaxconn", False),
        ("/etc/sysctl.d/zz.conf", "net.core.rmem_max = 128", False),
        ("/etc/sysctl.d/zz.conf", "", False),
    ],
)
def test_a_file_that_is_read_after_ours_at_boot_wins(path, line, wins):
    found = find(host(sysctls=sysctls(**{path: f"{line}\n"}), systemd="/run/systemd/system\n"), SOMAXCONN)

    assert [each.where for each in found] == [path] * wins
    assert not any(each.is_refused for each in found)


def test_elements_of_vectors_are_looked_for_as_the_whole_that_is_written():
    lines = "net.ipv4.tcp_rmem = 4096 87380 16777216\nnet/ipv4/tcp_wmem = 1 2 3\nnet.ipv4.tcp_mem = 1 2 3\n"
    there = host(sysctls=sysctls(**{"/etc/sysctl.d/99-tuning.conf": lines}))

    found = find(there, "net.ipv4.tcp_rmem[1]", "net.ipv4.tcp_rmem[2]", "net.ipv4.tcp_wmem[2]")

    assert [each.what.split()[0] for each in found] == ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]


def test_a_file_of_the_administrators_hides_the_vendors_of_the_same_name():
    files = {"/etc/sysctl.d/zz.conf": "", "/usr/lib/sysctl.d/zz.conf": "net.core.somaxconn = 1\n"}

    assert find(host(sysctls=sysctls(**files)), SOMAXCONN) == ()


@pytest.mark.parametrize(("systemd", "wins"), [("/run/systemd/system\n", False), ("", True)])
def test_sysctl_conf_is_read_last_where_there_is_no_systemd(systemd, wins):
    there = host(sysctls=sysctls(**{"/etc/sysctl.conf": "net.core.somaxconn = 1\n"}), systemd=systemd)

    assert len(find(there, SOMAXCONN)) == wins


def test_a_name_with_a_slash_for_a_dot_is_the_key_it_stands_for():
    there = host(sysctls=sysctls(**{"/etc/sysctl.d/zz.conf": "net.ipv4.conf.eth0/1.arp_filter = 1\n"}))
    key = PurePosixPath("/proc/sys/net/ipv4/conf/eth0.1/arp_filter")

    assert len(find_conflicts(there, [], [key])) == 1


@pytest.mark.parametrize(
    ("shown", "tuned", "refused"),
    [
        ("docker\n", "worker_processes", False),
        ("docker\n", SOMAXCONN, False),
        ("lxc\n", "vm.swappiness", True),
        ("none\n/.dockerenv\n", "vm.swappiness", True),
        ("/run/.containerenv\n", "fs.nr_open", True),
    ],
)
def test_a_container_is_named_and_keys_that_are_not_its_own_are_refused(shown, tuned, refused):
    found = only(host(container=shown), tuned)

    assert "is a container" in found.what
    assert found.is_refused is refused


@pytest.mark.parametrize(
    ("mount", "refused"),
    [
        ("proc /proc/sys proc ro,nosuid 0 0", "/proc/sys/net/core/somaxconn"),
        ("/dev/sda2 /etc ext4 ro,relatime 0 0", "/etc/nginx/nginx.conf"),
        ("/dev/sda2 /etc ext4 rw,errors=remount-ro 0 0", None),
        ("/dev/sda2 /etc\\040old ext4 ro 0 0", None),
    ],
)
def test_what_can_only_be_read_is_refused_by_name(mount, refused):
    found = find(host(mounts=f"{MOUNTS}{mount}\n"), SOMAXCONN)

    assert [each.where for each in found if each.is_refused] == ([refused] if refused else [])


def test_files_below_one_mount_that_can_only_be_read_are_one_sentence():
    there = host(mounts=f"{MOUNTS}/dev/sda2 /etc ext4 ro,relatime 0 0\n")
    files = [PurePosixPath("/etc/nginx", name) for name in ("nginx.conf", "mime.types", "sites/a")]

    (conflict,) = find_conflicts(there, [], [*files, PurePosixPath("/srv/x")])

    assert str(conflict) == (
        "the file system is mounted read-only (/etc/nginx/mime.types and 2 more files below /etc). "
        "Mount the file system for writing: mount -o remount,rw."
    )


def test_what_is_mounted_last_counts():
    layers = "/dev/a /etc ext4 ro 0 0\n/dev/b /etc ext4 rw 0 0\n"

    assert find(host(mounts=MOUNTS + layers)) == ()


def test_selinux_and_apparmor_are_warned_of():
    enforcing = find(host(enforcing="1\n"))
    confined = find(
        host(confined="7 /usr/sbin/nginx (enforce)\n8 unconfined\n9 x (complain)\n"), pids=(7, 8, 9)
    )

    assert [(each.what, each.is_refused) for each in enforcing] == [("SELinux is enforcing", False)]
    assert [each.what for each in confined] == ["AppArmor confines process 7 to the profile /usr/sbin/nginx"]


@pytest.mark.parametrize(("free_kib", "found"), [(16 * 1024 - 1, 1), (16 * 1024, 0)])
def test_a_disk_without_room_for_originals_is_refused(free_kib, found):
    conflicts = find(host(free=DF.format(free_kib)))

    assert len(conflicts) == found
    assert all(each.is_refused and each.where == "/var/lib" for each in conflicts)


def test_a_host_that_does_not_answer_everything_is_not_called_free_of_conflicts():
    there = host()
    there.run_all = lambda commands: MemoryHost.run_all(there, commands[:3])

    with pytest.raises(TargetError, match="web1: tuner cannot list the programs that run on this host"):
        find(there)


@pytest.fixture
def run_as() -> Iterator[Callable[[str], None]]:
    """Let a process of that name run for the test."""
    started = []

    def run(name: str, directory: Path) -> None:
        program = directory / name
        shutil.copy("/usr/bin/sleep", program)
        started.append(subprocess.Popen([program, "60"]))
        comm = Path(f"/proc/{started[-1].pid}/comm")
        while comm.read_text() != f"{name}\n":
            time.sleep(0.001)

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_real_processes_and_files_of_this_machine_are_seen(tmp_path, run_as):
    run_as("irqbalance", tmp_path)
    marked = tmp_path / "nginx.conf"
    marked.write_text("# Ansible managed\n" + "x" * 10_000)

    found = find_conflicts(LocalHost(), [SOMAXCONN], [PurePosixPath(marked)])

    said = [each.what for each in found]
    assert any(what.startswith("irqbalance moves") for what in said)
    assert any("Ansible managed" in what for what in said)


SHOWN = """
mount -t tmpfs none /etc/sysctl.d && mount -t tmpfs none /usr/local/lib
mkdir /usr/local/lib/sysctl.d
echo "net.core.somaxconn = 1" >/usr/local/lib/sysctl.d/99-vendor.conf
echo "net.core.somaxconn = 2" >/etc/sysctl.d/99-zz.conf
ln -s /dev/null /etc/sysctl.d/99-vendor.conf
exec sh -c "$1"
"""


def test_the_script_that_shows_boot_settings_reads_what_systemd_would():
    printed = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SHOWN, "x", SHOW_SYSCTLS],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    there = host(sysctls=printed, systemd="/run/systemd/system\n")

    found = only(there, SOMAXCONN)

    assert found.where == "/etc/sysctl.d/99-zz.conf"
    assert "'2'" in found.what
