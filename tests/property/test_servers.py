"""Any configuration of the built-in spaces is one that the real servers take as it is."""

import math
import os
import random
import re
import resource
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.more import examples, leave_to_more
from tests.property.space_strategies import points
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.apache import Apache, ApacheMpm, ApachePrefork, ApacheWorker
from tuner.adapters.servers.caddy import Caddy
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.sysctl import Sysctl
from tuner.deploy.certificate import make_certificate
from tuner.ports import H2, HTTP1, TLS, Certificate, Facts, FileState, Process, Sandbox, Scalar, Server, Site
from tuner.space import Dimension, Space, SpaceFacts, load_space

PAGE = b"<!DOCTYPE html><title>property</title>\n"
SOMAXCONN = 4096
ALL_RISKS: Mapping[str, object] = {"allow": ["semantic", "risky"]}
SERVERS: Mapping[str, Server] = {
    "apache-event": Apache(),
    "apache-mpm": ApacheMpm(),
    "apache-prefork": ApachePrefork(),
    "apache-worker": ApacheWorker(),
    "caddy": Caddy(),
    "nginx": Nginx(),
    "h2o": H2o(),
}
WAYS = [
    *((name, HTTP1) for name in SERVERS),
    # Without TLS nothing is left of what HTTP/2 has; prefork has no HTTP/2, and Caddy neither of them here.
    *((name, TLS if name == "apache-prefork" else H2) for name in SERVERS if name != "caddy"),
]
"""Each space, and what clients speak to its server."""
OF_EACH_SERVER = leave_to_more(
    WAYS, ("apache-event", HTTP1), ("apache-event", H2), ("caddy", HTTP1), ("h2o", HTTP1), ("h2o", H2),
    ("nginx", HTTP1), ("nginx", H2),
)  # fmt: skip
OF_PROTOCOLS = re.compile("ssl|http2|h2|gzip", re.IGNORECASE)
few = settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
very_few = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@cache
def load(name: str, *, cores: int, connections: int, memory_mib: int = 8192, spoken: str = HTTP1) -> Space:
    names: dict[str, Scalar] = {
        "cores": cores,
        "memory_mib": memory_mib,
        "connections": connections,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": SOMAXCONN,
    }
    # mod_http2 does not work under prefork, which is refused before anything is written.
    has_choice = name == "apache-mpm" and spoken != HTTP1
    more = [{"parameters": {"MPM": {"choices": ["event", "worker"]}}}] if has_choice else []
    return load_space([name, *more, ALL_RISKS], facts=SpaceFacts(names=names), base=Path())


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        opened.write(opened.directory / "www" / "index.html", FileState(content=PAGE, mode=0o644))
        yield opened


@pytest.fixture(scope="module")
def certificate(sandbox: Sandbox) -> Certificate:
    return make_certificate(sandbox)


DETECTED: dict[type[Server], Facts] = {}


def detect(server: Server, sandbox: Sandbox) -> Facts:
    """Look at what is installed, once for each kind of server."""
    if type(server) not in DETECTED:
        DETECTED[type(server)] = server.detect(sandbox)
    return DETECTED[type(server)]


def put_in_place(
    server: Server,
    config: Mapping[str, Scalar],
    sandbox: Sandbox,
    spoken: str = HTTP1,
    certificate: Certificate | None = None,
) -> tuple[Site, Facts]:
    """Write the files and let the program itself check them."""
    site = Site(directory=sandbox.directory / server.name, document_root=sandbox.directory / "www")
    if spoken != HTTP1:
        site = replace(site, protocol=H2 if spoken == H2 else HTTP1, certificate=certificate)
    facts = detect(server, sandbox)
    for path, content in server.render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))
    checked = sandbox.run(server.check(site, facts) or (), timeout_s=20)
    assert (checked.returncode, server.refusals(checked)) == (0, ()), config
    return site, facts


def start(
    server: Server, config: Mapping[str, Scalar], site: Site, facts: Facts, sandbox: Sandbox
) -> Process:
    process = sandbox.start(server.start(site, facts) or (), open_files=server.needs(config).open_files)
    again = ("--retry", "60", "--retry-delay", "1", "--retry-all-errors", "--max-time", "60")
    scheme, trusted = (
        ("http", ()) if site.certificate is None else ("https", ("--cacert", str(site.certificate.file)))
    )
    url = f"{scheme}://127.0.0.1:{site.port}/index.html"
    answer = sandbox.run(("curl", "-s", *again, *trusted, url), timeout_s=90)
    if answer.stdout != PAGE:
        process.stop(timeout_s=10)
        pytest.fail(f"no answer: {process.output().decode()}")
    return process


