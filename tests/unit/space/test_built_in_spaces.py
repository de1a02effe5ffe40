"""The spaces in search_spaces/ load on every host."""

from pathlib import Path

import pytest

from tests.unit.space.samples import facts
from tuner.space import Space, SpaceFacts, available_spaces, describe_space, load_space

FOLDER = Path(__file__).parents[3] / "search_spaces"
CURRENT = {
    "net.core.somaxconn": 4096, "net.ipv4.tcp_wmem[1]": 16384, "net.ipv4.tcp_wmem[2]": 4194304,
    "net.ipv4.tcp_rmem[1]": 131072, "net.ipv4.tcp_rmem[2]": 33554432,
    "net.ipv4.tcp_notsent_lowat": 4294967295,
    "net.ipv4.ip_local_port_range[0]": 32768, "net.ipv4.ip_local_port_range[1]": 60999,
    "net.core.default_qdisc": "fq_codel", "net.ipv4.tcp_congestion_control": "cubic",
}  # fmt: skip

HOSTS = (
    (1, 512, 1, 4096), (1, 1048576, 20000, 128), (3, 512, 20000, 65535), (3, 1048576, 1, 128),
    (128, 512, 20000, 128), (128, 1048576, 1, 65535),
)  # fmt: skip
"""CPUs, memory in MiB, connections, cap of a queue: each value with nearly each other one."""


def in_force(name: str) -> dict[str, object]:
    """Invent what a kernel has active: what is known above, else something within the range."""
    found: dict[str, object] = {}
    for entry in describe_space(name):
        if entry["default"] == "current":
            found[entry["name"]] = CURRENT.get(entry["name"], 1)
    return found


def load_all(*names: str, **changes: object) -> Space:
    current = {key: value for name in names for key, value in in_force(name).items()}
    host = facts(current=current, sandbox=False, loopback=False, **changes)
    return load_space([*names, {"allow": ["semantic", "risky"]}], facts=host, base=Path("/"))


@pytest.mark.parametrize("name", available_spaces())
class TestEach:
    def test_it_names_its_schema_for_editors(self, name):
        lines = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()

        assert "# yaml-language-server: $schema=space.schema.json" in lines[:3]

    def test_it_loads_on_small_and_large_hosts(self, name):
        for cores, memory_mib, connections, somaxconn in HOSTS:
            space = load_all(
                name, cores=cores, memory_mib=memory_mib, connections=connections, somaxconn=somaxconn
            )

            assert space.dimensions
            assert space.violations(space.default()) == ()
            assert space.decode(space.encode(space.default())) == space.default()

    def test_it_loads_where_few_of_many_cpus_may_be_used(self, name):
        space = load_all(name, cores=2, online_cores=64, memory_mib=1024)

        assert space.violations(space.default()) == ()
        assert space.decode(space.encode(space.default())) == space.default()

    def test_it_loads_for_old_and_new_versions(self, name):
        server = describe_space(name)[0]["server"]
        for version in ((1, 9), (1, 22, 1), (2, 4, 71), (6, 18), (99,), ()):
            host = SpaceFacts(names=facts().names, versions={server: version}, exists=lambda _: False)

            load_space([name], facts=host, base=Path("/"))

    def test_its_presets_can_be_tried(self, name):
        space = load_all(name, cores=4, memory_mib=8192)

        assert space.presets
        for preset in space.presets:
            config = space.complete(preset.values)
            assert space.violations(config) == ()
            assert space.decode(space.encode(config)) == config

    def test_every_parameter_can_be_changed_alone(self, name):
        space = load_all(name)

        for dimension in space.dimensions:
            ends = dimension.choices or (dimension.low, dimension.high)
            for value in ends:
                config = space.decode({dimension.name: value})
                assert space.decode(space.encode(config)) == config


@pytest.mark.parametrize("web", ["apache-event", "nginx", "h2o"])
def test_a_web_server_php_and_the_kernel_can_be_tuned_together(web):
    space = load_all(web, "php-fpm", "sysctl-net")

    assert {space.server_of(parameter.name) for parameter in space.parameters} == {
        web.partition("-")[0],
        "php-fpm",
        "sysctl",
    }
