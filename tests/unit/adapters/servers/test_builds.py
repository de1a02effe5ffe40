"""Servers as packagers lay them out: what is found, and what a private instance of each is written with.

The outputs are extracts. Debian 12 prints those of Debian. The others are what a program prints that is
configured as in nginx.spec and httpd.spec (Fedora), PKGBUILD (Arch), aports (Alpine), pkg-oss (nginx.org) or
docker-library/httpd.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.service_managers import answer_test
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.caddy import Caddy
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.haproxy import Haproxy
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.kit.packages import Package
from tuner.kit.services import name_service
from tuner.ports import FASTCGI, TLS, Argv, Completed, FileState, Server, Site, Upstream
from tuner.testing.fakes import Command, MemoryHost, completed

SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"))
BEHIND = Site(
    directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"),
    backend=Upstream(protocol=FASTCGI, port=9000),
)  # fmt: skip


def host_with(
    program: str,
    printed: str,
    *,
    folders: Mapping[str, str],
    users: Mapping[str, str],
    files: Iterable[str] = (),
) -> MemoryHost:
    """Return a host with one program, folders with files in them, and users with their groups."""

    def ask(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stderr=printed.encode() if argv[1] == "-V" else b"  mod_so.c\n")

    def listing(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        found = folders.get(argv[-1])
        return completed(argv, returncode=2 if found is None else 0, stdout=(found or "").encode())

    def name_group(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        found = users.get(argv[-1])
        return completed(argv, returncode=1 if found is None else 0, stdout=(found or "").encode())

    commands: dict[str, Command] = {
        program: ask, "ls": listing, "id": name_group, "test": answer_test(is_systemd=False),
    }  # fmt: skip
    there = {PurePosixPath(path): FileState(content=b"") for path in files}
    return MemoryHost(files=there, commands=commands)


def nginx_prints(arguments: str) -> str:
    modules = "--with-http_ssl_module --with-http_v2_module --with-threads"
    return f"nginx version: nginx/1.26.3\nconfigure arguments: {arguments} {modules}\n"


ETC = "--conf-path=/etc/nginx/nginx.conf"
NGINX_PREFIX = "--prefix=/usr/share/nginx"
OF_NGINX = {
    "Debian, Ubuntu": (
        "/usr/sbin/nginx", f"{NGINX_PREFIX} {ETC}", {"www-data": "www-data"},
        "user www-data;", "/etc/nginx",
    ),
    "RHEL, Fedora": (
        "/usr/sbin/nginx", f"{NGINX_PREFIX} --sbin-path=/usr/sbin/nginx {ETC} --user=nginx --group=nginx",
        {"nginx": "nginx", "nobody": "nobody"}, "user nginx;", "/etc/nginx",
    ),
    "Arch": (
        "/usr/bin/nginx", f"--prefix=/etc/nginx {ETC} --sbin-path=/usr/bin/nginx --user=http --group=http",
        {"http": "http"}, "user http;", "/etc/nginx",
    ),
    "Alpine": (
        "/usr/sbin/nginx", f"--prefix=/var/lib/nginx --sbin-path=/usr/sbin/nginx {ETC} --user=nginx",
        {"nginx": "nginx"}, "user nginx;", "/etc/nginx",
    ),
    "nginx.org, container image": (
        "/usr/sbin/nginx", f"--prefix=/etc/nginx {ETC} --user=nginx --group=nginx", {"nginx": "nginx"},
        "user nginx;", "/etc/nginx",
    ),
    "OpenResty": (
        "/usr/local/openresty/nginx/sbin/nginx", "--prefix=/usr/local/openresty/nginx",
        {"nobody": "nogroup"}, "user nobody nogroup;", "/usr/local/openresty/nginx/conf",
    ),
    "own build": (
        "/usr/local/nginx/sbin/nginx", "--user=web", {"web": "staff"}, "user web staff;",
        "/usr/local/nginx/conf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NGINX)
def test_a_private_nginx_is_written_for_the_build_that_is_there(name: str):
    program, arguments, users, user, directory = OF_NGINX[name]
    facts = Nginx().detect(host_with(program, nginx_prints(arguments), folders={}, users=users))

    written = Nginx().render({}, BEHIND, facts)[PurePosixPath("/site/nginx.conf")].decode()

    assert facts.build is not None
    assert (facts.build.name, str(facts.program)) == (name, program)
    assert {user, f"include {directory}/mime.types;", f"include {directory}/fastcgi_params;"} <= {
        line.strip() for line in written.splitlines()
    }


def test_a_user_that_a_host_does_not_have_is_not_written():
    host = host_with("nginx", nginx_prints(f"{NGINX_PREFIX} {ETC}"), folders={}, users={"nobody": "nogroup"})

    assert (
        b"user nobody nogroup;"
        in Nginx().render({}, SITE, Nginx().detect(host))[PurePosixPath("/site/nginx.conf")]
    )


def apache_prints(root: str, file: str) -> str:
    return (
        "Server version: Apache/2.4.62 (Unix)\nServer compiled with....\n -D APR_HAS_SENDFILE\n"
        f' -D HTTPD_ROOT="{root}"\n -D SUEXEC_BIN="/usr/sbin/suexec"\n -D SERVER_CONFIG_FILE="{file}"\n'
    )


WHOLE = "httpd.exp\nmod_http2.so\nmod_socache_shmcb.so\nmod_ssl.so\nmod_unixd.so\n"
PLAIN = "mod_socache_shmcb.so\nmod_unixd.so\n"
HTTPD = "/etc/httpd", "conf/httpd.conf"
IMAGE = "/usr/local/apache2"
OF_APACHE = {
    "Debian, Ubuntu": (
        "/usr/sbin/apache2", ("/etc/apache2", "apache2.conf"), {"/usr/lib/apache2/modules": WHOLE},
        ("www-data", "www-data"), "/usr/lib/apache2/modules", "/etc/mime.types", "",
    ),
    "RHEL, Fedora": (
        "/usr/sbin/httpd", HTTPD, {"/usr/lib64/httpd/modules": PLAIN}, ("apache", "apache"),
        "/usr/lib64/httpd/modules", "/etc/mime.types",
        "mod_ssl.so cannot be found in /usr/lib64/httpd/modules. Install the package: dnf install mod_ssl",
    ),
    "Arch": (
        "/usr/bin/httpd", HTTPD, {"/usr/lib/httpd/modules": WHOLE}, ("http", "http"),
        "/usr/lib/httpd/modules", "/etc/httpd/conf/mime.types", "",
    ),
    "Alpine": (
        "/usr/sbin/httpd", ("/usr", "/etc/apache2/httpd.conf"), {"/usr/lib/apache2": PLAIN},
        ("apache", "apache"), "/usr/lib/apache2", "/etc/apache2/mime.types",
        "mod_ssl.so cannot be found in /usr/lib/apache2. Install the package: apk add apache2-ssl",
    ),
    "container image, own build": (
        f"{IMAGE}/bin/httpd", (IMAGE, "conf/httpd.conf"), {f"{IMAGE}/modules": WHOLE},
        ("daemon", "daemon"), f"{IMAGE}/modules", f"{IMAGE}/conf/mime.types", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_APACHE)
def test_a_private_apache_is_written_for_the_build_that_is_there(name: str):
    program, said, folders, (user, group), modules, types, missing = OF_APACHE[name]
    host = host_with(program, apache_prints(*said), folders=folders, users={user: group})
    facts = Apache().detect(host)

    written = Apache().render({}, SITE, facts)[PurePosixPath("/site/apache2.conf")].decode().splitlines()

    assert facts.build is not None
    assert (facts.build.name, str(facts.program)) == (name, program)
    assert facts.offers[TLS] == missing
    assert {f"User {user}", f"Group {group}", f"TypesConfig {types}"} <= set(written)
    loaded = f"LoadModule %s_module {modules}/mod_%s.so"
    assert loaded % ("mpm_event", "mpm_event") in written
    # Debian's has it compiled in.
    assert (loaded % ("unixd", "unixd") in written) is (name != "Debian, Ubuntu")


INI = "Configuration File (php.ini) Path =>"
OF_PHP_FPM = {
    "Debian, Ubuntu": (
        "/usr/sbin/php-fpm8.2", f"{INI} /etc/php/8.2/fpm\n", "www-data", ("php8.2-fpm", "php-fpm8.2"),
    ),
    "RHEL, Fedora": ("/usr/sbin/php-fpm", f"{INI} /etc\n", "apache", ("php-fpm", "php-fpm")),
    "Arch": ("/usr/bin/php-fpm", f"{INI} /etc/php\n", "http", ("php-fpm", "php-fpm")),
    "Alpine": ("/usr/sbin/php-fpm83", f"{INI} /etc/php83\n", "nobody", ("php-fpm83", "php-fpm83")),
    "Remi": (
        "/opt/remi/php82/root/usr/sbin/php-fpm", f"{INI} /etc/opt/remi/php82\n", "apache",
        ("php82-php-fpm", "php-fpm"),
    ),
    "openSUSE": ("/usr/sbin/php-fpm", f"{INI} /etc/php8/fpm\n", "wwwrun", ("php-fpm", "php-fpm")),
    "container image": (
        "/usr/local/sbin/php-fpm", f"{INI} /usr/local/etc/php\n", "www-data", ("php-fpm", "php-fpm"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_PHP_FPM)
def test_a_private_php_fpm_is_written_for_the_build_that_is_there(name: str):
    program, printed, user, services = OF_PHP_FPM[name]
    host = host_with(program, "", folders={}, users={user: "its-group"})
    host.commands[program] = lambda _host, argv, _stdin: completed(
        argv, stdout=printed.encode() if argv[1] == "-i" else b"PHP 8.2.30 (fpm-fcgi)\n"
    )
    host.commands["find"] = lambda _host, argv, _stdin: completed(argv, stdout=f"{program}\n".encode())
    facts = PhpFpm().detect(host)

    written = PhpFpm().render({}, SITE, facts)[PurePosixPath("/site/php-fpm.conf")].decode().splitlines()

    assert facts.build is not None
    assert (facts.build.name, facts.build.services) == (name, services)
    assert {f"user = {user}", "group = its-group"} <= set(written)


@pytest.mark.parametrize(
    ("server", "names"),
    [
        (Apache(), ("httpd", "apache", "apache2", "apache2")),
        (Nginx(), ("nginx",) * 4),
        (PhpFpm(), ("php-fpm", "php-fpm", "php84-fpm", "php8-fpm")),
        (Haproxy(), ("haproxy",) * 4),
        (Caddy(), ("caddy",) * 4),
        (H2o(), (None, None, "h2o", None)),
    ],
)
def test_the_package_has_its_name_on_every_distribution_of_the_table(
    server: Server, names: tuple[str | None, ...]
):
    assert isinstance(server.package, Package)
    managers = ("dnf", "pacman", "apk", "zypper")
    assert tuple(server.package.elsewhere.get(manager) for manager in managers) == names


@pytest.mark.parametrize(
    ("script", "found"), [("/etc/init.d/apache2", "apache2"), ("/etc/init.d/httpd", "httpd"), ("/x", "httpd")]
)
def test_a_service_is_called_what_the_host_has(script: str, found: str):
    host = host_with("httpd", "", folders={}, users={}, files=[script])

    assert name_service(host, ("httpd", "apache2")) == found
