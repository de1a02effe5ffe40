"""Installed Apaches as distributions lay them out: files, and what the control program prints of them.

The settings are those of the packages (apache2 2.4.71 of Debian 12, apache2 2.4.58 of Ubuntu 24.04, httpd
2.4.62 of RHEL 9), as far as the adapter reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tests.unit.adapters.servers.service_managers import answer_test
from tuner.adapters.servers.apache import Apache
from tuner.ports import Argv, Completed, FileState, Installation, InstalledServer
from tuner.testing.fakes import MemoryHost, completed

STATIC_OF_DEBIAN = ("core", "so", "watchdog", "http", "log_config", "logio", "version", "unixd")
CPUS = PurePosixPath("/sys/devices/system/cpu/online")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One machine."""

    control: str
    version: str
    modules: Sequence[str]
    files: Mapping[str, str]
    """The main file first, then in the order in which they are included."""
    others: Mapping[str, str]
    """Files that are no configuration of Apache's own."""
    pid_file: str
    log: str
    is_systemd: bool = True
    prefix: str = ""
    """For which it was built; else the folder in /etc that has its main file."""


def with_file(layout: Layout, path: str, text: str) -> Layout:
    """Replace or add one file."""
    return replace(layout, files={**layout.files, path: text})


def host_of(layout: Layout) -> MemoryHost:
    """Make a machine that answers like this one."""

    def control(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        if "-V" in argv:
            main = PurePosixPath(next(iter(layout.files)))
            root = PurePosixPath(layout.prefix or main.parents[-3])
            file = main.relative_to(root) if main.is_relative_to(root) else main
            said = (
                f"Server version: Apache/{layout.version} (any)\nServer compiled with....\n"
                f' -D HTTPD_ROOT="{root}"\n -D SERVER_CONFIG_FILE="{file}"\n'
            )
            return completed(argv, stdout=said.encode())
        if "-L" in argv:
            return completed(argv, stdout=LISTED.encode())
        return completed(argv, stdout=_dump(layout).encode())

    files = {**layout.files, **layout.others, str(CPUS): "0-3\n"}
    return MemoryHost(
        files={PurePosixPath(path): FileState(content=text.encode()) for path, text in files.items()},
        commands={
            layout.control: control,
            "test": answer_test(is_systemd=layout.is_systemd),
        },
    )


def find(layout: Layout, server: InstalledServer | None = None) -> Installation:
    return (server or Apache()).find(host_of(layout))


def with_mpm(name: str, *more: str) -> Layout:
    """Return Debian with another MPM, as `a2enmod` leaves it, and with more modules."""
    others = {path: text for path, text in DEBIAN.files.items() if "/mpm_event." not in path}
    enabled = "/etc/apache2/mods-enabled/mpm_"
    main = "/etc/apache2/apache2.conf"
    return replace(
        DEBIAN,
        modules=(*(each for each in DEBIAN.modules if each != "mpm_event"), f"mpm_{name}", *more),
        files={
            main: others.pop(main),
            f"{enabled}{name}.load": f"LoadModule mpm_{name}_module modules/mod_mpm_{name}.so\n",
            f"{enabled}{name}.conf": {"worker": MPM_EVENT, "prefork": MPM_PREFORK}[name],
            **others,
        },
    )


def _dump(layout: Layout) -> str:
    """Print as `-t -D DUMP_INCLUDES -D DUMP_RUN_CFG -D DUMP_MODULES` does (2.4.71)."""
    main, *included = layout.files
    return "\n".join(
        [
            "Included configuration files:",
            f"  (*) {main}",
            *(f"    ({number}) {path}" for number, path in enumerate(included, start=140)),
            f'ServerRoot: "{PurePosixPath(main).parent}"',
            'Main DocumentRoot: "/var/www/html"',
            f'Main ErrorLog: "{layout.log}"',
            'Mutex default: dir="/run/" mechanism=default ',
            f'PidFile: "{layout.pid_file}"',
            "Define: DUMP_RUN_CFG",
            "Loaded Modules:",
            *(f" {module}_module (shared)" for module in layout.modules),
            "",
        ]
    )


LISTED = """\
<Directory (core.c)
\tContainer for directives affecting resources located in the specified directories
\tAllowed in *.conf only outside <Directory>, <Files>, <Location>, or <If>
KeepAlive (http_core.c)
\tWhether persistent connections should be On or Off
QS_SrvMaxConn (mod_qos.c)
\tMaximum number of concurrent TCP connections
"""
"""Some of what `-L` prints (2.4.71)."""
ENVVARS = """\
unset HOME
if [ "${APACHE_CONFDIR##/etc/apache2-}" != "${APACHE_CONFDIR}" ] ; then
    SUFFIX="-${APACHE_CONFDIR##/etc/apache2-}"
else
    SUFFIX=
fi
export APACHE_RUN_USER=www-data
export APACHE_PID_FILE=/var/run/apache2$SUFFIX/apache2.pid
export APACHE_LOG_DIR=/var/log/apache2$SUFFIX
"""
MPM_EVENT = """\
# event MPM
StartServers            2
MinSpareThreads         25
MaxSpareThreads         75
ThreadLimit             64
ThreadsPerChild         25
MaxRequestWorkers       150
MaxConnectionsPerChild  0
"""
MPM_PREFORK = """\
# prefork MPM
StartServers            5
MinSpareServers         5
MaxSpareServers         10
MaxRequestWorkers       150
MaxConnectionsPerChild  0
"""
DEBIAN = Layout(
    control="/usr/sbin/apache2ctl",
    version="2.4.71",
    modules=(*STATIC_OF_DEBIAN, "mpm_event", "reqtimeout", "status"),
    files={
        "/etc/apache2/apache2.conf": """\
DefaultRuntimeDir ${APACHE_RUN_DIR}
PidFile ${APACHE_PID_FILE}
Timeout 300
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
ErrorLog ${APACHE_LOG_DIR}/error.log
IncludeOptional mods-enabled/*.load
IncludeOptional mods-enabled/*.conf
Include ports.conf
<Directory />
\tOptions FollowSymLinks
\tRequire all denied
</Directory>
IncludeOptional conf-enabled/*.conf
IncludeOptional sites-enabled/*.conf
""",
        "/etc/apache2/mods-enabled/mpm_event.load": (
            "LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n"
        ),
        "/etc/apache2/mods-enabled/mpm_event.conf": MPM_EVENT,
        "/etc/apache2/mods-enabled/reqtimeout.conf": (
            "RequestReadTimeout header=20-40,minrate=500\nRequestReadTimeout body=10,minrate=500\n"
        ),
        "/etc/apache2/mods-enabled/status.conf": (
            "<Location /server-status>\n\tSetHandler server-status\n\tRequire local\n</Location>\n"
            "ExtendedStatus On\n"
        ),
        "/etc/apache2/ports.conf": "Listen 80\n<IfModule ssl_module>\n\tListen 443\n</IfModule>\n",
        "/etc/apache2/conf-enabled/security.conf": "ServerTokens OS\nTraceEnable Off\n",
        "/etc/apache2/sites-enabled/000-default.conf": (
            "<VirtualHost *:80>\n\tDocumentRoot /var/www/html\n"
            "\tCustomLog ${APACHE_LOG_DIR}/access.log combined\n</VirtualHost>\n"
        ),
    },
    others={"/etc/apache2/envvars": ENVVARS},
    pid_file="/var/run/apache2/apache2.pid",
    log="/var/log/apache2/error.log",
)
UBUNTU = replace(DEBIAN, version="2.4.58")
RHEL = Layout(
    control="/usr/sbin/httpd",
    version="2.4.62",
    modules=("core", "so", "http", "log_config", "unixd", "mpm_event", "status", "systemd"),
    files={
        "/etc/httpd/conf/httpd.conf": """\
ServerRoot "/etc/httpd"
Listen 80
Include conf.modules.d/*.conf
User apache
ErrorLog "logs/error_log"
<IfModule log_config_module>
    LogFormat "%h %l" common
    CustomLog "logs/access_log" combined
</IfModule>
EnableSendfile on
IncludeOptional conf.d/*.conf
""",
        "/etc/httpd/conf.modules.d/00-mpm.conf": (
            "#LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\n"
            "LoadModule mpm_event_module modules/mod_mpm_event.so\n"
        ),
        "/etc/httpd/conf.d/welcome.conf": '<LocationMatch "^/+$">\n    Options -Indexes\n</LocationMatch>\n',
    },
    others={"/etc/sysconfig/httpd": "# Options for httpd\nLANG=C\n#OPTIONS=\n"},
    pid_file="/run/httpd/httpd.pid",
    log="/etc/httpd/logs/error_log",
)
ALPINE = replace(
    RHEL,
    version="2.4.66",
    modules=tuple(each for each in RHEL.modules if each != "systemd"),
    files={
        "/etc/apache2/httpd.conf": RHEL.files["/etc/httpd/conf/httpd.conf"].replace(
            "conf.d/*.conf", "/etc/apache2/conf.d/*.conf"
        ),
    },
    others={"/etc/init.d/apache2": "#!/sbin/openrc-run\n"},
    pid_file="/run/apache2/httpd.pid",
    log="/var/www/logs/error.log",
    is_systemd=False,
    prefix="/usr",
)
LAYOUTS = {"debian-12": DEBIAN, "ubuntu-24.04": UBUNTU, "rhel-9": RHEL}
