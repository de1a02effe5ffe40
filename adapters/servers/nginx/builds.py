"""The builds of nginx: what each packager says in `nginx -V`, and as whom it serves.

All other paths are in `nginx -V` itself. Sources: nginx 1.22.1-9 (Debian), nginx.spec (Fedora), PKGBUILD
(Arch), main/nginx of aports (Alpine), pkg-oss (nginx.org), auto/options of nginx.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.kit.builds import match_builds
from tuner.ports import Build, Facts

_ETC = PurePosixPath("/etc/nginx")
DEBIAN = Build(
    name="Debian, Ubuntu",
    programs=("/usr/sbin/nginx",),
    says={"prefix": "/usr/share/nginx", "user": ""},
    directory=_ETC,
    # Its nginx.conf says so, as the program itself would be nobody.
    users=("www-data",),
    services=("nginx",),
    installer="apt-get",
    package="nginx",
)
BUILDS = (
    DEBIAN,
    Build(
        name="RHEL, Fedora",
        programs=("/usr/sbin/nginx",),
        says={"prefix": "/usr/share/nginx", "user": "nginx"},
        directory=_ETC,
        users=("nginx",),
        services=("nginx",),
        installer="dnf",
        package="nginx",
    ),
    Build(
        name="Arch",
        programs=("/usr/bin/nginx",),
        says={"prefix": "/etc/nginx", "user": "http"},
        directory=_ETC,
        users=("http",),
        services=("nginx",),
        installer="pacman",
        package="nginx",
    ),
    Build(
        name="Alpine",
        programs=("/usr/sbin/nginx",),
        says={"prefix": "/var/lib/nginx", "user": "nginx"},
        directory=_ETC,
        users=("nginx",),
        services=("nginx",),
        installer="apk",
        package="nginx",
    ),
    # Its packages, and the official container image with them.
    Build(
        name="nginx.org, container image",
        programs=("/usr/sbin/nginx",),
        says={"prefix": "/etc/nginx", "user": "nginx"},
        directory=_ETC,
        users=("nginx",),
        services=("nginx",),
    ),
    Build(
        name="OpenResty",
        programs=("/usr/local/openresty/nginx/sbin/nginx", "/usr/bin/openresty"),
        says={"prefix": "/usr/local/openresty/nginx"},
        directory=PurePosixPath("conf"),
        services=("openresty",),
    ),
    Build(
        name="openSUSE",
        programs=("/usr/sbin/nginx",),
        says={"prefix": "/usr/", "user": "nginx"},
        directory=_ETC,
        users=("nginx",),
        services=("nginx",),
        installer="zypper",
        package="nginx",
    ),
    Build(
        name="own build",
        programs=("/usr/local/nginx/sbin/nginx",),
        directory=PurePosixPath("conf"),
        services=("nginx",),
    ),
)
PREFIX = "/usr/local/nginx"
"""Where it is built for unless it says otherwise."""


def find_build(said: Mapping[str, str]) -> Build:
    """Return which build it is, with its paths, by the options with a value of `nginx -V`."""
    prefix = PurePosixPath(said.get("prefix", PREFIX))
    found = match_builds(BUILDS, said)[0]
    told = (said["user"],) if "user" in said else ()
    users = (*told, *found.users, *(user for each in BUILDS for user in each.users))
    directory = (prefix / said["conf-path"]).parent if "conf-path" in said else prefix / found.directory
    return replace(found, directory=directory, users=tuple(dict.fromkeys(users)))


def build_of(facts: Facts) -> Build:
    """Return the build that facts are of; Debian's where they say nothing of it."""
    return facts.build or DEBIAN
