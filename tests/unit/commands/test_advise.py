"""Advice reads the configuration that a process runs with, or says that it does not."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.adapters.servers.apache import layouts as apache
from tests.unit.adapters.servers.h2o import layouts as h2o
from tests.unit.adapters.servers.nginx import layouts as nginx
from tests.unit.adapters.servers.php_fpm import layouts as php_fpm
from tuner.adapters.hosts.local import LocalHost
from tuner.advice.rules import FOLDER, read_file
from tuner.commands.advise import find_installation, list_rules
from tuner.ports import FileState, Installation
from tuner.testing.fakes import MemoryHost, completed

OTHER = PurePosixPath("/srv/own.conf")
HAPROXY = {
    PurePosixPath("/etc/haproxy/haproxy.cfg"): FileState(content=b"global\n maxconn 1\n"),
    OTHER: FileState(content=b"global\n maxconn 2\n"),
}
HOSTS: Mapping[str, Callable[[], MemoryHost]] = {
    "apache": lambda: apache.host_of(apache.DEBIAN),
    "h2o": lambda: h2o.make_host(h2o.DEBIAN),
    "haproxy": lambda: MemoryHost(files=dict(HAPROXY)),
    "nginx": lambda: nginx.make_host(nginx.LAYOUTS["debian-12"]),
    "php-fpm": lambda: php_fpm.host_of(php_fpm.BOOKWORM),
}


def find(host: MemoryHost, server: str, command: str) -> tuple[Installation, list[str]]:
    """Return what is found of a server whose process has this command line, and what is not read."""
    host.commands.setdefault("stat", lambda _host, argv, _stdin: completed(argv))
    unread: list[str] = []
    _, found = find_installation(host, read_file(FOLDER / f"{server}.yaml")[1], unread, command)
    return found, unread


@pytest.mark.parametrize(
    ("server", "command"),
    [
        ("apache", "/usr/sbin/apache2 -k start"),
        ("apache", "/usr/sbin/apache2 -d /etc/apache2 -D FOREGROUND"),
        ("apache", "/usr/sbin/apache2 -f /etc/apache2/apache2.conf"),
        ("h2o", "perl -x start_server -- h2o -c /etc/h2o/h2o.conf"),
        ("php-fpm", "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)"),
    ],
)
def test_a_process_with_the_configuration_of_the_service_is_known(server: str, command: str):
    found, unread = find(HOSTS[server](), server, command)

    assert found.facts.current
    assert unread == []


@pytest.mark.parametrize(
    ("server", "command"),
    [
        ("apache", f"/usr/sbin/apache2 -f {OTHER} -k start"),
        ("h2o", f"h2o -m master -c {OTHER}"),
        ("php-fpm", f"php-fpm: master process ({OTHER})"),
    ],
)
def test_settings_of_another_configuration_than_that_of_the_process_are_no_facts(server: str, command: str):
    host = HOSTS[server]()
    host.files[OTHER] = FileState(content=b"# own\n")

    found, unread = find(host, server, command)

    assert (found.service, dict(found.facts.current), list(found.files)) == (None, {}, [OTHER])
    said = f"it runs with {OTHER}, which is not that of the installed service"
    assert unread == [f"{server}: its configuration: {said}"]


def test_a_server_without_an_adapter_is_read_from_the_files_of_its_process():
    assert list(find(HOSTS["haproxy"](), "haproxy", "haproxy -f /srv/own.conf")[0].files) == [OTHER]
    assert find(HOSTS["haproxy"](), "haproxy", "haproxy -f own.conf")[1] == [
        "haproxy: its configuration: own.conf cannot be read. Run as root, or start it with an absolute path"
    ]


def make_nginx(configuration: str) -> MemoryHost:
    """Make a host with another configuration of nginx, without a running service."""
    host = HOSTS["nginx"]()
    host.files[OTHER] = FileState(content=configuration.encode())
    listed = "".join(f"{path}\0" for path in host.files).encode()
    host.commands["find"] = lambda _host, argv, _stdin: completed(argv, stdout=listed)
    return host


def test_nginx_is_not_asked_to_test_its_configuration_which_would_create_files():
    host = make_nginx("")

    found, unread = find(host, "nginx", "nginx: master process /usr/sbin/nginx -g daemon on;")

    assert found.facts.current["worker_connections"] == 768
    assert found.service is not None
    assert unread == []
    assert [argv for argv in host.ran if argv[0] == "nginx" and argv[1:] != ("-V",)] == []


def test_nginx_of_an_ordinary_user_is_read_from_the_file_that_it_was_told():
    host = make_nginx("events { worker_connections 20; }\nhttp { server { listen 8080; } }\n")

    found, unread = find(host, "nginx", f"nginx: master process nginx -c {OTHER}")

    assert (found.facts.current["worker_connections"], found.port) == (20, 8080)
    assert found.service is None
    assert unread == []


@pytest.mark.parametrize("server", ["haproxy", "nginx"])
def test_a_pipe_that_a_process_names_as_its_configuration_is_not_waited_for(server: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    commands = {
        "haproxy": f"haproxy -f {tmp_path}/pipe",
        "nginx": f"nginx: master process nginx -c {tmp_path}/pipe",
    }
    unread: list[str] = []

    _, found = find_installation(
        LocalHost(), read_file(FOLDER / f"{server}.yaml")[1], unread, commands[server]
    )

    assert not found.files
    assert "pipe: the path is no file" in unread[0]


def test_the_kernel_can_be_named_alone():
    assert [file.advice for file in list_rules(["kernel"])] == ["kernel"]
    assert [file.advice for file in list_rules(["kernel", "h2o"])] == ["h2o", "kernel", "server"]
