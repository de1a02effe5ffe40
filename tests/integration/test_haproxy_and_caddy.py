"""Every setting of HAProxy before nginx, and of Caddy alone and before nginx, at its ends, for real."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tuner.campaign.prepare import prepare
from tuner.deploy.sandbox import SandboxTarget
from tuner.errors import ConfigRejected, UsageError
from tuner.export.rendered import SITE
from tuner.plugins import make_private_server
from tuner.ports import Config
from tuner.space import Space, describe_space
from tuner.study import load_study

ALL = "{allow: [semantic, capacity]}"
READ_BACK = {
    "haproxy": {
        "nbthread", "maxconn", "frontend.maxconn", "server.maxconn", "server.pool-max-conn", "tune.bufsize",
        "balance", "bind.shards", "busy-polling", "maxpipes",
    },
    "caddy": {
        "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "keepalive", "keepalive_idle_conns_per_host", "read_buffer",
        "write_buffer", "lb_policy", "timeouts.idle",
    },
}  # fmt: skip
"""What a running server tells of itself; its own check alone vouches for the rest."""
BY_ITSELF = {
    ("nbthread", "auto"), ("maxconn", "auto"), ("frontend.maxconn", 0), ("maxpipes", 0),
    ("balance", "random"),
}  # fmt: skip
"""Values that leave it to the program, or that it has no name for."""


def prepared(tmp_path: Path, servers: str, name: str) -> tuple[Space, SandboxTarget]:
    path = tmp_path / "study.yaml"
    # What is named is tuned also where it could not act under this load, as splicing of a short page.
    named = [each["name"] for each in describe_space(name) if each["kind"] != "derived"]
    only = f"{{only: [{', '.join(named)}]}}"
    path.write_text(f"study: ends\nservers: [{servers}]\nspace: [{name}, {ALL}, {only}]\n")
    setup = prepare(load_study(path))
    assert isinstance(setup.target, SandboxTarget)
    return setup.space, setup.target


def ends(space: Space) -> Iterator[Config]:
    """Yield the default, all lowest and all highest values at once, and each choice between."""
    yield space.default()
    for end in (0, -1):
        point = {each.name: each.choices[end] if each.choices else (each.low, each.high)[end]
                 for each in space.dimensions}  # fmt: skip
        yield space.decode(point)
        # The same without values that leave it to the program.
        yield space.decode({**point, **{name: "number" for name in point if name.endswith(":special")}})
    for each in space.dimensions:
        yield from (space.decode({each.name: choice}) for choice in each.choices[1:-1])


def expect_effect(
    name: str, target: SandboxTarget, config: Config, own: Config, lacking: set[str]
) -> set[str]:
    """Deploy a configuration and require all of it that can be read back; return the names of that."""
    with target.deploy(config) as deployment:
        found = {each for each in deployment.effective if each in own}
    said = {each for each, value in own.items() if (each, value) not in BY_ITSELF}
    if own.get("nbthread", 1) in {1, "auto"}:  # one thread, in an instance that has one CPU
        said -= {"bind.shards"}
    assert found == (READ_BACK[name] - lacking) & said
    return found


@pytest.mark.parametrize(
    ("name", "servers"),
    [("haproxy", "haproxy, nginx"), ("caddy", "caddy"), ("caddy", "{name: caddy, backend: nginx}, nginx")],
)
def test_every_value_at_its_ends_is_accepted_and_in_force(tmp_path, name, servers):
    space, target = prepared(tmp_path, servers, name)
    of_a_proxy = {"keepalive", "keepalive_idle_conns_per_host", "read_buffer", "write_buffer", "lb_policy"}
    lacking = of_a_proxy if servers == "caddy" else set()

    seen: set[str] = set()
    for config in ends(space):
        seen |= expect_effect(name, target, config, space.for_server(config, name), lacking)

    assert seen == READ_BACK[name] - lacking


def test_haproxy_alone_is_refused_with_what_to_put_behind_it(tmp_path):
    with pytest.raises(UsageError, match="haproxy answers no request itself, and only passes requests on"):
        prepared(tmp_path, "haproxy", "haproxy")


def test_haproxy_stands_before_an_application_of_the_study(tmp_path):
    (tmp_path / "index.html").write_text("from behind")
    path = tmp_path / "study.yaml"
    command = "[python3, -m, http.server, '{port}', --bind, 127.0.0.1, --directory, '{folder}']"
    path.write_text(
        f"study: shop\nservers: [haproxy]\nspace: [haproxy]\nbackend: {{command: {command}, ready: /}}\n"
    )

    setup = prepare(load_study(path))
    with setup.target.deploy_default(setup.space.default()) as deployment:
        assert deployment.load.body_bytes == len("from behind")
        assert set(deployment.server_pids) == {"haproxy", "backend"}


@pytest.mark.parametrize("name", ["haproxy", "caddy"])
def test_what_is_no_value_reaches_no_file(tmp_path, name):
    _, target = prepared(tmp_path, "haproxy, nginx" if name == "haproxy" else "caddy", name)
    setting = "nbthread" if name == "haproxy" else "GOGC"

    for value in (True, 1.5, -2, 0.0, 2**31, "4; user root", "4\nuser root", ""):
        with pytest.raises(ConfigRejected, match=f"^{name}: {setting}: .* is no whole number from 1"):
            make_private_server(name).render({setting: value}, SITE, target.facts[name])


def test_an_ordinary_limit_of_open_files_is_what_capacity_counts_on(tmp_path):
    space, target = prepared(tmp_path, "haproxy, nginx", "haproxy")
    held = space.capacity(space.default())["haproxy"]["connections"]

    with target.deploy(space.default()) as deployment:
        # Two files for each connection: no more is promised than the limit of its processes gives.
        limits = Path(f"/proc/{deployment.server_pids['haproxy']}/limits").read_text()
    soft = next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files"))

    assert 2 * held <= int(soft)
