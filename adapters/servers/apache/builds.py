"""The builds of Apache httpd: what each packager calls it, and where it lays it out.

Sources: `httpd -V` and httpd.conf of apache2 2.4.71-1~deb12u1 (Debian), httpd.spec (Fedora), PKGBUILD (Arch),
main/apache2 of aports (Alpine), docker-library/httpd, config.layout of httpd 2.4.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.kit.builds import match_builds
from tuner.kit.programs import COMMAND_TIMEOUT_S
from tuner.ports import Argv, Build, DropIn, Facts, Host

BASE_MODULES = ("log_config", "logio", "unixd")
"""Every configuration needs them; Debian compiles them in."""
_SAID = re.compile(r'^ -D (\w+)="(.*)"$', re.MULTILINE)
_SHARED = re.compile(r"^mod_(\w+)\.so$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApacheBuild(Build):
    """One build of Apache httpd."""

    modules: PurePosixPath
    types: PurePosixPath
    """Its table of MIME types."""
    drop_ins: PurePosixPath
    """Where an administrator puts a file of settings."""
    is_included: bool = True
    """Whether its configuration reads the files there; else a line has to be added."""
    control: str = ""
    """What is run in place of the program, and gives it the environment that its configuration needs."""
    mpm_file: str = ""
    """Where an administrator chooses the MPM; empty where that is done with a2enmod."""
    loads: tuple[str, ...] = BASE_MODULES
    """Modules besides those of Debian's configuration that it has as files."""
    restart: Argv = ()
    """Restarts its service; empty where systemd does."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Module → package, of those that its main package does not have."""


DEBIAN = ApacheBuild(
    name="Debian, Ubuntu",
    programs=("/usr/sbin/apache2",),
    says={"HTTPD_ROOT": "/etc/apache2", "SERVER_CONFIG_FILE": "apache2.conf"},
    directory=PurePosixPath("/etc/apache2"),
    modules=PurePosixPath("/usr/lib/apache2/modules"),
    types=PurePosixPath("/etc/mime.types"),
    drop_ins=PurePosixPath("/etc/apache2/conf-available"),
    users=("www-data",),
    services=("apache2",),
    installer="apt-get",
    package="apache2",
    # It gives envvars to the program; apachectl of RHEL passes no arguments on.
    control="/usr/sbin/apache2ctl",
    loads=(),
)
_OF_HTTPD = {"HTTPD_ROOT": "/etc/httpd", "SERVER_CONFIG_FILE": "conf/httpd.conf"}
_OF_APACHE2 = {"SERVER_CONFIG_FILE": "/etc/apache2/httpd.conf"}
BUILDS = (
    DEBIAN,
    ApacheBuild(
        name="RHEL, Fedora",
        programs=("/usr/sbin/httpd",),
        says=_OF_HTTPD,
        directory=PurePosixPath("/etc/httpd"),
        modules=PurePosixPath("/usr/lib64/httpd/modules"),
        types=PurePosixPath("/etc/mime.types"),
        drop_ins=PurePosixPath("conf.d"),
        users=("apache",),
        services=("httpd",),
        installer="dnf",
        package="httpd",
        mpm_file="/etc/httpd/conf.modules.d/00-mpm.conf",
        packages={"ssl": "mod_ssl", "http2": "mod_http2"},
    ),
    ApacheBuild(
        name="Arch",
        programs=("/usr/bin/httpd",),
        says=_OF_HTTPD,
        directory=PurePosixPath("/etc/httpd"),
        modules=PurePosixPath("/usr/lib/httpd/modules"),
        types=PurePosixPath("conf/mime.types"),
        drop_ins=PurePosixPath("conf/extra"),
        is_included=False,
        users=("http",),
        services=("httpd",),
        installer="pacman",
        package="apache",
        mpm_file="/etc/httpd/conf/httpd.conf",
    ),
    ApacheBuild(
        name="Alpine",
        programs=("/usr/sbin/httpd",),
        says=_OF_APACHE2,
        directory=PurePosixPath("/etc/apache2"),
        modules=PurePosixPath("/usr/lib/apache2"),
        types=PurePosixPath("/etc/apache2/mime.types"),
        drop_ins=PurePosixPath("/etc/apache2/conf.d"),
        users=("apache",),
        services=("apache2",),
        installer="apk",
        package="apache2",
        mpm_file="/etc/apache2/httpd.conf",
        restart=("rc-service", "apache2", "restart"),
        packages={"ssl": "apache2-ssl", "http2": "apache2-http2"},
    ),
    ApacheBuild(
        name="openSUSE",
        programs=("/usr/sbin/httpd",),
        says=_OF_APACHE2,
        directory=PurePosixPath("/etc/apache2"),
        modules=PurePosixPath("/usr/lib64/apache2"),
        types=PurePosixPath("/etc/apache2/mime.types"),
        drop_ins=PurePosixPath("/etc/apache2/conf.d"),
        users=("wwwrun",),
        services=("apache2",),
        installer="zypper",
        package="apache2",
        mpm_file="/etc/sysconfig/apache2",
    ),
    # As `make install` lays it out, and the official container image with it.
    ApacheBuild(
        name="container image, own build",
        programs=("/usr/local/apache2/bin/httpd",),
        modules=PurePosixPath("modules"),
        types=PurePosixPath("conf/mime.types"),
        drop_ins=PurePosixPath("conf/extra"),
        is_included=False,
        users=("www-data", "daemon"),
        services=("httpd", "apache2"),
        mpm_file="conf/httpd.conf",
    ),
)
CONTROLS: Mapping[str, PurePosixPath] = {
    each.control: PurePosixPath(each.programs[0]) for each in BUILDS if each.control
}
"""What is asked instead of a program itself → that program."""
SYSCONFIG = PurePosixPath("/etc/sysconfig/httpd")
"""Where RHEL-likes keep the program's arguments, in OPTIONS (httpd.service)."""


