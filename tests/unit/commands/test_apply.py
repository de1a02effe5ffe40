"""What an apply leaves for the next boot."""

from pathlib import PurePosixPath

from tests.unit.simulated_study import make_summary
from tuner.commands.apply import RULES_FILE, SYSCTL_FILE, TMPFILES_FILE, with_lasting_values

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
FIN_TIMEOUT = PurePosixPath("/proc/sys/net/ipv4/tcp_fin_timeout")
WITH_A_DOT = PurePosixPath("/proc/sys/net/ipv4/conf/eth0.100/arp_notify")
PAGES = PurePosixPath("/sys/kernel/mm/transparent_hugepage/enabled")
STEERING = PurePosixPath("/sys/class/net/eth0/queues/rx-0/rps_cpus")
QUEUE = PurePosixPath("/sys/class/net/eth0/tx_queue_len")
NGINX = {PurePosixPath("/etc/nginx/nginx.conf"): b"events {}\n"}


def settings(content: bytes) -> list[str]:
    return [line for line in content.decode().splitlines() if not line.startswith("#")]


def test_what_an_earlier_apply_set_is_set_at_the_next_boot_too():
    summary = make_summary(searches=4)
    first = with_lasting_values({SOMAXCONN: b"8192\n", WITH_A_DOT: b"1\n"}, summary, {})[SYSCTL_FILE]

    # Somebody's editor may have left the last line without an end.
    second = with_lasting_values({FIN_TIMEOUT: b"10\n"}, summary, {SYSCTL_FILE: first.rstrip()})[SYSCTL_FILE]
    third = with_lasting_values({SOMAXCONN: b"4096\n", WITH_A_DOT: b"0\n"}, summary, {SYSCTL_FILE: second})[
        SYSCTL_FILE
    ]

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
    before = {SYSCTL_FILE: b"net.core.somaxconn = 1\n"}

    assert with_lasting_values(NGINX, make_summary(searches=4), before) == NGINX


def test_settings_of_cards_are_set_when_a_card_appears_and_others_at_boot():
    summary = make_summary(searches=4)
    first = with_lasting_values({PAGES: b"never\n", STEERING: b"3\n", QUEUE: b"500\n"}, summary, {})

    second = with_lasting_values({PAGES: b"madvise\n", QUEUE: b"2000\n"}, summary, first)

    assert settings(second[TMPFILES_FILE]) == [f"w {PAGES} - - - - madvise"]
    card = 'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="eth0", '
    assert settings(second[RULES_FILE]) == [
        card + 'ATTR{queues/rx-0/rps_cpus}="3"',
        card + 'ATTR{tx_queue_len}="2000"',
    ]
