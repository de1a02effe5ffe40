"""No value, and no name of a setting, gets anything into a server's file that is not one value."""

import re
from collections.abc import Iterable

import pytest

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find
from tests.unit.adapters.servers.php_fpm.layouts import BOOKWORM, find_pool
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.adapters.servers.sysctl import Sysctl
from tuner.errors import ConfigRejected, UsageError
from tuner.ports import Facts, Installation, Scalar

HOSTILE = (
    "", " ", "\t", "5\n", "\n5", "5\nUser root", "5\r\nLoadModule x /tmp/x.so", "5\rUser root", "on\x0bx",
    "5\x85x", "5\u2028User root", "a\x00b", "\x00", "5\\", "5\\\n", "\\", '"', "'", '"on"', "'on'", '5"',
    "5'", "{", "}", "{}", "a{b", "${HOME}", "${APACHE_RUN_USER}", "$HOME", "$(id)", "`id`", "%{HTTP_HOST}",
    "%{", "%n", "<", ">", "</IfModule>", "<VirtualHost *>", "data>", "5;", ";", "a;b", "5 ; x", "[www]",
    "[global]", "x\n[global]\npid=/x", "a b", "5 6", "data none", "on off", "#", "on #x", "# x", "=", "a=b",
    "pm=static", "../../etc/passwd", "/etc/passwd", "|cmd", "|/bin/sh", "&", "a&b", "!x", "~", "*", "?",
    "5,6", "1e4", "0x10", "1.5", "-", "--", "\u0665", "\ud800", "\x1b[31m", "\U0001f600", "static\n",
    "dynamic ", " ondemand", "Static", "None", "x" * 5000,
)  # fmt: skip
NO_NUMBERS = (1.5, float("nan"), float("inf"), True, False)
APACHE, POOL = find(DEBIAN), find_pool(BOOKWORM)
KERNEL = Installation(
    facts=Facts(current={"net.core.somaxconn": 4096, "net.ipv4.tcp_congestion_control": "cubic"}),
    files={},
    service=None,
)
SERVERS = {"apache": (Apache(), APACHE), "php-fpm": (PhpFpm(), POOL), "sysctl": (Sysctl(), KERNEL)}


def expect_refused(server: str, name: str, value: Scalar) -> None:
    """Check that a server refuses a setting, on one line that names the setting."""
    adapter, installation = SERVERS[server]
    try:
        written = adapter.rewrite({name: value}, installation)
    except (ConfigRejected, UsageError) as error:
        said = str(error)
        assert said.startswith(f"{server}: "), f"{name!r}: {value!r}"
        assert said.isprintable(), f"{name!r}: {value!r}"
        assert len(said) < 400, f"{name!r}: {value!r}"
    else:
        pytest.fail(f"{name!r}: {value!r} is written: {written}")


def expect_not_one_value(server: str, name: str, values: Iterable[Scalar]) -> None:
    """Check that a server says of each value that it is not one of this setting."""
    adapter, installation = SERVERS[server]
    for value in values:
        expect_refused(server, name, value)
        with pytest.raises(ConfigRejected, match=f"^{server}: {re.escape(name)} = .* is not one value"):
            adapter.rewrite({name: value}, installation)


@pytest.mark.parametrize("name", ["ThreadsPerChild", "ListenBacklog", "Timeout"])
def test_apache_takes_nothing_but_a_number_where_one_stands(name: str):
    expect_not_one_value("apache", name, [*HOSTILE, *NO_NUMBERS])


def test_apache_takes_nothing_but_a_flag_where_one_stands():
    expect_not_one_value("apache", "EnableSendfile", [*HOSTILE, 0, 1, 1.0])


def test_apache_takes_nothing_but_a_word_where_one_stands():
    expect_not_one_value("apache", "AcceptFilter", HOSTILE)


@pytest.mark.parametrize("server", sorted(SERVERS))
def test_a_hostile_name_is_no_setting_of_a_server(server: str):
    for name in HOSTILE:
        expect_refused(server, name, 5)


@pytest.mark.parametrize("name", ["pm.max_children", "pool.listen.backlog"])
def test_php_fpm_takes_nothing_but_a_number_where_one_stands(name: str):
    expect_not_one_value("php-fpm", name, [*HOSTILE, *NO_NUMBERS])


def test_php_fpm_takes_nothing_but_a_kind_or_a_flag_where_one_stands():
    expect_not_one_value("php-fpm", "pm", [*HOSTILE, 0, 1, True])
    expect_not_one_value("php-fpm", "catch_workers_output", [*HOSTILE, 0, 1])

    (content,) = PhpFpm().rewrite({"catch_workers_output": True}, POOL).values()
    assert content.decode().splitlines()[1:] == ["[www]", "catch_workers_output = yes"]


def test_the_kernel_is_given_nothing_but_a_number_where_one_stands():
    for value in (*HOSTILE, *NO_NUMBERS[:3]):
        expect_refused("sysctl", "net.core.somaxconn", value)


def test_the_kernel_is_given_nothing_but_words_where_one_stands():
    for value in HOSTILE:
        if not re.fullmatch(r"[\w.\- \t]+", value, re.ASCII):
            expect_refused("sysctl", "net.ipv4.tcp_congestion_control", value)