@pytest.mark.parametrize(("name", "spoken"), WAYS)
@few
@given(data=st.data())
def test_the_real_check_takes_any_configuration_without_changing_a_value(
    name: str, spoken: str, sandbox: Sandbox, certificate: Certificate, data: st.DataObject
):
    space = load(name, cores=os.cpu_count() or 1, connections=100, spoken=spoken)
    config = space.for_server(space.decode(data.draw(points(space))), SERVERS[name].name)

    put_in_place(SERVERS[name], config, sandbox, spoken, certificate)


def values_of(dimension: Dimension) -> Iterator[Scalar]:
    """Yield every choice, or both ends and two values between."""
    if dimension.choices:
        yield from dimension.choices
        return
    chance = random.Random(dimension.name)  # noqa: S311 - the same values each time
    for share in (0.0, 1.0, chance.random(), chance.random()):
        value = dimension.low + share * (dimension.high - dimension.low)
        yield int(value) if dimension.kind == "int" else value


@pytest.mark.parametrize(("name", "spoken"), OF_EACH_SERVER)
def test_the_real_check_takes_each_setting_alone_at_its_ends_and_between(
    name: str, spoken: str, sandbox: Sandbox, certificate: Certificate
):
    space = load(name, cores=os.cpu_count() or 1, connections=100, spoken=spoken)

    for dimension in space.dimensions:
        if spoken != HTTP1 and not OF_PROTOCOLS.match(dimension.name):
            continue  # it says the same whatever is spoken
        for value in values_of(dimension):
            config = space.for_server(space.decode({dimension.name: value}), SERVERS[name].name)
            put_in_place(SERVERS[name], config, sandbox, spoken, certificate)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("name", "spoken"),
    leave_to_more(WAYS, ("apache-event", HTTP1), ("caddy", HTTP1), ("h2o", H2), ("nginx", H2)),
)
@very_few
@given(data=st.data())
def test_any_configuration_starts_answers_and_is_in_force(
    name: str, spoken: str, sandbox: Sandbox, certificate: Certificate, data: st.DataObject
):
    server = SERVERS[name]
    space = load(name, cores=os.cpu_count() or 1, connections=100, spoken=spoken)
    config = space.for_server(space.decode(data.draw(points(space))), server.name)
    site, facts = put_in_place(server, config, sandbox, spoken, certificate)
    process = start(server, config, site, facts, sandbox)

    try:
        found = server.effective(sandbox, config, site, facts, process)
    finally:
        process.stop(timeout_s=10)

    assert found == {name: config[name] for name in found}


# Cores, connections, memory in MiB.
machines = st.sampled_from(
    [(1, 100, 512), (2, 100, 8192), (3, 10_000, 2048), (8, 1, 8192), (64, 10_000, 262_144)]
)


def require_threads_as_they_are(config: Mapping[str, Any], most_threads: int) -> None:
    """Require what server/mpm/event/event.c and server/mpm/worker/worker.c would change otherwise."""
    buckets, threads = config["ListenBuckets"], config["ThreadsPerChild"]
    # event_check_config, worker_check_config
    assert config["ServerLimit"] <= 20_000
    assert threads <= config["ThreadLimit"] <= most_threads
    assert config["MaxRequestWorkers"] % threads == 0
    assert threads <= config["MaxRequestWorkers"] <= config["ServerLimit"] * threads
    # event_run, worker_run, which say nothing when they raise or lower
    processes = config["MaxRequestWorkers"] // threads
    assert buckets <= config["StartServers"] <= processes
    assert config["MinSpareThreads"] >= threads * (buckets - 1) + buckets
    assert config["MaxSpareThreads"] >= config["MinSpareThreads"] + (threads + 1) * buckets
    # perform_idle_server_maintenance ends children of a bucket that has more idle workers than its share
    started_per_bucket = math.ceil(config["StartServers"] / buckets)
    assert started_per_bucket * threads <= config["MaxSpareThreads"] / buckets
    # what a host gives: processes and threads, the accept queue
    assert processes * (threads + 3) < 32_768
    assert config["ListenBacklog"] <= SOMAXCONN


