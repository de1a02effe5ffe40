"""A space that begins with what is active has the installed service's configuration as its default."""

from pathlib import Path

import pytest

from tests.unit.adapters.servers.apache import layouts as apache_layouts
from tests.unit.adapters.servers.php_fpm import layouts as php_layouts
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.ports import Config, Installation
from tuner.space import SpaceFacts, load_space

HOST = {"cores": 4, "memory_mib": 8192, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}
LIMITS = ("ServerLimit", "ThreadLimit")
SECURITY = "/etc/apache2/conf-enabled/security.conf"
APACHES = {
    **apache_layouts.LAYOUTS,
    **{
        name: apache_layouts.with_file(apache_layouts.DEBIAN, SECURITY, text)
        for name, text in {
            "no-multiple": "MaxRequestWorkers 155\n",
            "beyond-the-range": "ServerLimit 500\nThreadLimit 500\nThreadsPerChild 200\n"
            "MaxRequestWorkers 4000\nStartServers 10\nMaxSpareThreads 300\n",
            "no-room": "ServerLimit 6\nStartServers 6\n",
            "listeners-by-core": "ListenCoresBucketsRatio 2\n",
            "long": "ListenBacklog 20000\nKeepAliveTimeout 100\nTimeout 600\n",
            "off-the-grid": "MaxKeepAliveRequests 0\nSendBufferSize 10000000\nReadBufferSize 5000\n",
        }.items()
    },
}
POOLS = {
    **php_layouts.LAYOUTS,
    "static": php_layouts.with_pool(
        php_layouts.BOOKWORM, pm="static", pm__start_servers="0", pm__min_spare_servers="0",
        pm__max_spare_servers="0", pm__max_children="700", listen__backlog="511",
    ),
    "ondemand": php_layouts.with_pool(
        php_layouts.BOOKWORM, pm="ondemand", pm__process_idle_timeout="1000", rlimit_files="131072",
        request_terminate_timeout="300s",
    ),
}  # fmt: skip


def present(name: str, server: str, found: Installation) -> Config:
    """Give the default of the space on the host of this installation."""
    facts = SpaceFacts(
        names=HOST, versions={server: found.facts.version}, current=found.facts.current, sandbox=False,
        installed=True,
    )  # fmt: skip
    space = load_space([name], facts=facts, base=Path())
    return space.for_server(space.default(), server)


@pytest.mark.parametrize("name", APACHES)
def test_apaches_own_configuration_is_the_default_and_changes_nothing(name: str):
    found = apache_layouts.find(APACHES[name])
    config = present("apache-event", "apache", found)

    # The limits only have to leave room.
    assert {each: value for each, value in config.items() if each not in LIMITS} == {
        each: found.facts.current[each] for each in config if each not in LIMITS
    }
    assert len(config) > 20
    assert Apache().rewrite(config, found) == {}


@pytest.mark.parametrize("name", POOLS)
def test_a_pools_own_configuration_is_the_default_and_changes_nothing(name: str):
    found = php_layouts.find_pool(POOLS[name])
    config = present("php-fpm", "php-fpm", found)

    assert config == {each: found.facts.current[each] for each in config}
    assert len(config) >= 7
    assert PhpFpm().rewrite(config, found) == {}
