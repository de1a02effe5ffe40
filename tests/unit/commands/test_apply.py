"""What an apply leaves for the next boot."""

from pathlib import PurePosixPath

from tests.unit.simulated_study import make_summary
from tuner.commands.apply import SYSCTL_FILE, with_lasting_values

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
FIN_TIMEOUT = PurePosixPath("/proc/sys/net/ipv4/tcp_fin_timeout")
WITH_A_DOT = PurePosixPath("/proc/sys/net/ipv4/conf/eth0.100/arp_notify")
NGINX = {PurePosixPath("/etc/nginx/nginx.conf"): b"events {}\n"}


def settings(content: bytes) -> list[str]:
    return [line for line in content.decode().splitlines() if not line.startswith("#")]


def test_what_an_earlier_apply_set_is_set_at_the_next_boot_too():
    summary = make_summary(searches=4)
    first = with_lasting_values({SOMAXCONN: b"8192\n", WITH_A_DOT: b"1\n"}, summary, b"")[SYSCTL_FILE]

    # Somebody's editor may have left the last line without an end.
    second = with_lasting_values({FIN_TIMEOUT: b"10\n"}, summary, first.rstrip())[SYSCTL_FILE]
    third = with_lasting_values({SOMAXCONN: b"4096\n", WITH_A_DOT: b"0\n"}, summary, second)[SYSCTL_FILE]

    assert sorted(settings(second)) == sorted([*settings(first), "net.ipv4.tcp_fin_timeout = 10"])
    assert sorted(settings(third)) == sorted(
        [
            "net.core.somaxconn = 4096",
            "net.ipv4.tcp_fin_timeout = 10",
            "net/ipv4/conf/eth0.100/arp_notify = 0",
        ]
    )
    assert third.decode().count("# ") == first.decode().count("# "), "one head"


def test_without_kernel_settings_nothing_is_added():
    assert with_lasting_values(NGINX, make_summary(searches=4), b"net.core.somaxconn = 1\n") == NGINX