def require_processes_as_they_are(config: Mapping[str, Any]) -> None:
    """Require what server/mpm/prefork/prefork.c would change otherwise."""
    buckets = config["ListenBuckets"]
    # prefork_check_config
    assert config["MaxRequestWorkers"] <= config["ServerLimit"] <= 200_000
    # prefork_run, which says nothing when it raises or lowers
    assert buckets <= config["StartServers"] <= config["MaxRequestWorkers"]
    assert config["MinSpareServers"] >= buckets
    assert config["MaxSpareServers"] >= config["MinSpareServers"] + buckets
    # perform_idle_server_maintenance ends children that idle beyond it
    assert config["StartServers"] <= config["MaxSpareServers"]
    assert config["MaxRequestWorkers"] < 32_768
    assert config["ListenBacklog"] <= SOMAXCONN


@pytest.mark.parametrize("name", ["apache-event", "apache-worker", "apache-prefork", "apache-mpm"])
@settings(max_examples=examples(80), deadline=None)
@given(machine=machines, data=st.data())
def test_no_mpm_has_a_reason_to_change_any_value(
    name: str, machine: tuple[int, int, int], data: st.DataObject
):
    cores, connections, memory_mib = machine
    space = load(name, cores=cores, connections=connections, memory_mib=memory_mib)
    config: dict[str, Any] = space.decode(data.draw(points(space)))
    mpm = config.get("MPM", name.removeprefix("apache-"))

    # Of what is not built by bounds there is one rule: the machine's memory.
    assert all(sentence.startswith("it may take about") for sentence in space.violations(config))
    if mpm == "prefork":
        require_processes_as_they_are(config)
    else:
        require_threads_as_they_are(config, 100_000 if mpm == "event" else 20_000)
    if mpm == "event":
        held = config["ThreadsPerChild"] * (config["AsyncRequestWorkerFactor"] + 1)
        assert held < (Apache().needs(config).open_files or 0)


@settings(max_examples=examples(80), deadline=None)
@given(machine=machines, data=st.data())
def test_nginx_is_never_asked_for_what_its_limits_would_cut(
    machine: tuple[int, int, int], data: st.DataObject
):
    cores, connections, memory_mib = machine
    space = load("nginx", cores=cores, connections=connections, memory_mib=memory_mib)
    config: dict[str, Any] = space.decode(data.draw(points(space)))

    assert space.violations(config) == ()
    assert config["listen_backlog"] <= SOMAXCONN
    assert config["worker_connections"] < config["worker_rlimit_nofile"]
    assert config["worker_rlimit_nofile"] <= resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert config["open_file_cache"] + config["worker_connections"] < config["worker_rlimit_nofile"]


@cache
def load_kernel() -> tuple[Space, Facts]:
    with LocalHost().sandbox() as sandbox:
        facts = Sysctl().detect(sandbox)
    known = SpaceFacts(names={"somaxconn": SOMAXCONN}, current=facts.current, exists=os.path.exists)
    return load_space(["sysctl-net", ALL_RISKS], facts=known, base=Path()), facts


@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_kernel_settings_are_taken_by_the_kernel_as_they_are(sandbox: Sandbox, data: st.DataObject):
    space, facts = load_kernel()
    config = space.for_server(space.decode(data.draw(points(space))), "sysctl")
    site = Site(directory=sandbox.directory, document_root=sandbox.directory)

    for path, content in Sysctl().render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))

    assert Sysctl().effective(sandbox, config, site, facts, None) == config


@settings(
    max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_configuration_can_be_written_into_the_installed_h2o(sandbox: Sandbox, data: st.DataObject):
    space = load("h2o", cores=os.cpu_count() or 1, connections=100)
    config = dict(space.for_server(space.decode(data.draw(points(space))), "h2o"))
    del config["access-log"]  # its pipes and files are the owner's
    installed = H2o().find(sandbox)
    path, original = next(iter(installed.files.items()))

    content = H2o().rewrite(config, installed).get(path, original)
    copy = sandbox.directory / "h2o.conf"
    sandbox.write(copy, FileState(content=content))
    checked = sandbox.run(("h2o", "-t", "-c", str(copy)), timeout_s=20)

    assert (checked.returncode, H2o().refusals(checked)) == (0, ())
    changed = {name: value for name, value in config.items() if value != installed.facts.current[name]}
    assert len(content.splitlines()) == len(original.splitlines()) + len(changed)
    assert content.endswith(original)
