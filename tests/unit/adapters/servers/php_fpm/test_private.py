from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.php_fpm.layouts import BOOKWORM, find_pool
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.errors import ConfigRejected, UsageError
from tuner.ports import FASTCGI, Facts, Scalar, Site, Upstream

SITE = Site(directory=PurePosixPath("/sandbox/php-fpm"), document_root=PurePosixPath("/www"), port=9000)
FACTS = Facts(program=PurePosixPath("/usr/sbin/php-fpm8.2"))
PACKAGED = """\
[global]
pid = /sandbox/php-fpm/php-fpm.pid
error_log = /sandbox/php-fpm/error.log
daemonize = no

[www]
user = www-data
group = www-data
listen = /sandbox/php-fpm/php-fpm.sock
; Nobody but the sandbox sees it; without the right to give it away, an ordinary user could not start.
listen.mode = 0666
pm = dynamic
pm.max_children = 5
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
"""


def written(config: dict[str, object], site: Site = SITE) -> dict[str, str]:
    files = PhpFpm().render(config, site, FACTS)  # type: ignore[arg-type]
    return {path.name: content.decode() for path, content in files.items()}


def test_without_a_configuration_the_pool_is_the_packaged_one():
    assert written({}) == {
        "php-fpm.conf": PACKAGED,
        "tuner.ini": "opcache.lockfile_path = /sandbox/php-fpm\n",
    }


def test_settings_of_the_pool_and_of_php_go_to_their_own_files():
    files = written(
        {
            "pm": "static", "pm.max_children": 40, "pool.listen.backlog": 2000, "catch_workers_output": True,
            "listen": "tcp", "opcache.validate_timestamps": False, "opcache.memory_consumption": 64,
        }
    )  # fmt: skip

    lines = files["php-fpm.conf"].splitlines()
    assert {"listen = 127.0.0.1:9000", "pm = static", "pm.max_children = 40"} <= set(lines)
    assert {"listen.backlog = 2000", "catch_workers_output = yes"} <= set(lines)
    assert files["tuner.ini"].splitlines()[:2] == [
        "opcache.validate_timestamps = no",
        "opcache.memory_consumption = 64",
    ]


@pytest.mark.parametrize(("jit", "has_buffer"), [("off", False), ("tracing", True), ("function", True)])
def test_a_jit_has_a_buffer(jit: str, *, has_buffer: bool):
    assert ("opcache.jit_buffer_size = 64M\n" in written({"opcache.jit": jit})["tuner.ini"]) is has_buffer


@pytest.mark.parametrize(
    "config",
    [
        {"pm": "none"}, {"pm.max_children": "5; x"}, {"listen": "/run/x"}, {"user": "root"},
        {"clear_env": False}, {"opcache.jit": "1255"}, {"opcache.preload": "x.php"},
    ],
)  # fmt: skip
def test_what_is_no_value_or_no_setting_reaches_no_file(config: dict[str, object]):
    with pytest.raises(ConfigRejected):
        written(config)


def test_a_path_that_would_be_syntax_is_refused():
    site = Site(directory=PurePosixPath("/a;b"), document_root=PurePosixPath("/www"))

    with pytest.raises(UsageError, match="cannot be written"):
        written({}, site)


def test_the_server_before_it_is_told_the_socket_or_the_port():
    socket = PurePosixPath("/sandbox/php-fpm/php-fpm.sock")

    assert PhpFpm().upstream({}, SITE) == Upstream(protocol=FASTCGI, socket=socket)
    assert PhpFpm().upstream({"listen": "tcp"}, SITE) == Upstream(protocol=FASTCGI, port=9000)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "opcache.memory_consumption",
            64,
            r"is set in php\.ini for all pools\. Change this setting in php\.ini by hand",
        ),
        ("listen", "tcp", "is also part of the web server's configuration"),
    ],
)
def test_what_no_pool_file_of_an_installed_service_holds_is_refused_with_where_it_stands(
    name: str, value: Scalar, said: str
):
    with pytest.raises(ConfigRejected, match=said):
        PhpFpm().rewrite({name: value}, find_pool(BOOKWORM))
