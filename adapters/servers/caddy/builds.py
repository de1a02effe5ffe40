"""The builds of Caddy: where packagers install the program."""

from tuner.ports import Build

BUILDS = (
    Build(name="Debian, Ubuntu", programs=("/usr/bin/caddy",), installer="apt-get", package="caddy"),
    Build(name="Fedora", programs=("/usr/bin/caddy",), installer="dnf", package="caddy"),
    Build(name="Arch", programs=("/usr/bin/caddy",), installer="pacman", package="caddy"),
    Build(name="Alpine", programs=("/usr/sbin/caddy",), installer="apk", package="caddy"),
    Build(name="openSUSE", programs=("/usr/bin/caddy",), installer="zypper", package="caddy"),
    Build(name="container image, own build", programs=("/usr/bin/caddy", "/usr/local/bin/caddy")),
)