def find_build(host: Host, printed: str) -> tuple[ApacheBuild, frozenset[str]]:
    """Return which build a host has, with its paths, and the modules that are files there.

    Args:
        host: where the program is.
        printed: what it printed for `-V`.
    """
    said = dict(_SAID.findall(printed))
    root = PurePosixPath(said.get("HTTPD_ROOT", "/"))
    alike = match_builds(BUILDS, said)
    # A build that prints other paths may lie where one of these does.
    likely = [
        replace(
            each,
            directory=root / each.directory,
            modules=root / each.modules,
            types=root / each.types,
            drop_ins=root / each.drop_ins,
            mpm_file=str(root / each.mpm_file) if each.mpm_file else "",
        )
        for each in (*alike, *(each for each in BUILDS if each not in alike))
    ]
    with suppress(TargetError):
        for each in likely:
            listed = host.run(("ls", str(each.modules)), timeout_s=COMMAND_TIMEOUT_S)
            if found := _SHARED.findall(listed.stdout.decode(errors="replace")):
                return each, frozenset(found)
    return likely[0], frozenset()


def write_place(build: ApacheBuild, server: str) -> DropIn:
    """Return where an operator puts a file of settings, and how it is switched on."""
    name = f"tuner-{server}"
    line = f"first add `Include {build.drop_ins}/{name}.conf` as the last line of {build.mpm_file}"
    # Debian includes conf-enabled after mods-enabled (apache2.conf), and of a directive that is given twice
    # at server level the last one counts, so it overrides mods-available/mpm_event.conf.
    is_switched = build == DEBIAN
    return DropIn(
        directory=build.drop_ins,
        enable=("a2enconf", name) if is_switched else (),
        disable=("a2disconf", name) if is_switched else (),
        check=("apachectl", "configtest") if is_switched else (PurePosixPath(build.programs[0]).name, "-t"),
        restart=build.restart or ("systemctl", "restart", build.services[0]),
        note="a reload changes neither ServerLimit, ThreadLimit nor ListenBacklog",
        log_directory="${APACHE_LOG_DIR}" if is_switched else "logs",
        elsewhere="" if build.is_included else line,
    )


def build_of(facts: Facts) -> ApacheBuild:
    """Return the build that facts are of; Debian's where they say nothing of it."""
    return facts.build if isinstance(facts.build, ApacheBuild) else DEBIAN
