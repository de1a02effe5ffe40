"""No value, and no name of a setting, gets anything into a server's file that is not one value."""

import re

import pytest

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find
from tests.unit.adapters.servers.php_fpm.layouts import BOOKWORM, find_pool
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.adapters.servers.sysctl import Sysctl
from tuner.errors import ConfigRejected, UsageError
from tuner.ports import Facts, Installation

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


def is_shown_on_one_line(message: str) -> bool:
    return message.isprintable() and len(message) < 400


@pytest.mark.parametrize("value", [*HOSTILE, *NO_NUMBERS])
@pytest.mark.parametrize("name", ["ThreadsPerChild", "ListenBacklog", "Timeout"])
def test_apache_takes_nothing_but_a_number_where_one_stands(name: str, value: object):
    with pytest.raises(ConfigRejected, match=f"^apache: {name} = .* is not one value") as refused:
        Apache().rewrite({name: value}, APACHE)

    assert is_shown_on_one_line(str(refused.value))


@pytest.mark.parametrize("value", [*HOSTILE, 0, 1, 1.0])
def test_apache_takes_nothing_but_a_flag_where_one_stands(value: object):
    with pytest.raises(ConfigRejected, match="is not one value"):
        Apache().rewrite({"EnableSendfile": value}, APACHE)


@pytest.mark.parametrize("value", HOSTILE)
def test_apache_takes_nothing_but_a_word_where_one_stands(value: str):
    with pytest.raises(ConfigRejected, match="is not one value"):
        Apache().rewrite({"AcceptFilter": value}, APACHE)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_no_setting_of_a_server(name: str):
    for server, installation in ((Apache(), APACHE), (PhpFpm(), POOL)):
        with pytest.raises(ConfigRejected) as refused:
            server.rewrite({name: 5}, installation)
        assert is_shown_on_one_line(str(refused.value))


@pytest.mark.parametrize("value", [*HOSTILE, *NO_NUMBERS])
@pytest.mark.parametrize("name", ["pm.max_children", "pool.listen.backlog"])
def test_php_fpm_takes_nothing_but_a_number_where_one_stands(name: str, value: object):
    with pytest.raises(ConfigRejected, match=f"^php-fpm: {re.escape(name)} = .* is not one value") as refused:
        PhpFpm().rewrite({name: value}, POOL)

    assert is_shown_on_one_line(str(refused.value))


@pytest.mark.parametrize("value", [*HOSTILE, 0, 1, True])
@pytest.mark.parametrize("name", ["pm", "catch_workers_output"])
def test_php_fpm_takes_nothing_but_a_kind_or_a_flag_where_one_stands(name: str, value: object):
    if name == "catch_workers_output" and value is True:
        (content,) = PhpFpm().rewrite({name: value}, POOL).values()
        assert content.decode().splitlines()[1:] == ["[www]", "catch_workers_output = yes"]
        return
    with pytest.raises(ConfigRejected, match="is not one value"):
        PhpFpm().rewrite({name: value}, POOL)


@pytest.mark.parametrize("value", [*HOSTILE, *NO_NUMBERS[:3]])
def test_the_kernel_is_given_nothing_but_a_number_where_one_stands(value: object):
    with pytest.raises(ConfigRejected, match=r"^sysctl: net\.core\.somaxconn = ") as refused:
        Sysctl().rewrite({"net.core.somaxconn": value}, KERNEL)

    assert is_shown_on_one_line(str(refused.value))


@pytest.mark.parametrize(
    "value", [each for each in HOSTILE if not re.fullmatch(r"[\w.\- \t]+", each, re.ASCII)]
)
def test_the_kernel_is_given_nothing_but_words_where_one_stands(value: str):
    with pytest.raises(ConfigRejected, match=r"^sysctl: net\.ipv4\.tcp_congestion_control = "):
        Sysctl().rewrite({"net.ipv4.tcp_congestion_control": value}, KERNEL)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_no_key_of_the_kernel(name: str):
    with pytest.raises((UsageError, ConfigRejected)):
        Sysctl().rewrite({name: 5}, KERNEL)
