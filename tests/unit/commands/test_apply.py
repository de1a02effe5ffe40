"""What an apply leaves for the next boot, and of whom it takes a study."""

import os
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.simulated_study import make_summary, small_space
from tests.unit.simulation import write_study
from tuner.commands.apply import RULES_FILE, SYSCTL_FILE, TMPFILES_FILE, apply_winner, with_lasting_values
from tuner.commands.regression.verify import verify
from tuner.commands.session import Reading
from tuner.errors import UsageError

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


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone does what others may have written")
def test_root_neither_applies_nor_verifies_a_study_file_that_others_may_write(tmp_path: Path):
    study = write_study(tmp_path)
    study.path.chmod(0o666)
    reading = Reading(settings=study, space=small_space(), summary=make_summary(searches=4), setup=None)

    with pytest.raises(UsageError, match="other users may write to this file"):
        apply_winner(reading, host_name=None, url=None, confirm_within_s=60)
    with pytest.raises(UsageError, match="other users may write to this file"):
        verify(reading)
