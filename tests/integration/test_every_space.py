"""Every parameter of every space is written, accepted by the program's own check, and then is what was asked.

Each is tried at its default, lowest and highest value and at two random ones; all parameters of a space at
once, for the bounds of one are built from what was chosen for others. Private instances answer by themselves,
over TLS and HTTP/2, and with each kind of server behind them that they can ask. What a running instance shows
is read there, the rest from files that the program itself has accepted.
"""

import math
import os
import re
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest

from tests.installed import switch_mpm
from tests.integration.haproxy_file import misspell, read_file
from tests.integration.kernel_in_memory import KernelInMemory
from tests.more import leave_to_more
from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.certificate import make_certificate
from tuner.deploy.readiness import await_listener
from tuner.plugins import make_private_server, make_server
from tuner.ports import (
    FASTCGI,
    H2,
    HTTP1,
    TLS,
    Config,
    Facts,
    FileState,
    Host,
    InstalledServer,
    PrivateServer,
    Sandbox,
    Scalar,
    Site,
    Upstream,
)
from tuner.space import Dimension, Space, SpaceFacts, available_spaces, describe_space, load_space
from tuner.testing.machines import (
    ANSWER_S,
    CopiedMachine,
    check,
    open_site,
    overwrite,
    put_in_place,
    start,
)

LEVELS = ("default", "lowest", "highest", "random", "random again")
ALL_RISKS: Mapping[str, object] = {"allow": ["semantic", "risky", "capacity"]}
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the way from the default to a level; the first that the machine's memory allows is taken."""
DRAWN = 300
"""Points among which one is looked for at which a parameter has a say."""
SPACES = {name: describe_space(name)[0]["server"] for name in available_spaces()}
WRITTEN_ALIKE = {"apache-mpm": ("apache-event", "apache-prefork", "apache-worker")}
"""Space without an installed server → those with one whose settings it has, written by the same code."""
CHILDREN = 200
"""So many processes of PHP that connections to them can be kept: some settings are there for these alone."""
NOT_ON_THIS_MACHINE = re.compile("it exists since |it was removed in |this host has no /")
WITHOUT_THREADS = {"apache-prefork": {"ProxyPass.max", "ProxyPass.smax", "ProxyPass.acquire"}}
"""What a space has from a part and never asks for: a process of one thread has one connection at a time."""
LOG_S = 2.0
Read = dict[str, set[str]]
"""Parameter → the levels at which it was found to be what was asked."""


def load(
    name: str, facts: Facts, *, is_installed: bool, kernel: KernelInMemory | None = None, backend: str = ""
) -> Space:
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 64 * CHILDREN if backend == FASTCGI else 2048,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    known = SpaceFacts(
        names=names, versions={SPACES[name]: facts.version}, current=facts.current, withheld=facts.withheld,
        exists=kernel.has if kernel else os.path.exists, sandbox=not is_installed, installed=is_installed,
        loopback=kernel is None,
        backends={SPACES[name]: backend} if backend else {},
    )  # fmt: skip
    # A log that is kept back shows nothing; installed servers have it kept back at some levels.
    held = {"set": {"BufferedLogs": False}} if SPACES[name].startswith("apache") and not is_installed else {}
    behind = ["php-fpm", {"set": {"pm.max_children": CHILDREN}}] if backend == FASTCGI else []
    # What is named is tuned also where it could not act under this load.
    named = {"only": [row["name"] for row in describe_space(name) if row["kind"] != "derived"]}
    return load_space([name, *behind, ALL_RISKS, named, held], facts=known, base=Path())


def configurations(
    space: Space, server: str, parameters: set[str]
) -> Iterator[tuple[str, Config, frozenset[str]]]:
    """Yield what the server is asked for at each level, and which of these parameters are at that level.

    First all of them; then again those that some level leaves without a say, around values that give it them.
    """
    bases = [space.encode(space.default())]
    waiting = set(parameters)
    while waiting:
        base = bases.pop() if bases else most_active(space, waiting)
        tried = []
        for level in LEVELS:
            point = at_level(space, base, level, waiting)
            config = space.for_server(space.decode(point), server)
            tried.append(waiting & config.keys())
            yield level, config, frozenset(tried[-1])
        waiting -= frozenset.intersection(*map(frozenset, tried))


