"""The builds of h2o: where packagers install the program. Others of them have no package of it."""

from pathlib import PurePosixPath

from tuner.ports import Build

MAIN = PurePosixPath("/etc/h2o/h2o.conf")
"""The configuration of each build that has a package."""
BUILDS = (
    Build(name="Debian, Ubuntu", programs=("/usr/bin/h2o",), installer="apt-get", package="h2o"),
    Build(name="Alpine", programs=("/usr/bin/h2o",), installer="apk", package="h2o"),
    Build(name="own build", programs=("/usr/local/bin/h2o",)),
)
