"""Any configuration of a space, put on an installed service, is one that the real programs take as it is."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.installed import installed, put, remove, run
from tests.more import examples
from tests.property.space_strategies import points
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.ports import Config, Installation, Sandbox
from tuner.space import Space, SpaceFacts, load_space

Place = tuple[Sandbox, Installation]
"""Where the service is, and how it was found there."""
few = settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def load(name: str, server: str, found: Installation) -> Space:
    """Load a space as it is on the host of this installation, with all that may be tuned."""
    names = {
        "cores": found.facts.cores,
        "memory_mib": 8192,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    facts = SpaceFacts(
        names=names, versions={server: found.facts.version}, current=found.facts.current, sandbox=False,
        installed=True,
    )  # fmt: skip
    return load_space([name, {"allow": ["semantic", "risky"]}], facts=facts, base=Path())


def draw(name: str, server: str, place: Place, data: st.DataObject) -> tuple[Space, Config]:
    """Draw any configuration of a space for an installed service."""
    space = load(name, server, place[1])
    return space, space.for_server(space.decode(data.draw(points(space))), server)


def require_taken(server: Apache | PhpFpm, config: Config, sandbox: Sandbox, before: Installation) -> None:
    """Put a configuration there, and look that it is what the service would run with."""
    files = server.rewrite(config, before)
    put(sandbox, files)
    try:
        checked = sandbox.run(before.service.check, timeout_s=20)
        after = server.find(sandbox)
    finally:
        remove(sandbox, files)

    assert (checked.returncode, server.refusals(checked)) == (0, ())
    assert {name: after.facts.current[name] for name in config} == config
    assert server.rewrite(config, after) == {}


@pytest.fixture(scope="module")
def apache() -> Iterator[Place]:
    with installed(
        "/etc/apache2", empty=["/var/log/apache2", "/run", "/run/apache2", "/run/lock"]
    ) as sandbox:
        # Without a name it asks DNS and warns (AH00558).
        run(sandbox, "sh", "-c", "echo 'ServerName localhost' >> /etc/apache2/apache2.conf")
        yield sandbox, Apache().find(sandbox)


@few
@given(data=st.data())
def test_apache_takes_any_configuration_without_a_warning_and_reads_back_as_it(
    apache: Place, data: st.DataObject
):
    space, config = draw("apache-event", "apache", apache, data)

    # Sites set CustomLog, so that no drop-in changes it. The recipe of 2012 holds less than what is active.
    left_out = {name for name, why in space.left_out.items() if "private instances" not in why}
    assert left_out == {"CustomLog", "KeepsBackend", "preset hand-tuned-2012"}
    require_taken(Apache(), config, *apache)


@pytest.fixture(scope="module")
def php_fpm() -> Iterator[Place]:
    with installed("/etc/php", empty=["/var/log", "/run"]) as sandbox:
        yield sandbox, PhpFpm().find(sandbox)


@few
@given(data=st.data())
def test_php_fpm_takes_any_configuration_without_a_warning_and_reads_back_as_it(
    php_fpm: Place, data: st.DataObject
):
    _, config = draw("php-fpm", "php-fpm", php_fpm, data)

    require_taken(PhpFpm(), config, *php_fpm)