def written_by(space: Space, server: str) -> set[str]:
    """Return a server's parameters that are tuned here and written as they are, not only into others."""
    tuned = {each.parameter for each in space.dimensions}
    own = (each for each in space.parameters if each.server == server and not each.internal)
    return {each.name for each in own if each.name in tuned}


def most_active(space: Space, waiting: set[str]) -> dict[str, Scalar]:
    """Draw a point at which most of these parameters have a say. AssertionError where none ever has."""
    chance = Random(space.name)  # noqa: S311 - the same points each time
    drawn = [
        {each.name: coordinate(each, "random", 0, chance) for each in space.dimensions} for _ in range(DRAWN)
    ]
    base = max(
        (point for point in drawn if not space.violations(space.decode(point))),
        key=lambda point: len(waiting & space.decode(point).keys()),
    )
    assert waiting & space.decode(base).keys(), f"never active: {waiting}"
    return base


def at_level(space: Space, base: Mapping[str, Scalar], level: str, moved: set[str]) -> dict[str, Scalar]:
    """Return the base with some parameters at a level, as far towards it as the machine's memory allows."""
    chance = Random(f"{space.name} {level}")  # noqa: S311 - the same values each time
    default = space.encode(space.default())
    wanted = {
        each.name: coordinate(each, level, default[each.name], chance)
        for each in space.dimensions
        if each.parameter in moved
    }
    for share in SHARES:
        part = {
            each.name: part_of_way(each, default[each.name], wanted[each.name], share)
            for each in space.dimensions
            if each.name in wanted
        }
        point = {**base, **part}
        if not space.violations(space.decode(point)):
            return point
    return dict(base)


def coordinate(dimension: Dimension, level: str, default: Scalar, chance: Random) -> Scalar:
    if level == "default":
        return default
    is_random = level.startswith("random")
    if dimension.choices:
        is_choice = dimension.name == dimension.parameter
        ends = {"lowest": 0, "highest": -1 if is_choice else 0}  # a number, where there are special values
        return chance.choice(dimension.choices) if is_random else dimension.choices[ends[level]]
    if not is_random:
        return dimension.low if level == "lowest" else dimension.high
    share = chance.random()
    if dimension.log:
        value = dimension.low * math.exp(share * math.log(dimension.high / dimension.low))
    else:
        value = dimension.low + share * (dimension.high - dimension.low)
    return round(value) if dimension.kind == "int" else value


def part_of_way(dimension: Dimension, default: Scalar, value: Scalar, share: float) -> Scalar:
    if dimension.choices or share == 1:
        return value
    middle = float(default) + share * (float(value) - float(default))
    return round(middle) if dimension.kind == "int" else middle


def note(read: Read, level: str, names: frozenset[str], asked: Config, found: Config) -> None:
    """Note what was found as it was asked. Raises AssertionError for what was found otherwise."""
    assert found == {name: asked[name] for name in found}, level
    for name in names & found.keys():
        read[name].add(level)


def read_log(config: Config, sandbox: Sandbox, site: Site) -> Config:
    """Tell by the request of a start how requests are logged: what else shows it?"""
    asked = {**dict.fromkeys(("access-log", "CustomLog", "log"), "off"), **config}
    is_wanted = {asked["access-log"], asked["CustomLog"], asked["log"]} != {"off"}
    is_awaited = is_wanted and not config.get("option.dontlog-normal") and not config.get("BufferedLogs")
    deadline_s = time.monotonic() + LOG_S
    while not (lines := (sandbox.read(site.access_log).content or b"").splitlines()) and is_awaited:
        if time.monotonic() > deadline_s:
            break
        time.sleep(0.01)  # it is written behind the answer
    form = "combined" if lines and lines[0].count(b'"') > 2 else "common"  # with referrer and user agent
    word = "on" if lines else "off"
    found: dict[str, Scalar] = {"access-log": word, "CustomLog": form if lines else "off"}
    if lines or asked["log"] == "off":
        found["log"] = word
    if asked["log"] == "on":
        found["option.dontlog-normal"] = not lines
    return {name: value for name, value in found.items() if name in config}


