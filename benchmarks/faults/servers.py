"""The servers that faults happen to: how each is installed on a test host, and the study that changes it."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.testbed.host import TestHost

SYSCTL = ("net.core.somaxconn", "net.ipv4.tcp_slow_start_after_idle")
OWN = {"user.note": b"of somebody", "system.posix_acl_access": bytes.fromhex(
    "02000000" "01000600ffffffff" "0200040021000000" "04000400ffffffff" "10000400ffffffff" "20000400ffffffff"
)}  # fmt: skip
"""Attributes that files have before a study: a note, and an ACL that lets one more user read."""
LOOP = 'for i in 1 2 3; do curl -sf -o /dev/null "$1" && echo ok; sleep 0.1; done | grep -c ok'
STUDY = """\
study: fault
servers: [{servers}]
space:
  - {spaces}
  - {{only: [{only}]}}
target: {{host: "{url}", mode: managed, watchdog_s: {watchdog_s}}}
# Light load, so that many hosts fit on one machine: what is at stake is what is put back, not how fast it is.
load:
  generator: command
  path: "http://{address}{page}"
  connections: 1
  command: [sh, -c, {loop}, load, "{{url}}", "{{duration_s}}"]
  result: {{regex: '(?P<correct>\\d+)'}}
budget: {{preset: quick}}
"""
PHP_SITE = """\
server {
    listen 80 default_server;
    root /var/www/html;
    location ~ \\.php$ { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php8.2-fpm.sock; }
}
"""
PHP_PAGE = "<?php echo 'page';\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """One server as Debian installs it, and what a study of it changes."""

    spaces: Mapping[str, tuple[str, ...]]
    """Adapters and spaces by name, with the parameters that are tuned."""
    page: str
    services: tuple[str, ...]
    """Of systemd, the tuned one first; without systemd they are init scripts."""
    program: PurePosixPath
    """Of the first service."""
    packages: tuple[str, ...]
    """Whose maintainer scripts run when it is upgraded, in their order."""
    configuration: PurePosixPath
    """A file of the server that the study leaves alone."""
    needed: PurePosixPath | None
    """Another one, without which it does not start."""
    rewritten: tuple[str, ...] = ()
    """Files that the study rewrites, and directories in which it puts one."""
    prepare: Callable[[TestHost], None] = lambda _host: None
    """What else it needs before it is started."""


def _give_attributes(path: Path) -> None:
    for name, value in OWN.items():
        os.setxattr(path, name, value)


def _write_php_site(host: TestHost) -> None:
    (host.root / "etc/nginx/sites-available/default").write_text(PHP_SITE)
    (host.root / "var/www/html/page.php").write_text(PHP_PAGE)


SERVERS: Mapping[str, ServerOnHost] = {
    "nginx": ServerOnHost(
        spaces={
            "nginx": (
                "worker_processes", "worker_connections", "sendfile", "tcp_nopush", "keepalive_timeout",
                "listen_backlog",
            )
        },
        page="/",
        services=("nginx",),
        program=PurePosixPath("/usr/sbin/nginx"),
        packages=("nginx-common", "nginx"),
        rewritten=("etc/nginx/nginx.conf", "etc/nginx/sites-available/default"),
        configuration=PurePosixPath("/etc/nginx/mime.types"),
        needed=PurePosixPath("/etc/nginx/mime.types"),
    ),
    "apache": ServerOnHost(
        spaces={"apache-event": ("ThreadsPerChild", "KeepAliveTimeout", "ListenBacklog", "EnableSendfile")},
        page="/",
        services=("apache2",),
        program=PurePosixPath("/usr/sbin/apache2"),
        packages=("apache2",),
        rewritten=("etc/apache2/conf-enabled",),
        configuration=PurePosixPath("/etc/apache2/conf-available/charset.conf"),
        needed=PurePosixPath("/etc/apache2/ports.conf"),
    ),
    "h2o": ServerOnHost(
        spaces={"h2o": ("num-threads", "max-connections", "tcp-fastopen", "handshake-timeout")},
        page="/html/",
        services=("h2o",),
        program=PurePosixPath("/usr/bin/h2o"),
        packages=("h2o",),
        rewritten=("etc/h2o/h2o.conf",),
        configuration=PurePosixPath("/etc/default/h2o"),
        needed=None,
    ),
    "php-fpm": ServerOnHost(
        spaces={"php-fpm": ("pm", "pm.max_children", "pm.max_requests", "pool.listen.backlog")},
        page="/page.php",
        services=("php8.2-fpm", "nginx"),
        program=PurePosixPath("/usr/sbin/php-fpm8.2"),
        packages=("php8.2-fpm",),
        rewritten=("etc/php/8.2/fpm/pool.d",),
        configuration=PurePosixPath("/etc/php/8.2/fpm/php.ini"),
        needed=PurePosixPath("/etc/php/8.2/fpm/php-fpm.conf"),
        prepare=_write_php_site,
    ),
    "sysctl": ServerOnHost(
        spaces={},
        page="/",
        services=("nginx",),
        program=PurePosixPath("/usr/sbin/nginx"),
        packages=("nginx-common", "nginx"),
        configuration=PurePosixPath("/etc/sysctl.conf"),
        needed=None,
    ),
}  # fmt: skip


def install(host: TestHost, server: ServerOnHost) -> None:
    """Start the packaged server with its own site; the page answers when this returns."""
    server.prepare(host)
    for path in server.rewritten:
        _give_attributes(host.root / path)
    # Container images forbid their packages to start anything; a host does not.
    host.run(["rm", "-f", "/usr/sbin/policy-rc.d"])
    for service in server.services:
        if host.has_systemd:
            host.run(["systemctl", "enable", "--quiet", service])
        if service == "apache2" and not host.has_systemd:
            host.install_apache()
        else:
            host.start_service(service)
    host.wait_until_it_answers(80)


def write_study(host: TestHost, name: str, watchdog_s: float) -> str:
    """Return the study file that changes a server of a host, and two settings of its kernel."""
    server = SERVERS[name]
    only = [parameter for parameters in server.spaces.values() for parameter in parameters] + [*SYSCTL]
    return STUDY.format(
        servers=", ".join([*([name] if server.spaces else []), "sysctl"]),
        spaces="\n  - ".join([*server.spaces, "sysctl-net"]),
        only=", ".join(only),
        url=host.ssh_url,
        address=host.address,
        page=server.page,
        watchdog_s=watchdog_s,
        loop=json.dumps(LOOP),
    )
