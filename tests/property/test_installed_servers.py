"""Any configuration of a space, put on an installed service, is one that the real programs take as it is."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.installed import installed, put, remove, run
from tests.property.space_strategies import points
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.ports import Config, Installation, Sandbox
from tuner.space import Space, SpaceFacts, load_space

ALL_RISKS = {"allow": ["semantic", "risky"]}
Place = tuple[Sandbox, Installation]
"""Where the service is, and how it was found there."""
few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def load(name: str, narrowed: object) -> Space:
    names = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 8192,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    return load_space([name, narrowed], facts=SpaceFacts(names=names), base=Path())


def own(config: Config, installation: Installation) -> Config:
    """Keep what the installed service lets change."""
    return {name: value for name, value in config.items() if name in installation.facts.current}


@pytest.fixture(scope="module")
def apache() -> Iterator[Place]:
    with installed("/etc/apache2", empty=["/var/log/apache2", "/run/apache2"]) as sandbox:
        # Without a name it asks DNS and warns (AH00558).
        run(sandbox, "sh", "-c", "echo 'ServerName localhost' >> /etc/apache2/apache2.conf")
        yield sandbox, Apache().find(sandbox)


@few
@given(data=st.data())
def test_apache_takes_any_configuration_without_a_warning_and_reads_back_as_it(
    apache: Place, data: st.DataObject
):
    space = load("apache-event", ALL_RISKS)
    sandbox, before = apache
    chosen = space.for_server(space.decode(data.draw(points(space))), "apache")
    config = own(chosen, before)

    files = Apache().rewrite(config, before)
    put(sandbox, files)
    try:
        checked = sandbox.run(before.service.check, timeout_s=20)
        after = Apache().find(sandbox)
    finally:
        remove(sandbox, files)

    # Sites set it, so that no drop-in changes it.
    assert chosen.keys() - config.keys() == {"CustomLog"}
    assert (checked.returncode, Apache().refusals(checked)) == (0, ())
    assert {name: after.facts.current[name] for name in config} == config
    assert Apache().rewrite(config, after) == {}


@pytest.fixture(scope="module")
def php_fpm() -> Iterator[Place]:
    with installed("/etc/php", empty=["/var/log", "/run"]) as sandbox:
        yield sandbox, PhpFpm().find(sandbox)


@few
@given(data=st.data())
def test_php_fpm_takes_any_configuration_without_a_warning_and_reads_back_as_it(
    php_fpm: Place, data: st.DataObject
):
    space = load("php-fpm", ALL_RISKS)
    config = space.for_server(space.decode(data.draw(points(space))), "php-fpm")
    sandbox, before = php_fpm

    files = PhpFpm().rewrite(config, before)
    put(sandbox, files)
    try:
        checked = sandbox.run(before.service.check, timeout_s=20)
        after = PhpFpm().find(sandbox)
    finally:
        remove(sandbox, files)

    assert (checked.returncode, PhpFpm().refusals(checked)) == (0, ())
    assert {name: after.facts.current[name] for name in config} == config
    assert PhpFpm().rewrite(config, after) == {}