def sites(sandbox: Sandbox, facts: Facts) -> Iterator[tuple[Site, str]]:
    """Yield private sites of every kind that a server can have, with the protocol of who stands behind.

    The page is a file of the site's own, or what the server behind has: the same.
    """
    plain = open_site(sandbox, "site", facts)
    yield plain, plain.backend.protocol if plain.backend else ""
    if facts.offers.get(TLS) == "":
        protocol = HTTP1 if facts.offers[H2] else H2
        yield replace(plain, protocol=protocol, certificate=make_certificate(sandbox)), ""
    if facts.needs_backend or not facts.passes_to:
        return
    behind = Upstream(port=plain.port + 1)
    served = ("--bind", "127.0.0.1", "--directory", str(plain.document_root))
    sandbox.start((sys.executable, "-m", "http.server", str(behind.port), *served))
    await_listener(sandbox, behind, timeout_s=ANSWER_S, check_alive=lambda: None)
    for protocol in sorted(facts.passes_to):
        yield replace(plain, backend=replace(behind, protocol=protocol)), protocol


def run_privately(name: str, server: PrivateServer, sandbox: Sandbox, read: Read) -> list[Space]:
    """Run a private instance at each level, of each kind of site; return the space of each kind."""
    facts = server.detect(sandbox)
    spaces: list[Space] = []
    for kind, (one, backend) in enumerate(sites(sandbox, facts)):
        space = load(name, facts, is_installed=False, backend=backend)
        own = written_by(space, server.name)
        spaces.append(space)
        # First all of them, later those that nothing has shown so far.
        moved = lacking(name, own, read) if kind else own
        for number, (level, config, names) in enumerate(configurations(space, server.name, moved)):
            site = replace(for_mpm(one, config), directory=one.directory / f"{kind}-{number}")
            for found in run_once(server, config, sandbox, site, facts):
                note(read, level, names, config, found)
    return spaces


def run_once(
    server: PrivateServer, config: Config, sandbox: Sandbox, site: Site, facts: Facts
) -> tuple[Config, ...]:
    """Run a private instance; return what it shows, what its log shows, and what its file says."""
    put_in_place(server, config, sandbox, site, facts)
    process = start(server, config, sandbox, site, facts)
    shown = server.effective(sandbox, config, site, facts, process)
    logged = read_log(config, sandbox, site)
    if process is not None:
        process.stop(timeout_s=10)
    if server.name != "haproxy":
        return shown, logged
    (path,) = server.render(config, site, facts)
    said = read_file((sandbox.read(path).content or b"").decode())
    return shown, logged, {each: said[each] for each in config}


def for_mpm(site: Site, config: Config) -> Site:
    """Return the site in what is spoken under the MPM of a configuration: prefork serves no HTTP/2."""
    return replace(site, protocol=HTTP1) if config.get("MPM") == "prefork" else site


def rewrite_installed(name: str, server: InstalledServer, machine: Host, read: Read) -> list[Space]:
    """Rewrite the installed files at each level, and find the values again in what the program accepts.

    Return its space.
    """
    installation = server.find(machine)
    space = load(name, installation.facts, is_installed=True)
    complained = check(server, installation, machine)
    parameters = written_by(space, server.name)
    for level, config, names in configurations(space, server.name, parameters):
        written = server.rewrite(config, installation)
        before = {path: machine.read(path).content for path in written}
        overwrite(machine, written)
        assert check(server, installation, machine) <= complained
        after = server.find(machine).facts.current
        note(read, level, names, config, {each: after[each] for each in config})
        overwrite(machine, before)
    return [space]


