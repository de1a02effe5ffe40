"""Find out which build of a server a host has, with the table of builds that stands beside its adapter."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TypeVar

from tuner.errors import TargetError
from tuner.kit.packages import DEBIAN, Package
from tuner.ports import Build, Command, Host

AnyBuild = TypeVar("AnyBuild", bound=Build)
NOBODY = "nobody"


def name_programs(builds: Iterable[Build]) -> tuple[str, ...]:
    """Return what `find_program` looks for: names as the PATH has them, then the path of each build."""
    paths = [path for each in builds for path in each.programs]
    return tuple(dict.fromkeys((*(PurePosixPath(path).name for path in paths), *paths)))


def name_package(builds: Iterable[Build]) -> Package:
    """Return the package of a server, with its name for each package manager."""
    names = {each.installer: each.package for each in builds if each.installer}
    return Package(names.pop(DEBIAN), **names)


def match_builds(builds: Iterable[AnyBuild], said: Mapping[str, str]) -> tuple[AnyBuild, ...]:
    """Return the builds that would have said this of how they were built."""
    return tuple(
        each for each in builds if all(said.get(key, "") == value for key, value in each.says.items())
    )


def find_account(host: Host, users: Sequence[str]) -> tuple[str, str]:
    """Return the first of these users that a host has, or else nobody, and the user's group.

    Where the host has none of them, or cannot be asked, it is the first, with a group of the same name.
    """
    named = (*users, NOBODY)
    with suppress(TargetError):
        done = host.run_all([Command(argv=("id", "-gn", user), may_fail=True) for user in named])
        for user, each in zip(named, done, strict=True):
            if each.returncode == 0:
                return user, each.stdout.decode(errors="replace").strip()
    return named[0], named[0]
