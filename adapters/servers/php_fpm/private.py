"""Write the files of a private instance: one pool as Debian packages it, with other settings.

Directives of php.ini are read from a file of the instance's own, after those of the installation: the shared
memory of opcache is made when the first process starts, before any pool is known
(ext/opcache/ZendAccelerator.c).
"""

import re

from tuner.adapters.servers.php_fpm.builds import BUILDS
from tuner.adapters.servers.php_fpm.installation import KEYS, PROTECTIONS
from tuner.errors import ConfigRejected, UsageError
from tuner.kit import programs
from tuner.kit.values import require_known
from tuner.ports import FASTCGI, Argv, Config, Facts, Files, Host, Scalar, Site, Upstream

CONFIG_FILE = "php-fpm.conf"
INI_FILE = "tuner.ini"
POOL = "www"
SOCKET = "listen"
"""Name of the parameter: unix or tcp."""
PACKAGED: Config = {
    "pm": "dynamic",
    "pm.max_children": 5,
    "pm.start_servers": 2,
    "pm.min_spare_servers": 1,
    "pm.max_spare_servers": 3,
}
"""pool.d/www.conf of Debian 12."""
SETTINGS = frozenset(
    {
        *PACKAGED, *KEYS, "pm.max_spawn_rate", "pm.process_idle_timeout", "pm.max_requests", "rlimit_files",
        "request_terminate_timeout", "catch_workers_output",
    }
)  # fmt: skip
OF_OPCACHE = frozenset(
    {
        "opcache.memory_consumption", "opcache.max_accelerated_files", "opcache.validate_timestamps",
        "opcache.revalidate_freq", "opcache.enable_file_override", "opcache.jit",
    }
)  # fmt: skip
JIT_BUFFER = "opcache.jit_buffer_size = 64M\n"
"""Without one there is no JIT, whatever opcache.jit says."""
WORDS = {
    "pm": ("static", "dynamic", "ondemand"),
    SOCKET: ("unix", "tcp"),
    "opcache.jit": ("off", "tracing", "function"),
}

_DIRECTIVE = re.compile(r"^(opcache\.\w+) => (.*?) => .*$", re.MULTILINE)
_POOL = """\
[global]
pid = {directory}/php-fpm.pid
error_log = {error_log}
daemonize = no

[{pool}]
user = {user}
group = {group}
listen = {listen}
; Nobody but the sandbox sees it; without the right to give it away, an ordinary user could not start.
listen.mode = 0666
{lines}
"""


def upstream_of(config: Config, site: Site) -> Upstream:
    """Return where the pool listens."""
    if config.get(SOCKET, "unix") == "tcp":
        return Upstream(protocol=FASTCGI, port=site.port)
    return Upstream(protocol=FASTCGI, socket=site.directory / "php-fpm.sock")


def write_files(config: Config, site: Site, facts: Facts) -> Files:
    """Return the pool's file and that of php.ini's directives.

    Raises:
        ConfigRejected: a setting is not one that tuner knows, or a value is none of its setting's.
        UsageError: a path would be read as syntax.
    """
    if any(character in str(site.directory) for character in "\n\"'; "):
        raise UsageError(f"php-fpm: the path {str(site.directory)!r} cannot be written. Use another folder.")
    words = {name: _write(name, value) for name, value in {**PACKAGED, **config}.items()}
    upstream = upstream_of(config, site)
    lines = [f"{KEYS.get(name, name)} = {word}" for name, word in words.items() if name in SETTINGS]
    pool = _POOL.format(
        directory=site.directory, error_log=site.error_log, pool=POOL, lines="\n".join(lines),
        listen=upstream.socket or upstream.address, user=facts.user or BUILDS[0].users[0],
        group=facts.group or BUILDS[0].users[0],
    )  # fmt: skip
    ini = [f"{name} = {word}\n" for name, word in words.items() if name in OF_OPCACHE]
    # Otherwise it lies in /tmp.
    ini.append(f"opcache.lockfile_path = {site.directory}\n")
    ini += [JIT_BUFFER] * (words.get("opcache.jit", "off") != "off")
    return {
        site.directory / CONFIG_FILE: pool.encode(),
        site.directory / INI_FILE: "".join(ini).encode(),
    }


def command(site: Site, facts: Facts, *arguments: str) -> Argv:
    """Return the program's command with both files; an empty folder stands for the installation's own."""
    scanned = f"PHP_INI_SCAN_DIR=:{site.directory}"
    return ("env", scanned, str(facts.program), "--fpm-config", str(site.directory / CONFIG_FILE), *arguments)


def _write(name: str, value: Scalar) -> str:
    require_known("php-fpm", name, {*SETTINGS, *OF_OPCACHE, SOCKET}.difference(PROTECTIONS))
    is_one = value in WORDS[name] if name in WORDS else isinstance(value, bool | int)
    if not is_one:
        raise ConfigRejected(
            f"php-fpm: {name} = {str(value)[:80]!r} is not one value. Correct the search space."
        )
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def read_directives(host: Host, config: Config, site: Site, facts: Facts) -> dict[str, Scalar]:
    """Read what the program takes from its files for the directives of a configuration (`-i`)."""
    asked = [name for name in config if name in OF_OPCACHE]
    if not asked:
        return {}
    printed = programs.decode(host.run(command(site, facts, "-i"), timeout_s=programs.COMMAND_TIMEOUT_S))
    local = dict(_DIRECTIVE.findall(printed))
    return {name: _read(name, local[name], config[name]) for name in asked if name in local}


def _read(name: str, printed: str, asked: Scalar) -> Scalar:
    """Turn what was printed into a value of the kind that was asked."""
    if name in WORDS:
        return "off" if printed == "no value" else printed
    if isinstance(asked, bool):
        return printed == "On"
    return int(printed) if printed.isdecimal() else printed