def set_kernel(name: str, server: InstalledServer, kernel: KernelInMemory, read: Read) -> list[Space]:
    """Set what a kernel has at each level, and read it back; return its space."""
    machine = cast("Host", kernel)
    installation = server.find(machine)
    space = load(name, installation.facts, is_installed=True, kernel=kernel)
    parameters = written_by(space, server.name)
    for level, config, names in configurations(space, server.name, parameters):
        written = server.rewrite(config, installation)
        before = {path: machine.read(path) for path in written}
        for path, content in written.items():
            machine.write(path, FileState(content=content))
        note(read, level, names, config, server.in_force(machine, machine, config, installation, 0))
        for path, state in before.items():
            machine.write(path, state)
    return [space]


def lacking(name: str, parameters: set[str], read: Read) -> set[str]:
    """Return the parameters that were not found at every level, and that no other space shows."""
    return {each for each in parameters - shown_elsewhere(name) if read[each] < set(LEVELS)}


def untried(name: str, parameters: set[str], spaces: list[Space]) -> set[str]:
    """Return what a space names and nobody was asked for, but for what this machine's versions lack."""
    reasons = [pair for space in spaces for pair in space.left_out.items()]
    absent = {each for each, reason in reasons if NOT_ON_THIS_MACHINE.match(reason)}
    return parameters_of(name) - parameters - absent - shown_elsewhere(name)


def parameters_of(name: str) -> set[str]:
    """Return the parameters of a space file that are written as they are."""
    rows = describe_space(name)
    return {row["name"] for row in rows if row["kind"] != "derived" and not row["internal"]}


def shown_elsewhere(name: str) -> set[str]:
    """Return the parameters of the spaces whose settings this one has, written by the same code."""
    return {each for other in WRITTEN_ALIKE.get(name, ()) for each in parameters_of(other)}


def copy_of(sandbox: Sandbox, server: str) -> Host:
    """Return a copy of this machine on which the server is installed as it is tuned."""
    _, _, mpm = server.partition("apache-")
    return switch_mpm(sandbox, mpm) if mpm else cast("Host", CopiedMachine(sandbox))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        yield opened


@pytest.mark.parametrize("name", leave_to_more(SPACES, "nginx", "sysctl-net"))
def test_every_parameter_is_written_accepted_and_what_was_asked(name: str, sandbox: Sandbox):
    server = make_server(SPACES[name])
    read: Read = defaultdict(set)
    spaces: list[Space] = []

    if isinstance(server, InstalledServer):
        if server.name in {"sysctl", "sysfs"}:
            spaces += set_kernel(name, server, KernelInMemory(), read)
        else:
            spaces += rewrite_installed(name, server, copy_of(sandbox, server.name), read)
    if isinstance(server, PrivateServer):
        spaces += run_privately(name, server, sandbox, read)

    parameters = {each for space in spaces for each in written_by(space, server.name)}
    assert {each: read[each] for each in lacking(name, parameters, read)} == {}
    assert untried(name, parameters, spaces) == WITHOUT_THREADS.get(name, set())


@pytest.mark.more
def test_haproxy_refuses_its_file_with_any_setting_misspelt(sandbox: Sandbox):
    server = make_private_server("haproxy")
    facts = server.detect(sandbox)
    site = open_site(sandbox, "site", facts)
    space = load("haproxy", facts, is_installed=False)
    parameters = written_by(space, server.name)
    file = sandbox.directory / "misspelt.cfg"
    refused: set[str] = set()

    for _, config, _ in configurations(space, server.name, parameters):
        (content,) = server.render(config, site, facts).values()
        for name, text in misspell(content.decode()):
            sandbox.write(file, FileState(content=text.encode()))
            checked = sandbox.run((str(facts.program), "-c", "-f", str(file)), timeout_s=ANSWER_S)
            assert checked.returncode != 0, name
            refused.add(name)

    assert parameters <= refused
