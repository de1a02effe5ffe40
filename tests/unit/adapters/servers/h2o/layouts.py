"""Installed configurations of h2o: Debian's, and one that was written by hand."""

from pathlib import PurePosixPath

from tuner.adapters.servers.h2o import H2o
from tuner.ports import FileState, Installation
from tuner.testing.fakes import MemoryHost, completed

MAIN = PurePosixPath("/etc/h2o/h2o.conf")
CPUS = PurePosixPath("/sys/devices/system/cpu/online")
DEBIAN = """\
server-name: "h2o (Debian)"
user: debian-h2o
access-log: "|rotatelogs -l /var/log/h2o/access.log.%Y-%m-%d 86400"
error-log: /var/log/h2o/error.log
pid-file: /run/h2o.pid

listen:
  port: 80

hosts:
  default:
    paths:
      /:
        file.dir: /var/www
      /server-status:
        status: ON
"""
BY_HAND = """\
# max-connections: 1
max-connections:   0512   # of all threads
"num-threads": '3'
file.etag: off
listen: [{port: 443, ssl: {key-file: a}}, 8080]
hosts:
  "a.example":
    http1-request-timeout: 3
    listen: {port: 81}
    paths: {}
"""


INCLUDING = """\
<<: !file /etc/h2o/common.yaml
listen: !file etc/h2o/tls.yaml
listen: 8081
num-threads: 3
listen: 8080
hosts:
  a.example: !file /etc/h2o/a.yaml
tcp-fastopen: !file /etc/h2o/count
"""
INCLUDED = {
    "/etc/h2o/common.yaml": "max-connections: 55\nmax-delegations: 3\n",
    "/etc/h2o/tls.yaml": "port: 443\nssl: {key-file: a}\n",
    "/etc/h2o/a.yaml": "paths: !file /etc/h2o/paths.yaml\n",
    "/etc/h2o/paths.yaml": "/: {file.dir: /srv}\n",
    "/etc/h2o/count": "7\n",
}


def make_host(text: str | bytes) -> MemoryHost:
    """Make a host on which h2o is installed with this configuration."""
    content = text if isinstance(text, bytes) else text.encode()
    included = {PurePosixPath(path): FileState(content=said.encode()) for path, said in INCLUDED.items()}
    return MemoryHost(
        files={MAIN: FileState(content=content), CPUS: FileState(content=b"0-1\n"), **included},
        commands={
            "h2o": lambda _host, argv, _stdin: completed(argv, stdout=b"h2o version 2.2.5\n"),
            "test": lambda _host, argv, _stdin: completed(argv, returncode=1),
        },
    )


def find(text: str | bytes) -> Installation:
    """Find the installation of one configuration."""
    return H2o().find(make_host(text))
