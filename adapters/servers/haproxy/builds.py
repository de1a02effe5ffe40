"""The builds of HAProxy: where packagers install the program."""

from tuner.ports import Build

BUILDS = (
    Build(name="Debian, Ubuntu", programs=("/usr/sbin/haproxy",), installer="apt-get", package="haproxy"),
    Build(name="RHEL, Fedora", programs=("/usr/sbin/haproxy",), installer="dnf", package="haproxy"),
    Build(name="Arch", programs=("/usr/bin/haproxy",), installer="pacman", package="haproxy"),
    Build(name="Alpine", programs=("/usr/sbin/haproxy",), installer="apk", package="haproxy"),
    Build(name="openSUSE", programs=("/usr/sbin/haproxy",), installer="zypper", package="haproxy"),
    Build(name="container image, own build", programs=("/usr/local/sbin/haproxy",)),
)
