"""The builds of php-fpm: what each packager calls it and its service, and as whom its pools serve.

`{major}` and `{minor}` stand for PHP's version. Sources: php8.2-fpm 8.2 (Debian), php.spec (Fedora, Remi),
PKGBUILD (Arch), community/php84 of aports (Alpine), docker-library/php, configure of PHP.
"""

import re
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.kit.builds import match_builds
from tuner.ports import Build

INI = "ini"
"""The folder of php.ini, as `-i` says it: it tells builds apart."""
BUILDS = (
    Build(
        name="Debian, Ubuntu",
        programs=("/usr/sbin/php-fpm{major}.{minor}",),
        says={INI: "/etc/php/{major}.{minor}/fpm"},
        users=("www-data",),
        services=("php{major}.{minor}-fpm",),
        installer="apt-get",
        package="php-fpm",
    ),
    Build(
        name="RHEL, Fedora",
        programs=("/usr/sbin/php-fpm",),
        says={INI: "/etc"},
        users=("apache",),
        services=("php-fpm",),
        installer="dnf",
        package="php-fpm",
    ),
    Build(
        name="Arch",
        programs=("/usr/bin/php-fpm",),
        says={INI: "/etc/php"},
        users=("http",),
        services=("php-fpm",),
        installer="pacman",
        package="php-fpm",
    ),
    Build(
        name="Alpine",
        programs=("/usr/sbin/php-fpm{major}{minor}",),
        says={INI: "/etc/php{major}{minor}"},
        users=("nobody",),
        services=("php-fpm{major}{minor}",),
        installer="apk",
        package="php84-fpm",
    ),
    Build(
        name="Remi",
        programs=(),
        says={INI: "/etc/opt/remi/php{major}{minor}"},
        users=("apache",),
        services=("php{major}{minor}-php-fpm",),
    ),
    Build(
        name="openSUSE",
        programs=("/usr/sbin/php-fpm",),
        says={INI: "/etc/php{major}/fpm"},
        users=("wwwrun",),
        services=("php-fpm",),
        installer="zypper",
        package="php8-fpm",
    ),
    Build(
        name="container image",
        programs=("/usr/local/sbin/php-fpm",),
        says={INI: "/usr/local/etc/php"},
        users=("www-data",),
        services=("php-fpm",),
    ),
    Build(
        name="own build",
        programs=("/usr/local/sbin/php-fpm", "/usr/local/bin/php-fpm"),
        says={INI: "/usr/local/lib"},
        services=("php-fpm",),
    ),
)
DIRECTORIES = tuple(
    dict.fromkeys(str(PurePosixPath(path).parent) for each in BUILDS for path in each.programs)
)
"""Where builds have their program."""
_INI = re.compile(r"^Configuration File \(php\.ini\) Path => (/.*)$", re.MULTILINE)
_VERSION = re.compile(r"(\d)\.?(\d+)$")


def find_build(program: str, printed: str, version: tuple[int, ...]) -> Build:
    """Return which build a program is, with its names for this version.

    Args:
        program: its path.
        printed: what it printed for `-i`.
        version: what it says that it is; a version in its name counts more.
    """
    named = _VERSION.search(program)
    major, minor = named.groups() if named else map(str, (*version, 0, 0)[:2])

    def generalize(path: str) -> str:
        path = path.replace(f"{major}.{minor}", "{major}.{minor}").replace(
            f"{major}{minor}", "{major}{minor}"
        )
        return path if "{" in path else re.sub(rf"(?<=php){major}(?=/)", "{major}", path)

    said = _INI.search(printed)
    alike = match_builds(BUILDS, {INI: generalize(said[1])}) if said else ()
    there = (each for each in BUILDS if generalize(program) in each.programs)
    found = next(iter(alike), None) or next(there, BUILDS[-1])
    names = tuple(name.format(major=major, minor=minor) for name in found.services)
    return replace(found, services=(*names, PurePosixPath(program).name))
