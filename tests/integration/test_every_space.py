"""Every parameter of every space is written, accepted by the program's own check, and then is what was asked.

Each is tried at its default, lowest and highest value and at two random ones; all parameters of a space at
once, for the bounds of one are built from what was chosen for others. What a running instance shows is read
there, the rest from the files of an installed server that the program itself has accepted.
"""

import math
import os
import resource
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import cast

import pytest

from tests.installed import switch_mpm
from tests.integration.kernel_in_memory import KernelInMemory
from tuner.adapters.hosts.local import LocalHost
from tuner.plugins import make_server
from tuner.ports import Config, Facts, FileState, Host, InstalledServer, PrivateServer, Sandbox, Scalar, Site
from tuner.space import Dimension, Space, SpaceFacts, available_spaces, describe_space, load_space
from tuner.testing.machines import (
    CopiedMachine,
    check,
    open_site,
    overwrite,
    put_in_place,
    start,
)

LEVELS = ("default", "lowest", "highest", "random", "random again")
ALL_RISKS: Mapping[str, object] = {"allow": ["semantic", "risky"]}
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the way from the default to a level; the first that the machine's memory allows is taken."""
DRAWN = 300
"""Points among which one is looked for at which a parameter has a say."""
SPACES = {name: describe_space(name)[0]["server"] for name in available_spaces()}
WRITTEN_ALIKE = {"apache-mpm": ("apache-event", "apache-prefork", "apache-worker")}
"""Space without an installed server → those with one whose settings it has, written by the same code."""
Read = dict[str, set[str]]
"""Parameter → the levels at which it was found to be what was asked."""


def load(name: str, facts: Facts, *, is_installed: bool, loopback: bool = True) -> Space:
    names: dict[str, Scalar] = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 2048,
        "connections": 100,
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "somaxconn": 4096,
    }
    known = SpaceFacts(
        names=names, versions={SPACES[name]: facts.version}, current=facts.current, withheld=facts.withheld,
        exists=os.path.exists, sandbox=not is_installed, installed=is_installed, loopback=loopback,
    )  # fmt: skip
    # A log that is kept back shows nothing; installed servers have it kept back at some levels.
    held = {"set": {"BufferedLogs": False}} if SPACES[name].startswith("apache") and not is_installed else {}
    return load_space([name, ALL_RISKS, held], facts=known, base=Path())


def configurations(space: Space, server: str) -> Iterator[tuple[str, Config, frozenset[str]]]:
    """Yield what the server is asked for at each level, and which parameters are at that level.

    First all of them; then again those that some level leaves without a say, around values that give it them.
    """
    bases = [space.encode(space.default())]
    waiting = written_by(space)
    while waiting:
        base = bases.pop() if bases else most_active(space, waiting)
        tried = []
        for level in LEVELS:
            point = at_level(space, base, level, waiting)
            config = space.for_server(space.decode(point), server)
            tried.append(waiting & config.keys())
            yield level, config, frozenset(tried[-1])
        waiting -= frozenset.intersection(*map(frozenset, tried))


def written_by(space: Space) -> set[str]:
    """Return the parameters that are tuned here and written as they are, not only into others."""
    tuned = {each.parameter for each in space.dimensions}
    return {each.name for each in space.parameters if each.name in tuned and not each.internal}


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
    lines = (sandbox.read(site.access_log).content or b"").splitlines()
    form = "combined" if lines and lines[0].count(b'"') > 2 else "common"  # with referrer and user agent
    found = {"access-log": "on" if lines else "off", "CustomLog": form if lines else "off"}
    return {name: value for name, value in found.items() if name in config}


def run_privately(name: str, server: PrivateServer, sandbox: Sandbox, read: Read) -> set[str]:
    """Run a private instance at each level; return the parameters that it has."""
    facts = server.detect(sandbox)
    space = load(name, facts, is_installed=False)
    for number, (level, config, names) in enumerate(configurations(space, server.name)):
        site = open_site(sandbox, f"level-{number}", facts)
        put_in_place(server, config, sandbox, site, facts)
        process = start(server, config, sandbox, site, facts)
        found = dict(server.effective(sandbox, config, site, facts, process)) | read_log(
            config, sandbox, site
        )
        note(read, level, names, config, found)
        if process is not None:
            process.stop(timeout_s=10)
    return written_by(space)


def rewrite_installed(name: str, server: InstalledServer, machine: Host, read: Read) -> set[str]:
    """Rewrite the installed files at each level, and find the values again in what the program accepts."""
    installation = server.find(machine)
    space = load(name, installation.facts, is_installed=True)
    complained = check(server, installation, machine)
    for level, config, names in configurations(space, server.name):
        written = server.rewrite(config, installation)
        before = {path: machine.read(path).content for path in written}
        overwrite(machine, written)
        assert check(server, installation, machine) <= complained
        after = server.find(machine).facts.current
        note(read, level, names, config, {each: after[each] for each in config})
        overwrite(machine, before)
    return written_by(space)


def set_kernel(name: str, server: InstalledServer, machine: Host, read: Read, *, loopback: bool) -> set[str]:
    """Set what a kernel has at each level, and read it back."""
    installation = server.find(machine)
    space = load(name, installation.facts, is_installed=True, loopback=loopback)
    for level, config, names in configurations(space, server.name):
        written = server.rewrite(config, installation)
        before = {path: machine.read(path) for path in written}
        for path, content in written.items():
            machine.write(path, FileState(content=content))
        note(read, level, names, config, server.in_force(machine, machine, config, installation, 0))
        for path, state in before.items():
            machine.write(path, state)
    return written_by(space)


def copy_of(sandbox: Sandbox, server: str) -> Host:
    """Return a copy of this machine on which the server is installed as it is tuned."""
    _, _, mpm = server.partition("apache-")
    return switch_mpm(sandbox, mpm) if mpm else cast("Host", CopiedMachine(sandbox))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        yield opened


@pytest.mark.parametrize("name", SPACES)
def test_every_parameter_is_written_accepted_and_what_was_asked(name: str, sandbox: Sandbox):
    server = make_server(SPACES[name])
    read: Read = defaultdict(set)
    parameters: set[str] = set()

    if isinstance(server, PrivateServer):
        parameters |= run_privately(name, server, sandbox, read)
    if isinstance(server, InstalledServer):
        if server.name in {"sysctl", "sysfs"}:
            parameters |= set_kernel(name, server, KernelInMemory(), read, loopback=False)
        else:
            parameters |= rewrite_installed(name, server, copy_of(sandbox, server.name), read)

    elsewhere = {row["name"] for other in WRITTEN_ALIKE.get(name, ()) for row in describe_space(other)}
    assert {each: read[each] for each in parameters - elsewhere if read[each] < set(LEVELS)} == {}
