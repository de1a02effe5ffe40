"""Memory and files: keys of a whole machine, some of which no original would bring back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.unit.space.samples import facts
from tuner.adapters.servers.sysctl import Sysctl
from tuner.errors import ConfigRejected
from tuner.ports import Command, Completed, Installation
from tuner.space import Space, load_space

OF_DEBIAN = {
    "vm/dirty_ratio": 20, "vm/dirty_bytes": 0,
    "vm/dirty_background_ratio": 10, "vm/dirty_background_bytes": 0,
    "vm/swappiness": 60, "vm/max_map_count": 65530, "fs/file-max": 2466177, "fs/nr_open": 1048576,
    "fs/epoll/max_user_watches": 5491511, "fs/pipe-user-pages-soft": 16384,
}  # fmt: skip


class Machine:
    """A machine whose /proc/sys holds these values and can be changed."""

    name = "machine"

    def __init__(self, values: Mapping[str, int]) -> None:
        paths = {f"/proc/sys/{key}": value for key, value in values.items()}
        self._printed = {
            "grep": "".join(f"{path}:{value}\n" for path, value in paths.items()),
            "find": "".join(f"{path}\n" for path in paths),
            "cat": "proc /proc proc rw 0 0\n",
            "uname": "6.18.44\n",
        }

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        return tuple(
            Completed(
                argv=each.argv,
                returncode=0,
                stdout=self._printed[each.argv[0]].encode(),
                stderr=b"",
                duration_s=0.0,
            )
            for each in commands
        )


def find(**changes: int) -> Installation:
    values = OF_DEBIAN | {name.replace("__", "/"): value for name, value in changes.items()}
    return Sysctl().find(Machine(values))  # type: ignore[arg-type] # no more is asked of it


def load(*names: str, connections: int = 100, **changes: int) -> Space:
    found = find(**changes).facts
    host = facts(
        memory_mib=24_105,
        connections=connections,
        current=found.current,
        withheld=found.withheld,
        sandbox=False,
        installed=True,
    )
    return load_space([*names, {"allow": ["semantic", "risky"]}], facts=host, base=Path("/"))


def test_of_two_keys_that_clear_each_other_the_one_that_is_clear_is_left_alone():
    found = find(vm__dirty_bytes=100_000_000, vm__dirty_ratio=0)

    assert found.facts.withheld.keys() == {"vm.dirty_ratio", "vm.dirty_background_bytes"}
    with pytest.raises(ConfigRejected, match=r"vm\.dirty_ratio: this host sets vm\.dirty_bytes instead"):
        Sysctl().rewrite({"vm.dirty_ratio": 20}, found)
    assert list(Sysctl().rewrite({"vm.dirty_bytes": 50_000_000}, found).values()) == [b"50000000\n"]


def test_what_is_left_alone_is_named_with_the_reason():
    space = load("sysctl-vm", vm__dirty_background_bytes=1_000_000, vm__dirty_background_ratio=0)

    assert "this host sets vm.dirty_background_bytes instead" in space.left_out["vm.dirty_background_ratio"]
    assert (
        space.left_out["vm.dirty_ratio"]
        == "this setting depends on vm.dirty_background_ratio, which is left out"
    )


def test_a_limit_that_is_none_is_not_tuned():
    space = load("sysctl-fs", connections=1_000_000, **{"fs__file-max": 2**63 - 1})

    assert "limits nothing" in space.left_out["fs.file-max"]
    assert {each.parameter for each in space.dimensions} == {"fs.nr_open", "fs.pipe-user-pages-soft"}


def test_limits_only_grow():
    space = load("sysctl-fs", "sysctl-vm", connections=10_000_000)
    names = {"fs.file-max", "fs.nr_open", "fs.epoll.max_user_watches", "vm.max_map_count"}
    lowest = {each.name: each.low for each in space.dimensions if each.parameter in names}

    config = space.decode(lowest)

    assert lowest.keys() == names
    assert {name: config[name] for name in names} == {name: space.default()[name] for name in names}


def test_a_share_that_the_kernel_would_halve_is_never_asked_for():
    space = load("sysctl-vm")
    background, ratio = (
        next(each for each in space.dimensions if each.name == name)
        for name in ("vm.dirty_background_ratio", "vm.dirty_ratio")
    )

    for first in (background.low, background.high):
        for second in (ratio.low, ratio.high):
            config = space.decode({background.name: first, ratio.name: second})
            assert config[background.name] < config[ratio.name]


def test_a_sandbox_leaves_every_key_alone_and_names_each():
    space = load_space(["sysctl-vm", "sysctl-fs"], facts=facts(current=find().facts.current), base=Path("/"))

    assert space.dimensions == ()
    for name in ("vm.swappiness", "fs.file-max"):
        assert space.left_out[name] == (
            "this setting is one value for the whole host, which a sandbox does not touch"
        )
