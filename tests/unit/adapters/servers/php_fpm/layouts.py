"""Installed php-fpms as distributions lay them out: files, and what the program prints of them.

The settings are those of the packages (php8.2-fpm of Debian 12, php-fpm of RHEL 9).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tests.unit.adapters.servers.service_managers import answer_test
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.ports import Argv, Completed, FileState, Installation
from tuner.testing.fakes import MemoryHost, completed

CPUS = PurePosixPath("/sys/devices/system/cpu/online")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One machine."""

    programs: tuple[str, ...]
    version: str
    files: Mapping[str, str]
    """The main file first."""
    dumped: Mapping[str, Mapping[str, str]]
    """What `-tt` prints besides, by section."""
    others: Mapping[str, str]
    prefix: str = "/usr"
    is_systemd: bool = True


def with_file(layout: Layout, path: str, text: str) -> Layout:
    """Replace or add one file."""
    return replace(layout, files={**layout.files, path: text})


def with_pool(layout: Layout, **values: str) -> Layout:
    """Let `-tt` print other values of the pool; `__` stands for a dot."""
    changed = {key.replace("__", "."): value for key, value in values.items()}
    return replace(layout, dumped={**layout.dumped, "www": {**layout.dumped["www"], **changed}})


def host_of(layout: Layout) -> MemoryHost:
    """Make a machine that answers like this one."""

    def php_fpm(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        if "-v" in argv:
            return completed(argv, stdout=f"PHP {layout.version} (fpm-fcgi) (built: any)\n".encode())
        if "-h" in argv:
            return completed(argv, stdout=f"  -p <dir>  Prefix (default: {layout.prefix}).\n".encode())
        return completed(argv, stderr=_dump(layout).encode())

    def find(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        if "php-fpm*" in argv:
            return completed(argv, stdout="".join(f"{path}\n" for path in layout.programs).encode())
        return completed(argv, stdout="".join(f"{path}\0" for path in reversed(layout.files)).encode())

    files = {**layout.files, **layout.others, str(CPUS): "0-1\n"}
    return MemoryHost(
        files={PurePosixPath(path): FileState(content=text.encode()) for path, text in files.items()},
        commands={
            **dict.fromkeys(layout.programs, php_fpm),
            "find": find,
            "test": answer_test(is_systemd=layout.is_systemd),
        },
    )


def find_pool(layout: Layout) -> Installation:
    return PhpFpm().find(host_of(layout))


def _dump(layout: Layout) -> str:
    """Print as `-tt` does (8.2.36)."""
    stamp = "[21-Nov-2026 15:19:15] NOTICE: "
    lines = []
    for section, values in layout.dumped.items():
        lines += [f"[{section}]", *(f"\t{key} = {value}" for key, value in values.items()), " "]
    main = next(iter(layout.files))
    lines += [f"configuration file {main} test is successful", ""]
    return "\n".join(stamp + line for line in lines)


POOL = {
    "user": "www-data", "listen": "/run/php/php8.2-fpm.sock",
    "listen.backlog": "-1", "listen.mode": "undefined", "process.priority": "undefined",
    "process.dumpable": "no", "pm": "dynamic", "pm.max_children": "5", "pm.start_servers": "2",
    "pm.min_spare_servers": "1", "pm.max_spare_servers": "3", "pm.max_spawn_rate": "32",
    "pm.process_idle_timeout": "10", "pm.max_requests": "0", "request_terminate_timeout": "0s",
    "rlimit_files": "0", "rlimit_core": "0", "catch_workers_output": "no", "clear_env": "yes",
}  # fmt: skip
BOOKWORM = Layout(
    programs=("/usr/sbin/php-fpm8.2",),
    version="8.2.36",
    files={
        "/etc/php/8.2/fpm/php-fpm.conf": (
            "[global]\npid = /run/php/php8.2-fpm.pid\nerror_log = /var/log/php8.2-fpm.log\n"
            "include=/etc/php/8.2/fpm/pool.d/*.conf\n"
        ),
        "/etc/php/8.2/fpm/pool.d/www.conf": (
            "; one pool\n[www]\nuser = www-data\nlisten = /run/php/php8.2-fpm.sock\npm = dynamic\n"
            "pm.max_children = 5\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n"
        ),
    },
    dumped={
        "global": {"pid": "/run/php/php8.2-fpm.pid", "error_log": "/var/log/php8.2-fpm.log"},
        "www": POOL,
    },
    others={},
)
RHEL = Layout(
    programs=("/usr/sbin/php-fpm",),
    version="8.0.30",
    files={
        "/etc/php-fpm.conf": (
            "include=/etc/php-fpm.d/*.conf\n[global]\npid = /run/php-fpm/php-fpm.pid\n"
            "error_log = /var/log/php-fpm/error.log\ndaemonize = yes\n"
        ),
        "/etc/php-fpm.d/www.conf": (
            "[www]\nuser = apache\nlisten = /run/php-fpm/www.sock\nlisten.acl_users = apache,nginx\n"
            "pm = dynamic\npm.max_children = 50\npm.start_servers = 5\npm.min_spare_servers = 5\n"
            "pm.max_spare_servers = 35\n"
        ),
    },
    dumped={
        "global": {"pid": "/run/php-fpm/php-fpm.pid", "error_log": "/var/log/php-fpm/error.log"},
        "www": {
            **{key: value for key, value in POOL.items() if key != "pm.max_spawn_rate"},
            "listen.backlog": "511", "pm.max_children": "50", "pm.start_servers": "5",
            "pm.min_spare_servers": "5", "pm.max_spare_servers": "35",
        },
    },
    others={},
)  # fmt: skip
DOCKER = Layout(
    programs=("/usr/local/sbin/php-fpm",),
    version="8.3.14",
    files={
        "/usr/local/etc/php-fpm.conf": "[global]\n;pid = run/php-fpm.pid\ninclude=etc/php-fpm.d/*.conf\n",
        "/usr/local/etc/php-fpm.d/docker.conf": "[global]\nerror_log = /proc/self/fd/2\n",
        "/usr/local/etc/php-fpm.d/www.conf": "[www]\nlisten = 127.0.0.1:9000\npm = dynamic\n",
        "/usr/local/etc/php-fpm.d/zz-docker.conf": "[global]\ndaemonize = no\n[www]\nlisten = 9000\n",
    },
    dumped={
        "global": {"pid": "undefined", "error_log": "/proc/self/fd/2"},
        "www": {**POOL, "listen": "9000"},
    },
    others={},
    prefix="/usr/local",
    is_systemd=False,
)
SHOP_AND_BLOG = replace(
    with_file(BOOKWORM, "/etc/php/8.2/fpm/pool.d/www.conf", "[shop]\npm = static\n[blog]\npm = static\n"),
    dumped={
        "global": BOOKWORM.dumped["global"],
        "shop": {**POOL, "listen": "127.0.0.1:9000", "pm.max_children": "7"},
        "blog": {**POOL, "listen": "/run/php/blog.sock", "pm.max_children": "8"},
        "wiki": {**POOL, "listen": "9001", "pm.max_children": "9"},
    },
)
"""A php-fpm with several pools, none of which has the usual name."""
LAYOUTS = {"debian-12": BOOKWORM, "rhel-9": RHEL}
